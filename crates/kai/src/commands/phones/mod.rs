//! Paired phones: lists them, changes what each may do, and has the daemon's hub search for phones and pair them.

mod naming;
pub(crate) mod troubles;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::moment::local;
use kai_assistant::notifications::toggle;
use kai_assistant::phones::{Phone, SourceId, Switch, Switches, store};
use kai_assistant::settings::{
    self, CONTACT_NAMES_ENABLED, NOTIFICATIONS_ENABLED, SMS_ENABLED, SMS_SEND_ENABLED, Setting,
};
use kai_bridges::kdeconnect::{DeviceId, Failure as PairingFailure};
use kai_words::{Said, said};
use rusqlite::Transaction;
use serde_json::Value;

use self::troubles::Trouble;
use super::{contacts, sms};
use crate::app::App;
use crate::app::messages::{no_phone, start_kai};
use crate::call::json;
use crate::call::phones::{
    ArchiveRow, LastPairingRow, NearbyRow, NetworkRow, PairingRow, PhoneRow, PhonesCall, PhonesStatus,
    SwitchesRow,
};
use crate::failure::Failure;
use crate::phones::drivers;
use crate::phones::order::{NotDone, StoredMessages};
use crate::phones::state::{AskedBy, LinkState, Nearby, NetworkState, NetworkTrouble, Outcome, Pairing};
use crate::phones::unpair;

pub(crate) async fn answer(app: &App, call: PhonesCall) -> Result<Value, Failure> {
    match call {
        PhonesCall::List => json(list(app).await?),
        PhonesCall::Rename { phone, name } => json(rename(app, &phone, &name).await?),
        PhonesCall::Remove { phone, keep_messages } => json(remove(app, &phone, keep_messages).await?),
        PhonesCall::Default { phone } => json(send_by_default(app, &phone).await?),
        PhonesCall::Set { phone, switch, on } => json(set(app, &phone, switch, on).await?),
        PhonesCall::Network => json(network(app)),
        PhonesCall::Search { on } => after(app, search(app, on).await),
        PhonesCall::Connect { address } => json(nearby_row(&connect(app, &address).await?)),
        PhonesCall::Pair { device } => after(app, pair(app, &device).await),
        PhonesCall::Accept { device, key } => after(app, accept(app, &device, &key).await),
        PhonesCall::Refuse { device } => after(app, refuse(app, &device).await),
    }
}

/// What goes on in the network after something was done there.
fn after(app: &App, done: Result<(), Failure>) -> Result<Value, Failure> {
    done.and_then(|()| json(network(app)))
}

/// How it stands with the network of phones.
pub(crate) fn state(app: &App) -> NetworkState {
    app.messages.network.watch().borrow().clone()
}

/// Begins or ends a search for phones.
pub(crate) async fn search(app: &App, on: bool) -> Result<(), Failure> {
    let network = &app.messages.network;
    let done = if on { network.search().await } else { network.end_search().await };
    done.map_err(|why| not_done(app, &why))
}

/// Connects with the phone at an address that was typed, and returns which one it is.
pub(crate) async fn connect(app: &App, address: &str) -> Result<Nearby, Failure> {
    app.messages.network.connect(address.trim()).await.map_err(|why| not_done(app, &why))
}

/// Asks a phone in reach to pair.
pub(crate) async fn pair(app: &App, device: &str) -> Result<(), Failure> {
    app.messages.network.pair(&device_id(device)?).await.map_err(|why| not_done(app, &why))
}

/// The user saw this key on both devices.
pub(crate) async fn accept(app: &App, device: &str, key: &str) -> Result<(), Failure> {
    app.messages.network.accept(&device_id(device)?, key).await.map_err(|why| not_done(app, &why))
}

pub(crate) async fn refuse(app: &App, device: &str) -> Result<(), Failure> {
    app.messages.network.refuse(&device_id(device)?).await.map_err(|why| not_done(app, &why))
}

fn device_id(typed: &str) -> Result<DeviceId, Failure> {
    DeviceId::parse(typed).ok_or_else(|| Failure::failed(said::pairing_gone()))
}

fn not_done(app: &App, why: &NotDone) -> Failure {
    Failure::failed(match why {
        NotDone::NotRunning if app.home.is_demo() => said::lacks_in_demo(),
        NotDone::NotRunning => return start_kai(),
        NotDone::NoNetwork => match state(app).trouble {
            Some(NetworkTrouble::PortsTaken) => said::pairing_ports_taken(),
            Some(
                trouble @ (NetworkTrouble::NotAllowed(_)
                | NetworkTrouble::Identity(_)
                | NetworkTrouble::Store),
            ) => troubles::unreachable(&trouble).says(),
            Some(NetworkTrouble::NoNetwork) | None => said::pairing_no_network(),
        },
        NotDone::NoAddress => said::pairing_bad_address(),
        NotDone::NotReached(_) => said::pairing_unreachable(),
        NotDone::Gone => said::pairing_gone(),
        NotDone::PairedAlready => said::pairing_already(),
        NotDone::NotAsked => said::pairing_not_asked(),
        NotDone::Unknown => said::paired_gone(),
        NotDone::NotStored => said::pairing_not_written(),
    })
}

/// A paired phone and everything that is shown of it.
pub(crate) struct PairedPhone {
    pub(crate) phone: Phone,
    pub(crate) link: LinkState,
    pub(crate) archive: ArchiveRow,
    pub(crate) troubles: Vec<Trouble>,
}

/// All phones that are paired or were, in the order in which they were paired. One that is no longer paired is listed
/// until its messages are deleted.
pub(crate) async fn paired(app: &App) -> Result<Vec<PairedPhone>, DbError> {
    let (state, now) = (state(app), app.clock.now());
    let read = app.db.read(move |tx| {
        let phones = store::all(tx)?.into_iter();
        phones.map(|phone| Ok((archive(tx, phone.source, now)?, phone))).collect::<Result<Vec<_>, DbError>>()
    });
    let whole = |((archive, unanswered), phone): ((ArchiveRow, bool), Phone)| {
        let link = state.links.get(&phone.source).copied().unwrap_or_default();
        // Without a daemon, or without a pairing, every phone is silent, which says nothing about the phone.
        let troubles = match app.daemon {
            Some(_) if phone.is_paired() => troubles::of_phone(&phone, link, unanswered, now),
            _ => vec![],
        };
        PairedPhone { phone, link, archive, troubles }
    };
    Ok(read.await?.into_iter().map(whole).collect())
}

/// What is kept of a phone's messages, and whether it was asked for them in vain.
fn archive(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<(ArchiveRow, bool), DbError> {
    let state = kai_assistant::sms::phone_state(tx, source, now)?;
    let row = ArchiveRow {
        messages: state.messages,
        progress: state.last_sync.map(|_| state.per_mille),
        last_sync: state.last_sync.map(Timestamp::as_millisecond),
    };
    Ok((row, state.last_error.is_some()))
}

pub(crate) async fn list(app: &App) -> Result<Vec<PhoneRow>, DbError> {
    Ok(paired(app).await?.iter().map(|phone| row(app, phone)).collect())
}

fn row(app: &App, paired: &PairedPhone) -> PhoneRow {
    let (phone, zone) = (&paired.phone, app.clock.zone());
    PhoneRow {
        id: phone.source,
        device: phone.device.clone(),
        name: phone.name.clone(),
        paired: phone.is_paired(),
        connected: paired.link.connected.is_some(),
        last_seen: phone.last_seen.map(Timestamp::as_millisecond),
        last_seen_local: phone.last_seen.map(|at| local(at, &zone)),
        paired_at: phone.paired_at.as_millisecond(),
        paired_local: local(phone.paired_at, &zone),
        address: phone.address.clone(),
        sends_by_default: phone.sends_by_default,
        switches: switches(phone.switches),
        archive: paired.archive,
        troubles: paired.troubles.iter().map(Trouble::row).collect(),
    }
}

fn switches(switches: Switches) -> SwitchesRow {
    let Switches { read_sms, send_sms, notifications, names, composer, tell } = switches;
    SwitchesRow { read_sms, send_sms, notifications, names, composer, tell }
}

/// The row of a phone that was just changed.
async fn row_of(app: &App, source: SourceId) -> Result<PhoneRow, Failure> {
    let rows = list(app).await?;
    rows.into_iter().find(|row| row.id == source).ok_or_else(|| Failure::failed(said::paired_gone()))
}

/// All paired phones, and the one that is meant.
async fn found(app: &App, typed: &str) -> Result<(Vec<Phone>, SourceId), Failure> {
    let phones = app.db.read(store::all).await?;
    let source = naming::meant(&phones, typed)?.source;
    Ok((phones, source))
}

pub(crate) async fn rename(app: &App, typed: &str, name: &str) -> Result<PhoneRow, Failure> {
    let (phones, source) = found(app, typed).await?;
    let name = naming::fit(&phones, source, name)?;
    app.db.write(move |tx| store::rename(tx, source, &name)).await?;
    row_of(app, source).await
}

/// Unpairs a phone and returns what it was. Its messages are deleted unless they are to be kept.
pub(crate) async fn remove(app: &App, typed: &str, keep_messages: bool) -> Result<PhoneRow, Failure> {
    let (_, source) = found(app, typed).await?;
    let row = row_of(app, source).await?;
    let messages = if keep_messages { StoredMessages::Keep } else { StoredMessages::Forget };
    match app.messages.network.unpair(source, messages).await {
        Err(NotDone::NotRunning) => unpair_offline(app, source, messages).await?,
        done => done.map_err(|why| not_done(app, &why))?,
    }
    Ok(row)
}

/// Ends a pairing where no network runs.
async fn unpair_offline(app: &App, source: SourceId, messages: StoredMessages) -> Result<(), Failure> {
    let now = app.clock.now();
    let unpaired = app.db.write(move |tx| unpair(tx, source, messages, drivers::forget, now));
    if unpaired.await? { Ok(()) } else { Err(not_done(app, &NotDone::Unknown)) }
}

/// Lets new messages leave by this phone. Number 1 is the phone that Kai runs on.
pub(crate) async fn send_by_default(app: &App, typed: &str) -> Result<Vec<PhoneRow>, Failure> {
    let runs_on_phone = app.messages.phone.bridge.is_some();
    let source = match found(app, typed).await {
        Err(_) if runs_on_phone && typed.trim() == "1" => SourceId::HERE,
        found => found?.1,
    };
    app.db.write(move |tx| store::send_by_default(tx, source)).await?;
    Ok(list(app).await?)
}

/// The setting that a phone's switch stands under; turning the switch on turns it on as well.
pub(crate) fn master(switch: Switch) -> Option<&'static Setting> {
    match switch {
        Switch::ReadSms => Some(&SMS_ENABLED),
        // A draft that opens on the phone has to be written first.
        Switch::SendSms | Switch::Composer => Some(&SMS_SEND_ENABLED),
        Switch::Notifications => Some(&NOTIFICATIONS_ENABLED),
        Switch::Names => Some(&CONTACT_NAMES_ENABLED),
        Switch::Tell => None,
    }
}

/// Turns one of a phone's switches on or off.
pub(crate) async fn set(app: &App, typed: &str, switch: Switch, on: bool) -> Result<PhoneRow, Failure> {
    let (phones, source) = found(app, typed).await?;
    if phones.iter().any(|phone| phone.source == source && !phone.is_paired()) {
        return Err(Failure::failed(said::paired_gone()).try_instead("kai phones pair"));
    }
    if on && switch == Switch::ReadSms {
        seed_own_phone(app).await?;
    }
    let now = app.clock.now();
    app.db.write(move |tx| turn(tx, source, switch, on, now)).await?;
    app.messages.notifications.changed();
    app.messages.network.look();
    if on && switch == Switch::Names {
        // The setting counts for the phone that Kai runs on, too.
        contacts::read_if_due(app).await?;
    }
    row_of(app, source).await
}

/// Turning reading on for a paired phone turns it on for the phone that Kai runs on, too. What is on that one already
/// must not count as new.
async fn seed_own_phone(app: &App) -> Result<(), Failure> {
    let is_on = app.values().await?.on(&SMS_ENABLED);
    if is_on || app.messages.phone.inbox.is_none() { Ok(()) } else { sms::turn_reading_on(app).await }
}

/// Turns a switch on or off together with what depends on it, in one transaction.
fn turn(
    tx: &Transaction<'_>,
    source: SourceId,
    switch: Switch,
    on: bool,
    now: Timestamp,
) -> Result<(), DbError> {
    if switch == Switch::Notifications {
        return toggle::switch_phone(tx, source, on, now).map(drop);
    }
    store::set(tx, source, switch, on)?;
    if !on {
        return Ok(());
    }
    if let Some(master) = master(switch) {
        settings::store(tx, &master.key, "true")?;
    }
    if switch == Switch::ReadSms { begin_reading(tx, now) } else { Ok(()) }
}

/// From now on, new messages of every phone that may be read are news, where that has not begun before.
pub(crate) fn begin_reading(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let reads = store::all(tx)?.into_iter().filter(|phone| phone.is_paired() && phone.switches.read_sms);
    reads.map(|phone| phone.source).try_for_each(|source| store::begin_reading(tx, source, now))
}

/// Turns the master switch for reading on: for the phone that Kai runs on, and for paired phones that may be read.
pub(crate) async fn turn_reading_on(app: &App) -> Result<(), Failure> {
    if app.messages.phone.inbox.is_some() {
        sms::turn_reading_on(app).await?;
    } else if !any_with(app, Switch::ReadSms).await? {
        return Err(sms::stays_off(nobody_read(app).await?));
    }
    let now = app.clock.now();
    let begun = app.db.write(move |tx| {
        settings::store(tx, &SMS_ENABLED.key, "true")?;
        begin_reading(tx, now)
    });
    Ok(begun.await?)
}

/// Why no messages can be read.
async fn nobody_read(app: &App) -> Result<Failure, DbError> {
    let is_paired = app.db.read(store::all).await?.iter().any(Phone::is_paired);
    Ok(if is_paired { sms::not_read_by_any() } else { no_phone() })
}

/// Checks that something could send if the master switch for sending is turned on.
pub(crate) async fn can_turn_sending_on(app: &App) -> Result<(), Failure> {
    let has_phone = any_with(app, Switch::SendSms).await? || any_with(app, Switch::Composer).await?;
    if has_phone { Ok(()) } else { sms::can_turn_sending_on(app).await }
}

/// Whether a paired phone may be used for this.
pub(crate) async fn any_with(app: &App, switch: Switch) -> Result<bool, DbError> {
    let phones = app.db.read(store::all).await?;
    Ok(phones.iter().any(|phone| phone.is_paired() && phone.switches.is_on(switch)))
}

/// What goes on in the network of phones.
pub(crate) fn network(app: &App) -> NetworkRow {
    let (state, now) = (state(app), app.clock.now());
    let pairing = |pairing: &Pairing| PairingRow {
        device: pairing.device.to_string(),
        name: pairing.name.clone(),
        key: pairing.key.clone(),
        by_phone: pairing.asked_by == AskedBy::Them,
        until: pairing.until.as_millisecond(),
    };
    NetworkRow {
        port: state.listening.map(|listening| listening.port),
        searching_until: state.search.map(Timestamp::as_millisecond),
        nearby: state.nearby.iter().map(nearby_row).collect(),
        pairings: state.pairings.iter().map(pairing).collect(),
        last_pairing: state.last_pairing.as_ref().map(|last| LastPairingRow {
            device: last.device.to_string(),
            name: last.name.clone(),
            paired: matches!(last.outcome, Outcome::Paired(_)),
            at: last.at.as_millisecond(),
            says: ended(last.outcome, &last.name).to_string(),
        }),
        troubles: troubles::of_network(&state, now).iter().map(Trouble::row).collect(),
    }
}

fn nearby_row(phone: &Nearby) -> NearbyRow {
    let (device, address) = (phone.device.to_string(), phone.address.to_string());
    NearbyRow { device, name: phone.name.clone(), address }
}

/// How a pairing ended, in words.
pub(crate) fn ended(outcome: Outcome, name: &str) -> Said {
    match outcome {
        Outcome::Paired(_) => said::pairing_paired(name),
        Outcome::Failed(PairingFailure::Refused) => said::pairing_refused(name),
        Outcome::Failed(PairingFailure::Withdrawn) => said::pairing_withdrawn(name),
        Outcome::Failed(PairingFailure::TimedOut) => said::pairing_timed_out(name),
        Outcome::Failed(PairingFailure::ClocksDiffer) => said::pairing_clocks(name),
        Outcome::Failed(PairingFailure::Disconnected) => said::pairing_disconnected(name),
        Outcome::Failed(PairingFailure::Malformed) => said::pairing_malformed(name),
        Outcome::NotStored => said::pairing_not_stored(name),
    }
}

/// A key as people compare it: in groups of four.
pub(crate) fn grouped(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    letters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

/// The part of `kai status` about paired phones.
pub(crate) async fn status(app: &App) -> Result<PhonesStatus, DbError> {
    let mut phones = app.db.read(store::all).await?;
    phones.retain(Phone::is_paired);
    let state = state(app);
    let connected = state.links.values().filter(|link| link.connected.is_some()).count();
    Ok(PhonesStatus {
        paired: phones.len(),
        connected,
        port: state.listening.map(|listening| listening.port),
        searching_until: state.search.map(Timestamp::as_millisecond),
        says: says(app, &state, &phones),
    })
}

/// What is open, to whom, and how to close it.
fn says(app: &App, state: &NetworkState, phones: &[Phone]) -> String {
    let who = match phones {
        [] => "none paired".to_owned(),
        phones => {
            let connected =
                |phone: &&Phone| state.links.get(&phone.source).is_some_and(|link| link.connected.is_some());
            format!("{} paired, {} connected", phones.len(), phones.iter().filter(connected).count())
        }
    };
    let open = open_port(app, state, phones.first());
    format!("{who}. {}", open.as_deref().unwrap_or("No port is open"))
}

/// Which port is open, to whom, and how to close it; `None` while none is.
pub(crate) fn open_port(app: &App, state: &NetworkState, first: Option<&Phone>) -> Option<String> {
    let port = state.listening?.port;
    let search = state.search.map(|until| {
        let until = app.local(until);
        format!(
            "any device, because Kai is searching for phones until {until}. \
             To end the search: Settings → Phones → Stop searching"
        )
    });
    let (whom, close) = match (search, first) {
        (Some(search), None) => (search, String::new()),
        (search, Some(first)) => (
            search.unwrap_or_else(|| "paired phones only".to_owned()),
            format!(". To close the port, unpair every phone: kai phones remove {}", first.source.0),
        ),
        (None, None) => ("nobody, and closes in a moment".to_owned(), String::new()),
    };
    Some(format!("Port {port} is open on your local network, to {whom}{close}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_in_groups_of_four() {
        for (key, shown) in [("8BA5F237", "8BA5 F237"), ("8BA5F", "8BA5 F"), ("", "")] {
            assert_eq!(grouped(key), shown);
        }
    }
}
