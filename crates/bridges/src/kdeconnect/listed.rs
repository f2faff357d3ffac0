//! What a phone's own list has shown of messages that left it, so that a message counts as sent when it is seen there.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::outbox::number;
use kai_assistant::phones::port::MessageKind;

use super::sms::{Folder, Message};

/// How many are remembered, newest first.
const MOST: usize = 200;

/// How far the phone's clock may be behind ours.
const CLOCKS_MAY_DIFFER: SignedDuration = SignedDuration::from_mins(2);

/// Identifies a message on the phone. Newer ones are greater.
type Identity = (Timestamp, MessageKind, i64);

/// The messages that left the phone, or should have, as far as it has listed them.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    rows: BTreeMap<Identity, Row>,
    /// Counts what the phone told, so that it can be seen when it falls silent.
    pub(super) told: u64,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) to: String,
    pub(super) text: String,
    pub(super) at: Timestamp,
    /// `None` while it is on its way.
    pub(super) fate: Option<Fate>,
}

/// What became of a message on the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Sent,
    /// The phone could not send it.
    Failed,
}

/// Whether the phone listed its newest messages when it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    Heard,
    /// It said nothing: it has no messages, may not list them, or takes its time.
    Silent,
}

/// A message that the phone was told to send.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) to: String,
    pub(super) text: String,
    /// When the user tapped.
    pub(super) tapped: Timestamp,
    /// What was listed before. The phone repeats itself, and the same text may have been sent a moment earlier.
    pub(super) known: BTreeSet<Identity>,
    /// Whether `known` is everything that the phone had then.
    pub(super) listing: Listing,
}

impl Wanted {
    /// Whether a message that the phone lists is this one.
    fn is_listed_as(&self, identity: &Identity, row: &Row) -> bool {
        !self.known.contains(identity)
            && self.is_no_older(row)
            && number::same(&row.to, &self.to)
            && row.text.trim() == self.text.trim()
    }

    /// Whether a message that was not known before cannot be an older one with the same text.
    fn is_no_older(&self, row: &Row) -> bool {
        match self.listing {
            Listing::Heard => row.at >= self.tapped.saturating_sub(CLOCKS_MAY_DIFFER).unwrap_or(self.tapped),
            // It may be older and only be listed now. Its date tells, as far as clocks agree. That is not enough for a
            // failure: whoever believes in one by mistake sends the message twice.
            Listing::Silent => row.fate == Some(Fate::Sent) && row.at.as_second() >= self.tapped.as_second(),
        }
    }
}

impl Listed {
    /// Takes note of messages. What was not to leave the phone is forgotten at once.
    pub(super) fn take(&mut self, messages: &[Message]) {
        for message in messages {
            let fate = match message.folder {
                Folder::Sent => Some(Fate::Sent),
                Folder::Failed => Some(Fate::Failed),
                // Its folder changes later, and it must not be taken for a new message then.
                Folder::Outbox | Folder::Queued => None,
                Folder::Inbox | Folder::Draft | Folder::Other(_) => continue,
            };
            let Some(to) = message.addresses.first() else { continue };
            let row = Row {
                to: to.as_written().to_owned(),
                text: message.body.as_written().to_owned(),
                at: message.date,
                fate,
            };
            self.rows.insert((message.date, message.kind, message.id), row);
        }
        while self.rows.len() > MOST {
            self.rows.pop_first();
        }
        self.told += 1;
    }

    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }

    pub(super) fn known(&self) -> BTreeSet<Identity> {
        self.rows.keys().copied().collect()
    }

    /// What became of a message, once the phone lists it.
    pub(super) fn fate_of(&self, wanted: &Wanted) -> Option<Fate> {
        let mut ours = self.rows.iter().filter(|(identity, row)| wanted.is_listed_as(identity, row));
        ours.find_map(|(_, row)| row.fate)
    }

    /// The messages that were sent at that time or later.
    pub(super) fn sent_since(&self, at: Timestamp) -> impl Iterator<Item = &Row> {
        self.rows.values().filter(move |row| row.at >= at && row.fate == Some(Fate::Sent))
    }
}

#[cfg(test)]
mod tests {
    use kai_assistant::phones::port::ThreadId;
    use kai_assistant::untrusted::Untrusted;

    use super::*;

    const NOW: i64 = 1_794_702_151;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(NOW + second).unwrap()
    }

    fn message(id: i64, folder: Folder, to: &str, text: &str, second: i64) -> Message {
        Message {
            kind: MessageKind::Sms,
            id,
            thread: ThreadId(1),
            folder,
            read: true,
            date: at(second),
            addresses: vec![Untrusted::new(to)],
            body: Untrusted::new(text),
            attachments: vec![],
            sim: None,
        }
    }

    fn wanted(known: BTreeSet<Identity>, listing: Listing) -> Wanted {
        let (to, text) = ("0171 5550100".to_owned(), "On my way".to_owned());
        Wanted { to, text, tapped: at(0), known, listing }
    }

    #[test]
    fn only_a_new_message_with_the_same_number_and_text_is_ours() {
        let mut before = Listed::default();
        before.take(&[
            message(1, Folder::Sent, "+491715550100", "On my way", -30),
            message(7, Folder::Outbox, "+491715550100", "On my way", -20),
        ]);
        let wanted = wanted(before.known(), Listing::Heard);
        for (name, listed, expected) in [
            ("repeated", message(1, Folder::Sent, "+491715550100", "On my way", -30), None),
            ("an earlier one failed", message(7, Folder::Failed, "+491715550100", "On my way", -20), None),
            ("an earlier one was sent", message(7, Folder::Sent, "+491715550100", "On my way", -20), None),
            ("ours", message(2, Folder::Sent, "+491715550100", " On my way\n", 1), Some(Fate::Sent)),
            ("a slow clock", message(2, Folder::Sent, "+491715550100", "On my way", -120), Some(Fate::Sent)),
            ("too old", message(2, Folder::Sent, "+491715550100", "On my way", -121), None),
            ("another text", message(2, Folder::Sent, "+491715550100", "On my way!", 1), None),
            ("to somebody else", message(2, Folder::Sent, "+491715550101", "On my way", 1), None),
            ("received", message(2, Folder::Inbox, "+491715550100", "On my way", 1), None),
            ("on its way", message(2, Folder::Outbox, "+491715550100", "On my way", 1), None),
            ("failed", message(2, Folder::Failed, "+491715550100", "On my way", 1), Some(Fate::Failed)),
            (
                "the id was used again",
                message(1, Folder::Sent, "+491715550100", "On my way", 1),
                Some(Fate::Sent),
            ),
        ] {
            let mut after = before.clone();
            after.take(&[listed]);
            assert_eq!(after.fate_of(&wanted), expected, "{name}");
        }
    }

    /// What is on the phone was not known when this message was to be sent, so it may be older.
    #[test]
    fn of_a_phone_that_was_silent_only_a_later_sent_message_is_ours() {
        let wanted = wanted(BTreeSet::new(), Listing::Silent);
        for (name, folder, second, expected) in [
            ("sent earlier", Folder::Sent, -1, None),
            ("sent now", Folder::Sent, 0, Some(Fate::Sent)),
            ("sent later", Folder::Sent, 5, Some(Fate::Sent)),
            ("failed earlier", Folder::Failed, -1, None),
            ("failed later, by a clock that may be fast", Folder::Failed, 5, None),
        ] {
            let mut after = Listed::default();
            after.take(&[message(1, folder, "+491715550100", "On my way", second)]);
            assert_eq!(after.fate_of(&wanted), expected, "{name}");
        }
    }

    #[test]
    fn the_newest_are_remembered() {
        let mut listed = Listed::default();
        for id in 0..300 {
            listed.take(&[message(id, Folder::Sent, "+1555", "x", id)]);
        }
        assert_eq!((listed.known().len(), listed.told), (MOST, 300));
        assert_eq!(listed.sent_since(at(298)).count(), 2);
        assert_eq!(listed.sent_since(at(0)).count(), MOST);
        listed.forget();
        assert!(listed.known().is_empty());
    }
}
