//! Opens the door for one tap: checks it against the draft and its phone, and records the attempt, all in one
//! transaction, so that the second of two concurrent taps is refused.

use jiff::Timestamp;
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::senders::{Entry, Senders};
use super::{
    Act, Approved, ApprovedReply, FindAnswerable, LEASE, Refused, Tap, close, lease_of, mark_orphans_unknown,
};
use crate::db::DbError;
use crate::lease::{self, Lease};
use crate::ledger::{self, Record};
use crate::outbox::store::{self, Attempt, Way};
use crate::outbox::{Channel, Draft, ReplyTo, Status};
use crate::phones::{self, Phone, Switch};

/// What an accepted tap leads to.
pub(super) enum Opened {
    Send(Approved, Box<UnderWay>),
    Compose(Approved, Box<UnderWay>),
    Reply(ApprovedReply, Box<UnderWay>),
    /// It failed before the phone had to be asked.
    Over(Box<Draft>),
}

/// An attempt for which the phone is to be called.
pub(super) struct UnderWay {
    pub(super) attempt: Attempt,
    /// The draft before the tap.
    pub(super) before: Draft,
    /// The name of the paired phone; `None` for the phone that Kai runs on.
    pub(super) name: Option<String>,
    /// The sender that was there at the tap. One that takes its place later does not get this message.
    pub(super) entry: Entry,
    /// Only for `mark_orphans_unknown`. The status in the row is what refuses the second tap.
    _lease: Option<Lease>,
}

pub(super) fn open(
    tx: &Transaction<'_>,
    tap: &Tap,
    senders: &Senders,
    answerable: FindAnswerable,
    now: Timestamp,
) -> Result<Opened, Refused> {
    mark_orphans_unknown(tx, now)?;
    let before = tapped(tx, tap)?;
    let phone = permitted(tx, &before, tap.act)?;
    let name = phone.map(|phone| phone.name);
    let entry = senders.get(before.phone).ok_or_else(|| match &name {
        Some(name) => Refused::NotConnected(name.clone()),
        None => Refused::NoPhone,
    })?;
    let way = way(&before, tap.act);
    let reply = match way {
        Way::Reply => Some(reply_id(tx, &before, answerable, now)?),
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
    let (to, body) = (before.to.clone(), before.body.clone());
    let under_way = Box::new(UnderWay { attempt, before, name, entry, _lease: lease });
    let approved = |to, body| Approved { to, body, tapped_at: now };
    Ok(match (way, reply) {
        (_, Some(Ok(reply_id))) => Opened::Reply(ApprovedReply { reply_id, body }, under_way),
        (_, Some(Err(why))) => Opened::Over(Box::new(close(tx, attempt, &Status::Failed(why), now)?)),
        (Way::Compose, None) => Opened::Compose(approved(to, body), under_way),
        (Way::Send | Way::Reply, None) => Opened::Send(approved(to, body), under_way),
    })
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
        (Channel::Sms, Act::Send | Act::Retry | Act::SendAgain) => Way::Send,
    }
}

/// The paired phone of the draft, if the user allows it to do what was tapped; `None` for the phone that Kai runs on.
fn permitted(tx: &Transaction<'_>, draft: &Draft, act: Act) -> Result<Option<Phone>, Refused> {
    if act == Act::Compose && (draft.channel != Channel::Sms || draft.phone.is_here()) {
        return Err(Refused::NothingToOpen);
    }
    if draft.phone.is_here() {
        return Ok(None);
    }
    let phone = phones::store::get(tx, draft.phone)?.ok_or(Refused::Unpaired)?;
    let switch = switch(draft.channel, act);
    if phone.switches.is_on(switch) {
        Ok(Some(phone))
    } else {
        Err(Refused::SwitchedOff { phone: phone.name, switch })
    }
}

fn switch(channel: Channel, act: Act) -> Switch {
    match (channel, act) {
        (Channel::Notification, _) => Switch::Notifications,
        (Channel::Sms, Act::Compose) => Switch::Composer,
        (Channel::Sms, Act::Send | Act::Retry | Act::SendAgain) => Switch::SendSms,
    }
}

/// What the phone calls the reply that the draft needs, or why there is none any more. The notification must still show
/// the conversation that the user saw on the draft.
fn reply_id(
    tx: &Transaction<'_>,
    draft: &Draft,
    answerable: FindAnswerable,
    now: Timestamp,
) -> Result<Result<String, Said>, DbError> {
    let Some(ReplyTo::Notification(id)) = &draft.in_reply_to else {
        return Ok(Err(said::draft_reason_gone()));
    };
    let Some(found) = answerable(tx, id, now)? else { return Ok(Err(said::draft_reason_gone())) };
    if found.conversation != draft.to || draft.app.as_ref() != Some(&found.app) {
        return Ok(Err(said::draft_reason_other_chat()));
    }
    if store::is_used(tx, &found.reply_id, draft.id)? {
        return Ok(Err(said::draft_reason_used()));
    }
    Ok(Ok(found.reply_id))
}
