//! The phones that drafts may leave by, and the contacts that they go to.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_assistant::db::DbError;
use kai_assistant::moment::local;
use kai_assistant::outbox::{Channel, Draft, Status};
use kai_assistant::phones::{self, Phone};
use kai_assistant::sms::names;
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use rusqlite::Transaction;

use crate::app::App;
use crate::call::drafts::{DraftPhone, OnPhone};

/// The phones that drafts may leave by.
pub(super) struct Phones {
    /// The phone that Kai runs on, if it does, or the simulated one.
    here: Option<Own>,
    paired: Vec<Phone>,
}

/// The phone that Kai runs on.
#[derive(Clone, Copy)]
pub(super) struct Own {
    name: Option<&'static str>,
}

impl Phones {
    /// Whether Kai runs on a phone is known without the store, which may be asked from elsewhere.
    pub(super) fn own(app: &App) -> Option<Own> {
        let is_there = app.messages.phone.inbox.is_some() || app.door.senders.has(SourceId::HERE);
        is_there.then(|| Own { name: app.messages.own_name() })
    }

    pub(super) fn stored(tx: &Transaction<'_>, here: Option<Own>) -> Result<Self, DbError> {
        Ok(Self { here, paired: phones::store::all(tx)? })
    }

    fn of(&self, draft: &Draft) -> Option<&Phone> {
        self.paired.iter().find(|phone| phone.source == draft.phone)
    }

    /// The draft's phone, named only if it could be another one.
    pub(super) fn named(&self, draft: &Draft) -> Option<DraftPhone> {
        if draft.channel == Channel::Email {
            return None;
        }
        let known = if draft.phone.is_here() { self.here.is_some() } else { self.of(draft).is_some() };
        let several = self.paired.len() + usize::from(self.here.is_some()) > 1;
        let own = || self.here.and_then(|own| own.name).filter(|_| draft.phone.is_here());
        let name = self.of(draft).map(|phone| phone.name.clone()).or_else(|| own().map(str::to_owned));
        (several || !known && !draft.phone.is_here()).then_some(DraftPhone { source: draft.phone, name })
    }

    pub(super) fn on_phone(&self, draft: &Draft, zone: &TimeZone) -> OnPhone {
        let switches = self.of(draft).map(|phone| phone.switches).unwrap_or_default();
        let can_open = switches.composer
            && draft.channel == Channel::Sms
            && matches!(draft.status, Status::Pending | Status::Failed(_));
        OnPhone {
            can_open,
            only_open: can_open && !switches.send_sms,
            opened_at: draft.composed_at.map(Timestamp::as_millisecond),
            opened_local: draft.composed_at.map(|at| local(at, zone)),
        }
    }
}

/// The names of the contacts that a draft is addressed to.
pub(crate) fn name_of(tx: &Transaction<'_>, draft: &Draft) -> Result<Option<Untrusted>, DbError> {
    match draft.channel {
        Channel::Sms => names::beside(tx, &draft.to),
        Channel::Notification | Channel::Email => Ok(None),
    }
}

/// Whether this number wrote to the user.
pub(super) async fn wrote_before(app: &App, number: &str) -> Result<bool, DbError> {
    app.messages.phone.received.wrote_before(number).await
}

/// Why the phone last refused to send, if it did.
pub(crate) fn sending_denied(app: &App) -> bool {
    super::super::sms::sending_denied(app).is_some()
}
