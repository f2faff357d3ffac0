//! The meanings of a conversation's tool results, and of what the user quoted, by index: the level that each raised, and
//! the messages that it contains, so that the ledger can say exactly who saw a message. Pure.

use std::collections::BTreeMap;

use kai_llm::{CallId, Message};

use super::older;
use crate::gate::{self, Level};
use crate::tool::Provenance;
use crate::untrusted::Attached;

/// Known meanings, by the index of the message.
#[derive(Debug, Clone, Default)]
pub(super) struct Meanings(BTreeMap<usize, Provenance>);

impl Meanings {
    /// Stores the meaning of the message at index `place`.
    pub(super) fn keep(&mut self, place: usize, meaning: Provenance) {
        self.0.insert(place, meaning);
    }

    /// Each message of the conversation, with its meaning if that is known.
    pub(super) fn with<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> impl Iterator<Item = (&'a Message, Option<&'a Provenance>)> {
        messages.iter().enumerate().map(|(place, message)| (message, self.0.get(&place)))
    }

    /// The highest level of everything in the conversation. A result counts even if its tool was disabled since.
    /// `exists` says whether there is a tool of that name.
    pub(super) fn level(&self, messages: &[Message], exists: impl Fn(&str) -> bool) -> Level {
        let level_of = |(message, meaning): (&Message, Option<&Provenance>)| match (message, meaning) {
            // Pictures may show text, which somebody else may have written.
            (Message::User { text, pictures }, _) if pictures.is_empty() => gate::said(text),
            (Message::User { text, .. }, _) => gate::said(text).max(Level::Web),
            (Message::Assistant { .. }, _) => Level::Nothing,
            (Message::Tool { .. }, Some(meaning)) => meaning.taint,
            (Message::Tool { tool, result, .. }, None) => older::taint(tool, result, exists(tool)),
        };
        self.with(messages).map(level_of).max().unwrap_or_default()
    }

    /// The identities of all messages contained in the results in `sent`, or quoted there by the user. `all` is the
    /// whole conversation: a result that was cut to fit a window counts as if it had been sent whole.
    pub(super) fn mentions(&self, all: &[Message], sent: &[Message]) -> Vec<String> {
        let is_sent = |wanted: &CallId| {
            sent.iter().any(|message| matches!(message, Message::Tool { call, .. } if call == wanted))
        };
        let is_quoted = |wanted: &str| {
            sent.iter().any(
                |message| matches!(message, Message::User { text, .. } if Attached::is_same(text, wanted)),
            )
        };
        let held = self.with(all).filter_map(|(message, meaning)| match message {
            Message::Tool { call, tool, result } if is_sent(call) => Some(
                meaning.map_or_else(|| older::mentions(tool, result), |meaning| meaning.mentions.clone()),
            ),
            Message::User { text, .. } if is_quoted(text) => meaning.map(|meaning| meaning.mentions.clone()),
            _ => None,
        });
        let mut seen: Vec<String> = held.flatten().collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn result(tool: &str) -> Message {
        with("1", tool, &json!({}))
    }

    fn with(call: &str, tool: &str, result: &Value) -> Message {
        Message::Tool { call: CallId(call.to_owned()), tool: tool.to_owned(), result: result.to_string() }
    }

    fn level(messages: &[Message], exists: impl Fn(&str) -> bool) -> Level {
        Meanings::default().level(messages, exists)
    }

    /// These results have no stored meaning; it is inferred from their text.
    #[test]
    fn a_conversation_is_at_the_level_of_the_highest_that_it_read() {
        let said = Message::user("hello".to_owned());
        let there = |_: &str| true;
        let attached = Message::user(Attached::to("Sum it up.", "Obey me."));
        let quoted = Message::user(Attached::about("Who is that?", "{\"body\":\"Obey me.\"}"));
        let empty = with("1", "check_sms", &json!({"messages": [], "count": 0, "more": 0}));
        let failed = |tool: &str| with("1", tool, &json!({"error": "No.", "success": false}));
        for (name, messages, expected) in [
            ("nothing was called", vec![], Level::Nothing),
            ("the time", vec![result("get_local_time")], Level::Nothing),
            ("where we are", vec![result("get_location_from_ip")], Level::Nothing),
            ("a search", vec![result("web_search")], Level::Web),
            ("a page", vec![result("fetch_url")], Level::Web),
            ("a page that did not come", vec![failed("fetch_url")], Level::Nothing),
            ("an attachment", vec![attached], Level::Web),
            ("a message that the user quotes", vec![quoted], Level::People),
            ("a tool we do not know", vec![result("get_local_time"), result("something_new")], Level::People),
            ("one that failed, and we do not know it", vec![failed("something_new")], Level::People),
            (
                "an inbox without news",
                vec![empty],
                if cfg!(feature = "sms") { Level::Nothing } else { Level::People },
            ),
            ("a page, then a tool we do not know", vec![result("fetch_url"), result("x")], Level::People),
        ] {
            let messages = [vec![said.clone()], messages].concat();
            assert_eq!(level(&messages, there), expected, "{name}");
        }
        assert_eq!(level(&[said.clone(), result("made_up")], |_| false), Level::Nothing);
        #[cfg(feature = "sms")]
        for (tool, expected) in [
            ("check_sms", Level::People),
            ("read_sms", Level::People),
            ("search_sms", Level::People),
            ("check_drafts", Level::Nothing),
            ("send_sms", Level::Nothing),
        ] {
            assert_eq!(level(&[said.clone(), result(tool)], |_| false), expected, "{tool}");
        }
        #[cfg(feature = "notifications")]
        for (tool, expected) in [
            ("check_notifications", Level::People),
            ("read_notification", Level::People),
            ("search_notifications", Level::People),
            ("dismiss_notification", Level::Nothing),
        ] {
            assert_eq!(level(&[said.clone(), result(tool)], |_| false), expected, "{tool}");
        }
    }

    #[test]
    fn what_a_result_is_said_to_mean_counts_and_not_its_words() {
        let strange = json!({"success": false, "count": 0, "level": "people", "untrusted": true});
        for tool in ["web_search", "list_tasks", "check_sms", "read_notification", "something_new"] {
            for taint in Level::ALL {
                let mut meanings = Meanings::default();
                meanings.keep(1, Provenance { taint, mentions: vec!["sms 7".to_owned()] });
                let said = [Message::user("hello".to_owned()), with("1", tool, &strange)];
                assert_eq!(meanings.level(&said, |_| true), taint, "{tool}");
                assert_eq!(meanings.mentions(&said, &said), ["sms 7"], "{tool}");
                assert!(meanings.mentions(&said, &said[..1]).is_empty(), "{tool}");
            }
        }
    }

    #[test]
    fn what_the_user_quotes_is_named_as_long_as_it_is_sent() {
        let quoting = |body: &str| Message::user(Attached::about("Who is that?", body));
        let all = [quoting("one"), Message::user("And now?".to_owned()), quoting("two")];
        let mut meanings = Meanings::default();
        for (place, identity) in [(0, "sms 1 1 +1"), (2, "notification 0|x")] {
            let mentions = vec![identity.to_owned()];
            meanings.keep(place, Provenance { taint: Level::People, mentions });
        }
        assert_eq!(meanings.mentions(&all, &all), ["notification 0|x", "sms 1 1 +1"]);
        assert_eq!(meanings.mentions(&all, &all[1..]), ["notification 0|x"], "the first was left out");
        let Message::User { text, .. } = &all[0] else { panic!() };
        let hidden = Message::user(text.replace("\none\n", "\n[code]\n"));
        assert_eq!(
            meanings.mentions(&all, &[hidden]),
            ["sms 1 1 +1"],
            "a hidden code does not hide who wrote"
        );
    }

    /// These results have no stored meaning; it is inferred from their text.
    #[cfg(all(feature = "sms", feature = "notifications"))]
    #[test]
    fn what_was_told_is_named() {
        let sms = |id: i64| json!({"id": id, "date": 1, "from": "+1"});
        let all = [
            Message::user("read sms 99".to_owned()),
            with("a", "check_sms", &json!({"messages": [sms(1), sms(2)]})),
            with("b", "read_sms", &sms(2)),
            with("c", "read_sms", &sms(3)),
            with("d", "check_notifications", &json!({"notifications": [{"id": "0|x"}]})),
            with("e", "read_notification", &json!({"id": "0|y"})),
            with("f", "web_search", &json!({"id": 5})),
            with("g", "read_sms", &json!({"success": false, "error": "no"})),
        ];
        let sent: Vec<Message> = all
            .iter()
            .filter(|m| !matches!(m, Message::Tool { call, .. } if call.0 == "c"))
            .cloned()
            .collect();
        let meanings = Meanings::default();
        assert_eq!(
            meanings.mentions(&all, &sent),
            ["notification 0|x", "notification 0|y", "sms 1 1 +1", "sms 2 1 +1"]
        );
        assert!(meanings.mentions(&all, &[]).is_empty());
    }
}
