//! Sends text messages by a paired phone. It does not say what became of them, so its own list is watched.

use jiff::Timestamp;
use kai_assistant::outbox::door::{
    Approved, ApprovedReply, Looking, SendError, Sender, Sending, SentMessage,
};
use kai_assistant::phones::port::NotReached;
use kai_words::said;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::listed::{Fate, Listed, Listing, Row, Wanted};
use super::phone::{Asked, PairedPhone};
use super::ported;

impl Sender for PairedPhone {
    fn send(&self, approved: Approved) -> Sending<'_> {
        Box::pin(async move { self.send_and_watch(approved.to(), approved.body()).await })
    }

    fn compose(&self, approved: Approved) -> Sending<'_> {
        Box::pin(async move { sure(self.open_composer(approved.to(), approved.body()).await) })
    }

    fn reply(&self, approved: ApprovedReply) -> Sending<'_> {
        Box::pin(async move { sure(self.answer(approved.reply_id(), approved.body()).await) })
    }

    /// With reading off, the phone's list is looked at only while a message is being sent. What a phone has sent that
    /// lists nothing is not known.
    fn sent_since(&self, at: Timestamp) -> Looking<'_> {
        Box::pin(async move {
            if !self.allowed().read_sms {
                return None;
            }
            self.list().await.ok().filter(|listing| *listing == Listing::Heard)?;
            let message = |row: &Row| SentMessage { to: row.to.clone(), body: row.text.clone(), at: row.at };
            Some(self.listed.borrow().sent_since(at).map(message).collect())
        })
    }
}

/// How sure it is that what the phone was told had no effect.
fn sure(told: Result<(), NotReached>) -> Result<(), SendError> {
    told.map_err(|why| match why {
        NotReached::NotConnected => SendError::NotConnected,
        NotReached::Busy => SendError::NotSent(said::draft_reason_busy()),
        NotReached::Unsure => SendError::Unsure(said::draft_reason_cut_off()),
    })
}

/// Keeps what the phone lists as long as somebody looks, even if reading is off.
struct Look<'a>(&'a PairedPhone);

impl<'a> Look<'a> {
    fn begin(phone: &'a PairedPhone) -> Self {
        phone.line.send_modify(|line| line.looking += 1);
        Self(phone)
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut forget = false;
        self.0.line.send_modify(|line| {
            line.looking = line.looking.saturating_sub(1);
            forget = line.let_go_of_listed();
        });
        if forget {
            self.0.listed.send_modify(Listed::forget);
        }
    }
}

impl PairedPhone {
    pub(super) async fn send_and_watch(&self, to: &str, text: &str) -> Result<(), SendError> {
        let tapped = self.clock.now();
        if !self.allowed().send_sms {
            return Err(SendError::NotSent(said::draft_reason_sending_off()));
        }
        let _look = Look::begin(self);
        let listing = self.list().await.map_err(|_| SendError::NotConnected)?;
        let known = self.listed.borrow().known();
        let wanted = Wanted { to: to.to_owned(), text: text.to_owned(), tapped, known, listing };
        let unclear = match self.reach(|on| on.send_sms, ported::text_to(to, text)).await {
            Ok(()) => said::draft_reason_not_seen(),
            Err(NotReached::NotConnected) => return Err(SendError::NotConnected),
            Err(NotReached::Busy) => return Err(SendError::NotSent(said::draft_reason_busy())),
            Err(NotReached::Unsure) => said::draft_reason_cut_off(),
        };
        match timeout(self.limits.sent, self.fate_of(&wanted)).await {
            Ok(Fate::Sent) => Ok(()),
            Ok(Fate::Failed) => Err(SendError::NotSent(said::draft_reason_phone_failed())),
            Err(_) => Err(SendError::Unsure(unclear)),
        }
    }

    /// Makes the phone list its newest messages, unless it has on this connection, and waits until it is done.
    async fn list(&self) -> Result<Listing, NotReached> {
        let may = |on: kai_assistant::phones::Switches| on.read_sms || on.send_sms;
        let (connected, asked) = {
            let line = self.line.borrow();
            (line.wire.is_some(), line.asked)
        };
        if !connected {
            return Err(NotReached::NotConnected);
        }
        let asked = match asked {
            Some(asked) => asked,
            None => self.ask_threads(may).await?,
        };
        Ok(self.listing(asked).await)
    }

    /// Waits until the phone tells something and then falls silent: before it has begun, its silence says nothing.
    async fn listing(&self, asked: Asked) -> Listing {
        let begun = Instant::now();
        let mut listed = self.listed.subscribe();
        let first = listed.wait_for(|listed| listed.told > asked.told);
        if timeout_at(asked.at + self.limits.list, first).await.is_err() {
            return Listing::Silent;
        }
        let latest = (begun + self.limits.list).max(Instant::now() + self.limits.quiet);
        self.falls_silent(latest).await;
        let line = self.line.borrow();
        // If the connection ended, so did the list, wherever it was.
        if line.wire.is_some() && line.number == asked.number { Listing::Heard } else { Listing::Silent }
    }

    /// Waits until the phone has told nothing for a while. One that never stops is not waited for, since it begins with
    /// its newest messages.
    async fn falls_silent(&self, latest: Instant) {
        let mut listed = self.listed.subscribe();
        loop {
            let told = listed.borrow_and_update().told;
            let quiet = (Instant::now() + self.limits.quiet).min(latest);
            sleep_until(quiet).await;
            if listed.borrow().told == told || Instant::now() >= latest {
                return;
            }
        }
    }

    /// Waits until the phone lists a message. If it connects anew meanwhile, it is asked again.
    async fn fate_of(&self, wanted: &Wanted) -> Fate {
        let (mut listed, mut line) = (self.listed.subscribe(), self.line.subscribe());
        let mut number = line.borrow().number;
        loop {
            if let Some(fate) = listed.borrow_and_update().fate_of(wanted) {
                return fate;
            }
            let reconnected = async {
                let new = line.wait_for(|line| line.number != number && line.wire.is_some()).await;
                new.map(|line| line.number)
            };
            tokio::select! {
                // The phone itself keeps both channels open.
                _ = listed.changed() => {}
                Ok(new) = reconnected => {
                    number = new;
                    // If that fails, it is not connected any more, and the next connection counts.
                    let _ = self.ask_threads(|on| on.read_sms || on.send_sms).await;
                }
            }
        }
    }
}
