//! Connections with paired phones: they come, they go, they carry packets, and some are refused.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::SignedDuration;
use kai_assistant::ledger::{self, PhoneEvent};
use kai_assistant::phones::{Phone, SourceId, store};
use kai_bridges::kdeconnect::{Device, DeviceId, PORTS, Packet, Refusal, Refused};

use super::super::state::LinkTrouble;
use super::{Paired, Running, record, version, warn_unless_stored};

/// How often a connected phone is noted as seen.
const SEEING: SignedDuration = SignedDuration::from_mins(5);

impl Running<'_> {
    pub(super) async fn on_linked(&mut self, device: &Device) {
        let Some(source) = self.source_of(&device.identity.id) else { return };
        let Some(open) = &self.open else { return };
        let now = self.around.clock.now();
        let Some(paired) = self.phones.get_mut(&source) else { return };
        let (address, protocol) = (where_it_listens(device, &paired.row), version(device.identity.protocol));
        (paired.connected, paired.trouble) = (Some(now), None);
        (paired.row.last_seen, paired.row.address) = (Some(now), Some(address.clone()));
        self.plan.reached(source, now);
        let room = paired.phone.connected(Arc::clone(&open.endpoint));
        self.around.drivers.connected(source, &paired.phone);
        self.hang_up_if(source, room.is_err());
        let noted = self.around.db.write(move |tx| {
            store::spoke(tx, source, protocol)?;
            store::seen(tx, source, now, Some(&address))
        });
        warn_unless_stored(noted.await);
    }

    pub(super) async fn on_lost(&mut self, device: &DeviceId) {
        self.leaving.remove(device);
        let Some(source) = self.source_of(device) else { return };
        let now = self.now();
        self.plan.lost(source, now);
        let Some(paired) = self.phones.get_mut(&source) else { return };
        paired.connected = None;
        paired.row.last_seen = Some(now);
        paired.phone.lost();
        self.around.drivers.lost(source, &paired.phone);
        self.note(vec![source]).await;
    }

    pub(super) fn on_called(&mut self, source: SourceId, outcome: Result<Device, Refused>) {
        let Some(paired) = self.phones.get_mut(&source) else { return };
        let refused = match outcome {
            Ok(device) if device.identity.id == paired.device => return,
            // Another device has its address now.
            Ok(_) => Refusal::Unreachable.into(),
            Err(refused) => refused,
        };
        self.plan.failed(source, self.around.clock.now());
        if paired.connected.is_some() || is_threat(paired.trouble) {
            return;
        }
        paired.trouble = match refused.why {
            Refusal::Unreachable | Refusal::TooSlow => Some(LinkTrouble::Unreachable),
            // That comes as an event of its own.
            Refusal::WrongCertificate | Refusal::OlderProtocol => return,
            _ => Some(LinkTrouble::Refused),
        };
    }

    pub(super) fn on_packet(&mut self, device: &DeviceId, packet: Packet) {
        let Some(source) = self.source_of(device) else { return };
        let Some(paired) = self.phones.get(&source) else { return };
        let full = paired.phone.packet(packet).is_err();
        self.hang_up_if(source, full);
    }

    /// Ends the link with a phone that told more than could be stored. It comes back later, and nothing is lost: it
    /// still has what it told.
    pub(super) fn hang_up_if(&mut self, source: SourceId, full: bool) {
        let now = self.now();
        let (true, Some(paired)) = (full, self.phones.get_mut(&source)) else { return };
        let told = paired.trouble.replace(LinkTrouble::TooMuch) == Some(LinkTrouble::TooMuch);
        if !told && self.log_pace.line(1, now).is_some() {
            tracing::warn!(
                source = source.0,
                "a phone told more than could be stored, and has to connect again"
            );
        }
        if let Some(open) = &self.open {
            open.endpoint.disconnect(&paired.device);
        }
    }

    /// Somebody with the id of a paired phone was refused. It is recorded once until the phone itself returns.
    pub(super) async fn on_refused(&mut self, refused: &Refused) {
        let (trouble, event) = match refused.why {
            Refusal::WrongCertificate => (LinkTrouble::WrongCertificate, PhoneEvent::WrongCertificate),
            Refusal::OlderProtocol => (LinkTrouble::OlderProtocol, PhoneEvent::OlderProtocol),
            _ => return,
        };
        let Some(source) = refused.device.as_ref().and_then(|device| self.source_of(device)) else { return };
        let now = self.now();
        let Some(paired) = self.phones.get_mut(&source) else { return };
        if paired.trouble.replace(trouble) == Some(trouble) {
            return;
        }
        let record = record(&paired.row, event);
        warn_unless_stored(self.around.db.write(move |tx| ledger::append(tx, &record, now)).await);
    }

    /// Notes now and then that a phone is still connected, so that a crash does not cost much of that.
    pub(super) async fn note_seen(&mut self) {
        let now = self.now();
        let stale = |paired: &Paired| {
            let seen = paired.row.last_seen.unwrap_or_default();
            paired.connected.is_some() && now.duration_since(seen).abs() >= SEEING
        };
        let stale: Vec<SourceId> =
            self.phones.values().filter(|paired| stale(paired)).map(|paired| paired.row.source).collect();
        for source in &stale {
            if let Some(paired) = self.phones.get_mut(source) {
                paired.row.last_seen = Some(now);
            }
        }
        self.note(stale).await;
    }

    pub(super) async fn note(&self, seen: Vec<SourceId>) {
        if seen.is_empty() {
            return;
        }
        let now = self.now();
        let noted = self
            .around
            .db
            .write(move |tx| seen.iter().try_for_each(|source| store::seen(tx, *source, now, None)));
        warn_unless_stored(noted.await);
    }
}

/// Where to call a phone next time. One that connected to us did so from another port than it listens on.
fn where_it_listens(device: &Device, row: &Phone) -> String {
    let known: Option<SocketAddr> = row.address.as_ref().and_then(|at| at.parse().ok());
    let known = known.filter(|known| known.ip() == device.address.ip());
    match (device.dialled, known) {
        (true, _) => device.address.to_string(),
        (false, Some(known)) => known.to_string(),
        (false, None) => SocketAddr::new(device.address.ip(), *PORTS.start()).to_string(),
    }
}

fn is_threat(trouble: Option<LinkTrouble>) -> bool {
    matches!(trouble, Some(LinkTrouble::WrongCertificate | LinkTrouble::OlderProtocol))
}
