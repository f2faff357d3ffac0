//! `kai doctor`: checks everything once and names the next step for each problem.

mod drafts;
mod email;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod work;

use kai_assistant::home::KeyKind;

use crate::app::App;
use crate::call::doctor::{Check, Verdict};
use crate::caller_env::CallerEnv;
use crate::commands::{models, shell};
use crate::failure::Failure;

/// Below this, the copy that the next upgrade makes may not fit.
const LOW_SPACE: u64 = 100 * 1024 * 1024;

pub(crate) async fn examine(app: &App, env: &CallerEnv) -> Vec<Check> {
    let mut checks = vec![home(app)];
    if exists(app) {
        checks.extend([key(app), store(app).await]);
    }
    checks.extend([space(app), zone(app), daemon(app), model(app, env).await]);
    checks.push(shell(app).await);
    checks.extend(messages::checks(app).await);
    checks.extend(email::checks(app).await);
    checks.extend(work::examine(app, env).await);
    checks.extend(drafts::check(app).await);
    checks.extend(private(app));
    checks
}

/// The checks when the store does not open.
pub(crate) fn closed(failure: &Failure) -> Vec<Check> {
    vec![Check::broken("store", failure.message.to_string(), None)]
}

pub(crate) fn broken(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.verdict == Verdict::Broken)
}

/// Whether there is a home. Otherwise the checks are about the one that Kai would create.
fn exists(app: &App) -> bool {
    app.home.key_file().exists()
}

fn home(app: &App) -> Check {
    let dir = app.home.dir.display();
    if exists(app) {
        return Check::fine("home", dir.to_string());
    }
    Check::note("home", format!("{dir} does not exist yet"), "Kai creates it when it starts: kai")
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
            let says = format!("{place}, but other users can read the file kai.key (mode {mode:o})");
            Check::note("key", says, format!("chmod 600 {}", app.home.key_file().display()))
        }
        None if app.key_place == KeyKind::File => {
            Check::fine("key", "in kai.key, which only you can read (to lock it: kai key move passphrase)")
        }
        None => Check::fine("key", place),
    }
}

async fn store(app: &App) -> Check {
    let next = "Stop Kai (kai stop), then restore a backup or a file from the `copies` folder.".to_owned();
    match app.db.damage().await {
        Ok(None) => Check::fine("store", "opens and is intact"),
        Ok(Some(damage)) => Check::broken("store", format!("damaged: {damage}"), Some(next)),
        Err(error) => Check::broken("store", error.to_string(), Some(next)),
    }
}

fn space(app: &App) -> Check {
    // A home that does not exist yet will be on the disk of the nearest folder that does.
    let dir = app.home.dir.ancestors().find(|folder| folder.exists()).unwrap_or(&app.home.dir);
    match rustix::fs::statvfs(dir).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)) {
        Ok(free) if free < LOW_SPACE => {
            Check::note("disk", format!("only {} MB free", free / 1_000_000), "Free some space.")
        }
        Ok(free) => Check::fine("disk", format!("{} GB free", free / 1_000_000_000)),
        Err(error) => {
            Check::note("disk", format!("free space is unknown: {error}"), "Check that it is mounted.")
        }
    }
}

fn zone(app: &App) -> Check {
    let zone = app.clock.zone();
    match zone.iana_name() {
        Some(name) => Check::fine("time zone", name),
        None => Check::note(
            "time zone",
            "unknown, so Kai shows times in UTC",
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
            Check::fine("model", format!("{} ({}); to test it: kai models test", row.name, row.model))
        }
        Some(row) => {
            let why = row.why_not.clone().unwrap_or_default();
            let next = format!("{why} Try: {}", models::repair(&row.name, &row.preset));
            Check::note("model", format!("{} cannot be used", row.name), next)
        }
        None => Check::note("model", "none set up", "Add one: kai models add --help"),
    }
}

async fn shell(app: &App) -> Check {
    let enabled = match app.values().await {
        Ok(values) => shell::enabled(&values),
        Err(error) => return Check::broken("shell", error.to_string(), None),
    };
    match (shell::looked(app).await, enabled) {
        (Err(why), _) if app.home.is_demo() => Check::fine("shell", why),
        (Ok(sandbox), true) => Check::fine("shell", format!("enabled; commands run in a sandbox: {sandbox}")),
        (Ok(sandbox), false) => Check::fine("shell", format!("disabled; available sandbox: {sandbox}")),
        (Err(why), true) => Check::broken("shell", "enabled, but Kai cannot run commands", Some(why)),
        (Err(why), false) => Check::note("shell", "disabled, and Kai could not run commands", why),
    }
}

fn daemon(app: &App) -> Check {
    match &app.daemon {
        Some(running) if running.is_open() => Check::note(
            "daemon",
            format!("running; other machines on the network can reach its page ({})", running.bound),
            format!("It is not encrypted: {}", crate::app::ON_A_NETWORK),
        ),
        Some(running) => Check::fine("daemon", format!("running, page at {}", running.address)),
        None if app.home.is_demo() => Check::note("daemon", "not running", "Start it: kai serve --demo"),
        None => Check::note("daemon", "not running, so there is no page", "Start it: kai"),
    }
}
