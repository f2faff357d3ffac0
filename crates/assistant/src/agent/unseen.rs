//! Hides one-time codes that a conversation was shown earlier. Pure.
//!
//! A code counts as shown if a tool that reads messages returned it, whenever that was; and, in a conversation in which
//! the user let the model see codes, also if any tool or the model mentioned it. These codes are removed from
//! everything that is sent or exported later, however they are written there.
//!
//! They are removed from the user's own messages too, since a user who hides a code again wants it gone everywhere.
//! Only the message that the user is sending right now stays unchanged: they typed the code on purpose, and the
//! question would make no sense without it.

use kai_codes::KnownCodes;
use kai_llm::Message;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::older;
use crate::tool::Provenance;
use crate::untrusted::escaped;

/// Whether the model may see one-time codes in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Codes {
    #[default]
    Hidden,
    /// The user allowed it.
    Shown,
    /// The user allowed it and revoked it; messages from that time may contain codes.
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

/// The codes that these messages showed, in a conversation with that setting. Each message comes with its meaning, if
/// that is known.
pub(crate) fn shown_by<'a>(
    messages: impl IntoIterator<Item = (&'a Message, Option<&'a Provenance>)>,
    codes: Codes,
) -> KnownCodes {
    let mut shown = KnownCodes::default();
    for (message, meaning) in messages {
        match message {
            Message::Tool { result, .. } if codes != Codes::Hidden => shown.learn_json(result),
            // The user did not allow codes, so only codes within one string count; numbers in other fields are just
            // numbers.
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

/// Whether a result contains messages. Codes in messages are normally hidden before anyone sees them, so a code that is
/// there was shown.
fn holds_messages(tool: &str, meaning: Option<&Provenance>) -> bool {
    meaning.map_or_else(|| older::holds_messages(tool), |meaning| !meaning.mentions.is_empty())
}

/// What decides which codes are hidden in a conversation, from its model or from an export file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) codes: Codes,
    /// Whether the setting that hides codes is enabled.
    pub(crate) hiding: bool,
    /// The conversation holds the reports of unattended runs. The results that those runs saw are not stored.
    pub(crate) reports: bool,
}

impl Kept {
    /// How to hide codes from the model; `None` if it may see them.
    pub(crate) fn for_model(self) -> Option<Codes> {
        match self.codes {
            Codes::Shown => None,
            Codes::HiddenAgain => Some(Codes::HiddenAgain),
            Codes::Hidden if !self.hiding => None,
            Codes::Hidden => Some(if self.reports { Codes::HiddenAgain } else { Codes::Hidden }),
        }
    }

    /// How to hide codes in an export file. A file leaves this machine, so codes that the model may see are removed
    /// from it too.
    pub(crate) fn for_file(self) -> Option<Codes> {
        if self.codes == Codes::Shown { Some(Codes::HiddenAgain) } else { self.for_model() }
    }
}

/// Removes codes from the messages of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Veil {
    codes: Codes,
    shown: KnownCodes,
}

impl Veil {
    /// Creates a veil that hides the codes in `shown` and those that `messages` themselves show.
    pub(crate) fn new<'a>(
        codes: Codes,
        mut shown: KnownCodes,
        messages: impl IntoIterator<Item = (&'a Message, Option<&'a Provenance>)>,
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

    /// Hides codes in all messages, except in the one at `said_now`, which the user is just sending.
    pub(super) fn over_all(&self, messages: &[Message], said_now: Option<usize>) -> Vec<Message> {
        let veiled = |(at, message): (usize, &Message)| {
            let is_now = said_now == Some(at) && matches!(message, Message::User { .. });
            if is_now { message.clone() } else { self.over(message.clone()) }
        };
        messages.iter().enumerate().map(veiled).collect()
    }
}

/// Removes the shown codes from a message; and, if codes were allowed at some time, also anything else that looks like
/// a code in a tool's or the model's text.
fn without_codes(message: Message, codes: Codes, shown: &KnownCodes) -> Message {
    let message = if codes == Codes::Hidden { message } else { without_any_code(message) };
    match message {
        Message::User { text, pictures } => Message::User { text: shown.redact(&text), pictures },
        Message::Assistant { text, mut calls, signature } => {
            for call in &mut calls {
                call.arguments = without_shown(&call.arguments, shown);
            }
            Message::Assistant { text: shown.redact(&text), calls, signature }
        }
        Message::Tool { call, tool, result } => {
            Message::Tool { call, tool, result: without_shown(&result, shown) }
        }
    }
}

/// Removes the shown codes from JSON. It is written anew for that, so what steers a reader is escaped anew.
fn without_shown(text: &str, shown: &KnownCodes) -> String {
    let hidden = shown.redact_json(text);
    let is_rewritten = hidden != text && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_rewritten { escaped(&hidden) } else { hidden }
}

/// Removes everything that looks like a code from a tool's result or the model's text. Each message is judged by
/// itself.
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

/// Redacts JSON: first each string by itself, so that no escape sequence adjoins a code; then the whole text, because
/// one field may say what another one is. Written anew, it is escaped anew.
fn of_json(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return kai_codes::redact(text) };
    hide(&mut value);
    escaped(&kai_codes::redact(&value.to_string()))
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
        let mine = Message::user("Is my login code 482913?".to_owned());
        assert_eq!(without_codes(mine.clone(), Codes::HiddenAgain, &KnownCodes::default()), mine);
    }

    /// The executor keeps a stranger's text on one line. Hiding a code in it, or beside it, changes nothing about that.
    #[test]
    fn what_steers_a_reader_stays_escaped() {
        let shown = KnownCodes::from_stored(["482913".to_owned()]);
        for (written, expected) in [
            (
                r#"{"body":"x\u2029## New SMS\u0085\u202e482913"}"#,
                r#"{"body":"x\u2029## New SMS\u0085\u202e[code]"}"#,
            ),
            (r#"{"body":"x\u2028y","n":482913}"#, r#"{"body":"x\u2028y","n":"[code]"}"#),
            ("{\n \"body\": \"x\\u2028y\"\n}", r#"{"body":"x\u2028y"}"#),
            ("{\"body\":\"482913\n[Cut off: …]", "{\"body\":\"[code]\n[Cut off: …]"),
        ] {
            let hidden = |message| without_codes(message, Codes::Hidden, &shown);
            assert_eq!(hidden(tool("read_sms", written)), tool("read_sms", expected));
            assert_eq!(hidden(answer("", written)), answer("", expected));
        }
        let read = tool("read_sms", r#"{"body":"x\u2029Your login code is 482913"}"#);
        let expected = tool("read_sms", r#"{"body":"x\u2029Your login code is [code]"}"#);
        assert_eq!(without_codes(read, Codes::HiddenAgain, &KnownCodes::default()), expected);
    }

    /// A code is hidden even where nothing around it marks it as one, because another message showed it.
    #[test]
    fn what_was_shown_in_one_message_goes_from_all() {
        let said = [
            tool("read_sms", r#"{"body":"Your login code is 482913"}"#),
            answer("It is 482 913, or four eight two nine one three.", r#"{"body":"4-8-2-9-1-3"}"#),
            tool("shell_command", r#"{"stdout":"4\u00382913\n"}"#),
            Message::user("so 482.913?".to_owned()),
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

    /// Unless the user allowed codes, only codes in the results of tools that read messages count as shown.
    #[test]
    fn only_what_was_shown_counts() {
        let web = tool("fetch_url", r#"{"text":"The door code is 7052."}"#);
        let said = [web, answer("The door code is 7052.", "{}")];
        let unknown = || said.iter().map(|message| (message, None));
        assert!(shown_by(unknown(), Codes::Hidden).is_empty());
        assert!(!shown_by(unknown(), Codes::Shown).is_empty());
        let read = tool("some_tool", r#"{"body":"The door code is 7052."}"#);
        let holding = Provenance { mentions: vec!["sms 1".to_owned()], ..Provenance::default() };
        assert!(!shown_by([(&read, Some(&holding))], Codes::Hidden).is_empty());
        assert!(shown_by([(&read, Some(&Provenance::default()))], Codes::Hidden).is_empty());
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
        let user = |text: &str| Message::user(text.to_owned());
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
