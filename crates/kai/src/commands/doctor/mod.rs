//! `kai doctor`: checks everything once and names the next step for each problem.

mod work;

#[cfg(feature = "foss")]
use kai_assistant::access::AccessState;
use kai_assistant::home::KeyKind;

use crate::app::App;
use crate::call::doctor::{Check, Verdict};
#[cfg(feature = "foss")]
use crate::call::notifications::ListenerState;
use crate::caller_env::CallerEnv;
#[cfg(feature = "foss")]
use crate::commands::sms;
use crate::commands::{models, shell};
use crate::failure::Failure;
#[cfg(feature = "foss")]
use crate::machine;

/// Below this, the copy that the next upgrade makes may not fit.
const LOW_SPACE: u64 = 100 * 1024 * 1024;

pub(crate) async fn examine(app: &App, env: &CallerEnv) -> Vec<Check> {
    let mut checks = vec![
        home(app),
        key(app),
        store(app).await,
        space(app),
        zone(app),
        daemon(app),
        model(app, env).await,
    ];
    checks.push(shell(app).await);
    #[cfg(feature = "foss")]
    if !is_demo_asleep(app) {
        checks.push(notifications(app).await);
    }
    #[cfg(feature = "foss")]
    if !is_demo_asleep(app) {
        checks.extend(phone(app).await);
    }
    checks.extend(work::examine(app, env).await);
    checks.extend(private(app));
    checks
}

/// Whether this is the demo without its daemon. Its phone and tray only exist in the daemon, so there is nothing to
/// check.
#[cfg(feature = "foss")]
fn is_demo_asleep(app: &App) -> bool {
    app.home.is_demo() && app.daemon.is_none()
}

/// The checks when the store does not open.
pub(crate) fn closed(failure: &Failure) -> Vec<Check> {
    vec![Check::broken("store", failure.message.clone(), None)]
}

pub(crate) fn broken(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.verdict == Verdict::Broken)
}

fn home(app: &App) -> Check {
    Check::fine("home", app.home.dir.display().to_string())
}

fn private(app: &App) -> Option<Check> {
    let (mode, name) = (app.home.folder_too_open()?, app.home.dir.display());
    let says = format!("{name} is open to other users (mode {mode:o})");
    Some(Check::note("privacy", says, format!("chmod 700 {name}")))
}

fn key(app: &App) -> Check {
    let place = match app.key_place {
        KeyKind::Keyring => "in the desktop keyring",
        KeyKind::Passphrase => "locked with a passphrase",
        KeyKind::File => "in kai.key",
    };
    match app.home.key_too_open() {
        Some(mode) => {
            let says = format!("{place}, but other users can open the file kai.key (mode {mode:o})");
            Check::note("key", says, format!("chmod 600 {}", app.home.key_file().display()))
        }
        None if app.key_place == KeyKind::File => {
            Check::fine("key", "in kai.key, readable by you alone (kai key move passphrase locks it)")
        }
        None => Check::fine("key", place),
    }
}

async fn store(app: &App) -> Check {
    let next = "Stop Kai (kai stop) and put back a backup, or a file from the folder `copies`.".to_owned();
    match app.db.damage().await {
        Ok(None) => Check::fine("store", "opens and is whole"),
        Ok(Some(damage)) => Check::broken("store", format!("is damaged: {damage}"), Some(next)),
        Err(error) => Check::broken("store", error.to_string(), Some(next)),
    }
}

fn space(app: &App) -> Check {
    match rustix::fs::statvfs(&app.home.dir).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)) {
        Ok(free) if free < LOW_SPACE => {
            Check::note("disk", format!("only {} MB are free", free / 1_000_000), "Free some space.")
        }
        Ok(free) => Check::fine("disk", format!("{} GB free", free / 1_000_000_000)),
        Err(error) => {
            Check::note("disk", format!("could not be asked: {error}"), "Check that it is mounted.")
        }
    }
}

fn zone(app: &App) -> Check {
    let zone = app.clock.zone();
    match zone.iana_name() {
        Some(name) => Check::fine("time zone", name),
        None => Check::note(
            "time zone",
            "is unknown, so times are shown in UTC",
            "Set TZ, for example TZ=Europe/Berlin.",
        ),
    }
}

async fn model(app: &App, env: &CallerEnv) -> Check {
    let rows = match models::rows(app, env).await {
        Ok(rows) => rows,
        Err(error) => return Check::broken("model", error.to_string(), None),
    };
    match rows.iter().find(|row| row.ready).or(rows.first()) {
        Some(row) if row.ready => {
            Check::fine("model", format!("{} ({}); kai models test asks it", row.name, row.model))
        }
        Some(row) => {
            let why = row.why_not.clone().unwrap_or_default();
            Check::note("model", format!("{} cannot be used", row.name), why)
        }
        None => Check::note("model", "none is set up", "Add one: kai models add --help"),
    }
}

async fn shell(app: &App) -> Check {
    let enabled = match app.values().await {
        Ok(values) => shell::enabled(&values),
        Err(error) => return Check::broken("shell", error.to_string(), None),
    };
    match (shell::looked(app).await, enabled) {
        (Err(why), _) if app.home.is_demo() => Check::fine("shell", why),
        (Ok(sandbox), true) => Check::fine("shell", format!("is on; commands run in a sandbox: {sandbox}")),
        (Ok(sandbox), false) => Check::fine("shell", format!("is off; the sandbox would be: {sandbox}")),
        (Err(why), true) => Check::broken("shell", "is on, and commands cannot be run", Some(why)),
        (Err(why), false) => Check::note("shell", "is off, and commands could not be run", why),
    }
}

/// Checks the phone if SMS is enabled or a phone is connected.
#[cfg(feature = "foss")]
async fn phone(app: &App) -> Option<Check> {
    let status = match sms::status(app).await {
        Ok(status) => status,
        Err(error) => return Some(Check::broken("phone", error.to_string(), None)),
    };
    let wanted = status.enabled || status.send_enabled;
    let Some(bridge) = &status.bridge else { return no_phone(wanted) };
    if !wanted {
        return Some(Check::note(
            "phone",
            format!("is connected ({bridge}), and Kai does not read its SMS"),
            "If you want it to: kai settings set sms_enabled true",
        ));
    }
    let lacks = app.phone.inbox.as_ref().filter(|_| status.enabled).and_then(|inbox| inbox.lacks());
    let denied = lacks.filter(|_| status.access == AccessState::Denied);
    Some(match (denied, &status.last_error) {
        (Some(lacks), _) => Check::broken("phone", "Kai cannot read its SMS", Some(lacks)),
        (None, Some(error)) => {
            Check::note("phone", format!("the last poll failed: {error}"), "Try it: kai sms poll")
        }
        (None, None) => Check::fine("phone", format!("{bridge}. {}", status.says)),
    })
}

/// The check without a phone. It only reports something if one was expected.
#[cfg(feature = "foss")]
fn no_phone(wanted: bool) -> Option<Check> {
    let install =
        "Install the app Termux:API (from where Termux came from) and its programs: pkg install termux-api";
    if machine::in_termux() {
        return Some(Check::note("phone", "Termux's SMS programs are not here", install));
    }
    let says = "SMS are on, but no phone is connected";
    let next = "Run Kai in Termux on the phone, or turn them off: kai settings set sms_enabled false";
    wanted.then(|| Check::broken("phone", says, Some(next.to_owned())))
}

#[cfg(feature = "foss")]
async fn notifications(app: &App) -> Check {
    let name = "notifications";
    let on = "kai settings set notifications_enabled true";
    let status = match crate::commands::notifications::status(app).await {
        Ok(status) => status,
        Err(error) => return Check::broken(name, error.to_string(), None),
    };
    let why = status.last_error.or(status.hint).unwrap_or_default();
    match (status.supported, status.state) {
        (false, _) => Check::note(
            name,
            "cannot be read here",
            "On a desktop, start Kai inside the session; in Termux, install Termux:API.",
        ),
        (true, ListenerState::Listening) => {
            Check::fine(name, format!("are heard (bridge: {})", status.bridge.unwrap_or_default()))
        }
        (true, ListenerState::Inactive) if why.is_empty() => {
            Check::note(name, "are not heard while Kai does not run", "Start it: kai")
        }
        (true, ListenerState::Inactive) => Check::note(name, "are on, and nothing is heard", why),
        (true, ListenerState::Waiting) => Check::note(name, "wait for access", why),
        (true, ListenerState::Off) if why.is_empty() => {
            Check::fine(name, format!("are not read (turn it on: {on})"))
        }
        (true, ListenerState::Off) => {
            Check::note(name, "are not read, because access was not given", format!("{why} Then: {on}"))
        }
    }
}

fn daemon(app: &App) -> Check {
    match &app.daemon {
        Some(running) if running.is_open() => Check::note(
            "daemon",
            format!("runs, and its page can be reached from the network ({})", running.bound),
            format!("It is not encrypted: {}", crate::app::ON_A_NETWORK),
        ),
        Some(running) => Check::fine("daemon", format!("runs, page at {}", running.address)),
        None if app.home.is_demo() => Check::note("daemon", "does not run", "Start it: kai serve --demo"),
        None => Check::note("daemon", "does not run, so there is no page", "Start it: kai"),
    }
}
