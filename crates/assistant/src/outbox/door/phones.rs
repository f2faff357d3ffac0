//! Whether the phone of a draft may do what was tapped.

use kai_words::{Said, said};
use rusqlite::Transaction;

use super::{Act, Refused};
use crate::outbox::{Channel, Draft};
use crate::phones::{self, Switch};

/// The name of the draft's paired phone, if the user allows it to do what was tapped; `None` for the phone that Kai runs
/// on, and for a mail.
pub(super) fn permitted(tx: &Transaction<'_>, draft: &Draft, act: Act) -> Result<Option<String>, Refused> {
    if act == Act::Compose && (draft.channel != Channel::Sms || draft.phone.is_here()) {
        return Err(Refused::NothingToOpen);
    }
    let switch = match (draft.channel, act) {
        (Channel::Email, _) => return Ok(None),
        _ if draft.phone.is_here() => return Ok(None),
        (Channel::Notification, _) => Switch::Notifications,
        (Channel::Sms, Act::Compose) => Switch::Composer,
        (Channel::Sms, Act::Send | Act::Retry | Act::SendAgain) => Switch::SendSms,
    };
    let phone = phones::store::get(tx, draft.phone)?.ok_or(Refused::Unpaired)?;
    if phone.switches.is_on(switch) {
        Ok(Some(phone.name))
    } else {
        Err(Refused::SwitchedOff(is_off(&phone.name, switch)))
    }
}

/// Says what to turn on.
fn is_off(phone: &str, switch: Switch) -> Said {
    match switch {
        Switch::Composer => said::drafts_refused_composer_off(phone),
        Switch::Notifications => said::drafts_refused_notifications_off(phone),
        Switch::SendSms | Switch::ReadSms | Switch::Names | Switch::Tell => {
            said::drafts_refused_sending_off(phone)
        }
    }
}
