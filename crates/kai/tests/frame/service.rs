//! `kai service`, with a stand-in for systemctl: what it writes, what it asks systemd to do, and when it refuses.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::kit::{Done, Home, KAI, kai};

/// A service manager that notes what it is asked. Nothing is active before it was started.
const MANAGER: &str = r#"echo "$*" >> "$HOME/asked"
case "$*" in
  *is-active*) [ -e "$HOME/active" ] ;;
  *restart*) [ ! -e "$HOME/broken" ] || { echo "Job for kai.service failed." >&2; exit 1; }; : > "$HOME/active" ;;
  *disable*) /bin/rm -f "$HOME/active" ;;
esac"#;

struct User(Home);

impl User {
    /// Somebody whose service manager is this script; `None` if there is none.
    fn with(manager: Option<&str>) -> Self {
        let user = Self(Home::new());
        std::fs::create_dir(user.path().join("bin")).unwrap();
        if let Some(manager) = manager {
            let program = user.path().join("bin/systemctl");
            std::fs::write(&program, format!("#!/bin/sh\n{manager}\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        user
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self) -> Command {
        let mut command = kai(self.path());
        command.env_remove("KAI_HOME").env("HOME", self.path());
        command.env("PATH", format!("{}/bin", self.path().display()));
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        self.command().args(words).output().unwrap().into()
    }

    fn read(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.path().join(file)).ok()
    }
}

const UNIT: &str = ".config/systemd/user/kai.service";

#[test]
fn a_service_is_installed_replaced_and_removed() {
    let user = User::with(Some(MANAGER));
    let installed = user.run(&["service", "install"]);
    assert!(installed.code == 0 && installed.out.contains("kai.service"), "{installed:?}");
    let unit = user.read(UNIT).unwrap();
    assert!(unit.contains(&format!("\nExecStart={KAI} serve\n")), "{unit}");
    assert!(unit.contains("\nLimitCORE=0\n") && unit.contains("\nNoNewPrivileges=yes\n"), "{unit}");
    let asked = user.read("asked").unwrap();
    for step in ["daemon-reload", "enable kai.service", "restart kai.service"] {
        assert!(asked.contains(&format!("--user {step}\n")), "{step} in {asked}");
    }
    assert!(!user.path().join(".local").exists(), "the service creates its home, not we");

    let other = user.path().join("my home");
    let again = user.run(&["--home", other.to_str().unwrap(), "service", "install", "--json"]).json();
    assert_eq!((&again["installed"], &again["kind"]), (&true.into(), &"systemd".into()));
    assert!(
        user.read(UNIT).unwrap().contains(&format!("ExecStart={KAI} --home \"{}\" serve", other.display()))
    );

    assert_eq!(user.run(&["service", "remove", "--json"]).json()["removed"], true);
    assert_eq!(user.read(UNIT), None);
    assert!(user.read("asked").unwrap().contains("--user disable --now kai.service\n"));
    assert_eq!(user.run(&["service", "remove"]).out, "The service is not installed.\n");
}

#[test]
fn a_service_is_refused_where_it_could_not_work() {
    for (name, manager) in [("no systemctl", None), ("no manager", Some("exit 1"))] {
        let user = User::with(manager);
        user.run(&["service", "install"]).refused(1, "There is no systemd here");
        assert!(!user.path().join(".config").exists(), "{name}");
    }

    let user = User::with(Some(MANAGER));
    std::fs::create_dir_all(user.path().join(".config/systemd/user")).unwrap();
    std::fs::write(user.path().join(UNIT), "[Service]\nExecStart=/bin/true\n").unwrap();
    user.run(&["service", "install"]).refused(1, "was not written by Kai");
    user.run(&["service", "remove"]).refused(1, "was not written by Kai");
    assert_eq!(user.read(UNIT).unwrap(), "[Service]\nExecStart=/bin/true\n");
    std::fs::remove_file(user.path().join(UNIT)).unwrap();

    std::fs::write(user.path().join("broken"), "").unwrap();
    user.run(&["service", "install"]).refused(1, "journalctl --user -u kai");

    let daemon = crate::kit::Daemon::start(user.command().args(["serve", "--port", "0"]));
    user.run(&["service", "install"]).refused(1, "kai stop");
    drop(daemon);
    #[cfg(feature = "foss")]
    user.run(&["--demo", "service", "install"]).refused(1, "demo");
}

#[test]
fn termux_gets_a_script_for_its_boot_app() {
    let user = User::with(None);
    let run = |words: &[&str]| -> Done {
        user.command().env("TERMUX_VERSION", "0.118").args(words).output().unwrap().into()
    };
    let installed = run(&["service", "install"]);
    assert!(installed.code == 0 && installed.out.contains("Termux:Boot"), "{installed:?}");
    let file = user.path().join(".termux/boot/start-kai");
    let script = std::fs::read_to_string(&file).unwrap();
    assert!(script.contains(&format!("\nkai='{KAI}'\n")), "{script}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o700);
    let checked = Command::new("sh").arg("-n").arg(&file).status().unwrap();
    assert!(checked.success(), "{script}");
    assert_eq!(run(&["service", "remove", "--json"]).json()["removed"], true);
    assert!(!file.exists());
}
