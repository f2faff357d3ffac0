//! A session bus of a test's own.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::kit::{Done, Home, kai};

/// A private session bus on which nothing starts by itself.
pub(crate) struct Bus {
    daemon: Child,
    pub(crate) address: String,
    pub(crate) home: Home,
}

impl Bus {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let config = home.path().join("bus.conf");
        let rules = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth><policy \
             context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/><allow \
             eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            home.path().join("bus").display()
        );
        std::fs::write(&config, rules).unwrap();
        let (daemon, address) = launch(&config);
        Self { daemon, address, home }
    }

    /// Ends it, with everybody's connection, and starts it again at the same place.
    #[cfg(feature = "foss")]
    pub(crate) fn restart(&mut self) {
        self.stop();
        (self.daemon, self.address) = launch(&self.home.path().join("bus.conf"));
    }

    #[cfg(feature = "foss")]
    pub(crate) fn stop(&mut self) {
        drop(self.daemon.kill());
        self.daemon.wait().unwrap();
        drop(std::fs::remove_file(self.home.path().join("bus")));
    }

    pub(crate) fn run(&self, home: &Home, args: &[&str]) -> Done {
        let mut command = kai(home.path());
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address).args(args).stdin(Stdio::null());
        command.output().unwrap().into()
    }
}

fn launch(config: &Path) -> (Child, String) {
    let mut daemon = Command::new("dbus-daemon")
        .args(["--nofork", "--nopidfile", "--print-address=1", "--config-file"])
        .arg(config)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(daemon.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    (daemon, address.trim().to_owned())
}

impl Drop for Bus {
    fn drop(&mut self) {
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}
