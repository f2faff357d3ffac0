//! What a person sees on the terminal when Kai starts: the sign-in link, what is still missing, and the page in their
//! browser.

use std::sync::Arc;

use kai_assistant::device::Place;
use kai_assistant::settings::OPEN_BROWSER;

use super::messages;
use crate::app::{App, sessions};
use crate::commands::{email, models, visit};
use crate::failure::Failure;
use crate::machine;
use crate::terminal::{input, out, qr};

/// Prints the sign-in link and what is missing, and opens the browser if there is one to open.
pub(super) async fn greet(app: &Arc<App>) -> Result<(), Failure> {
    let link = sessions::fresh_link(app).await?;
    // The first line, whoever reads it: scripts and tests rely on that.
    out::line(&format!("Open {}", link.url));
    if !out::has_person() {
        return Ok(());
    }
    if let Some(drawn) = link.elsewhere.as_deref().and_then(qr::drawn) {
        out::text(&drawn);
    }
    if let Some(missing) = missing(Connected::of(app).await?).filter(|_| !app.home.is_demo()) {
        out::note(&missing);
    }
    if Surroundings::here().can_open() && app.values().await?.on(&OPEN_BROWSER) && app.opener.is_some() {
        let app = Arc::clone(app);
        tokio::spawn(async move { open(&app).await });
    }
    Ok(())
}

/// Opens the page in the browser. The program that opens it gets a link as its argument, which every user of this machine
/// can read in /proc; so it is a link of its own, which expires after a minute and only works for the user who runs Kai
/// ([`sessions::own_link`]). The one on the terminal stays unused.
async fn open(app: &App) {
    if let Err(failure) = visit::open(app, Place::Chat, None).await {
        out::note(&failure.message.to_string());
    }
}

/// What is connected to Kai.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connected {
    model: bool,
    /// `None` if this edition has no phones.
    phone: Option<bool>,
    mail: bool,
}

impl Connected {
    async fn of(app: &App) -> Result<Self, Failure> {
        let model = models::rows(app, &app.env).await?.iter().any(|row| row.ready);
        let mail = !email::list(app).await?.is_empty();
        Ok(Self { model, phone: messages::has_phone(app).await?, mail })
    }
}

/// How to connect a phone. The store edition does not even know the command.
#[cfg(feature = "foss")]
const PHONE: &str = "a phone (kai phones pair)";
#[cfg(not(feature = "foss"))]
const PHONE: &str = "a phone";

/// One line on what is missing.
fn missing(connected: Connected) -> Option<String> {
    let Connected { model, phone, mail } = connected;
    let parts = [
        (!model).then_some("a model (kai models get, or kai models add --help)"),
        (phone == Some(false)).then_some(PHONE),
        (!mail).then_some("mail (kai email add YOU@EXAMPLE.ORG)"),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Not connected yet: {}", parts.join(", ")))
}

/// Where Kai was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Surroundings {
    /// A person typed the command on a terminal.
    terminal: bool,
    /// Over SSH, the browser would open on another screen than the person's.
    ssh: bool,
    /// There is a screen to open a browser on: a desktop's, or the phone's.
    screen: bool,
}

impl Surroundings {
    fn here() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            terminal: input::has_person() && out::has_person(),
            ssh: ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].into_iter().any(set),
            screen: ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().any(set) || machine::in_termux(),
        }
    }

    fn can_open(self) -> bool {
        self.terminal && !self.ssh && self.screen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_where_the_person_sees_it() {
        let desktop = Surroundings { terminal: true, screen: true, ssh: false };
        for (name, here, expected) in [
            ("a desktop", desktop, true),
            ("over SSH, with a forwarded display", Surroundings { ssh: true, ..desktop }, false),
            ("a console", Surroundings { screen: false, ..desktop }, false),
            ("a service, or a pipe", Surroundings { terminal: false, ..desktop }, false),
        ] {
            assert_eq!(here.can_open(), expected, "{name}");
        }
    }

    #[test]
    fn one_line_says_what_is_missing() {
        let all = Connected { model: true, phone: Some(true), mail: true };
        assert_eq!(missing(all), None);
        assert_eq!(missing(Connected { phone: None, ..all }), None);
        let nothing = missing(Connected { model: false, phone: Some(false), mail: false }).unwrap();
        assert!(["kai models get", PHONE, "kai email add"].iter().all(|next| nothing.contains(next)));
        assert_eq!(nothing.lines().count(), 1);
        let phone = missing(Connected { phone: Some(false), ..all }).unwrap();
        assert_eq!(phone, format!("Not connected yet: {PHONE}"));
    }
}
