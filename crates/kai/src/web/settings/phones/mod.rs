//! The Phones page: which phone or desktop Kai is connected to, what it can do there, and how to connect one.

#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;

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
        messages::ask(app, look).await;
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

/// The labels of the bridges that were found, without duplicates.
fn bridges(app: &App) -> Vec<&'static str> {
    let mut found = messages::bridges(app);
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
    let mut all = messages::abilities(app, look);
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
            (messages::last_step())
        }
        h3 { "On a Linux desktop" }
        p {
            "Start Kai inside your session, so that it finds the session bus. It then shows its notifications there"
            (messages::ON_DESKTOP)
        }
        (messages::remark())
        (choice(look, "connect", &Choice {
            setting: &BRIDGE_TERMUX, label: "Use Termux’s programs", options: &ways, testid: "bridge-termux",
        }))
        p class="quiet" { "A change counts from Kai’s next start on. " code { "kai doctor" } " looks at everything once." }
    }
}
