//! The demo's model, which plays a script.

use std::time::Duration;

use kai_llm::{CallId, Delta, Deltas, Message, Model, ModelError, Reply, Replying, Request, ToolCall, Usage};
use serde_json::{Value, json};

/// Answers a few kinds of questions using the tools it is offered, and otherwise explains that it is a script.
pub struct Script;

/// Pause after each word, so that it looks like a model.
const PACE: Duration = Duration::from_millis(25);

impl Model for Script {
    fn body(&self, request: &Request) -> Vec<u8> {
        serde_json::to_vec(request).unwrap_or_default()
    }

    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a> {
        Box::pin(async move {
            let reply = next(request);
            for word in reply.text.split_inclusive(' ') {
                deltas(Delta::Text(word));
                tokio::time::sleep(PACE).await;
            }
            Ok::<_, ModelError>(reply)
        })
    }

    fn window(&self) -> usize {
        32_000
    }
}

/// The script's next reply. Pure.
fn next(request: &Request) -> Reply {
    let offered = |tool: &str| request.tools.iter().any(|spec| spec.name == tool);
    match request.messages.last() {
        Some(Message::User { text, .. }) if is_heartbeat(text) => match asked_for_ok(text) {
            Some(id) if offered("reply_sms") => call("reply_sms", &json!({"sms_id": id, "body": FINE})),
            _ => says(&noticed(text)),
        },
        Some(Message::User { text, .. }) => match Wish::of(text) {
            Some(wish) if offered(wish.first().0) => {
                let (tool, arguments) = wish.first();
                call(tool, &arguments)
            }
            Some(_) => says("I would need a tool that is off in the settings."),
            None => says(HELLO),
        },
        Some(Message::Tool { tool, result, .. }) => {
            let result: Value = serde_json::from_str(result).unwrap_or_default();
            let wanted = request.messages.iter().rev().find_map(|message| match message {
                Message::User { text, .. } => Some(text.as_str()),
                _ => None,
            });
            match wanted.unwrap_or_default() {
                beat if is_heartbeat(beat) => says(&format!("{} {DRAFTED}", noticed(beat))),
                wanted => after(tool, &result, Wish::of(wanted)),
            }
        }
        _ => says("Hello."),
    }
}

/// What the script can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    AnswerDinner,
    /// Priya wrote to the other phone.
    AnswerPriya,
    AnswerMia,
    ReadMia,
    /// The bank sent a one-time code, which the script does not get to see.
    ReadBank,
    NewMail,
    RainAlert,
    Forecast,
    Grandma,
    NewMessages,
    Time,
}

impl Wish {
    /// The wish in a text, in English or German.
    fn of(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        let about = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let answers = about(&["reply", "answer", "antwort"]);
        let wishes = [
            (Self::AnswerMia, answers && about(&["mia", "mail"])),
            (Self::AnswerPriya, answers && about(&["priya", "work", "arbeit", "stand-up"])),
            (Self::AnswerDinner, answers),
            (Self::ReadMia, about(&["mia "])),
            (Self::ReadBank, about(&["bank"])),
            (Self::NewMail, about(&["mail"])),
            (Self::RainAlert, about(&["rain", "regn"]) && about(&["warn", "alert"])),
            (Self::Forecast, about(&["weather", "wetter", "rain", "regn"])),
            (Self::Grandma, about(&["grandma", "birthday"])),
            (Self::NewMessages, about(&["sms", "message", "nachricht", "new"])),
            (Self::Time, about(&["time", "day", "uhr"])),
        ];
        wishes.into_iter().find(|(_, is_meant)| *is_meant).map(|(wish, _)| wish)
    }

    /// The first tool that it takes.
    fn first(self) -> (&'static str, Value) {
        match self {
            Self::AnswerDinner => ("search_sms", json!({"query": "dinner tonight"})),
            Self::AnswerPriya => ("search_sms", json!({"query": "stand-up"})),
            Self::AnswerMia | Self::ReadMia => ("search_email", json!({"query": "Mia"})),
            Self::ReadBank => ("search_email", json!({"query": "sign-in code"})),
            Self::NewMail => ("check_email", json!({})),
            Self::RainAlert => ("mcp_weather_set_rain_alert", json!({"day": "tomorrow"})),
            Self::Forecast => ("mcp_weather_forecast", json!({"day": "tomorrow"})),
            Self::Grandma => ("search_sms", json!({"query": "Grandma"})),
            Self::NewMessages => ("check_sms", json!({})),
            Self::Time => ("get_local_time", json!({})),
        }
    }
}

fn after(tool: &str, result: &Value, wish: Option<Wish>) -> Reply {
    let (sms, mail) = (&result["messages"][0]["id"], &result["emails"][0]["id"]);
    match (tool, wish) {
        ("check_sms", _) => says(&listed(result, "messages")),
        ("check_email", _) => says(&listed(result, "emails")),
        ("search_sms", Some(Wish::Grandma)) => says(GRANDMA),
        ("search_sms", Some(Wish::AnswerPriya)) if sms.is_i64() => {
            call("reply_sms", &json!({"sms_id": sms, "body": "Ten is fine, good luck with the dentist!"}))
        }
        ("search_sms", _) if sms.is_i64() => {
            call("reply_sms", &json!({"sms_id": sms, "body": "Yes, see you at eight!"}))
        }
        ("search_email", Some(Wish::AnswerMia)) if mail.is_string() => {
            call("reply_email", &json!({"email_id": mail, "body": TO_MIA}))
        }
        ("search_email", _) if mail.is_string() => call("read_email", &json!({"id": mail})),
        ("search_sms" | "search_email", _) => says("I found nobody to answer."),
        ("read_email", Some(Wish::ReadBank)) => says(&format!("{}\n\n{HIDDEN}", quoted(result))),
        ("read_email", _) => says(&format!("{}\n\nSay “Answer Mia” for a draft.", quoted(result))),
        ("reply_sms" | "reply_email", _) => says(DRAFTED),
        ("mcp_weather_forecast", _) => says(&forecast(result)),
        ("mcp_weather_set_rain_alert", _) => says(if result["error"].is_null() {
            "The weather server will warn you. It is simulated, as is the rain."
        } else {
            "Then I leave it."
        }),
        ("get_local_time", _) => {
            says(&format!("It is {}.", result["display_datetime"].as_str().unwrap_or("late")))
        }
        _ => says("Done."),
    }
}

const HELLO: &str = "I am the demo's script and know a few things: ask for new messages or mail, for the weather or the \
                     time, or to answer somebody.";

const GRANDMA: &str = "Next week, at **7 pm at Lena's place**. Grandma turns 80.\n\n\
                       - Lena makes the lemon cake.\n\
                       - She asks whether anybody on your side does not eat nuts.\n\
                       - Jonas offers to share a car.";

const DRAFTED: &str = "I drafted an answer. It waits for your tap; nothing was sent.";

const HIDDEN: &str = "I see **[code]** where the code stands: one-time codes are for your eyes only. Open the mail in the \
                      inbox to read it.";

const FINE: &str = "Half past six is fine, see you then!";

const TO_MIA: &str =
    "Hi Mia,\n\nthe harbour, the bridge and the market it is. Thank you for taking care of it!";

/// Whether a text is the prompt of a heartbeat, by the headings of what arrived.
fn is_heartbeat(text: &str) -> bool {
    ["SMS", "Emails", "Notifications"].iter().any(|what| text.contains(&format!("\n## New {what}\n")))
}

/// The id of the message in a heartbeat's prompt that asks for a reply.
fn asked_for_ok(prompt: &str) -> Option<i64> {
    let line = prompt.lines().find(|line| line.starts_with("- **") && line.ends_with("OK?"))?;
    line.split_once("(id: ")?.1.split_once(')')?.0.parse().ok()
}

/// A heartbeat's report: who wrote.
fn noticed(prompt: &str) -> String {
    let mut all: Vec<&str> = vec![];
    for sender in prompt.lines().filter_map(sender) {
        if !all.contains(&sender) {
            all.push(sender);
        }
    }
    format!("New messages wait for you, from {}.", all.join(", "))
}

/// Who wrote a line of a heartbeat's prompt: a contact's name rather than a number, and a mail's sender without the
/// address.
fn sender(line: &str) -> Option<&str> {
    let (who, rest) = line.strip_prefix("- **")?.split_once("**")?;
    let name = rest.strip_prefix(" — ").and_then(|rest| rest.split([',', '(']).next()).map(str::trim);
    match name {
        Some(name) if who.starts_with('+') && !name.is_empty() && !name.starts_with("on ") => Some(name),
        _ => who.split(" <").next(),
    }
}

/// A mail, as the tool has read it.
fn quoted(mail: &Value) -> String {
    let part = |name: &str| mail[name].as_str().unwrap_or_default();
    let who = part("from").split(" <").next().unwrap_or_default();
    let lines: Vec<String> = part("text").trim().lines().map(|line| format!("> {line}")).collect();
    format!("**{who}** writes about “{}”:\n\n{}", part("subject"), lines.join("\n"))
}

/// What the weather server said.
fn forecast(result: &Value) -> String {
    let text = result["text"].as_str().unwrap_or("The server did not say.");
    format!(
        "{text}\n\nSay “Warn me if it rains” and I ask the server for an alert, once you have allowed it."
    )
}

fn listed(result: &Value, what: &str) -> String {
    let messages = result[what].as_array().cloned().unwrap_or_default();
    let line = |one: &Value| {
        let part = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        // A contact has a name, and a mail's sender an address after it.
        let from = one["name"].as_str().map_or_else(|| part("from"), str::to_owned);
        format!("- **{}**: {}", from.split(" <").next().unwrap_or_default(), part("preview"))
    };
    match messages.len() {
        0 => "Nothing new has arrived.".to_owned(),
        n => format!("{n} new:\n{}", messages.iter().map(line).collect::<Vec<_>>().join("\n")),
    }
}

fn says(text: &str) -> Reply {
    Reply { text: text.to_owned(), usage: Usage { input: 1, output: 1 }, ..Reply::default() }
}

fn call(tool: &str, arguments: &Value) -> Reply {
    let call = ToolCall {
        id: CallId(format!("demo_{tool}")),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
        signature: None,
    };
    Reply { calls: vec![call], usage: Usage { input: 1, output: 1 }, ..Reply::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The suggestions of the demo's page, and what else is said to be understood.
    #[test]
    fn a_wish_is_understood_in_both_languages() {
        for (text, expected) in [
            ("Answer the dinner message", Some(Wish::AnswerDinner)),
            ("Antworte auf die Nachricht zum Essen", Some(Wish::AnswerDinner)),
            ("Answer Priya at work", Some(Wish::AnswerPriya)),
            ("Antworte Priya", Some(Wish::AnswerPriya)),
            ("Answer Mia", Some(Wish::AnswerMia)),
            ("What did Mia write by mail?", Some(Wish::ReadMia)),
            ("Was hat Mia gemailt?", Some(Wish::ReadMia)),
            ("Is there new mail?", Some(Wish::NewMail)),
            ("Gibt es neue Mails?", Some(Wish::NewMail)),
            ("What code did the bank send?", Some(Wish::ReadBank)),
            ("Welchen Code hat die Bank geschickt?", Some(Wish::ReadBank)),
            ("What will the weather be?", Some(Wish::Forecast)),
            ("Wie wird das Wetter?", Some(Wish::Forecast)),
            ("Warn me if it rains", Some(Wish::RainAlert)),
            ("Warne mich, wenn es regnet", Some(Wish::RainAlert)),
            ("When is Grandma’s dinner?", Some(Wish::Grandma)),
            ("any new messages?", Some(Wish::NewMessages)),
            ("Wie viel Uhr ist es?", Some(Wish::Time)),
            ("Sing!", None),
        ] {
            assert_eq!(Wish::of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_heartbeat_names_everybody_once() {
        let prompt = "Look.\n\n## New Emails\n<<<\n- **Mia <m@x.test>** — Hi (id: 1.1.3): Yes?\n>>>\n\n## New SMS\n<<<\n\
                      - **+15550142** — Jonas (id: 7): At six, OK?\n- **+15550142** — Jonas (id: 8): Or seven\n\
                      - **+15550107** — on Work phone (id: 9): Parcel\n>>>\n\n## New Notifications\n- **Chat** — Alice (id: a): Hey";
        assert!(is_heartbeat(prompt) && !is_heartbeat("What is new?"));
        assert_eq!(noticed(prompt), "New messages wait for you, from Mia, Jonas, +15550107, Chat.");
        assert_eq!(asked_for_ok(prompt), Some(7));
    }
}
