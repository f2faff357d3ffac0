//! Kai running on the phone, inside Termux, whose programs speak to Android.
//!
//! Those of Termux:API hang for ever when their app is missing, frozen or not allowed, so each call has a time-out
//! and there is one at a time.

#[cfg(feature = "notifications")]
mod notifications;
#[cfg(feature = "sms")]
mod sms;

/// What `fuzz/` drives.
#[cfg(fuzzing)]
pub mod fuzz {
    pub fn messages(bytes: &[u8]) {
        super::sms::fuzz(&String::from_utf8_lossy(bytes));
    }

    pub fn tray(bytes: &[u8]) {
        super::notifications::fuzz::check(&String::from_utf8_lossy(bytes));
    }
}

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use kai_assistant::device::{Doing, Notification, Notifier, Opener, PortError, Target, Urgency};
use kai_assistant::untrusted::Untrusted;
use tokio::sync::Mutex;

use crate::Environment;
use crate::program::{self, Failed, Start, Terms};

/// Termux's programs in one folder.
pub struct Termux {
    folder: PathBuf,
    environment: Environment,
    line: Mutex<()>,
    patience: Duration,
    #[cfg(feature = "sms")]
    sms: sms::Known,
}

/// Characters of a reason that Android gives.
const LONGEST_WHY: usize = 300;

const PATIENCE: Duration = Duration::from_secs(10);

impl Termux {
    /// `folder` is where the programs lie, such as `/data/data/com.termux/files/usr/bin`.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            environment: Environment::default(),
            line: Mutex::default(),
            patience: PATIENCE,
            #[cfg(feature = "sms")]
            sms: sms::Known::default(),
        }
    }

    /// What its programs find in their environment; nothing, unless told.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    async fn run<A: AsRef<OsStr>>(&self, program: &str, args: &[A]) -> Result<String, PortError> {
        let ran = self.call(program, args, &Terms::within(self.patience)).await;
        ran.map_err(|failed| PortError(failed.sentence()))
    }

    async fn call<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: &[A],
        terms: &Terms<'_>,
    ) -> Result<String, Failed> {
        let _turn = self.line.lock().await;
        let start = Start { program: &self.folder.join(program), environment: &self.environment };
        program::run(start, args, terms).await
    }
}

impl Opener for Termux {
    fn open<'a>(&'a self, target: &'a Target) -> Doing<'a> {
        Box::pin(async move {
            let opened = match target {
                Target::Web(url) => self.run("termux-open-url", &[url]).await,
                Target::File(path) => self.run("termux-open", &[path]).await,
            };
            opened.map(drop)
        })
    }
}

impl Notifier for Termux {
    fn notify<'a>(&'a self, notification: &'a Notification) -> Doing<'a> {
        Box::pin(async move {
            let said = self.run("termux-notification", &arguments(notification)).await?;
            refusal(&said).map_or(Ok(()), |why| Err(PortError(why)))
        })
    }
}

/// Text goes into title and content only; what an action holds, a shell would run.
fn arguments(notification: &Notification) -> Vec<&str> {
    let mut arguments = vec!["-t", &notification.title, "-c", &notification.message];
    if let Some(key) = &notification.key {
        arguments.extend(["-i", key]);
    }
    if notification.urgency == Urgency::Alarm {
        arguments.extend(["--priority", "max", "--sound", "--vibrate", "500,500,500"]);
    }
    arguments
}

/// A denied permission comes as `{"error": …}` with exit code 0.
fn refusal(said: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(said).ok()?;
    let why = answer.get("error").or_else(|| answer.get("API_ERROR"))?;
    let why = Untrusted::new(why.as_str().unwrap_or_default()).line(LONGEST_WHY);
    Some(format!("Android refused: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::fake::{NOTE_ARGUMENTS, Programs};

    fn notification(title: &str, message: &str) -> Notification {
        Notification {
            title: title.to_owned(),
            message: message.to_owned(),
            urgency: Urgency::Normal,
            key: None,
        }
    }

    #[tokio::test]
    async fn words_reach_the_phone_as_they_are() {
        let programs = Programs::new();
        programs.write("termux-notification", NOTE_ARGUMENTS);
        let termux = Termux::in_folder(programs.folder());
        termux.notify(&notification("--action", "$(id) `id` \"'; --button1-action id")).await.unwrap();
        assert_eq!(programs.log(), "-t\n--action\n-c\n$(id) `id` \"'; --button1-action id\n");
        let alarm = Notification {
            urgency: Urgency::Alarm,
            key: Some("kai-alarm-7".to_owned()),
            ..notification("Tea", "It is 7:30.")
        };
        let expected = "-t|Tea|-c|It is 7:30.|-i|kai-alarm-7|--priority|max|--sound|--vibrate|500,500,500";
        assert_eq!(arguments(&alarm).join("|"), expected);
    }

    #[tokio::test]
    async fn pages_and_files_go_to_their_own_programs() {
        let programs = Programs::new();
        for name in ["termux-open-url", "termux-open"] {
            programs.write(name, &format!("echo {name} >> \"$LOG\"; {NOTE_ARGUMENTS}"));
        }
        let termux = Termux::in_folder(programs.folder());
        termux.open(&Target::Web("https://example.org/".to_owned())).await.unwrap();
        termux.open(&Target::File(PathBuf::from("/srv/a b.ics"))).await.unwrap();
        assert_eq!(programs.log(), "termux-open-url\nhttps://example.org/\ntermux-open\n/srv/a b.ics\n");
    }

    #[test]
    fn a_reason_is_one_bounded_line() {
        for (said, expected) in [
            (r#"{"error":"no\n\u001b[31m way"}"#.to_owned(), Some("Android refused: no [31m way".to_owned())),
            (
                format!(r#"{{"error":"{}"}}"#, "x".repeat(9_000)),
                Some(format!("Android refused: {}", "x".repeat(300))),
            ),
            ("[]".to_owned(), None),
        ] {
            assert_eq!(refusal(&said), expected);
        }
    }

    #[tokio::test]
    async fn what_goes_wrong_is_said() {
        let programs = Programs::new();
        let termux = Termux::in_folder(programs.folder());
        for (script, word) in [
            (r#"echo '{"error": "Please grant the following permissions"}'"#, Some("Please grant")),
            (r#"echo '{"API_ERROR": "no"}'"#, Some("Android refused: no")),
            ("echo not installed >&2; exit 1", Some("not installed")),
            ("echo garbage", None),
            ("exit 0", None),
        ] {
            programs.write("termux-notification", script);
            let outcome = termux.notify(&notification("a", "b")).await;
            match word {
                Some(word) => assert!(outcome.unwrap_err().0.contains(word), "{script}"),
                None => assert_eq!(outcome, Ok(()), "{script}"),
            }
        }
    }
}
