//! Opens URLs and files with the desktop's default programs.

use std::path::PathBuf;

use kai_assistant::device::{Opener, PortError, PortFuture, Target};

use crate::Environment;
use crate::program::{self, Start};

/// Opens things with this machine's `xdg-open`.
#[derive(Debug, Clone)]
pub struct XdgOpen {
    program: PathBuf,
    environment: Environment,
}

impl XdgOpen {
    pub fn at(program: PathBuf, environment: Environment) -> Self {
        Self { program, environment }
    }
}

impl Opener for XdgOpen {
    fn open<'a>(&'a self, target: &'a Target) -> PortFuture<'a> {
        self.open_for_tap(target, None)
    }

    fn open_for_tap<'a>(&'a self, target: &'a Target, activation: Option<&'a str>) -> PortFuture<'a> {
        Box::pin(async move {
            let arguments = match target {
                Target::Web(url) => [url.as_ref()],
                Target::File(path) => [path.as_os_str()],
            };
            // An environment variable cannot contain a null byte, so a token with one is invalid.
            let activation = activation.filter(|token| !token.is_empty() && !token.contains('\0'));
            let variables = activation.map(|token| ACTIVATION.map(|name| (name, token)));
            let start = Start { program: &self.program, environment: &self.environment };
            let launched = program::launch(start, &arguments, variables.as_ref().map_or(&[], |v| v));
            launched.await.map_err(|failed| PortError::Failed(failed.sentence().to_string()))
        })
    }
}

/// Variables that permit a program to come to the front: on Wayland, and on X11.
const ACTIVATION: [&str; 2] = ["XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::fake::{NOTE_ARGUMENTS, Programs};

    #[tokio::test]
    async fn the_desktop_gets_exactly_one_argument_and_no_shell_sees_it() {
        let programs = Programs::new();
        let opener = XdgOpen::at(programs.write("xdg-open", NOTE_ARGUMENTS), Environment::default());
        opener.open(&Target::Web("https://example.org/?a=$(id)&b=`id`;id".to_owned())).await.unwrap();
        opener.open(&Target::File(PathBuf::from("/srv/two words.ics"))).await.unwrap();
        assert_eq!(programs.log(), "https://example.org/?a=$(id)&b=`id`;id\n/srv/two words.ics\n");
        let noting =
            programs.write("xdg-open", r#"echo "$XDG_ACTIVATION_TOKEN|$DESKTOP_STARTUP_ID|$1" > "$LOG""#);
        for (token, expected) in [
            (Some("kwin-42"), "kwin-42|kwin-42|http://127.0.0.1/\n"),
            (None, "||http://127.0.0.1/\n"),
            (Some(""), "||http://127.0.0.1/\n"),
            (Some("a\0b"), "||http://127.0.0.1/\n"),
        ] {
            let page = Target::Web("http://127.0.0.1/".to_owned());
            XdgOpen::at(noting.clone(), Environment::default()).open_for_tap(&page, token).await.unwrap();
            assert_eq!(programs.log(), expected, "{token:?}");
        }
        let opener = XdgOpen::at(programs.write("xdg-open", "exit 4"), Environment::default());
        let failed = opener.open(&Target::Web("https://example.org/".to_owned())).await.unwrap_err();
        assert!(failed.to_string().contains("xdg-open found no program"), "{failed}");
    }
}
