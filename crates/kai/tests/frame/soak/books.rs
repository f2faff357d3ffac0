//! Keeps account of everything that arrived, was told and left, from the outside: by what the commands print.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pocket::Pocket;
use super::post::Post;
use super::relay::Fate;
use crate::phone::Phone;
use crate::provider::{Act, Asked};

/// A draft of ours, and how many taps were posted for it.
#[derive(Debug)]
pub(super) struct Tapped {
    pub(super) body: String,
    pub(super) way: Way,
    taps: u64,
    /// How often it has left, and how often it had before the last tap. Only mails are tapped again.
    left: usize,
    left_before: usize,
    /// It said SENT once. It may be gone since.
    sent: bool,
    /// What happened on the way after the last tap.
    pub(super) met: Option<Fate>,
}

impl Tapped {
    pub(super) fn new(body: String, way: Way) -> Self {
        Self { body, way, taps: 0, left: 0, left_before: 0, sent: false, met: None }
    }

    /// It is tapped once more, in two places at once.
    pub(super) fn tap(&mut self) {
        self.taps += 2;
        (self.left_before, self.met) = (self.left, None);
    }

    /// How often somebody decided to send it.
    pub(super) fn times_tapped(&self) -> u64 {
        self.taps / 2
    }

    /// Whether a status is true of a draft that has left so many times.
    fn is(&self, status: &str, times: usize) -> bool {
        // One that is gone from the list was sent, failed, or was put away.
        let Some(more) = times.checked_sub(self.left_before) else { return false };
        let fits = match (status, self.way) {
            ("PENDING", _) | ("FAILED", Way::Pocket | Way::App | Way::Mail) => more == 0,
            ("SENT", Way::Termux | Way::Pocket | Way::Mail) => more == 1,
            ("SENT", Way::App) | ("UNKNOWN" | "SENDING" | "GONE", _) => more <= 1,
            _ => false,
        };
        let met = self.met.unwrap_or_default();
        fits && met.delivers().is_none_or(|delivers| delivers == more)
            && (status == "GONE" || met.fits(status))
    }
}

/// The way that a draft leaves by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Termux,
    /// As a message of the phone in the pocket.
    Pocket,
    /// As an answer in one of that phone's apps. Nobody says whether it arrived there.
    App,
    Mail,
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
    /// What happened to mails on their way, and how often.
    pub(super) fates: BTreeMap<Fate, usize>,
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
    /// Mails that were told, and that wait.
    pub(super) letters_told: usize,
    pub(super) letters_waiting: usize,
}

/// What everybody outside has.
#[derive(Clone, Copy)]
pub(super) struct Outside<'a> {
    pub(super) phone: &'a Phone,
    pub(super) pocket: Option<&'a Pocket>,
    pub(super) post: Option<&'a Post>,
}

/// What the model says of a heartbeat: the numbers of what it was shown, so that a report is a receipt.
pub(super) fn receipt(asked: &Asked) -> Act {
    let prompt = asked.body["messages"].as_array().into_iter().flatten().last();
    let prompt = prompt.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
    let kinds = ["sms-", "note-", "pocket-", "bubble-", "letter-"];
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
    pub(super) fn balance(&mut self, outside: Outside<'_>, round: u64) -> Account {
        let Outside { phone, pocket, post } = outside;
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
        let (letters_told, letters_waiting) =
            post.map_or((0, 0), |post| self.balance_letters(phone, post, round));
        let (left, unknown) = self.balance_drafts(outside, round);
        let told = self.arrived.iter().filter(|id| self.shown("s", **id) == 1).count();
        let waiting = [messages, notes].iter().map(|rows| rows.as_array().unwrap().len()).sum();
        Account { told, waiting, left, unknown, pocket_told, letters_told, letters_waiting }
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

    /// The mails that arrived. As many are told or waiting as the mark has moved over, each of them once. Returns how many
    /// were told, and how many wait.
    fn balance_letters(&self, phone: &Phone, post: &Post, round: u64) -> (usize, usize) {
        let queue = post.queue(phone);
        assert_eq!(queue.dropped, 0, "round {round}: the queue is never full here");
        let mut all_told = 0;
        for id in 1..=post.arrived {
            let (told, waits) =
                (self.shown("l", id), queue.waiting.iter().filter(|waiting| **waiting == id).count());
            assert!(told + waits <= 1, "round {round}: mail {id} told {told}, waiting {waits}");
            all_told += told;
        }
        let here = all_told + queue.waiting.len();
        assert_eq!(here, queue.read, "round {round}: {all_told} mails told, {:?} waiting", queue.waiting);
        (all_told, queue.waiting.len())
    }

    fn balance_drafts(&mut self, outside: Outside<'_>, round: u64) -> (usize, usize) {
        let rows = list(outside.phone, &["drafts", "list"]);
        let status: BTreeMap<i64, &str> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["id"].as_i64().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        let left = Left::of(outside);
        let (mut sent, mut unknown) = (0, 0);
        for (id, draft) in &mut self.drafts {
            let times = left.times(draft);
            // One that was sent makes room for others, or one that failed, as those of Termux never do.
            let certain = draft.way == Way::Termux && !self.put_away.contains(id);
            let status = status.get(id).copied().unwrap_or(if certain { "SENT" } else { "GONE" });
            assert!(
                draft.is(status, times) && (times == 0 || draft.taps > 0),
                "round {round}: {status} {draft:?} left {times} times"
            );
            left.check_mail(draft, round);
            draft.left = times;
            draft.sent |= status == "SENT";
            sent += times;
            unknown += usize::from(status == "UNKNOWN");
        }
        assert_eq!(left.all(), sent, "round {round}: something left that nobody drafted: {left:?}");
        (sent, unknown)
    }

    /// The mails that were certainly sent, and how many of them have no copy.
    pub(super) fn not_copied(&self, outside: Outside<'_>) -> (usize, usize) {
        let left = Left::of(outside);
        let sent = self.drafts.values().filter(|draft| draft.way == Way::Mail && draft.sent);
        (sent.clone().count(), sent.filter(|draft| left.copies_of(draft) != 1).count())
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
    /// Mails as they arrived, and the copies of them.
    mail: Vec<String>,
    copies: Vec<String>,
}

impl Left {
    fn of(Outside { phone, pocket, post }: Outside<'_>) -> Self {
        let sent = pocket.map(|pocket| pocket.handset.sent()).unwrap_or_default();
        let replies = pocket.map(|pocket| pocket.handset.replies()).unwrap_or_default();
        Self {
            termux: phone.left(),
            pocket: sent.into_iter().map(|sent| sent.text).collect(),
            app: replies.into_iter().map(|reply| reply.text).collect(),
            mail: post.map(Post::left).unwrap_or_default(),
            copies: post.map(Post::copies).unwrap_or_default(),
        }
    }

    fn times(&self, draft: &Tapped) -> usize {
        let among = |texts: &[String]| texts.iter().filter(|text| **text == draft.body).count();
        match draft.way {
            Way::Termux => self.termux.matches(&format!("|{}\n", draft.body)).count(),
            Way::Pocket => among(&self.pocket),
            Way::App => among(&self.app),
            Way::Mail => self.mails_of(draft).count(),
        }
    }

    fn mails_of<'a>(&'a self, draft: &'a Tapped) -> impl Iterator<Item = &'a str> {
        self.mail.iter().map(String::as_str).filter(|raw| raw.contains(&draft.body))
    }

    fn copies_of(&self, draft: &Tapped) -> usize {
        self.copies.iter().filter(|raw| raw.contains(&draft.body)).count()
    }

    /// However often a mail was sent, it is the same mail, and has one copy.
    fn check_mail(&self, draft: &Tapped, round: u64) {
        if draft.way != Way::Mail {
            return;
        }
        let ids: BTreeSet<Option<&str>> = self.mails_of(draft).map(message_id).collect();
        assert!(ids.len() <= 1 && !ids.contains(&None), "round {round}: {draft:?} left as {ids:?}");
        let most = usize::from(!ids.is_empty());
        assert!(self.copies_of(draft) <= most, "round {round}: {draft:?} has {}", self.copies_of(draft));
    }

    fn all(&self) -> usize {
        self.termux.lines().count() + self.pocket.len() + self.app.len() + self.mail.len()
    }
}

/// The id in the head of a mail that we wrote. Servers put lines of their own above it.
fn message_id(raw: &str) -> Option<&str> {
    raw.lines().find_map(|line| line.strip_prefix("Message-ID: "))
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
