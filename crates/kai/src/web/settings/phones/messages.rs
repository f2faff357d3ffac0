//! What Kai can read and send through the phone and the desktop.

use kai_assistant::access::Access;
use kai_assistant::settings::{self, Setting};
use maud::{Markup, html};

use super::{Ability, Stands};
use crate::app::App;
use crate::web::settings::look::Look;

/// Asks the platform whether it gives access to the features that are on. It is not bothered with those that are off.
pub(super) async fn ask(app: &App, look: &Look<'_>) {
    if let Some(inbox) = &app.messages.phone.inbox
        && look.values.on(&settings::SMS_ENABLED)
    {
        inbox.probe_access().await;
    }
    if let Some(source) = &app.messages.notifications
        && look.values.on(&settings::NOTIFICATIONS_ENABLED)
    {
        source.access(app.clock.now()).await;
    }
}

/// The names of the bridges that bring messages and notifications.
pub(super) fn bridges(app: &App) -> Vec<&str> {
    let listener = app.messages.notifications.as_ref().map(|source| source.listener.name());
    app.messages.phone.bridge.into_iter().chain(listener).collect()
}

pub(super) fn abilities(app: &App, look: &Look<'_>) -> Vec<Ability> {
    vec![
        Ability { what: "Read SMS", stands: reading(app, look) },
        Ability { what: "Send SMS, each after your tap", stands: sending(app, look) },
        Ability { what: "Read notifications", stands: notifications(app, look) },
    ]
}

/// The state of a feature from the platform's last answer. If it was never asked, access counts as granted.
fn stands(look: &Look<'_>, switch: &Setting, access: Option<Access>) -> Stands {
    match access {
        _ if !look.values.on(switch) => Stands::Off,
        None | Some(Access::Granted) => Stands::On,
        Some(Access::Denied(why) | Access::Silent(why)) => Stands::Lacks(why),
    }
}

const NO_PHONE: &str = "No phone is connected that can do this.";

fn reading(app: &App, look: &Look<'_>) -> Stands {
    match &app.messages.phone.inbox {
        Some(inbox) if inbox.lacks().is_some() => {
            stands(look, &settings::SMS_ENABLED, inbox.lacks().map(Access::Denied))
        }
        Some(_) => stands(look, &settings::SMS_ENABLED, None),
        None => Stands::No(NO_PHONE),
    }
}

fn sending(app: &App, look: &Look<'_>) -> Stands {
    match app.messages.phone.sending() {
        Some(known) => stands(look, &settings::SMS_SEND_ENABLED, known.last()),
        None => Stands::No(NO_PHONE),
    }
}

fn notifications(app: &App, look: &Look<'_>) -> Stands {
    match &app.messages.notifications {
        Some(source) => stands(look, &settings::NOTIFICATIONS_ENABLED, source.known()),
        None => Stands::No("There is neither a desktop session nor Termux:API."),
    }
}

/// The last step of connecting a phone.
pub(super) fn last_step() -> Markup {
    html! {
        li { "Turn on what Kai may read on the page " a href="/settings/agent" { "Agent" } ". Android then asks you for each permission." }
    }
}

/// The end of the sentence about notifications on a desktop.
pub(super) const ON_DESKTOP: &str = ", and can read those of other apps.";

pub(super) fn remark() -> Markup {
    html! {}
}
