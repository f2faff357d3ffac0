//! Opens the door for one tap: checks it against the draft and what it leaves by, and records the attempt, all in one
//! transaction, so that the second of two concurrent taps is refused.

use std::sync::Arc;

use jiff::Timestamp;
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::senders::Entry;
use super::{
    Act, Approved, ApprovedMail, ApprovedReply, Door, LEASE, Mailer, Refused, Tap, close, lease_of, mail_of,
    mark_orphans_unknown, phones,
};
use crate::db::DbError;
use crate::lease::{self, Lease};
use crate::ledger::{self, Record};
use crate::outbox::store::{self, Attempt, Way};
use crate::outbox::{Channel, Draft, ReplyTo, Status};

/// What an accepted tap leads to.
pub(super) enum Opened {
    Send(Approved, Entry, Box<UnderWay>),
    Compose(Approved, Entry, Box<UnderWay>),
    Reply(ApprovedReply, Entry, Box<UnderWay>),
    Mail(ApprovedMail, Arc<dyn Mailer>, Box<UnderWay>),
    /// It failed before anybody had to be asked.
    Over(Box<Draft>),
}

/// An attempt for which the phone or the mail server is to be called.
pub(super) struct UnderWay {
    pub(super) attempt: Attempt,
    /// The draft before the tap.
    pub(super) before: Draft,
    /// The name of the paired phone; `None` for the phone that Kai runs on.
    pub(super) name: Option<String>,
    /// Only for `mark_orphans_unknown`. The status in the row is what refuses the second tap.
    _lease: Option<Lease>,
}

/// What is called after a tap. A sender that takes this one's place later does not get the message.
enum Exit {
    Phone(Entry),
    Account(Arc<dyn Mailer>),
}

pub(super) fn open(tx: &Transaction<'_>, tap: &Tap, door: &Door, now: Timestamp) -> Result<Opened, Refused> {
    mark_orphans_unknown(tx, now)?;
    let before = tapped(tx, tap)?;
    let name = phones::permitted(tx, &before, tap.act)?;
    let exit = exit(&before, name.as_deref(), door)?;
    let way = way(&before, tap.act);
    let reply = match way {
        Way::Reply => Some(reply_id(tx, &before, door, now)?),
        Way::Send | Way::Compose => None,
    };
    let on_phone = way == Way::Compose;
    let lease = match way {
        Way::Compose => None,
        Way::Send | Way::Reply => {
            Some(lease::take(tx, &lease_of(before.id), now, LEASE)?.ok_or(Refused::Sending)?)
        }
    };
    ledger::append(tx, &Record::Tap { draft: before.id.0, digest: before.digest(), on_phone }, now)?;
    let handle = reply.as_ref().and_then(|reply| reply.as_deref().ok());
    let attempt = store::begin(tx, &before, way, handle, now)?;
    let reply_id = match reply {
        Some(Err(why)) => {
            return Ok(Opened::Over(Box::new(close(tx, attempt, &Status::Failed(why), now)?)));
        }
        reply => reply.and_then(Result::ok),
    };
    let under_way = Box::new(UnderWay { attempt, before, name, _lease: lease });
    approved(under_way, exit, reply_id, now)
}

/// The one place where an approval is made.
fn approved(
    under_way: Box<UnderWay>,
    exit: Exit,
    reply_id: Option<String>,
    tapped_at: Timestamp,
) -> Result<Opened, Refused> {
    let Draft { to, body, .. } = &under_way.before;
    let (to, body) = (to.clone(), body.clone());
    Ok(match (exit, reply_id, under_way.attempt.way) {
        (Exit::Account(mailer), ..) => {
            let mail = mail_of(&under_way.before, tapped_at).ok_or(Refused::NoMail)?;
            Opened::Mail(ApprovedMail(mail), mailer, under_way)
        }
        (Exit::Phone(entry), Some(reply_id), _) => {
            Opened::Reply(ApprovedReply { reply_id, body }, entry, under_way)
        }
        (Exit::Phone(entry), None, Way::Compose) => {
            Opened::Compose(Approved { to, body, tapped_at }, entry, under_way)
        }
        (Exit::Phone(entry), None, Way::Send | Way::Reply) => {
            Opened::Send(Approved { to, body, tapped_at }, entry, under_way)
        }
    })
}

/// The sender that is there now.
fn exit(draft: &Draft, phone: Option<&str>, door: &Door) -> Result<Exit, Refused> {
    if draft.channel == Channel::Email {
        return door.mailer.clone().map(Exit::Account).ok_or(Refused::NoMail);
    }
    let entry = door.senders.get(draft.phone).ok_or_else(|| match phone {
        Some(name) => Refused::NotConnected(name.to_owned()),
        None => Refused::NoPhone,
    })?;
    Ok(Exit::Phone(entry))
}

/// The draft that was tapped, if it is still what the user saw.
fn tapped(tx: &Transaction<'_>, tap: &Tap) -> Result<Draft, Refused> {
    let draft = store::get(tx, tap.draft)?.ok_or(Refused::Unknown(tap.draft))?;
    match &draft.status {
        Status::Sending => return Err(Refused::Sending),
        Status::Sent(_) => return Err(Refused::Sent),
        status if tap.act.fits(status) => {}
        status => return Err(Refused::NotNow(status.state().as_str())),
    }
    if draft.digest() != tap.shown || draft.attempts != tap.attempts {
        return Err(Refused::Changed);
    }
    Ok(draft)
}

fn way(draft: &Draft, act: Act) -> Way {
    match (draft.channel, act) {
        (Channel::Notification, _) => Way::Reply,
        (Channel::Sms, Act::Compose) => Way::Compose,
        (Channel::Sms, Act::Send | Act::Retry | Act::SendAgain) | (Channel::Email, _) => Way::Send,
    }
}

/// What the phone calls the reply that the draft needs, or why there is none any more. The notification must still show
/// the conversation that the user saw on the draft.
fn reply_id(
    tx: &Transaction<'_>,
    draft: &Draft,
    door: &Door,
    now: Timestamp,
) -> Result<Result<String, Said>, DbError> {
    let Some(ReplyTo::Notification(id)) = &draft.in_reply_to else {
        return Ok(Err(said::draft_reason_gone()));
    };
    let Some(found) = (door.answerable)(tx, id, now)? else { return Ok(Err(said::draft_reason_gone())) };
    if found.conversation != draft.to || draft.app.as_ref() != Some(&found.app) {
        return Ok(Err(said::draft_reason_other_chat()));
    }
    if store::is_used(tx, &found.reply_id, draft.id)? {
        return Ok(Err(said::draft_reason_used()));
    }
    Ok(Ok(found.reply_id))
}
