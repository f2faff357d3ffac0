//! Kai on a phone, inside Termux, whose programs give access to Android.
//!
//! The programs of Termux:API hang for ever when their app is missing, frozen or lacks a permission, so each call has
//! a timeout and only one runs at a time.

#[cfg(feature = "notifications")]
mod notifications;
#[cfg(feature = "sms")]
mod sms;

/// Entry points for `fuzz/`.
#[cfg(fuzzing)]
pub mod fuzz {
    pub fn messages(bytes: &[u8]) {
        super::sms::fuzz(&String::from_utf8_lossy(bytes));
    }

    pub fn contacts(bytes: &[u8]) {
        super::sms::fuzz_contacts(&String::from_utf8_lossy(bytes));
    }

    pub fn tray(bytes: &[u8]) {
        super::notifications::fuzz::check(&String::from_utf8_lossy(bytes));
    }
}

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use kai_assistant::device::{Notification, Notifier, Opener, Place, PortError, PortFuture, Target, Urgency};
use kai_assistant::untrusted::Untrusted;
use kai_words::{Said, said};
use tokio::sync::Mutex;

use crate::Environment;
use crate::program::{self, Failed, Start, Terms};

/// The Termux programs in one folder.
#[derive(Default)]
pub struct Termux {
    folder: PathBuf,
    environment: Environment,
    /// Shell command that opens Kai's page. The name of a place is appended.
    opening: Option<String>,
    line: Mutex<()>,
    patience: Duration,
    #[cfg(feature = "sms")]
    sms: sms::Known,
}

/// Longest reason from Android that is passed on, in characters.
const LONGEST_WHY: usize = 300;

const PATIENCE: Duration = Duration::from_secs(10);

impl Termux {
    /// `folder` holds the programs, such as `/data/data/com.termux/files/usr/bin`.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, patience: PATIENCE, ..Self::default() }
    }

    /// Sets the programs' environment, which is empty by default.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Sets the command that a tap on a notification runs, with the name of a place as its last argument. It is Kai's
    /// own command, because this process may be long gone by then. Android cannot take a command that is not Unicode;
    /// taps then do nothing.
    #[must_use]
    pub fn opening_with(mut self, command: &[&OsStr]) -> Self {
        let words = command.iter().map(|word| word.to_str().map(quoted)).collect::<Option<Vec<_>>>();
        self.opening = words.map(|words| words.join(" "));
        self
    }

    async fn run<A: AsRef<OsStr>>(&self, program: &str, args: &[A]) -> Result<String, PortError> {
        let ran = self.call(program, args, &Terms::within(self.patience)).await;
        ran.map_err(|failed| match failed {
            Failed::Interrupted(why) => PortError::Unsure(why.to_string()),
            failed => PortError::Failed(failed.sentence().to_string()),
        })
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
    fn open<'a>(&'a self, target: &'a Target) -> PortFuture<'a> {
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
    fn notify<'a>(&'a self, notification: &'a Notification) -> PortFuture<'a> {
        Box::pin(async move {
            let action = action(self.opening.as_deref(), notification.leads_to);
            let said = self.run("termux-notification", &arguments(notification, action.as_deref())).await?;
            refusal(&said).map_or(Ok(()), |why| Err(PortError::Failed(why.to_string())))
        })
    }
}

/// The shell command for a tap. Nothing in it comes from a model or a stranger.
fn action(opening: Option<&str>, place: Option<Place>) -> Option<String> {
    Some(format!("{} {}", opening?, place?.name()))
}

/// Quotes a string as one shell word.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The arguments of `termux-notification`. Text goes only into title and content, because a shell runs what is in an
/// action.
fn arguments<'a>(notification: &'a Notification, action: Option<&'a str>) -> Vec<&'a str> {
    let mut arguments = vec!["-t", &notification.title, "-c", &notification.message];
    if let Some(key) = &notification.key {
        arguments.extend(["-i", key]);
    }
    if let Some(action) = action {
        arguments.extend(["--action", action]);
    }
    if notification.urgency == Urgency::Alarm {
        arguments.extend(["--priority", "max", "--sound", "--vibrate", "500,500,500"]);
    }
    arguments
}

/// The reason in an error answer, if it is one. A denied permission comes as `{"error": …}` with exit code 0.
fn refusal(said: &str) -> Option<Said> {
    let answer: serde_json::Value = serde_json::from_str(said).ok()?;
    let why = answer.get("error").or_else(|| answer.get("API_ERROR"))?;
    let why = Untrusted::new(why.as_str().unwrap_or_default()).line(LONGEST_WHY);
    Some(said::program_refused(why))
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
            leads_to: None,
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
        assert_eq!(arguments(&alarm, None).join("|"), expected);
    }

    /// A real shell runs the action that the phone was given.
    #[tokio::test]
    async fn a_tap_runs_kai_and_nothing_that_was_written() {
        let programs = Programs::new();
        programs.write("termux-notification", NOTE_ARGUMENTS);
        let kai = programs.write("kai's own $(id)", "echo ran; for a in \"$@\"; do echo \"$a\"; done");
        let home = OsStr::new("/data/it's; id");
        let command = [kai.as_os_str(), OsStr::new("--home"), home, OsStr::new("open")];
        let termux = Termux::in_folder(programs.folder()).opening_with(&command);
        let report = Notification { leads_to: Some(Place::Heartbeat), ..notification("'; id", "$(id)") };
        termux.notify(&report).await.unwrap();
        let log = programs.log();
        let (_, action) = log.trim_end().split_once("--action\n").unwrap();
        let ran = std::process::Command::new("sh").args(["-c", action]).output().unwrap();
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), "ran\n--home\n/data/it's; id\nopen\nheartbeat\n");
        assert_eq!(action.matches("id").count(), 2, "only those of the two paths: {action}");
        // Without a place or a command, a tap does nothing.
        for (termux, place) in [
            (Termux::in_folder(programs.folder()).opening_with(&command), None),
            (Termux::in_folder(programs.folder()), Some(Place::Heartbeat)),
        ] {
            assert_eq!(action_of(&termux, place), None);
        }
    }

    fn action_of(termux: &Termux, place: Option<Place>) -> Option<String> {
        action(termux.opening.as_deref(), place)
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
            assert_eq!(refusal(&said).map(|why| why.to_string()), expected);
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
                Some(word) => assert!(outcome.unwrap_err().to_string().contains(word), "{script}"),
                None => assert_eq!(outcome, Ok(()), "{script}"),
            }
        }
    }
}
