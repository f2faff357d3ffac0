//! The four sets of tools, and the words by which one is chosen. Pure.
//!
//! A conversation keeps its set, because the calls in its history must stay valid and each set has a prefix of its own.
//! So the set depends on nothing but the user's first message.

use kai_llm::ToolSpec;

use super::short;
use crate::untrusted::{Attached, folded};

/// A set of at most eight tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolSet {
    /// Time, memories, the web, a quick message.
    #[default]
    Everyday,
    /// Messages on phones, and what apps show.
    Messages,
    Mail,
    /// Alarms, appointments, tasks.
    Plans,
}

/// In the store edition there are no messages on phones, so a message is a mail.
const MESSAGES: &[&str] = &[
    #[cfg(feature = "sms")]
    "check_sms",
    #[cfg(feature = "sms")]
    "read_sms",
    #[cfg(feature = "sms")]
    "search_sms",
    #[cfg(feature = "sms")]
    "send_sms",
    #[cfg(feature = "sms")]
    "reply_sms",
    #[cfg(feature = "notifications")]
    "check_notifications",
    #[cfg(all(feature = "sms", feature = "notifications"))]
    "reply_notification",
    #[cfg(not(feature = "sms"))]
    "check_email",
    #[cfg(not(feature = "sms"))]
    "read_email",
    #[cfg(not(feature = "sms"))]
    "search_email",
    #[cfg(not(feature = "sms"))]
    "compose_email",
    #[cfg(not(feature = "sms"))]
    "reply_email",
    "check_drafts",
];
const EVERYDAY: &[&str] = &[
    "get_local_time",
    "memory_store",
    "memory_forget",
    "web_search",
    "fetch_url",
    "set_alarm",
    #[cfg(feature = "sms")]
    "check_sms",
    #[cfg(feature = "sms")]
    "send_sms",
    #[cfg(not(feature = "sms"))]
    "check_email",
    #[cfg(not(feature = "sms"))]
    "compose_email",
];
const MAIL: &[&str] = &[
    "check_email",
    "read_email",
    "search_email",
    "compose_email",
    "reply_email",
    "check_drafts",
    "create_calendar_event",
    "get_local_time",
];
const PLANS: &[&str] = &[
    "get_local_time",
    "set_alarm",
    "create_calendar_event",
    "schedule_task",
    "list_tasks",
    "cancel_task",
    "memory_store",
    "send_notification",
];

/// The words that speak for a set, in lower case. A star stands for any ending.
const WORDS: &[(ToolSet, &[&str])] = &[
    (
        ToolSet::Messages,
        &[
            "sms",
            "text",
            "texts",
            "texted",
            "message",
            "messages",
            "messaged",
            "whatsapp",
            "signal",
            "telegram",
            "notification*",
            "draft*",
            "wrote",
            "reply",
            "replied",
            "nachricht*",
            "schreib*",
            "geschrieben",
            "antwort*",
            "benachrichtigung*",
            "entwurf",
            "entwürf*",
            "mensaje*",
            "messaggi*",
            "mesaj*",
        ],
    ),
    (
        ToolSet::Mail,
        &[
            "mail",
            "mails",
            "mailed",
            "email*",
            "emails",
            "inbox",
            "newsletter*",
            "subject",
            "posteingang",
            "betreff",
            "gmail",
            "courriel*",
            "correo*",
            "posta",
        ],
    ),
    (
        ToolSet::Plans,
        &[
            "alarm*",
            "wake",
            "timer*",
            "remind*",
            "appointment*",
            "calendar*",
            "meeting*",
            "event",
            "events",
            "schedul*",
            "task*",
            "wecker*",
            "weck",
            "wecke",
            "erinner*",
            "termin*",
            "kalender*",
            "besprechung*",
            "aufgabe*",
            "rappel*",
            "recuérda*",
            "promemoria",
            "hatırlat*",
        ],
    ),
];

impl ToolSet {
    pub const ALL: [Self; 4] = [Self::Everyday, Self::Messages, Self::Mail, Self::Plans];

    /// The set for a conversation that begins with this message: the one that most of its words speak for, and among
    /// equals the one whose word comes first. What the user attached does not count.
    pub fn of(first: &str) -> Self {
        let said = folded(Attached::find(first).words);
        let words: Vec<&str> =
            said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let spoken = WORDS.iter().filter_map(|(set, known)| {
            let places: Vec<usize> =
                (0..words.len()).filter(|at| known.iter().any(|known| matches(known, words[*at]))).collect();
            places.first().map(|first| (std::cmp::Reverse(places.len()), *first, *set))
        });
        spoken.min_by_key(|(count, first, _)| (*count, *first)).map(|(.., set)| set).unwrap_or_default()
    }

    /// The names of its tools, in the order in which they are offered.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Everyday => EVERYDAY,
            Self::Messages => MESSAGES,
            Self::Mail => MAIL,
            Self::Plans => PLANS,
        }
    }

    /// Those of these tools that are in the set, in short words.
    pub(super) fn of_these(self, tools: &[ToolSpec]) -> Vec<ToolSpec> {
        let find = |name: &&str| tools.iter().find(|tool| tool.name == *name);
        self.names().iter().filter_map(find).map(short::shortened).collect()
    }
}

fn matches(known: &str, word: &str) -> bool {
    known.strip_suffix('*').map_or(known == word, |stem| word.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_chooses() {
        use ToolSet::{Everyday, Mail, Messages, Plans};
        for (said, expected) in [
            ("", Everyday),
            ("What time is it? Use a tool.", Everyday),
            ("Remember that my favourite tea is green tea.", Everyday),
            ("Forget what you know about my tea.", Everyday),
            ("What is 17 times 23?", Everyday),
            ("Wie ist das Wetter in Bonn?", Everyday),
            ("Did Anna text me?", Messages),
            ("Schreib Anna, dass ich später komme", Messages),
            ("Any new WhatsApp messages?", Messages),
            ("Gibt es neue Nachrichten?", Messages),
            ("Any new e-mail from the bank?", Mail),
            ("Suche in meinem Posteingang nach der Rechnung.", Mail),
            ("WECK mich um 7!", Plans),
            ("Trag den Termin beim Zahnarzt ein", Plans),
            ("Remind me to answer Anna's mail", Plans),
            ("Answer the mail about the meeting", Mail),
            ("Reply to Tom's text and set a timer", Messages),
            ("The contextual meaning of alarums", Everyday),
        ] {
            assert_eq!(ToolSet::of(said), expected, "{said:?}");
        }
        let attached = Attached::to("Sum it up.", "An alarm, a task, a meeting.");
        assert_eq!(ToolSet::of(&attached), Everyday, "what is attached is not what was asked");
    }

    #[test]
    fn a_set_is_small_and_names_no_tool_twice() {
        for set in ToolSet::ALL {
            let mut names = set.names().to_vec();
            names.sort_unstable();
            names.dedup();
            assert!(names.len() == set.names().len() && (6..=8).contains(&names.len()), "{set:?}: {names:?}");
            assert!(!names.contains(&"find_tools"));
        }
    }
}
