//! Pairings: asked for, agreed on, kept and ended.

use jiff::SignedDuration;
use kai_assistant::db::DbError;
use kai_assistant::ledger::{self, PhoneEvent};
use kai_assistant::phones::store::{self, NewPhone};
use kai_bridges::kdeconnect::{By, DeviceId, Failure, Pin};

use super::super::state::{AskedBy, Outcome, Pairing, PairingOutcome};
use super::{Asking, Running, later, record, version, warn_unless_stored};

/// How long the user has to compare keys after the phone agreed.
const COMPARING: SignedDuration = SignedDuration::from_secs(30);

impl Running<'_> {
    pub(super) fn on_asking(&mut self, device: DeviceId, key: String, asked_by: AskedBy) {
        let name = self.name_of(&device);
        let patience = SignedDuration::try_from(self.around.network.limits.pairing).unwrap_or(COMPARING);
        let until = later(self.now(), patience);
        let shown =
            Pairing { device: device.clone(), name, key, asked_by, until, confirmed: false, agreed: false };
        self.pairings.insert(device, Asking { shown, pin: None });
    }

    /// A pairing is over, one way or the other.
    pub(super) fn conclude(&mut self, device: &DeviceId, outcome: Outcome) {
        let name = self.pairings.remove(device).map(|asking| asking.shown.name);
        let name = name.unwrap_or_else(|| self.name_of(device));
        self.last_pairing = Some(PairingOutcome { device: device.clone(), name, at: self.now(), outcome });
    }

    /// Both devices agreed. If we asked, the user still has to say that the keys are the same: whoever answers for the
    /// phone may not be the phone.
    pub(super) async fn on_agreed(&mut self, pin: Pin) {
        let until = later(self.now(), COMPARING);
        match self.pairings.get_mut(&pin.device) {
            Some(asking) if !asking.shown.confirmed => {
                (asking.shown.agreed, asking.shown.until) = (true, until);
                asking.pin = Some(pin);
            }
            Some(_) => self.keep(pin).await,
            None => self.cut_off(&pin.device),
        }
    }

    /// Ends pairings that the phone agreed to and nobody confirmed here. All others have a limit of their own.
    pub(super) fn end_late_pairings(&mut self) {
        let now = self.now();
        let late = |asking: &&Asking| asking.pin.is_some() && asking.shown.until <= now;
        let late: Vec<DeviceId> =
            self.pairings.values().filter(late).map(|asking| asking.shown.device.clone()).collect();
        for device in late {
            self.cut_off(&device);
            self.conclude(&device, Outcome::Failed(Failure::TimedOut));
        }
    }

    /// Keeps a phone that was paired.
    pub(super) async fn keep(&mut self, pin: Pin) {
        let now = self.now();
        let device = pin.device.clone();
        let new = NewPhone {
            device: device.to_string(),
            name: self.name_of(&device),
            certificate: pin.certificate,
            protocol: version(pin.protocol),
        };
        let kept = self.around.db.write(move |tx| {
            let phone = store::pair(tx, &new, now)?;
            ledger::append(tx, &record(&phone, PhoneEvent::Paired), now)?;
            Ok::<_, DbError>(phone.source)
        });
        match kept.await {
            Ok(source) => {
                // Whoever searched has found what they were looking for.
                self.plan.end_search();
                self.conclude(&device, Outcome::Paired(source));
                self.reload().await;
                self.take_link(&device).await;
            }
            Err(error) => {
                tracing::warn!(%error, "a phone that was paired could not be kept");
                self.cut_off(&device);
                self.conclude(&device, Outcome::NotStored);
            }
        }
    }

    /// Takes up the link that a phone had before it was kept.
    async fn take_link(&mut self, device: &DeviceId) {
        let linked = self.open.as_ref().map(|open| open.endpoint.devices()).unwrap_or_default();
        if let Some(linked) = linked.into_iter().find(|linked| linked.identity.id == *device) {
            self.on_linked(&linked).await;
        }
    }

    pub(super) async fn on_unpaired(&mut self, device: &DeviceId, by: By) {
        self.leaving.remove(device);
        if self.pairings.contains_key(device) && by == By::Them {
            self.conclude(device, Outcome::Failed(Failure::Refused));
        }
        let Some(source) = self.source_of(device) else { return };
        let now = self.now();
        let Some(paired) = self.phones.get(&source) else { return };
        let record = record(&paired.row, PhoneEvent::UnpairedByPhone);
        self.plan.linger(now);
        let ended = self.around.db.write(move |tx| {
            store::end_pairing(tx, source)?;
            store::seen(tx, source, now, None)?;
            ledger::append(tx, &record, now)
        });
        warn_unless_stored(ended.await);
        self.reload().await;
    }

    fn name_of(&self, device: &DeviceId) -> String {
        let linked = self.open.as_ref().map(|open| open.endpoint.devices()).unwrap_or_default();
        let linked = linked.into_iter().find(|linked| linked.identity.id == *device);
        linked.map_or_else(|| device.to_string(), |linked| linked.identity.name.to_string())
    }
}
