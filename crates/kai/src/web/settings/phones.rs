//! The Phones page: which phone or desktop Kai is connected to, what it can do there, and how to connect one.

use kai_assistant::settings::BRIDGE_TERMUX;
use maud::{Markup, html};

use super::fields::{Choice, choice};
use super::look::{Look, ProbePhone};
use super::parts::Region;
use crate::app::App;
use crate::failure::Failure;
use crate::machine::NOT_IN_DEMO;
use crate::web::icons;

pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let app = &look.web.app;
    if look.probe == ProbePhone::Phone {
        ask(app, look).await;
    }
    let bridges = bridges(app);
    Ok(vec![
        Region::card("phone", "What is connected", connected(&bridges, &abilities(app, look)))
            .testid("phone-card"),
        Region::card("connect", "Connect a phone", connecting(look)).testid("connect-card"),
    ])
}

/// Something that Kai could do through a bridge, and whether it works.
struct Ability {
    what: &'static str,
    stands: Stands,
}

enum Stands {
    /// Works.
    On,
    /// Would work, but is switched off.
    #[cfg_attr(not(feature = "foss"), expect(dead_code, reason = "what this edition has is always wanted"))]
    Off,
    /// Something is missing; says what to do about it.
    Lacks(String),
    /// Not possible on this machine.
    No(&'static str),
}

/// Asks the platform whether it gives access to the features that are on. It is not bothered with those that are off.
#[cfg_attr(
    not(feature = "foss"),
    expect(clippy::unused_async, unused_variables, reason = "there is nobody to ask")
)]
async fn ask(app: &App, look: &Look<'_>) {
    #[cfg(feature = "foss")]
    if let Some(inbox) = &app.phone.inbox
        && look.values.on(&kai_assistant::settings::SMS_ENABLED)
    {
        inbox.probe_access().await;
    }
    #[cfg(feature = "foss")]
    if let Some(source) = &app.notifications
        && look.values.on(&kai_assistant::settings::NOTIFICATIONS_ENABLED)
    {
        source.access(app.clock.now()).await;
    }
}

/// The labels of the bridges that were found, without duplicates.
fn bridges(app: &App) -> Vec<&'static str> {
    let mut found: Vec<&str> = vec![];
    #[cfg(feature = "foss")]
    found.extend(app.phone.bridge);
    #[cfg(feature = "foss")]
    found.extend(app.notifications.as_ref().map(|source| source.listener.name()));
    if crate::machine::in_termux() && app.notifier.is_some() {
        found.push("termux");
    }
    #[cfg(target_os = "linux")]
    if !crate::machine::in_termux() && app.notifier.is_some() && !app.home.is_demo() {
        found.push("desktop");
    }
    let mut named: Vec<&'static str> = found.into_iter().map(called).collect();
    named.sort_unstable();
    named.dedup();
    named
}

fn called(bridge: &str) -> &'static str {
    match bridge {
        "termux" => "Termux: Kai runs on the phone itself",
        "simulated" => "A simulated phone: this is a demo",
        _ => "This desktop’s session",
    }
}

fn abilities(app: &App, look: &Look<'_>) -> Vec<Ability> {
    let mut all = of_messages(app, look);
    let opener = app.toolbox.entries().iter().find(|entry| entry.tool.name() == "open_url");
    let (shows, opens) = if app.home.is_demo() {
        (Stands::No(NOT_IN_DEMO), Stands::No(NOT_IN_DEMO))
    } else {
        let mute = Stands::No("There is no program here that shows notifications.");
        let shows = if app.notifier.is_some() { Stands::On } else { mute };
        (shows, opener.and_then(|entry| app.toolbox.lacks(entry)).map_or(Stands::On, Stands::Lacks))
    };
    all.push(Ability { what: "Show you notifications and ring alarms", stands: shows });
    all.push(Ability { what: "Open links and files", stands: opens });
    all
}

#[cfg_attr(not(feature = "foss"), expect(unused_variables, reason = "this edition reads no messages"))]
fn of_messages(app: &App, look: &Look<'_>) -> Vec<Ability> {
    vec![
        #[cfg(feature = "foss")]
        Ability { what: "Read SMS", stands: foss::reading(app, look) },
        #[cfg(feature = "foss")]
        Ability { what: "Send SMS, each after your tap", stands: foss::sending(app, look) },
        #[cfg(feature = "foss")]
        Ability { what: "Read notifications", stands: foss::notifications(app, look) },
    ]
}

#[cfg(feature = "foss")]
mod foss {
    use kai_assistant::access::Access;
    use kai_assistant::settings::{self, Setting};

    use super::super::look::Look;
    use super::{App, Stands};

    /// The state of a feature from the platform's last answer. If it was never asked, access counts as granted.
    fn stands(look: &Look<'_>, switch: &Setting, access: Option<Access>) -> Stands {
        match access {
            _ if !look.values.on(switch) => Stands::Off,
            None | Some(Access::Granted) => Stands::On,
            Some(Access::Denied(why) | Access::Silent(why)) => Stands::Lacks(why),
        }
    }

    #[cfg(feature = "foss")]
    const NO_PHONE: &str = "No phone is connected that can do this.";

    #[cfg(feature = "foss")]
    pub(super) fn reading(app: &App, look: &Look<'_>) -> Stands {
        match &app.phone.inbox {
            Some(inbox) if inbox.lacks().is_some() => {
                stands(look, &settings::SMS_ENABLED, inbox.lacks().map(Access::Denied))
            }
            Some(_) => stands(look, &settings::SMS_ENABLED, None),
            None => Stands::No(NO_PHONE),
        }
    }

    #[cfg(feature = "foss")]
    pub(super) fn sending(app: &App, look: &Look<'_>) -> Stands {
        match app.phone.sending() {
            Some(known) => stands(look, &settings::SMS_SEND_ENABLED, known.last()),
            None => Stands::No(NO_PHONE),
        }
    }

    #[cfg(feature = "foss")]
    pub(super) fn notifications(app: &App, look: &Look<'_>) -> Stands {
        match &app.notifications {
            Some(source) => stands(look, &settings::NOTIFICATIONS_ENABLED, source.known()),
            None => Stands::No("There is neither a desktop session nor Termux:API."),
        }
    }
}

fn connected(bridges: &[&str], abilities: &[Ability]) -> Markup {
    html! {
        @if bridges.is_empty() {
            p data-testid="phone-bridge" { "Nothing is connected. Kai works all the same, without what a phone or a desktop would add." }
        } @else {
            ul class="bridges" data-testid="phone-bridge" { @for bridge in bridges { li { (icons::phone()) span { (bridge) } } } }
        }
        ul class="abilities" aria-label="What it can do" {
            @for Ability { what, stands } in abilities {
                li data-testid="ability" {
                    div class="between" { span { (what) } (mark(stands)) }
                    @match stands {
                        Stands::Lacks(why) => p class="remark" { (why) },
                        Stands::No(why) => p class="quiet" { (why) },
                        Stands::On | Stands::Off => {}
                    }
                }
            }
        }
    }
}

fn mark(stands: &Stands) -> Markup {
    html! {
        @match stands {
            Stands::On => span class="tag good" { "Ready" },
            Stands::Off => a class="tag" href="/settings/agent" { "Off: turn on" },
            Stands::Lacks(_) => span class="tag bad" { "Something is missing" },
            Stands::No(_) => span class="tag" { "Not here" },
        }
    }
}

/// How to connect a phone or a desktop; lists only ways that exist.
fn connecting(look: &Look<'_>) -> Markup {
    let ways = [("auto", "In Termux"), ("on", "Always"), ("off", "Never")];
    html! {
        h3 { "On an Android phone: Termux" }
        ol class="steps" {
            li { "Install Termux and the app Termux:API, both from the same place, for example F-Droid." }
            li { "In Termux, install what Kai needs: " code { "pkg install termux-api rust clang perl make" } }
            li { "In Kai’s sources there, build it: " code { "cargo install --locked --path crates/kai" } }
            li { "Run Kai there: " code { "kai" } ", and open the link that it prints in the phone’s browser." }
            @if cfg!(feature = "foss") {
                li { "Turn on what Kai may read on the page " a href="/settings/agent" { "Agent" } ". Android then asks you for each permission." }
            }
        }
        h3 { "On a Linux desktop" }
        p {
            "Start Kai inside your session, so that it finds the session bus. It then shows its notifications there"
            @if cfg!(feature = "foss") { ", and can read those of other apps" } "."
        }
        @if !cfg!(feature = "foss") {
            p class="quiet" { "This is the store edition: it reads no messages and no notifications, wherever it runs." }
        }
        (choice(look, "connect", &Choice {
            setting: &BRIDGE_TERMUX, label: "Use Termux’s programs", options: &ways, testid: "bridge-termux",
        }))
        p class="quiet" { "A change counts from Kai’s next start on. " code { "kai doctor" } " looks at everything once." }
    }
}
