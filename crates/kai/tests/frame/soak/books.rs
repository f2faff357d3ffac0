//! Keeps account of everything that arrived, was told and left, from the outside: by what the commands print.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::phone::Phone;
use crate::provider::{Act, Asked};

/// A draft of ours, and how many taps were posted for it.
#[derive(Debug, Default)]
pub(super) struct Tapped {
    pub(super) body: String,
    pub(super) taps: u64,
}

#[derive(Default)]
pub(super) struct Books {
    /// Ids of messages on the phone.
    pub(super) arrived: BTreeSet<u64>,
    /// Notifications of which a command said that they were taken.
    pub(super) acknowledged: BTreeSet<u64>,
    pub(super) drafts: BTreeMap<i64, Tapped>,
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
}

/// What the model says of a heartbeat: the numbers of what it was shown, so that a report is a receipt.
pub(super) fn receipt(asked: &Asked) -> Act {
    let prompt = asked.body["messages"].as_array().into_iter().flatten().last();
    let prompt = prompt.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
    let told: Vec<String> = ["sms-", "note-"].iter().flat_map(|kind| numbers(&prompt, kind, "@")).collect();
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
    pub(super) fn balance(&mut self, phone: &Phone, round: u64) -> Account {
        self.read_reports(phone);
        let status = list(phone, &["status"]);
        let queued = ids(&list(phone, &["sms", "list"]), |row| row["id"].as_u64());
        let noted = ids(&list(phone, &["notifications", "list"]), |row| note(&row["preview"]));
        let seen = status["sms"]["lastSeenId"].as_u64().unwrap_or_default();
        assert_eq!(status["sms"]["dropped"], 0, "round {round}: the queue is never full here: {status}");
        for id in &self.arrived {
            let (told, waits) = (self.shown("s", *id), queued.iter().filter(|queued| *queued == id).count());
            let polled = usize::from(*id <= seen);
            assert_eq!(told + waits, polled, "round {round}: message {id} told {told}, waiting {waits}");
        }
        for id in &self.acknowledged {
            let (told, waits) = (self.shown("n", *id), noted.iter().filter(|noted| *noted == id).count());
            assert_eq!(told + waits, 1, "round {round}: notification {id} told {told}, waiting {waits}");
        }
        let (left, unknown) = self.balance_drafts(phone, round);
        let told = self.arrived.iter().filter(|id| self.shown("s", **id) == 1).count();
        Account { told, waiting: queued.len() + noted.len(), left, unknown }
    }

    fn balance_drafts(&self, phone: &Phone, round: u64) -> (usize, usize) {
        let rows = list(phone, &["drafts", "list"]);
        let status: BTreeMap<i64, &str> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["id"].as_i64().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        let left = phone.left();
        let (mut sent, mut unknown) = (0, 0);
        for (id, draft) in &self.drafts {
            let times = left.matches(&format!("|{}\n", draft.body)).count();
            // One that was sent makes room for others, and only then is it gone.
            let status = status.get(id).copied().unwrap_or("SENT");
            let right = match status {
                "PENDING" => times == 0,
                "SENT" => times == 1,
                "UNKNOWN" | "SENDING" => times <= 1,
                other => panic!("round {round}: draft {id} is {other}"),
            };
            assert!(
                right && (times == 0 || draft.taps > 0),
                "round {round}: {status} {draft:?} left {times} times"
            );
            sent += times;
            unknown += usize::from(status == "UNKNOWN");
        }
        assert_eq!(left.lines().count(), sent, "round {round}: something left that nobody drafted: {left}");
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

fn list(phone: &Phone, args: &[&str]) -> Value {
    let done = phone.run(&[args, &["--json"]].concat());
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    done.json()
}

fn ids(rows: &Value, id: impl Fn(&Value) -> Option<u64>) -> Vec<u64> {
    rows.as_array().unwrap().iter().filter_map(id).collect()
}

/// The number in a notification's text.
fn note(preview: &Value) -> Option<u64> {
    preview.as_str()?.split_once("note-")?.1.split_once('@')?.0.parse().ok()
}
