//! Opens addresses and files with the program that the desktop has for them.

use std::path::PathBuf;

use kai_assistant::device::{Doing, Opener, PortError, Target};

use crate::Environment;
use crate::program::{self, Start};

/// The `xdg-open` of this machine.
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
    fn open<'a>(&'a self, target: &'a Target) -> Doing<'a> {
        Box::pin(async move {
            let argument = match target {
                Target::Web(url) => url.as_ref(),
                Target::File(path) => path.as_os_str(),
            };
            let start = Start { program: &self.program, environment: &self.environment };
            program::launch(start, &[argument]).await.map_err(|failed| PortError(failed.sentence()))
        })
    }
}

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
        let opener = XdgOpen::at(programs.write("xdg-open", "exit 4"), Environment::default());
        let failed = opener.open(&Target::Web("https://example.org/".to_owned())).await.unwrap_err();
        assert!(failed.0.contains("xdg-open found no program"), "{failed}");
    }
}
