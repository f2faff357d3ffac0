//! How it stands with the messages of every phone: the one that Kai runs on, and those that are paired.

use jiff::Timestamp;
use kai_assistant::access::AccessState;
use kai_assistant::db::DbError;
use kai_assistant::pending::{self, PhoneShare};
use kai_assistant::phones::{self, Phone};
use kai_assistant::settings::{self, SMS_ENABLED, SMS_SEND_ENABLED, Values};
use kai_assistant::sms::queue::QUEUE;
use kai_assistant::sms::store::{self, Sync};
use kai_assistant::sms::{PhoneState, SmsId, archive, phone_state};
use kai_assistant::source::SourceId;
use kai_words::Said;
use rusqlite::Transaction;

use crate::app::App;
use crate::call::sms::{SmsSource, SmsStatus};

/// What connects paired phones.
const BRIDGE: &str = "phone";

/// The status, after asking the phone whether Kai has access. Does not ask while reading is off.
pub(crate) async fn status(app: &App) -> Result<SmsStatus, DbError> {
    if let Some(inbox) = &app.messages.phone.inbox
        && app.db.read(settings::load).await?.on(&SMS_ENABLED)
    {
        inbox.probe_access().await;
    }
    known(app).await
}

/// Whether SMS can be read at all: Kai runs on a phone, or one is paired.
pub(crate) async fn is_supported(app: &App) -> Result<bool, DbError> {
    let phones = app.db.read(phones::store::all).await?;
    Ok(app.messages.phone.bridge.is_some() || phones.iter().any(Phone::is_paired))
}

/// The status as far as it is known, without asking the phone.
pub(crate) async fn known(app: &App) -> Result<SmsStatus, DbError> {
    let now = app.clock.now();
    let stored = app.db.read(move |tx| Stored::read(tx, now)).await?;
    let (own, default) = (stored.own(app), stored.default_phone());
    let standing = match default.filter(|_| own.bridge.is_none()) {
        Some(paired) => Standing::of_paired(paired, stored.newest, now),
        None => Standing::of_own(&own, &stored.sync, now),
    };
    let supported = own.bridge.is_some() || default.is_some();
    // What is left of a phone that Kai no longer runs on can be erased.
    let own = Some(own).filter(|own| own.bridge.is_some() || stored.sync.last_attempt.is_some());
    let paired = stored.phones.iter().map(|paired| stored.source(app, paired));
    Ok(SmsStatus {
        supported,
        enabled: stored.values.on(&SMS_ENABLED),
        send_enabled: stored.values.on(&SMS_SEND_ENABLED),
        access: standing.access,
        queued: stored.shares.iter().map(|share| share.waiting).sum(),
        dropped: stored.shares.iter().map(|share| share.dropped).sum(),
        bridge: standing.bridge,
        last_poll: standing.last_poll,
        says: standing.says,
        last_seen_id: standing.last_seen_id,
        last_sync: standing.last_sync.map(Timestamp::as_millisecond),
        last_attempt: standing.last_attempt.map(Timestamp::as_millisecond),
        unread: standing.unread,
        last_error: standing.last_error,
        sources: own.into_iter().chain(paired).collect(),
    })
}

/// What the store holds about everybody's messages.
struct Stored {
    values: Values,
    /// Of the phone that Kai runs on.
    sync: Sync,
    shares: Vec<PhoneShare>,
    phones: Vec<PairedState>,
    /// The newest message of the default phone.
    newest: Option<SmsId>,
}

/// A phone that is or was paired, and how far its messages are copied.
struct PairedState {
    phone: Phone,
    state: PhoneState,
}

impl Stored {
    fn read(tx: &Transaction<'_>, now: Timestamp) -> Result<Self, DbError> {
        let paired = |phone: Phone| {
            let state = phone_state(tx, phone.source, now)?;
            Ok(PairedState { phone, state })
        };
        let phones = phones::store::all(tx)?.into_iter().map(paired).collect::<Result<_, DbError>>()?;
        let (values, sync) = (settings::load(tx)?, store::sync(tx)?);
        let mut stored = Self { values, sync, shares: pending::by_phone(tx, QUEUE)?, phones, newest: None };
        let default = stored.default_phone().map(|paired| paired.phone.source);
        stored.newest = default.map(|phone| archive::newest(tx, phone)).transpose()?.flatten();
        Ok(stored)
    }

    /// The paired phone that the status as a whole speaks of: the one that sends by default, otherwise the first that
    /// is read, otherwise the first.
    fn default_phone(&self) -> Option<&PairedState> {
        let paired = || self.phones.iter().filter(|paired| paired.phone.is_paired());
        let chosen = paired().find(|paired| paired.phone.sends_by_default);
        chosen.or_else(|| paired().find(|paired| paired.phone.switches.read_sms)).or_else(|| paired().next())
    }

    fn share(&self, source: SourceId) -> (u32, u32) {
        let share = self.shares.iter().find(|share| share.phone == source);
        share.map_or((0, 0), |share| (share.waiting, share.dropped))
    }

    /// The phone that Kai runs on. Without a bridge it runs on none.
    fn own(&self, app: &App) -> SmsSource {
        let (phone, (queued, dropped)) = (&app.messages.phone, self.share(SourceId::HERE));
        SmsSource {
            source: SourceId::HERE,
            name: None,
            bridge: phone.bridge.map(str::to_owned),
            enabled: phone.bridge.is_some() && self.values.on(&SMS_ENABLED),
            connected: phone.bridge.is_some(),
            access: phone.inbox.as_ref().map_or(AccessState::Unsupported, |inbox| inbox.access().state()),
            queued,
            dropped,
            messages: 0,
            progress: None,
            last_sync: self.sync.last_sync.map(Timestamp::as_millisecond),
            last_error: self.sync.last_error.clone(),
        }
    }

    fn source(&self, app: &App, paired: &PairedState) -> SmsSource {
        let PairedState { phone, state } = paired;
        let (queued, dropped) = self.share(phone.source);
        SmsSource {
            source: phone.source,
            name: Some(phone.name.clone()),
            bridge: phone.is_paired().then(|| BRIDGE.to_owned()),
            enabled: phone.is_paired() && phone.switches.read_sms && self.values.on(&SMS_ENABLED),
            connected: is_connected(app, phone.source),
            access: access(state),
            queued,
            dropped,
            messages: state.messages,
            progress: state.last_sync.map(|_| state.per_mille),
            last_sync: state.last_sync.map(Timestamp::as_millisecond),
            last_error: state.last_error.clone(),
        }
    }
}

/// Whether a paired phone is connected, which only the daemon knows.
pub(super) fn is_connected(app: &App, source: SourceId) -> bool {
    let network = app.messages.network.watch();
    let link = network.borrow().links.get(&source).copied().unwrap_or_default();
    link.connected.is_some()
}

/// Whether a paired phone lets its messages be read. It does not say if it refuses, it only remains silent.
fn access(state: &PhoneState) -> AccessState {
    let answers = state.last_sync.is_some() && state.last_error.is_none();
    if answers { AccessState::Granted } else { AccessState::Unknown }
}

/// How it stands with the phone that the status as a whole speaks of.
struct Standing {
    access: AccessState,
    bridge: Option<String>,
    last_seen_id: Option<SmsId>,
    last_sync: Option<Timestamp>,
    last_attempt: Option<Timestamp>,
    unread: u32,
    last_error: Option<Said>,
    last_poll: String,
    says: String,
}

impl Standing {
    fn of_own(own: &SmsSource, sync: &Sync, now: Timestamp) -> Self {
        let polled = Polled { at: sync.last_sync, tried: sync.last_attempt, error: sync.last_error.as_ref() };
        Self {
            access: own.access,
            bridge: own.bridge.clone(),
            last_seen_id: sync.mark.top.as_ref().map(|top| top.id),
            last_sync: sync.last_sync,
            last_attempt: sync.last_attempt,
            unread: sync.unread,
            last_poll: polled.when(now),
            says: polled.says(now),
            last_error: sync.last_error.clone(),
        }
    }

    /// Of a paired phone it is not noted when it was asked in vain.
    fn of_paired(paired: &PairedState, newest: Option<SmsId>, now: Timestamp) -> Self {
        let state = &paired.state;
        let polled = Polled { at: state.last_sync, tried: None, error: state.last_error.as_ref() };
        Self {
            access: access(state),
            bridge: Some(BRIDGE.to_owned()),
            last_seen_id: newest,
            last_sync: state.last_sync,
            last_attempt: state.last_sync.filter(|_| state.last_error.is_none()),
            unread: state.unread,
            last_poll: polled.when(now),
            says: polled.says(now),
            last_error: state.last_error.clone(),
        }
    }
}

/// How the last poll went.
struct Polled<'a> {
    at: Option<Timestamp>,
    tried: Option<Timestamp>,
    error: Option<&'a Said>,
}

impl Polled<'_> {
    fn says(&self, now: Timestamp) -> String {
        let when = self.when(now);
        self.error.map_or_else(|| when.clone(), |error| format!("{when}: {error}"))
    }

    fn when(&self, now: Timestamp) -> String {
        match (self.error, self.tried, self.at) {
            (Some(_), Some(tried), _) => format!("Last poll failed {}", ago(tried, now)),
            (_, _, Some(at)) => format!("Last successful poll {}", ago(at, now)),
            _ => "Not polled yet".to_owned(),
        }
    }
}

/// How long ago, as the settings card writes it.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    match now.duration_since(then).as_mins() {
        ..1 => "just now".to_owned(),
        minutes @ 1..60 => format!("{minutes}m ago"),
        minutes @ 60..1440 => format!("{}h ago", minutes / 60),
        minutes => format!("{}d ago", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kai_assistant::clock::ManualClock;
    use kai_assistant::phones::Switch;
    use kai_assistant::phones::store::{NewPhone, end_pairing, pair, send_by_default, set};
    use kai_bridges::simulated;

    use super::*;

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()))
    }

    /// Pairs a phone that is read, of which so many messages are copied.
    fn paired(app: &App, name: &str, messages: i64) -> SourceId {
        let now = app.clock.now();
        let new =
            NewPhone { device: name.to_owned(), name: name.to_owned(), certificate: vec![1], protocol: 8 };
        let done = app.db.write_now(|tx| {
            let source = pair(tx, &new, now)?.source;
            set(tx, source, Switch::ReadSms, true)?;
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            tx.execute(
                "INSERT INTO sms_phones (source, messages, last_sync) VALUES (?1, ?2, ?3)",
                (source, messages, now.as_millisecond() - 60_000),
            )?;
            Ok::<_, DbError>(source)
        });
        done.unwrap()
    }

    fn change(app: &App, change: impl FnOnce(&Transaction<'_>) -> Result<(), DbError>) {
        app.db.write_now(change).unwrap();
    }

    #[tokio::test]
    async fn without_a_phone_of_its_own_it_speaks_of_the_default_one() {
        let (app, _folder) = App::for_tests(clock());
        let status = known(&app).await.unwrap();
        assert!(!status.supported && !status.keeps() && status.sources.is_empty());
        assert!(!is_supported(&app).await.unwrap());
        assert_eq!((status.access, status.says.as_str()), (AccessState::Unsupported, "Not polled yet"));
        let (pixel, work) = (paired(&app, "Pixel", 0), paired(&app, "Work", 7));
        change(&app, |tx| {
            tx.execute("UPDATE sms_phones SET last_sync = NULL WHERE source = 2", [])?;
            Ok(())
        });
        let status = known(&app).await.unwrap();
        assert_eq!((status.supported, status.bridge.as_deref()), (true, Some("phone")));
        assert!(is_supported(&app).await.unwrap());
        assert_eq!(
            (status.access, status.says.as_str()),
            (AccessState::Unknown, "Not polled yet"),
            "the first"
        );
        assert_eq!(status.phones().map(|(name, _)| name).collect::<Vec<_>>(), ["Pixel", "Work"]);
        change(&app, |tx| send_by_default(tx, work));
        let status = known(&app).await.unwrap();
        assert_eq!(
            (status.access, status.says.as_str()),
            (AccessState::Granted, "Last successful poll 1m ago")
        );
        let counts: Vec<(SourceId, u64)> = status.sources.iter().map(|it| (it.source, it.messages)).collect();
        assert_eq!((counts, status.copied()), (vec![(pixel, 0), (work, 7)], 7));
        // What is kept of a phone that is no longer paired can still be erased.
        for phone in [pixel, work] {
            change(&app, |tx| end_pairing(tx, phone));
        }
        let status = known(&app).await.unwrap();
        assert!(!status.supported && status.keeps() && status.phones().next().is_none());
        assert!(!is_supported(&app).await.unwrap());
        assert!(status.sources.iter().all(|source| source.bridge.is_none() && !source.enabled));
    }

    #[tokio::test]
    async fn beside_a_phone_of_its_own_paired_ones_are_sources() {
        let clock = clock();
        let phone = simulated::Phone::new(clock.clone());
        let (app, _folder) = App::with_phone(clock, Arc::new(phone));
        let pixel = paired(&app, "Pixel", 7);
        change(&app, |tx| send_by_default(tx, pixel));
        let status = known(&app).await.unwrap();
        assert_eq!((status.bridge.as_deref(), status.has_own()), (Some("simulated"), true));
        assert_eq!(
            (status.last_sync, status.says.as_str()),
            (None, "Not polled yet"),
            "it speaks of its own"
        );
        let names: Vec<Option<&str>> = status.sources.iter().map(|it| it.name.as_deref()).collect();
        assert_eq!(names, [None, Some("Pixel")]);
        assert_eq!(status.sources[1].last_sync, Some(app.clock.now().as_millisecond() - 60_000));
    }

    #[tokio::test]
    async fn a_paired_phone_that_is_silent_says_so() {
        let (app, _folder) = App::for_tests(clock());
        paired(&app, "Pixel", 7);
        change(&app, |tx| {
            tx.execute("UPDATE sms_phones SET last_error = 'Silent.'", [])?;
            Ok(())
        });
        let status = known(&app).await.unwrap();
        assert_eq!(status.access, AccessState::Unknown);
        assert_eq!(status.says, "Last successful poll 1m ago: Silent.");
        assert_eq!(status.last_attempt, None, "when that was is not noted");
    }
}
