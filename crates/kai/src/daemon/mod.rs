//! The daemon, one per home. It holds the home's lock, serves the page and the socket, runs the scheduler and shuts
//! down cleanly.

mod greeting;
pub(crate) mod mail;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(crate) mod messages;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::{deleted, reports};
use kai_assistant::attachments;
use kai_assistant::db::DbError;
use kai_assistant::device::alarm::{Next, Ringer};
use kai_assistant::home::{DaemonLock, Home};
use rusqlite::Transaction;
use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::facts::{self, PAGE, PORT, recall, remember};
use crate::app::{self, App, Role, Running, sessions};
use crate::call::Call;
use crate::call::status::Status;
use crate::caller::Caller;
use crate::commands::{heartbeat, ledger, noted, tasks, visit};
use crate::failure::Failure;
use crate::home::Keys;
use crate::terminal::out;
use crate::{erase, socket, web, wire};

/// How often the scheduler runs, as the seed specification sets it.
const TICK: Duration = Duration::from_mins(1);
/// A longer interval between two ticks means that some were missed (suspend, machine off, daemon not running).
const GAP: SignedDuration = SignedDuration::from_secs(150);
/// How long shutdown waits for a message that is being sent.
const SEND_GRACE: Duration = Duration::from_secs(12);
/// How long shutdown waits for requests that the page and the socket are still handling.
const GRACE: Duration = Duration::from_secs(1);
/// How long shutdown waits for an alarm that is ringing.
const RING_GRACE: Duration = Duration::from_secs(12);
/// How many further ports are tried when the default one is in use.
const PORTS_TRIED: u16 = 10;

/// The address and port for the page. Without a port, the default is used, or the next free one after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listen {
    pub(crate) bind: IpAddr,
    pub(crate) port: Option<u16>,
}

/// Runs the daemon until SIGINT, SIGTERM, `kai stop`, or a request to erase everything, which it then carries out.
pub(crate) fn run(home: &Home, keys: Keys, listen: Listen) -> Result<(), Failure> {
    let lock = only_one(home, keys)?;
    let app = wire::open(home.clone(), keys, Role::Daemon)?;
    let erase = app.erase.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .thread_keep_alive(Duration::from_secs(5))
        .enable_all()
        .build()
        .map_err(|e| Failure::failed(format!("Kai could not start: {e}.")))?;
    let outcome = runtime.block_on(serve(app, listen));
    runtime.shutdown_timeout(Duration::from_millis(200));
    let outcome = if erase.is_cancelled() { outcome.and_then(|()| erase_all(home)) } else { outcome };
    drop(lock);
    outcome
}

fn erase_all(home: &Home) -> Result<(), Failure> {
    erase::everything(home)?;
    out::line("Everything is erased.");
    Ok(())
}

fn only_one(home: &Home, keys: Keys) -> Result<DaemonLock, Failure> {
    let dir = home.dir.display();
    let lock =
        home.lock_daemon().map_err(|e| Failure::store(format!("The home {dir} cannot be used: {e}.")))?;
    lock.ok_or_else(|| {
        let there: Result<Status, _> = Caller::new(home.clone(), keys).ask(Call::Status);
        let at = there.ok().and_then(|s| s.daemon.address).map(|a| format!(" at {a}")).unwrap_or_default();
        Failure::failed(format!(
            "Kai is already running for this home{at}. To get a sign-in link: {}",
            facts::link_command(home)
        ))
    })
}

async fn serve(mut app: App, listen: Listen) -> Result<(), Failure> {
    let mut end = Signals::listen()?;
    let (page, address) = bind(listen).await?;
    let socket = socket::listen(&app.home)
        .map_err(|e| Failure::failed(format!("{} cannot be opened: {e}.", app.home.socket().display())))?;
    let origin = format!("http://{}", shown(address));
    let (pid, since) = (std::process::id(), app.clock.now());
    let running = Running { pid, address: origin.clone(), bound: address, since };
    if running.is_open() {
        out::note(&format!("The page at {address} is not encrypted: {}", app::ON_A_NETWORK));
    }
    app.daemon = Some(running);
    let app = Arc::new(app);
    app.db.write(move |tx| remember(tx, PAGE, &origin)).await?;
    noted::say(&app).await?;

    // Must run before the first tick, which would otherwise assume that the previous daemon's listener is still alive.
    messages::begin(&app).await?;
    let work = Work::begin(&app, page, address, socket);
    greeting::greet(&app).await?;
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tracing::info!(home = %app.home.dir.display(), page = %address, "ready");

    tokio::select! {
        () = end.wait() => {}
        () = app.erase.cancelled() => {}
        () = app.stop.cancelled() => {}
    }
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    work.end(&app).await;
    drop(std::fs::remove_file(app.home.socket()));
    noted::note_quietly(&app).await;
    app.db.checkpoint().await?;
    tracing::info!("stopped");
    Ok(())
}

/// Everything that runs as long as the daemon does.
struct Work {
    /// Begins the end: nothing new is started.
    stop: CancellationToken,
    /// Lets go of paired phones. That is later, because it is the phone itself that says whether it has sent a message.
    hang_up: CancellationToken,
    tasks: TaskTracker,
    commands: JoinHandle<()>,
    ringing: JoinHandle<()>,
}

impl Work {
    fn begin(app: &Arc<App>, page: TcpListener, address: SocketAddr, socket: UnixListener) -> Self {
        let (stop, hang_up) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        let commands = socket::serve(Arc::clone(app), socket, stop.clone(), tasks.clone());
        let commands = tokio::spawn(commands);
        tasks.spawn(web::serve(Arc::clone(app), page, address, stop.clone()));
        tasks.spawn(tick_on(Arc::clone(app), stop.clone()));
        let ringing = tokio::spawn(ring_on(Arc::clone(app), stop.clone()));
        tasks.spawn(visit::follow_taps(Arc::clone(app), stop.clone()));
        tasks.spawn(messages::listen(Arc::clone(app), hang_up.clone()));
        tasks.spawn(mail::listen(Arc::clone(app), stop.clone()));
        if let Some(servers) = app.toolbox.servers().cloned() {
            let stop = stop.clone();
            tasks.spawn(async move { servers.run(stop).await });
        }
        Self { stop, hang_up, tasks, commands, ringing }
    }

    async fn end(self, app: &App) {
        self.stop.cancel();
        app.downloads.stop();
        // Requests that are still being handled can send nothing more by a paired phone, which is about to be let go.
        messages::retire(app);
        // Let a send that the user approved finish; cut off, its draft could only say that it may have been sent.
        app.door.rest(SEND_GRACE).await;
        self.hang_up.cancel();
        ring_out(app, self.ringing).await;
        // Wait until the socket accepts no more calls before closing the tracker, so that none can start after the wait.
        drop(self.commands.await);
        self.tasks.close();
        if tokio::time::timeout(GRACE, self.tasks.wait()).await.is_err() {
            tracing::warn!("something was still under way and was cut off");
        }
    }
}

struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|e| Failure::failed(format!("Kai could not start: {e}.")));
        Ok(Self { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Binds the page's listener. A requested port is used or refused; the default port may move up to the next free one.
async fn bind(listen: Listen) -> Result<(TcpListener, SocketAddr), Failure> {
    let candidates = match listen.port {
        Some(port) => port..=port,
        None => PORT..=PORT + PORTS_TRIED,
    };
    let mut refusal = None;
    for port in candidates {
        match TcpListener::bind((listen.bind, port)).await {
            Ok(listener) => {
                let address = listener.local_addr().map_err(|e| Failure::failed(e.to_string()))?;
                return Ok((listener, address));
            }
            Err(error) => {
                let taken = error.kind() == std::io::ErrorKind::AddrInUse;
                refusal = Some((port, error));
                if !taken {
                    break;
                }
            }
        }
    }
    let (port, error) = refusal.unwrap_or((PORT, std::io::ErrorKind::AddrInUse.into()));
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("Choose another port: kai serve --port {}", port.saturating_add(1))
        }
        _ => "Check the address given with --bind.".to_owned(),
    };
    Err(Failure::failed(format!("The page cannot be opened at {}:{port}: {error}. {advice}", listen.bind)))
}

/// The address to open in a browser on this machine: a listener on all interfaces is reached over loopback.
fn shown(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, address.port()))
        }
        _ => address,
    }
}

async fn tick_on(app: Arc<App>, stop: CancellationToken) {
    let mut pace = tokio::time::interval(TICK);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = pace.tick() => {}
        }
        tokio::spawn(look_around(Arc::clone(&app)));
        match tick(&app).await {
            Ok(Some(gap)) => tracing::info!(%gap, "ticks were missed and are made up by this one"),
            Ok(None) => {}
            // The next tick tries again: the daemon must not die because the disk was full once.
            Err(error) => tracing::warn!(%error, "a tick failed"),
        }
        noted::note_quietly(&app).await;
    }
}

/// The scheduled work of one tick: looks for new messages and mail, then runs due tasks and the heartbeat, so that both see new
/// messages.
///
/// It runs as its own task, so the tick waits for neither a phone nor a model. Runs that are still in progress at the
/// next tick hold a lease and are not started twice. If the phone is still being polled, this run skips it, so nothing
/// queues up behind a phone that hangs. Neither does anything wait for the phone's contacts.
pub(crate) async fn look_around(app: Arc<App>) {
    tokio::join!(messages::poll(&app), mail::look(&app));
    let work = async {
        tasks::tick(&app).await;
        heartbeat::tick(&app).await;
    };
    tokio::join!(work, messages::read_contacts(&app));
}

/// Waits for the alarm that is ringing. If its notifier does not finish in time, or it could not ring, the alarm is
/// stored again and rings at the next start.
async fn ring_out(app: &App, ringing: JoinHandle<()>) {
    if app.ringer.as_ref().is_some_and(Ringer::is_ringing) {
        tracing::debug!("waiting for an alarm that is ringing");
    }
    drop(tokio::time::timeout(RING_GRACE, ringing).await);
    let Some(ringer) = &app.ringer else { return };
    if let Err(error) = ringer.put_back().await {
        tracing::warn!(%error, "an alarm that did not finish ringing could not be put back");
    }
}

/// Rings alarms until told to stop. Only the wait between alarms is interrupted: a claimed alarm that is cut off would
/// be lost.
async fn ring_on(app: Arc<App>, stop: CancellationToken) {
    let Some(ringer) = &app.ringer else { return };
    let mut next = Next::START;
    loop {
        next = ringer.ring_due(next).await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = ringer.wait(next) => {}
        }
    }
}

/// One tick: deletes expired data and delivers waiting reports. Returns the time since the previous tick if ticks were
/// missed.
async fn tick(app: &App) -> Result<Option<SignedDuration>, DbError> {
    let now = app.clock.now();
    let today = now.to_zoned(app.clock.zone()).date().to_string();
    app.db
        .write(move |tx| {
            let last = recall(tx, LAST_TICK)?.and_then(|ms| ms.parse().ok());
            let last = last.and_then(|ms| Timestamp::from_millisecond(ms).ok());
            remember(tx, LAST_TICK, &now.as_millisecond().to_string())?;
            sessions::sweep(tx, now)?;
            deleted::sweep(tx, now)?;
            let believed = is_believed(tx, last, now)?;
            if believed && recall(tx, LAST_SWEEP)?.as_deref() != Some(today.as_str()) {
                remember(tx, LAST_SWEEP, &today)?;
                ledger::sweep(tx, now)?;
                attachments::store::sweep(tx, now)?;
                kai_assistant::email::kept::sweep(tx, now)?;
            }
            messages::tick(tx, now)?;
            if believed {
                messages::sweep(tx, now)?;
            }
            // Reports that were waiting for a turn that has since died.
            reports::land(tx, now)?;
            Ok(missed(last, now))
        })
        .await
}

/// Whether the clock can be trusted enough to delete old records. After a sudden jump forward it may be wrong, and
/// deleted records cannot be recovered, so a new time is only trusted after a day.
fn is_believed(tx: &Transaction<'_>, last: Option<Timestamp>, now: Timestamp) -> Result<bool, DbError> {
    if last.is_some_and(|last| now.duration_since(last) > LEAP) {
        remember(tx, LEAPT, &now.as_millisecond().to_string())?;
        return Ok(false);
    }
    let leapt = recall(tx, LEAPT)?.and_then(|ms| ms.parse().ok());
    let Some(leapt) = leapt.and_then(|ms| Timestamp::from_millisecond(ms).ok()) else { return Ok(true) };
    let since = now.duration_since(leapt);
    let is_over = since < SignedDuration::ZERO || since >= BELIEVED;
    if is_over {
        tx.execute("DELETE FROM daemon WHERE fact = ?1", [LEAPT])?;
    }
    Ok(is_over)
}

/// The time since the last tick if some were missed. A clock that was set back counts as no gap.
fn missed(last: Option<Timestamp>, now: Timestamp) -> Option<SignedDuration> {
    last.map(|last| now.duration_since(last)).filter(|gap| *gap > GAP)
}

const LAST_TICK: &str = "last_tick";
/// The fact that stores when the clock last jumped far ahead.
const LEAPT: &str = "clock_leapt";
/// A step forward larger than this counts as a jump of the clock.
const LEAP: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long after a jump the new time is trusted.
const BELIEVED: SignedDuration = SignedDuration::from_hours(24);
/// The fact that stores the day on which old records were last deleted.
const LAST_SWEEP: &str = "last_sweep";

#[cfg(test)]
mod tests {
    use kai_assistant::clock::ManualClock;

    use super::*;

    #[test]
    fn a_gap_is_seen_and_a_clock_that_went_back_is_none() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        for (name, last, now, expected) in [
            ("first ever", None, 1000, None),
            ("regular", Some(1000), 1060, None),
            ("one late", Some(1000), 1150, None),
            ("slept", Some(1000), 8200, Some(SignedDuration::from_hours(2))),
            ("clock back", Some(8200), 1000, None),
        ] {
            assert_eq!(missed(last.map(at), at(now)), expected, "{name}");
        }
    }

    /// A clock that is briefly wrong must not delete records that are kept for a year.
    #[tokio::test]
    async fn a_clock_that_leaps_is_not_believed_at_once() {
        let began = Timestamp::from_second(1_800_000_000).unwrap();
        let day = SignedDuration::from_hours(24);
        for (name, then, kept) in [
            ("wrong for some ticks", &[400 * day, 400 * day + SignedDuration::from_mins(1), day][..], 1),
            ("really so late", &[400 * day, 401 * day][..], 0),
            ("day by day", &(1..=400).map(|n| n * day).collect::<Vec<_>>(), 0),
        ] {
            let clock = Arc::new(ManualClock::at(began));
            let (app, _folder) = App::for_tests(clock.clone());
            let made = move |tx: &Transaction<'_>| {
                let record = kai_assistant::ledger::Record::Codes { conversation: 1, shown: true };
                kai_assistant::ledger::append(tx, &record, began)
            };
            app.db.write(made).await.unwrap();
            tick(&app).await.unwrap();
            for after in then {
                clock.set(began + *after);
                tick(&app).await.unwrap();
            }
            assert_eq!(app.db.read(kai_assistant::ledger::all).await.unwrap().len(), kept, "{name}");
        }
    }

    #[tokio::test]
    async fn a_tick_notes_the_gap_across_restarts_and_sweeps_what_ended() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let (app, _folder) = App::for_tests(clock.clone());
        assert_eq!(tick(&app).await.unwrap(), None);
        sessions::fresh_link(&app).await.unwrap();
        let waiting = |app: &App| {
            let db = app.db.clone();
            async move { db.write(sessions::revoke_all).await.unwrap().1 }
        };
        clock.advance(SignedDuration::from_secs(60));
        assert_eq!(tick(&app).await.unwrap(), None);
        clock.advance(SignedDuration::from_hours(3));
        assert_eq!(tick(&app).await.unwrap(), Some(SignedDuration::from_hours(3)));
        assert_eq!(waiting(&app).await, 0, "the link had ended and was swept");
    }

    /// Stages a draft and sends it with an unknown outcome.
    #[cfg(feature = "foss")]
    async fn unsettled(app: &App, phone: &kai_bridges::simulated::Phone) {
        use kai_assistant::gate::RunKind;
        use kai_assistant::outbox::{Channel, NewDraft, door, store};
        use kai_assistant::source::SourceId;
        let new = NewDraft {
            channel: Channel::Sms,
            phone: SourceId::HERE,
            to: "+15550100".to_owned(),
            app: None,
            body: "Yes".to_owned(),
            mail: None,
            in_reply_to: None,
            quoted: None,
            known_contact: false,
            origin: RunKind::Chat,
            guest: None,
            conversation: 0,
        };
        let now = app.clock.now();
        let draft = app.db.write(move |tx| store::stage(tx, &new, now)).await.unwrap();
        phone.next_send(kai_bridges::simulated::Fate::UnsureAndNotSent("no word".to_owned()));
        let act = door::Act::fitting(&draft.status).unwrap();
        let tap = door::Tap { draft: draft.id, act, shown: draft.digest(), attempts: draft.attempts };
        app.door.tap(tap).await.unwrap();
    }

    /// When the phone hangs during the first run, later runs neither wait for it nor delay tasks and heartbeats.
    #[cfg(feature = "foss")]
    #[tokio::test(start_paused = true)]
    async fn nobody_queues_behind_a_phone_that_hangs() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let phone = Arc::new(kai_bridges::simulated::Phone::new(clock.clone()));
        let (app, _folder) = App::with_phone(clock.clone(), Arc::clone(&phone));
        let app = Arc::new(app);
        unsettled(&app, &phone).await;
        phone.hang_sent_box();
        let first = tokio::spawn(look_around(Arc::clone(&app)));
        while phone.hung_count() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            let look = tokio::time::timeout(TICK, look_around(Arc::clone(&app))).await;
            assert!(look.is_ok(), "it waits behind the first");
        }
        assert_eq!(phone.hung_count(), 1, "one at a time");
        let beats = app.db.read(kai_assistant::heartbeat::store::log).await.unwrap().len();
        assert!(beats > 0, "and heartbeats go on");
        first.abort();
    }

    /// While the phone's contacts are waited for, messages are polled and heartbeats run.
    #[cfg(feature = "foss")]
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_contacts() {
        use kai_assistant::settings::{self, CONTACT_NAMES_ENABLED};
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let phone = Arc::new(kai_bridges::simulated::Phone::new(clock.clone()));
        let (app, _folder) = App::with_phone(clock.clone(), Arc::clone(&phone));
        let app = Arc::new(app);
        crate::commands::sms::turn_reading_on(&app).await.unwrap();
        app.db.write(|tx| settings::store(tx, &CONTACT_NAMES_ENABLED.key, "true")).await.unwrap();
        phone.hang_contacts();
        let first = tokio::spawn(look_around(Arc::clone(&app)));
        let beats = async || app.db.read(kai_assistant::heartbeat::store::log).await.unwrap().len();
        // Its heartbeat runs meanwhile. Another one is not started before that has ended.
        while phone.hung_count() == 0 || beats().await == 0 {
            tokio::task::yield_now().await;
        }
        phone.receive("+15550100", "Dinner?", app.clock.now());
        clock.advance(SignedDuration::from_hours(2));
        let look = tokio::time::timeout(TICK, look_around(Arc::clone(&app))).await;
        assert!(look.is_ok(), "it waits behind the first");
        assert_eq!(phone.hung_count(), 1, "one at a time");
        let status = crate::commands::sms::known(&app).await.unwrap();
        assert_eq!((status.last_error, status.last_sync), (None, Some(app.clock.now().as_millisecond())));
        assert_eq!(beats().await, 2, "and heartbeats go on");
        first.abort();
    }

    /// After a restart, the first tick runs before the new listener is bound.
    #[cfg(feature = "foss")]
    #[tokio::test]
    async fn a_crash_shows_as_the_hours_that_were_missed() {
        use kai_assistant::notifications::port::Heard;
        use kai_assistant::notifications::{repeats, store};
        use kai_assistant::source::SourceId;
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let (app, _folder) = App::for_tests(clock.clone());
        let bound = || {
            let (db, now) = (app.db.clone(), app.clock.now());
            let bound = Heard::Bound { standing: vec![] };
            async move {
                db.write(move |tx| store::hear(tx, SourceId::HERE, [(now, &bound)], &repeats::never)).await
            }
        };
        bound().await.unwrap();
        tick(&app).await.unwrap();
        clock.advance(SignedDuration::from_hours(4));
        app.db.write(store::begin).await.unwrap();
        tick(&app).await.unwrap();
        bound().await.unwrap();
        let gaps = crate::commands::notifications::known(&app).await.unwrap().gaps;
        let missed: Vec<i64> = gaps.iter().map(|row| row.gap.ended.unwrap() - row.gap.began).collect();
        assert_eq!(missed, [4 * 3_600_000]);
    }
}
