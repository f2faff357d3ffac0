//! Checks the phone, paired phones, the notifications and the drafts.

use kai_assistant::access::AccessState;
use kai_assistant::phones::Switch;

use super::Check;
use crate::app::App;
use crate::call::notifications::ListenerState;
use crate::commands::phones::troubles::{self, Trouble};
use crate::commands::phones::{self, PairedPhone};
use crate::commands::{contacts, sms};
use crate::machine;

pub(super) async fn checks(app: &App) -> Vec<Check> {
    if is_demo_asleep(app) {
        return vec![];
    }
    let mut checks: Vec<Check> =
        [Some(notifications(app).await), phone(app).await].into_iter().flatten().collect();
    checks.extend(contact_names(app).await);
    match phones::paired(app).await {
        Ok(paired) => {
            let paired: Vec<PairedPhone> = paired.into_iter().filter(|it| it.phone.is_paired()).collect();
            checks.extend(network(app, paired.first()));
            checks.extend(paired.iter().flat_map(|phone| paired_phone(app, phone)));
        }
        Err(error) => checks.push(Check::broken(PHONES, error.to_string(), None)),
    }
    checks
}

/// Checks the phone if SMS is enabled or a phone is connected.
async fn phone(app: &App) -> Option<Check> {
    let status = match sms::status(app).await {
        Ok(status) => status,
        Err(error) => return Some(Check::broken("phone", error.to_string(), None)),
    };
    let wanted = status.enabled || status.send_enabled;
    let own = app.messages.phone.bridge;
    let Some(bridge) = own else { return no_phone(wanted && !is_paired_used(app).await) };
    if !wanted {
        return Some(Check::note(
            "phone",
            format!("connected ({bridge}); Kai does not read its SMS"),
            "To enable this: kai settings set sms_enabled true",
        ));
    }
    let lacks = app.messages.phone.inbox.as_ref().filter(|_| status.enabled).and_then(|inbox| inbox.lacks());
    let denied = lacks.filter(|_| status.access == AccessState::Denied);
    Some(match (denied, &status.last_error) {
        (Some(lacks), _) => Check::broken("phone", "Kai cannot read its SMS", Some(lacks.to_string())),
        (None, Some(error)) => {
            Check::note("phone", format!("the last poll failed: {error}"), "To try again: kai sms poll")
        }
        (None, None) => Check::fine("phone", format!("{bridge}. {}", status.says)),
    })
}

/// Says why there are no names, or old ones, where the user wants them.
async fn contact_names(app: &App) -> Option<Check> {
    const NAME: &str = "contacts";
    match contacts::trouble(app).await {
        Ok(None) => None,
        Ok(Some(why)) => Some(Check::note(
            NAME,
            format!("the phone's contacts could not be read: {why}"),
            "To try again: kai settings set contact_names_enabled true",
        )),
        Err(error) => Some(Check::broken(NAME, error.to_string(), None)),
    }
}

/// Whether a paired phone reads or sends SMS, so that SMS makes sense without a phone of our own.
async fn is_paired_used(app: &App) -> bool {
    for switch in [Switch::ReadSms, Switch::SendSms, Switch::Composer] {
        if phones::any_with(app, switch).await.unwrap_or_default() {
            return true;
        }
    }
    false
}

const PHONES: &str = "phones";

/// Checks the network of paired phones. Says nothing while nothing is open and nothing is wrong.
fn network(app: &App, first: Option<&PairedPhone>) -> Vec<Check> {
    let state = phones::state(app);
    let wrong = troubles::of_network(&state, app.clock.now());
    let open = phones::open_port(app, &state, first.map(|paired| &paired.phone));
    let open = open.map(|says| Check::fine(PHONES, says));
    open.into_iter().chain(wrong.iter().map(|trouble| trouble_check(trouble, ""))).collect()
}

fn paired_phone(app: &App, paired: &PairedPhone) -> Vec<Check> {
    let name = &paired.phone.name;
    if !paired.troubles.is_empty() {
        let about = format!("{name}: ");
        return paired.troubles.iter().map(|trouble| trouble_check(trouble, &about)).collect();
    }
    let seen = paired.phone.last_seen.unwrap_or(paired.phone.paired_at);
    let says = match (&app.daemon, paired.link.connected.is_some()) {
        (_, true) => format!("{name}: connected"),
        (Some(_), false) => format!("{name}: last seen {}", sms::ago(seen, app.clock.now())),
        (None, false) => format!("{name}: Kai reaches it only while it is running (to start it: kai)"),
    };
    vec![Check::fine(PHONES, says)]
}

/// A problem as a check, in the words of the page.
fn trouble_check(trouble: &Trouble, about: &str) -> Check {
    let (says, next) = (format!("{about}{}", trouble.says()), trouble.next().to_string());
    if trouble.is_broken() {
        Check::broken(PHONES, says, Some(next))
    } else {
        Check::note(PHONES, says, next)
    }
}

/// The check without a phone. It only reports something if one was expected.
fn no_phone(wanted: bool) -> Option<Check> {
    let install = "Install the Termux:API app from the same source as Termux, then its programs: \
                   pkg install termux-api";
    if machine::in_termux() {
        return Some(Check::note("phone", "Termux's SMS programs are not installed", install));
    }
    let says = "SMS is enabled, but no phone is connected";
    let next = "Pair a phone (kai phones pair), run Kai in Termux on the phone, or disable SMS: \
                kai settings set sms_enabled false";
    wanted.then(|| Check::broken("phone", says, Some(next.to_owned())))
}

async fn notifications(app: &App) -> Check {
    let name = "notifications";
    let on = "kai settings set notifications_enabled true";
    let status = match crate::commands::notifications::status(app).await {
        Ok(status) => status,
        Err(error) => return Check::broken(name, error.to_string(), None),
    };
    let why = status.last_error.or(status.hint).unwrap_or_default().to_string();
    match (status.supported, status.state) {
        (false, _) => Check::note(
            name,
            "cannot be read on this machine",
            "On a desktop, start Kai inside your session. In Termux, install Termux:API.",
        ),
        (true, ListenerState::Listening) => {
            Check::fine(name, format!("Kai is listening (bridge: {})", status.bridge.unwrap_or_default()))
        }
        (true, ListenerState::Inactive) if why.is_empty() => {
            Check::note(name, "enabled, but Kai reads them only while it is running", "Start it: kai")
        }
        (true, ListenerState::Inactive) => Check::note(name, "enabled, but Kai is not listening", why),
        (true, ListenerState::Waiting) => Check::note(name, "waiting for access", why),
        (true, ListenerState::Off) if why.is_empty() => {
            Check::fine(name, format!("disabled (to enable: {on})"))
        }
        (true, ListenerState::Off) => {
            Check::note(name, "disabled, because access was not granted", format!("{why} Then: {on}"))
        }
    }
}

/// Whether this is the demo without its daemon. Its phone and tray only exist in the daemon, so there is nothing to
/// check.
fn is_demo_asleep(app: &App) -> bool {
    app.home.is_demo() && app.daemon.is_none()
}
