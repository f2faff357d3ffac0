//! Keeps account of everything that arrived, was told and left, from the outside: by what the commands print.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pocket::Pocket;
use crate::phone::Phone;
use crate::provider::{Act, Asked};

/// A draft of ours, and how many taps were posted for it.
#[derive(Debug)]
pub(super) struct Tapped {
    pub(super) body: String,
    pub(super) way: Way,
    pub(super) taps: u64,
}

/// The way that a draft leaves by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Termux,
    /// As a message of the phone in the pocket.
    Pocket,
    /// As an answer in one of that phone's apps. Nobody says whether it arrived there.
    App,
}

#[derive(Default)]
pub(super) struct Books {
    /// Ids of messages on the phone.
    pub(super) arrived: BTreeSet<u64>,
    /// Notifications of which a command said that they were taken.
    pub(super) acknowledged: BTreeSet<u64>,
    /// The same of the phone in the pocket.
    pub(super) bubbles: BTreeSet<u64>,
    /// Its messages that were ever told or waiting.
    pocketed: BTreeSet<u64>,
    pub(super) drafts: BTreeMap<i64, Tapped>,
    /// Drafts that were put away, because nobody will ever know what became of them.
    pub(super) put_away: BTreeSet<i64>,
    /// Every report that was ever in the heartbeat's conversation, by when and what.
    reports: BTreeSet<(i64, String)>,
}

/// How it stands after a round.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) told: usize,
    pub(super) waiting: usize,
    pub(super) left: usize,
    pub(super) unknown: usize,
    /// Messages of the phone in the pocket that were told.
    pub(super) pocket_told: usize,
}

/// What the model says of a heartbeat: the numbers of what it was shown, so that a report is a receipt.
pub(super) fn receipt(asked: &Asked) -> Act {
    let prompt = asked.body["messages"].as_array().into_iter().flatten().last();
    let prompt = prompt.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
    let kinds = ["sms-", "note-", "pocket-", "bubble-"];
    let told: Vec<String> = kinds.iter().flat_map(|kind| numbers(&prompt, kind, "@")).collect();
    Act::says(&format!("I was shown {}.", told.join(" ")))
}

/// The numbers behind a word in a text, each with a first letter in front: what a receipt says is no word of a message.
fn numbers(text: &str, word: &str, end: &str) -> Vec<String> {
    let number = |rest: &str| Some(rest.split_once(end)?.0.to_owned());
    let letter = &word[..1];
    text.split(word).skip(1).filter_map(number).map(|number| format!("{letter}{number};")).collect()
}

impl Books {
    fn shown(&self, letter: &str, number: u64) -> usize {
        let receipt = format!(" {letter}{number};");
        self.reports.iter().filter(|(_, text)| text.contains(&receipt)).count()
    }

    /// Reads the store as it lies there, without a daemon, and checks that it adds up.
    pub(super) fn balance(&mut self, phone: &Phone, pocket: Option<&Pocket>, round: u64) -> Account {
        self.read_reports(phone);
        let status = list(phone, &["status"]);
        let (messages, notes) = (list(phone, &["sms", "list"]), list(phone, &["notifications", "list"]));
        let queued = ids(&messages, |row| row["id"].as_u64());
        let waiting_notes = ids(&notes, |row| numbered(&row["preview"], "note-"));
        let seen = status["sms"]["lastSeenId"].as_u64().unwrap_or_default();
        assert_eq!(status["sms"]["dropped"], 0, "round {round}: the queue is never full here: {status}");
        for id in &self.arrived {
            let (told, waits) = (self.shown("s", *id), queued.iter().filter(|queued| *queued == id).count());
            let polled = usize::from(*id <= seen);
            assert_eq!(told + waits, polled, "round {round}: message {id} told {told}, waiting {waits}");
        }
        for id in &self.acknowledged {
            let (told, waits) =
                (self.shown("n", *id), waiting_notes.iter().filter(|waiting| *waiting == id).count());
            assert_eq!(told + waits, 1, "round {round}: notification {id} told {told}, waiting {waits}");
        }
        let pocket_told = pocket.map_or(0, |pocket| self.balance_pocket(pocket, &messages, &notes, round));
        let (left, unknown) = self.balance_drafts(phone, pocket, round);
        let told = self.arrived.iter().filter(|id| self.shown("s", **id) == 1).count();
        let waiting = [messages, notes].iter().map(|rows| rows.as_array().unwrap().len()).sum();
        Account { told, waiting, left, unknown, pocket_told }
    }

    /// What the phone in the pocket received and showed. It may be away, so what it has is not here yet; but what was
    /// here once is here for ever, and never twice. Returns how many of its messages were told.
    fn balance_pocket(&mut self, pocket: &Pocket, messages: &Value, notes: &Value, round: u64) -> usize {
        let queued = ids(messages, |row| numbered(&row["preview"], "pocket-"));
        let old = ids(messages, |row| numbered(&row["preview"], "old-"));
        assert_eq!(old, [0; 0], "round {round}: what was there before is no news");
        let mut all_told = 0;
        for id in 1..=pocket.received {
            let (told, waits) = (self.shown("p", id), queued.iter().filter(|queued| **queued == id).count());
            let here = told + waits;
            assert!(here <= 1, "round {round}: message {id} in the pocket told {told}, waiting {waits}");
            assert!(
                here == 1 || !self.pocketed.contains(&id),
                "round {round}: message {id} in the pocket is lost"
            );
            if here == 1 {
                self.pocketed.insert(id);
            }
            all_told += told;
        }
        let bubbles = ids(notes, |row| numbered(&row["preview"], "bubble-"));
        for id in 1..=pocket.shown {
            let (told, waits) =
                (self.shown("b", id), bubbles.iter().filter(|waiting| **waiting == id).count());
            let right = if self.bubbles.contains(&id) { told + waits == 1 } else { told + waits <= 1 };
            assert!(right, "round {round}: notification {id} in the pocket told {told}, waiting {waits}");
        }
        all_told
    }

    fn balance_drafts(&self, phone: &Phone, pocket: Option<&Pocket>, round: u64) -> (usize, usize) {
        let rows = list(phone, &["drafts", "list"]);
        let status: BTreeMap<i64, &str> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["id"].as_i64().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        let left = Left::of(phone, pocket);
        let (mut sent, mut unknown) = (0, 0);
        for (id, draft) in &self.drafts {
            let times = left.times(draft);
            // One that was sent makes room for others, or one that failed, as only the paired phone's do.
            let certain = draft.way == Way::Termux && !self.put_away.contains(id);
            let status = status.get(id).copied().unwrap_or(if certain { "SENT" } else { "GONE" });
            let right = match (status, draft.way) {
                ("PENDING", _) | ("FAILED", Way::Pocket | Way::App) => times == 0,
                ("SENT", Way::Termux | Way::Pocket) => times == 1,
                ("SENT", Way::App) | ("UNKNOWN" | "SENDING" | "GONE", _) => times <= 1,
                (other, _) => panic!("round {round}: draft {id} is {other}"),
            };
            assert!(
                right && (times == 0 || draft.taps > 0),
                "round {round}: {status} {draft:?} left {times} times"
            );
            sent += times;
            unknown += usize::from(status == "UNKNOWN");
        }
        assert_eq!(left.all(), sent, "round {round}: something left that nobody drafted: {left:?}");
        (sent, unknown)
    }

    fn read_reports(&mut self, phone: &Phone) {
        let chats = list(phone, &["chats", "list"]);
        for chat in chats.as_array().unwrap().iter().filter(|chat| chat["kind"] == "heartbeat") {
            let entries = list(phone, &["chats", "show", &chat["id"].to_string()]);
            for entry in entries.as_array().unwrap() {
                let text = entry["message"].to_string();
                self.reports.insert((entry["at"].as_i64().unwrap(), text));
            }
        }
    }
}

/// Everything that left, by its way.
#[derive(Debug)]
struct Left {
    termux: String,
    pocket: Vec<String>,
    app: Vec<String>,
}

impl Left {
    fn of(phone: &Phone, pocket: Option<&Pocket>) -> Self {
        let sent = pocket.map(|pocket| pocket.handset.sent()).unwrap_or_default();
        let replies = pocket.map(|pocket| pocket.handset.replies()).unwrap_or_default();
        Self {
            termux: phone.left(),
            pocket: sent.into_iter().map(|sent| sent.text).collect(),
            app: replies.into_iter().map(|reply| reply.text).collect(),
        }
    }

    fn times(&self, draft: &Tapped) -> usize {
        let among = |texts: &[String]| texts.iter().filter(|text| **text == draft.body).count();
        match draft.way {
            Way::Termux => self.termux.matches(&format!("|{}\n", draft.body)).count(),
            Way::Pocket => among(&self.pocket),
            Way::App => among(&self.app),
        }
    }

    fn all(&self) -> usize {
        self.termux.lines().count() + self.pocket.len() + self.app.len()
    }
}

fn list(phone: &Phone, args: &[&str]) -> Value {
    let ask = || phone.run(&[args, &["--json"]].concat());
    let mut done = ask();
    if done.err.contains("stopped before it answered") {
        // A program that the killed daemon was just starting had its socket for a moment longer.
        done = ask();
    }
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    done.json()
}

fn ids(rows: &Value, id: impl Fn(&Value) -> Option<u64>) -> Vec<u64> {
    rows.as_array().unwrap().iter().filter_map(id).collect()
}

/// The number behind a word in a preview.
pub(super) fn numbered(preview: &Value, word: &str) -> Option<u64> {
    preview.as_str()?.split_once(word)?.1.split_once('@')?.0.parse().ok()
}
