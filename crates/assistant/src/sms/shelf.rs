//! What the inbox page has read of the phone that Kai runs on. Reading takes seconds, so a page shows what is here, and
//! is shown anew when more has come. Only the last few answers are kept.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};

use super::handled::Handled;
use super::inbox::{FIRST_PAGE, Inbox, Look, Picked, Reach};
use super::mark::Identity;
use super::port::ReadError;
use super::search::Wanted;
use super::{Sms, SmsId};
use crate::clock::Clock;
use crate::inbox::{Cursor, Fetching, Key, Show};
use crate::lock::lock;

/// The kind of SMS in the inbox.
pub(super) const KIND: &str = "sms";

/// How many answers are kept.
const KEPT: usize = 8;
/// How long an answer counts as the truth, unless a poll is newer.
const FRESH: SignedDuration = SignedDuration::from_secs(60);
/// After that long, a read that has not ended counts as dead.
const DEAD: SignedDuration = SignedDuration::from_mins(2);
/// How many messages the phone is asked for at first, when nothing is searched.
const SHORT_PAGE: usize = 100;
/// How many messages before the place where a page went on are read again, in case some were deleted since.
const OVERLAP: usize = 25;

/// What the page asks the phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Page { words: String, show: Show, before: Option<Cursor> },
    One(SmsId),
}

/// What is known of an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// `None` until the phone has answered.
    pub(super) found: Option<Vec<Sms>>,
    pub(super) error: Option<ReadError>,
    pub(super) is_reading: bool,
}

struct Answer {
    asked: Asked,
    known: Known,
    /// When reading began, and when it ended.
    begun: Timestamp,
    read: Option<Timestamp>,
    /// What the user had dismissed when reading began: a page leaves that out.
    away: BTreeSet<Identity>,
    /// The last page that was read: its first message, and how many come before it.
    last_page: Option<(Cursor, usize)>,
}

/// The phone's messages, as far as they were read for the inbox page.
pub struct Shelf {
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

/// How the messages of a page are chosen.
pub(super) struct Choice {
    pub(super) search: Option<Wanted>,
    pub(super) handled: Handled,
    /// How many are chosen.
    pub(super) most: usize,
}

impl Shelf {
    pub fn new(inbox: Arc<Inbox>, clock: Arc<dyn Clock>) -> Self {
        Self { inbox, clock, answers: Arc::default() }
    }

    pub(super) fn known(&self, asked: &Asked) -> Known {
        let answers = self.answers();
        let answer = answers.iter().find(|answer| answer.asked == *asked);
        answer.map(|answer| answer.known.clone()).unwrap_or_default()
    }

    /// The messages of all answers, the newest answer last. One may be in several.
    pub(super) fn messages(&self) -> Vec<Sms> {
        let answers = self.answers();
        answers.iter().filter_map(|answer| answer.known.found.clone()).flatten().collect()
    }

    /// The message, if any answer holds it.
    pub(super) fn message(&self, id: SmsId) -> Option<Sms> {
        let answers = self.answers();
        let newest_first = answers.iter().rev().filter_map(|answer| answer.known.found.as_ref());
        newest_first.flatten().find(|sms| sms.id == id).cloned()
    }

    /// Begins to ask the phone, unless its answer is here and not older than the last poll, or is being read. Once the user
    /// has dismissed a message or put one back, it is asked again.
    pub(super) fn ask(&self, asked: &Asked, choice: Choice, polled: Option<Timestamp>) -> Option<Fetching> {
        let (now, away) = (self.clock.now(), choice.handled.away());
        let reach = {
            let mut answers = self.answers();
            let reach = reach(&answers, asked);
            let mut answer = match answers.iter().position(|answer| answer.asked == *asked) {
                Some(at) if answers[at].is_good(now, polled, &away) => return None,
                Some(at) => answers.remove(at),
                None => Answer::new(asked.clone(), now),
            };
            (answer.begun, answer.known.is_reading, answer.away) = (now, true, away);
            answers.push(answer);
            let surplus = answers.len().saturating_sub(KEPT);
            answers.drain(..surplus);
            reach
        };
        let (inbox, clock, answers) =
            (Arc::clone(&self.inbox), Arc::clone(&self.clock), Arc::clone(&self.answers));
        let asked = asked.clone();
        Some(Box::pin(async move {
            let read = read(&inbox, &asked, choice, reach).await;
            let mut answers = lock(&answers);
            if let Some(answer) = answers.iter_mut().find(|answer| answer.asked == asked) {
                answer.take(read, clock.now());
            }
        }))
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Answer>> {
        lock(&self.answers)
    }
}

impl Answer {
    fn new(asked: Asked, begun: Timestamp) -> Self {
        Self { asked, known: Known::default(), begun, read: None, away: BTreeSet::new(), last_page: None }
    }

    fn is_good(&self, now: Timestamp, polled: Option<Timestamp>, away: &BTreeSet<Identity>) -> bool {
        if self.known.is_reading {
            return now.duration_since(self.begun) < DEAD;
        }
        let is_fresh = |read: Timestamp| now.duration_since(read).abs() < FRESH;
        let is_newest = polled.is_none_or(|polled| polled <= self.begun);
        self.read.is_some_and(is_fresh) && is_newest && self.away == *away
    }

    /// Takes what the phone answered. If it failed, what it answered before stays.
    fn take(&mut self, read: Result<Picked, ReadError>, now: Timestamp) {
        (self.read, self.known.is_reading) = (Some(now), false);
        match read {
            Ok(Picked { found, begins, first }) => {
                (self.known.found, self.known.error) = (Some(found), None);
                self.last_page = first.map(|(date, id)| (cursor(date, id), begins));
            }
            Err(error) => self.known.error = Some(error),
        }
    }
}

/// Where to begin: with a page that was read before, if it is still known and begins before the wanted place.
fn reach(answers: &[Answer], asked: &Asked) -> Reach {
    let Asked::Page { words, show, before } = asked else { return Reach { skip: 0, first: 1 } };
    let first = if words.is_empty() && *show == Show::All { SHORT_PAGE } else { FIRST_PAGE };
    let Some(before) = before else { return Reach { skip: 0, first } };
    let is_alike = |answer: &&Answer| matches!(&answer.asked, Asked::Page { words: w, show: s, .. } if w == words && s == show);
    let pages = answers.iter().filter(is_alike).filter_map(|answer| answer.last_page.as_ref());
    let skips = pages.filter(|(first, _)| first >= before).map(|(_, skip)| *skip);
    let skip = skips.max().unwrap_or_default();
    Reach { skip: skip.saturating_sub(OVERLAP), first }
}

async fn read(inbox: &Inbox, asked: &Asked, choice: Choice, reach: Reach) -> Result<Picked, ReadError> {
    let (show, before) = match asked {
        Asked::One(id) => {
            let found = inbox.message(*id).await?.into_iter().collect();
            return Ok(Picked { found, begins: 0, first: None });
        }
        Asked::Page { show, before, .. } => (*show, before.clone()),
    };
    let most = choice.most;
    let look: Arc<Look> = Arc::new(move |rows: &[Sms]| {
        let is_older = |sms: &Sms| before.as_ref().is_none_or(|before| cursor(sms.date, sms.id) < *before);
        rows.iter().filter(|sms| is_older(sms) && choice.is_chosen(sms, show)).cloned().collect()
    });
    inbox.pick(reach, look, most).await
}

impl Choice {
    fn is_chosen(&self, sms: &Sms, show: Show) -> bool {
        let is_shown = match show {
            Show::All | Show::Waiting => !self.handled.is_away(&sms.identity()),
            Show::Unread => self.handled.is_unread(sms),
            Show::Away => self.handled.is_away(&sms.identity()),
        };
        let is_found = |wanted: &Wanted| {
            let address = sms.address.as_written();
            wanted.is_in(address) || wanted.is_from(address) || wanted.is_in(sms.body.as_written())
        };
        is_shown && self.search.as_ref().is_none_or(is_found)
    }
}

fn cursor(date: Timestamp, id: SmsId) -> Cursor {
    Cursor { date: date.as_millisecond(), key: Key::new(KIND, id.0) }
}
