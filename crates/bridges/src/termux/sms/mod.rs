//! SMS in Termux: `termux-sms-list` reads, `termux-sms-send` sends, `termux-contact-list` knows the names.
//!
//! Many phones have old software. An old script cannot filter and sort, which its help reveals. An old app under a
//! new script silently ignores both, which its answers reveal. In either case we list backwards from the newest
//! message, further and further, and filter ourselves.

mod answer;
mod contacts;
mod number;
#[cfg(test)]
mod tests;

#[cfg(fuzzing)]
pub(super) use answer::fuzz::check as fuzz;
#[cfg(fuzzing)]
pub(super) use contacts::fuzz::check as fuzz_contacts;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::access::Access;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::outbox::door::{Approved, Looking, SendError, Sender, Sending};
use kai_assistant::phones::port::Contact;
use kai_assistant::sms::Sms;
use kai_assistant::sms::port::{From, ReadError, Reading, SmsReader};
use kai_assistant::untrusted::Untrusted;
use kai_words::{Said, said};
use tokio::sync::OnceCell;

use self::answer::{Answer, Folder, Row};
use self::number::dialled;
use super::{Termux, refusal};
use crate::program::{Failed, Terms};

const LIST: &str = "termux-sms-list";
const SEND: &str = "termux-sms-send";
const CONTACTS: &str = "termux-contact-list";
/// Enough for some tens of thousands of messages.
const LONGEST_LIST: u64 = 32 * 1024 * 1024;
/// How many messages are listed first with old software.
const DEPTH: usize = 50;
/// Factor by which that grows until the list goes back far enough.
const DEEPER: usize = 10;
/// How many messages are searched for one that was sent. They are listed oldest first, so it is among the first.
const SENT_LIMIT: usize = 500;

/// What is known about SMS on this phone.
pub(super) struct Known {
    /// Provides the time zone of the phone's local times. It is asked for each list, because phones travel. The answer may
    /// be some minutes old, and the dates then wrong by whole quarters of an hour, which the assistant's mark expects.
    clock: Arc<dyn Clock>,
    script_selects: OnceCell<bool>,
    app_selects: OnceCell<bool>,
}

impl Default for Known {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), script_selects: OnceCell::new(), app_selects: OnceCell::new() }
    }
}

impl Termux {
    /// Uses another clock than the system's. Its time zone is the one the phone prints dates in.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.sms.clock = clock;
        self
    }
}

impl SmsReader for Termux {
    /// Lists one message, which is harmless and makes Android ask the user for permission.
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async move {
            match self.list(Folder::Inbox, Listing::newest(1)).await {
                Ok(_) => Access::Granted,
                Err(ReadError::NotPermitted(what_to_do)) => Access::Denied(what_to_do),
                Err(ReadError::Failed(why)) => Access::Silent(why),
            }
        })
    }

    /// Returns the message with the highest id. Old software cannot sort by id, so there it is the highest among the
    /// newest messages. A higher id with an old date is a restored message, not one that arrived.
    fn last(&self) -> Reading<'_, Option<Sms>> {
        Box::pin(async move {
            let listing = if self.script_selects().await? {
                Listing::newest(1).sorted("_id DESC")
            } else {
                Listing::newest(DEPTH)
            };
            let rows = self.list(Folder::Inbox, listing).await?.rows;
            Ok(rows.into_iter().max_by_key(|row| row.id).map(Row::into_sms))
        })
    }

    fn from(&self, from: From, limit: usize) -> Reading<'_, Vec<Sms>> {
        Box::pin(async move {
            let rows = self.rows_from(Folder::Inbox, from, limit).await?;
            Ok(rows.into_iter().map(Row::into_sms).collect())
        })
    }

    fn newest(&self, skip: usize, limit: usize) -> Reading<'_, Vec<Sms>> {
        Box::pin(async move {
            let mut listing = Listing::newest(limit).skipping(skip);
            if self.script_selects().await? {
                listing = listing.sorted("date DESC, _id DESC");
            }
            let mut rows = self.list(Folder::Inbox, listing).await?.rows;
            // Old software returns the newest last.
            rows.sort_by_key(|row| std::cmp::Reverse((row.date(), row.id)));
            Ok(rows.into_iter().map(Row::into_sms).collect())
        })
    }

    fn contacts(&self) -> Reading<'_, Vec<Contact>> {
        Box::pin(async move {
            let terms = Terms { longest_answer: LONGEST_LIST, ..Terms::within(self.patience) };
            let printed = self.call::<&str>(CONTACTS, &[], &terms).await;
            contacts::read(&printed.map_err(|failed| not_listed(CONTACTS, failed))?)
        })
    }
}

impl Sender for Termux {
    fn send(&self, approved: Approved) -> Sending<'_> {
        Box::pin(async move { self.hand_over(approved.to(), approved.body()).await })
    }

    /// Reads the phone's own folder of sent messages.
    fn sent_since(&self, at: Timestamp) -> Looking<'_> {
        Box::pin(async move {
            let rows = self.rows_from(Folder::Sent, From::Date(at), SENT_LIMIT).await.ok()?;
            Some(rows.into_iter().map(|row| row.into_sent(at)).collect())
        })
    }
}

impl Termux {
    /// Returns at most `limit` rows from there on, in the order that the port promises.
    async fn rows_from(&self, folder: Folder, from: From, limit: usize) -> Result<Vec<Row>, ReadError> {
        let mut rows = match self.selected(folder, from, limit).await? {
            Some(rows) => rows,
            None => self.list_backwards(folder, from).await?,
        };
        match from {
            From::Id(_) => rows.sort_by_key(|row| row.id),
            From::Date(_) => rows.sort_by_key(|row| (row.date(), row.id)),
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Lets the phone filter; `None` if it cannot.
    async fn selected(
        &self,
        folder: Folder,
        from: From,
        limit: usize,
    ) -> Result<Option<Vec<Row>>, ReadError> {
        if !self.script_selects().await? || self.sms.app_selects.get() == Some(&false) {
            return Ok(None);
        }
        let (selection, order) = match from {
            From::Id(id) => (format!("_id >= {}", id.0), "_id ASC"),
            From::Date(date) => {
                (format!("date >= {}", answer::whole_second(date).as_millisecond()), "date ASC, _id ASC")
            }
        };
        let listing = Listing::newest(limit).selecting(selection).sorted(order);
        let answer = self.list(folder, listing).await?;
        // An app that ignores the filter returns the newest messages. If there are fewer than the limit, these are
        // all messages and the result is right; otherwise they may be the wrong ones.
        let doubtful = answer.printed >= limit.max(1) || answer.rows.iter().any(|row| row.is_before(from));
        if doubtful && !self.app_selects(folder).await? {
            return Ok(None);
        }
        Ok(Some(answer.rows))
    }

    /// Lists further and further back until a message is older than `from` or there are no more. By id, this relies
    /// on ids growing with dates, which is true for all but restored messages.
    async fn list_backwards(&self, folder: Folder, from: From) -> Result<Vec<Row>, ReadError> {
        let mut depth = DEPTH;
        loop {
            let answer = self.list(folder, Listing::newest(depth)).await?;
            let far_enough = answer.rows.iter().any(|row| row.is_before(from));
            if far_enough || answer.printed < depth {
                return Ok(answer.rows.into_iter().filter(|row| !row.is_before(from)).collect());
            }
            depth = depth.saturating_mul(DEEPER);
        }
    }

    /// Whether the script can filter. Old scripts reject `--help`.
    async fn script_selects(&self) -> Result<bool, ReadError> {
        let asked = self.sms.script_selects.get_or_try_init(|| async {
            match self.call(LIST, &["--help"], &Terms::within(self.patience)).await {
                Ok(help) => Ok(help.contains("message-selection")),
                Err(Failed::Refused(_)) => Ok(false),
                Err(failed) => Err(not_listed(LIST, failed)),
            }
        });
        asked.await.copied()
    }

    /// Whether the app filters as the script tells it. Tested with a filter that matches nothing, which is conclusive
    /// only if there are messages.
    async fn app_selects(&self, folder: Folder) -> Result<bool, ReadError> {
        let asked = self.sms.app_selects.get_or_try_init(|| async {
            let impossible = Listing::newest(1).selecting("_id < 0".to_owned());
            Ok(self.list(folder, impossible).await?.printed == 0)
        });
        asked.await.copied()
    }

    async fn list(&self, folder: Folder, listing: Listing) -> Result<Answer, ReadError> {
        let terms = Terms { longest_answer: LONGEST_LIST, ..Terms::within(self.patience) };
        let printed = self.call(LIST, &listing.arguments(folder), &terms).await;
        let printed = printed.map_err(|failed| not_listed(LIST, failed))?;
        answer::read(&printed, folder, &self.sms.clock.zone())
    }

    /// Sends an SMS. The text is passed as input, because a shell would change it as an argument. The app trims
    /// whitespace around it, so the sent text may lack some that the approved text had.
    async fn hand_over(&self, to: &str, text: &str) -> Result<(), SendError> {
        let Some(number) = dialled(to) else {
            return Err(SendError::NotSent(said::draft_reason_no_number(format!(
                "{:?}",
                Untrusted::new(to).line(LINE)
            ))));
        };
        // The app would fail without reporting it.
        if text.trim_matches(|c| c <= ' ').is_empty() {
            return Err(SendError::NotSent(said::draft_reason_empty()));
        }
        let terms = Terms { input: Some(text), ..Terms::within(self.patience) };
        match self.call(SEND, &["-n", &number], &terms).await {
            Ok(said) if said.trim().is_empty() => Ok(()),
            Ok(said) => {
                Err(refusal(&said).map_or_else(|| SendError::Unsure(line(&said.into())), |why| refused(&why)))
            }
            Err(Failed::Absent(_)) => Err(SendError::NotSent(absent(SEND))),
            Err(Failed::Refused(why)) => Err(SendError::NotSent(line(&why))),
            Err(Failed::Interrupted(why)) => Err(SendError::Unsure(line(&why))),
        }
    }
}

/// Classifies a refusal: a missing permission is named in the message; anything else means that it was not sent.
fn refused(why: &Said) -> SendError {
    let (why, english) = (line(why), why.to_string());
    if english.contains("grant") || english.contains("permission") {
        SendError::NotPermitted(said::access_termux_sending(why))
    } else {
        SendError::NotSent(why)
    }
}

fn not_listed(program: &str, failed: Failed) -> ReadError {
    ReadError::Failed(match failed {
        Failed::Absent(_) => absent(program),
        Failed::Refused(why) | Failed::Interrupted(why) => line(&why),
    })
}

fn absent(program: &str) -> Said {
    said::access_termux_absent(program)
}

/// Longest message of a program that is shown to the user, in characters.
const LINE: usize = 300;

/// Shortens a sentence with a program's message in it to one line, because it is shown to the user.
fn line(said: &Said) -> Said {
    let english = said.to_string();
    let short = Untrusted::new(english.as_str()).line(LINE);
    if short == english { said.clone() } else { short.into() }
}

/// What to ask `termux-sms-list` for.
struct Listing {
    skip: usize,
    limit: usize,
    selection: Option<String>,
    order: Option<&'static str>,
}

impl Listing {
    fn newest(limit: usize) -> Self {
        Self { skip: 0, limit, selection: None, order: None }
    }

    fn skipping(self, skip: usize) -> Self {
        Self { skip, ..self }
    }

    fn selecting(self, selection: String) -> Self {
        Self { selection: Some(selection), ..self }
    }

    /// Sorts the list. Without this, the newest message comes last.
    fn sorted(self, order: &'static str) -> Self {
        Self { order: Some(order), ..self }
    }

    fn arguments(&self, folder: Folder) -> Vec<String> {
        let mut arguments =
            vec!["-t".to_owned(), folder.word().to_owned(), "-l".to_owned(), count(self.limit)];
        if self.skip > 0 {
            arguments.extend(["-o".to_owned(), count(self.skip)]);
        }
        arguments.extend(self.selection.iter().map(|it| format!("--message-selection={it}")));
        if let Some(order) = self.order {
            arguments.push(format!("--message-sort-order={order}"));
            arguments.push("--message-return-no-order-reverse".to_owned());
        }
        arguments
    }
}

/// The app uses 32-bit integers.
fn count(number: usize) -> String {
    i32::try_from(number).unwrap_or(i32::MAX).to_string()
}
