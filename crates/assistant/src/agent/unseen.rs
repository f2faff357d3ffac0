//! One-time codes that a conversation was shown once, and that leave it no more. Pure.
//!
//! What counts as shown: what a tool that reads messages brought with its code, whenever that was; and, in a
//! conversation in which the person let the model see codes, all codes that a tool or the model spoke of. Those
//! characters go from everything that is sent or exported later, however they are spelled there.
//!
//! The person's own words lose them too, since somebody who hides a code again wants it gone wherever it was written.
//! Only what they say in this very moment stays as it is: they type it on purpose, and the question would make no sense
//! with a hole in it.

use kai_codes::KnownCodes;
use kai_llm::Message;
use serde_json::Value;

use super::older;
use crate::tool::Meaning;

/// May the model see one-time codes in this conversation?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codes {
    #[default]
    Hidden,
    /// The person wants it.
    Shown,
    /// They wanted it once: what was said then may hold some.
    HiddenAgain,
}

impl Codes {
    pub(super) fn of(stored: i64) -> Self {
        match stored {
            0 => Self::Hidden,
            1 => Self::Shown,
            _ => Self::HiddenAgain,
        }
    }
}

/// The codes that were shown by these messages, in a conversation that is so or was so. Each comes with what it means, if
/// that is known.
pub(crate) fn shown_by<'a>(
    messages: impl IntoIterator<Item = (&'a Message, Option<&'a Meaning>)>,
    codes: Codes,
) -> KnownCodes {
    let mut shown = KnownCodes::default();
    for (message, meaning) in messages {
        match message {
            Message::Tool { result, .. } if codes != Codes::Hidden => shown.learn_json(result),
            // Nobody clicked: numbers beside a text that speaks of a code are just numbers.
            Message::Tool { tool, result, .. } if holds_messages(tool, meaning) => {
                shown.learn_strings(result);
            }
            Message::Assistant { text, calls, .. } if codes != Codes::Hidden => {
                shown.learn(text);
                for call in calls {
                    shown.learn_json(&call.arguments);
                }
            }
            Message::User { .. } | Message::Tool { .. } | Message::Assistant { .. } => {}
        }
    }
    shown
}

/// Whether a result holds messages. Codes are hidden in those before anybody else sees them, so a code that is there was
/// shown.
fn holds_messages(tool: &str, meaning: Option<&Meaning>) -> bool {
    meaning.map_or_else(|| older::holds_messages(tool), |meaning| !meaning.mentions.is_empty())
}

/// What is kept from a model, or from a file, in a conversation of that kind: nothing, what was shown, or any code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) codes: Codes,
    /// Is the setting on that hides codes?
    pub(crate) hiding: bool,
    /// Its messages are the reports of runs that nobody watched: what those saw is in no result that was kept.
    pub(crate) reports: bool,
}

impl Kept {
    /// `None` where the model may see codes.
    pub(crate) fn for_model(self) -> Option<Codes> {
        match self.codes {
            Codes::Shown => None,
            Codes::HiddenAgain => Some(Codes::HiddenAgain),
            Codes::Hidden if !self.hiding => None,
            Codes::Hidden => Some(if self.reports { Codes::HiddenAgain } else { Codes::Hidden }),
        }
    }

    /// A file leaves the house, so codes that the model may see stay behind too.
    pub(crate) fn for_file(self) -> Option<Codes> {
        if self.codes == Codes::Shown { Some(Codes::HiddenAgain) } else { self.for_model() }
    }
}

/// Hides codes in one conversation.
#[derive(Debug, Default)]
pub(crate) struct Veil {
    codes: Codes,
    shown: KnownCodes,
}

impl Veil {
    /// Over these messages, in which `shown` and whatever they themselves show is to be seen no more.
    pub(crate) fn new<'a>(
        codes: Codes,
        mut shown: KnownCodes,
        messages: impl IntoIterator<Item = (&'a Message, Option<&'a Meaning>)>,
    ) -> Self {
        shown.extend(shown_by(messages, codes));
        Self { codes, shown }
    }

    pub(crate) fn over_text(&self, text: &str) -> String {
        self.shown.redact(text)
    }

    pub(crate) fn over(&self, message: Message) -> Message {
        without_codes(message, self.codes, &self.shown)
    }

    /// `said_now` is the place of what the person is just saying.
    pub(super) fn over_all(&self, messages: &[Message], said_now: Option<usize>) -> Vec<Message> {
        let veiled = |(at, message): (usize, &Message)| {
            let is_now = said_now == Some(at) && matches!(message, Message::User { .. });
            if is_now { message.clone() } else { self.over(message.clone()) }
        };
        messages.iter().enumerate().map(veiled).collect()
    }
}

/// A message without the codes that were shown, nor, where they were shown once, any other that a tool or the model
/// spoke of.
fn without_codes(message: Message, codes: Codes, shown: &KnownCodes) -> Message {
    let message = if codes == Codes::Hidden { message } else { without_any_code(message) };
    match message {
        Message::User { text } => Message::User { text: shown.redact(&text) },
        Message::Assistant { text, mut calls, signature } => {
            for call in &mut calls {
                call.arguments = shown.redact_json(&call.arguments);
            }
            Message::Assistant { text: shown.redact(&text), calls, signature }
        }
        Message::Tool { call, tool, result } => {
            Message::Tool { call, tool, result: shown.redact_json(&result) }
        }
    }
}

/// What was said, without the codes in what tools brought and in what the model made of it, each by itself.
fn without_any_code(message: Message) -> Message {
    match message {
        Message::User { .. } => message,
        Message::Assistant { text, mut calls, signature } => {
            for call in &mut calls {
                call.arguments = of_json(&call.arguments);
            }
            Message::Assistant { text: kai_codes::redact(&text), calls, signature }
        }
        Message::Tool { call, tool, result } => Message::Tool { call, tool, result: of_json(&result) },
    }
}

/// Each text alone, where no escape stands before a code; then all together, since one field may say what another is.
fn of_json(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return kai_codes::redact(text) };
    hide(&mut value);
    kai_codes::redact(&value.to_string())
}

fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = kai_codes::redact(text),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use kai_llm::{CallId, ToolCall};

    use super::*;

    fn call() -> CallId {
        CallId("1".to_owned())
    }

    fn tool(tool: &str, result: &str) -> Message {
        Message::Tool { call: call(), tool: tool.to_owned(), result: result.to_owned() }
    }

    fn answer(text: &str, arguments: &str) -> Message {
        let (name, arguments) = ("send_sms".to_owned(), arguments.to_owned());
        let calls = vec![ToolCall { id: call(), name, arguments, signature: None }];
        Message::Assistant { text: text.to_owned(), calls, signature: None }
    }

    #[test]
    fn codes_go_from_results_calls_and_answers_but_not_from_what_the_person_said() {
        let read =
            serde_json::json!({"from": "+15550100", "body": "Hi\n482913 is your login code"}).to_string();
        let drafted = serde_json::json!({"to": "+15550100", "body": "My login code is 482913"}).to_string();
        let said = [
            tool("read_sms", &read),
            answer("Your login code is 482913.", &drafted),
            tool("t", "login code: 482913 [cut"),
        ];
        for message in said {
            let hidden = without_codes(message, Codes::HiddenAgain, &KnownCodes::default());
            let hidden = serde_json::to_string(&hidden).unwrap();
            assert!(!hidden.contains("482913") && hidden.contains("[code]"), "{hidden}");
        }
        let mine = Message::User { text: "Is my login code 482913?".to_owned() };
        assert_eq!(without_codes(mine.clone(), Codes::HiddenAgain, &KnownCodes::default()), mine);
    }

    /// Where nothing tells that it is a code, what was shown elsewhere tells it.
    #[test]
    fn what_was_shown_in_one_message_goes_from_all() {
        let said = [
            tool("read_sms", r#"{"body":"Your login code is 482913"}"#),
            answer("It is 482 913, or four eight two nine one three.", r#"{"body":"4-8-2-9-1-3"}"#),
            tool("shell_command", r#"{"stdout":"4\u00382913\n"}"#),
            Message::User { text: "so 482.913?".to_owned() },
        ];
        let shown = shown_by(said.iter().map(|message| (message, None)), Codes::HiddenAgain);
        assert_eq!(shown.iter().collect::<Vec<_>>(), ["482913"]);
        for message in said {
            let hidden = without_codes(message, Codes::HiddenAgain, &shown);
            let hidden = serde_json::to_string(&hidden).unwrap();
            let left: String = hidden.chars().filter(char::is_ascii_digit).collect();
            assert!(hidden.contains("[code]") && !left.contains("482"), "{hidden}");
            assert!(!hidden.contains("eight"), "{hidden}");
        }
    }

    /// Without a click there is nothing to remember, but for what a message's own tool brought with the setting off.
    #[test]
    fn only_what_was_shown_counts() {
        let web = tool("fetch_url", r#"{"text":"The door code is 7052."}"#);
        let said = [web, answer("The door code is 7052.", "{}")];
        let unknown = || said.iter().map(|message| (message, None));
        assert!(shown_by(unknown(), Codes::Hidden).is_empty());
        assert!(!shown_by(unknown(), Codes::Shown).is_empty());
        let read = tool("some_tool", r#"{"body":"The door code is 7052."}"#);
        let holding = Meaning { mentions: vec!["sms 1".to_owned()], ..Meaning::default() };
        assert!(!shown_by([(&read, Some(&holding))], Codes::Hidden).is_empty());
        assert!(shown_by([(&read, Some(&Meaning::default()))], Codes::Hidden).is_empty());
        for (name, is_read) in [
            ("check_sms", cfg!(feature = "sms")),
            ("read_notification", cfg!(feature = "notifications")),
            ("some_tool", false),
        ] {
            let older = tool(name, r#"{"body":"The door code is 7052. [cut"#);
            assert_eq!(shown_by([(&older, None)], Codes::Hidden).is_empty(), !is_read, "{name}");
        }
    }

    #[test]
    fn what_the_person_says_now_stays() {
        let veil = Veil::new(Codes::HiddenAgain, KnownCodes::from_stored(["482913".to_owned()]), []);
        let user = |text: &str| Message::User { text: text.to_owned() };
        let said = [user("was it 482913?"), user("and 482913 + 1?")];
        assert_eq!(veil.over_all(&said, Some(1)), [user("was it [code]?"), user("and 482913 + 1?")]);
        assert_eq!(veil.over_all(&said, None)[1], user("and [code] + 1?"));
        assert_eq!(veil.over_text("Remembered: 482 913"), "Remembered: [code]");
    }

    #[test]
    fn what_is_kept_goes_by_the_click_and_by_the_setting() {
        use Codes::{Hidden, HiddenAgain, Shown};
        for (codes, hiding, reports, model, file) in [
            (Hidden, true, false, Some(Hidden), Some(Hidden)),
            (Hidden, true, true, Some(HiddenAgain), Some(HiddenAgain)),
            (Hidden, false, true, None, None),
            (Shown, true, false, None, Some(HiddenAgain)),
            (Shown, false, false, None, Some(HiddenAgain)),
            (HiddenAgain, true, false, Some(HiddenAgain), Some(HiddenAgain)),
            (HiddenAgain, false, false, Some(HiddenAgain), Some(HiddenAgain)),
        ] {
            let kept = Kept { codes, hiding, reports };
            assert_eq!((kept.for_model(), kept.for_file()), (model, file), "{kept:?}");
        }
    }
}
