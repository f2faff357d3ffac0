//! `kai service`: starts Kai automatically, as a service of the user's systemd, or with Termux:Boot on a phone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use kai_assistant::home::{Home, KeyKind};
use serde_json::json;

use super::args::ServiceCommand;
use super::asking::Cli;
use crate::failure::Failure;
use crate::terminal::out;
use crate::{machine, socket};

/// The unit that packages install, and that `install` writes with other paths.
const UNIT: &str = include_str!("../../../../packaging/kai.service");
/// The script for Termux:Boot.
const BOOT: &str = include_str!("../../../../packaging/termux-start-kai");
/// The unit's name.
const NAME: &str = "kai.service";
/// Where a package installs the unit, and the program that it starts.
const PACKAGED: (&str, &str) = ("/usr/lib/systemd/user/kai.service", "/usr/bin/kai");
/// How a file begins that we wrote or a person took from here.
const OURS: &str = "kai service install";

pub(super) fn run(ask: &Cli, command: ServiceCommand) -> Result<ExitCode, Failure> {
    let folders = Folders::here()?;
    match (command, machine::in_termux()) {
        (ServiceCommand::Install, false) => install(ask, &folders),
        (ServiceCommand::Install, true) => install_boot(ask, &folders),
        (ServiceCommand::Remove, false) => remove(ask, &folders),
        (ServiceCommand::Remove, true) => remove_boot(ask, &folders),
    }
}

/// The folders of the user.
struct Folders {
    home: PathBuf,
    config: PathBuf,
}

impl Folders {
    fn here() -> Result<Self, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home =
            set("HOME").ok_or_else(|| Failure::failed("Kai cannot find your home folder. Set HOME."))?;
        let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Ok(Self { home, config })
    }

    fn unit(&self) -> PathBuf {
        self.config.join("systemd/user").join(NAME)
    }

    /// Where the user's own changes of the unit are.
    fn changes(&self) -> PathBuf {
        self.config.join("systemd/user/kai.service.d")
    }

    fn boot(&self) -> PathBuf {
        self.home.join(".termux/boot/start-kai")
    }

    /// The home that Kai uses when nothing is said, in a process whose environment is as bare as a service's.
    fn usual_kai(&self) -> PathBuf {
        self.home.join(".local/share/kai")
    }
}

fn install(ask: &Cli, folders: &Folders) -> Result<ExitCode, Failure> {
    let home = &ask.caller.home;
    let program = program(home)?;
    let exec = exec_start(&program, home, folders)?;
    has_manager(&program)?;
    opens_without_a_person(home, folders)?;
    let is_active = systemctl(&["is-active", "--quiet", NAME]).is_ok();
    if !is_active && socket::connect(home).is_some() {
        return Err(Failure::failed(
            "Kai is already running, but not as a service. Stop it first (kai stop), then try again.",
        ));
    }
    let is_packaged = Path::new(PACKAGED.0).exists() && exec == default_exec();
    let file = if is_packaged { PathBuf::from(PACKAGED.0) } else { folders.unit() };
    if !is_packaged {
        write(&file, &with_line(UNIT, "ExecStart=", &exec), 0o644)?;
        systemctl(&["daemon-reload"])?;
    }
    systemctl(&["enable", NAME])?;
    systemctl(&["restart", NAME]).map_err(|why| {
        Failure::failed(format!("{} Its log says more: journalctl --user -u kai", why.message))
    })?;
    let answer = json!({"installed": true, "kind": "systemd", "file": file, "running": true});
    ask.print(&answer, |_| {
        format!(
            "Installed {}.\nKai is running, and starts when you log in. To open its page: kai open, or kai link\n\
             To keep it running when you are not logged in: loginctl enable-linger\n",
            file.display()
        )
    });
    Ok(ExitCode::SUCCESS)
}

fn remove(ask: &Cli, folders: &Folders) -> Result<ExitCode, Failure> {
    let unit = folders.unit();
    let is_written = unit.exists();
    if is_written {
        is_ours(&unit)?;
    }
    let enabled = unit.with_file_name("default.target.wants").join(NAME);
    let was_installed = is_written || enabled.symlink_metadata().is_ok();
    if was_installed {
        match systemctl(&["disable", "--now", NAME]) {
            Ok(()) => {}
            // Without a manager, nothing runs, and what is left are two files.
            Err(_) if systemctl(&MANAGER).is_err() => drop(std::fs::remove_file(&enabled)),
            Err(failure) => return Err(failure),
        }
    }
    if is_written {
        std::fs::remove_file(&unit).map_err(|e| unwritable(&unit, &e))?;
        drop(systemctl(&["daemon-reload"]));
    }
    Ok(say_removed(ask, was_installed))
}

fn say_removed(ask: &Cli, was_installed: bool) -> ExitCode {
    let said = if was_installed {
        "Removed the service. Your data is untouched.\n"
    } else {
        "The service is not installed.\n"
    };
    ask.print(&json!({"removed": was_installed}), |_| said.to_owned());
    ExitCode::SUCCESS
}

fn install_boot(ask: &Cli, folders: &Folders) -> Result<ExitCode, Failure> {
    let home = &ask.caller.home;
    let program = program(home)?;
    opens_without_a_person(home, folders)?;
    let script = with_line(BOOT, "kai=", &format!("kai={}", for_shell(program.as_os_str())?));
    let script = with_line(&script, "home=", &format!("home={}", for_shell(home.dir.as_os_str())?));
    let file = folders.boot();
    write(&file, &script, 0o700)?;
    let answer = json!({"installed": true, "kind": "termux_boot", "file": file, "running": false});
    ask.print(&answer, |_| {
        format!(
            "Wrote {}.\nKai starts when the phone starts, if the app Termux:Boot is installed and you have opened it \
             once. To start Kai now: kai\n",
            file.display()
        )
    });
    Ok(ExitCode::SUCCESS)
}

fn remove_boot(ask: &Cli, folders: &Folders) -> Result<ExitCode, Failure> {
    let file = folders.boot();
    if !file.exists() {
        return Ok(say_removed(ask, false));
    }
    is_ours(&file)?;
    std::fs::remove_file(&file).map_err(|e| unwritable(&file, &e))?;
    Ok(say_removed(ask, true))
}

/// Starts the service if the user has enabled it for this home. False if there is none.
pub(super) fn start_if_enabled(home: &Home) -> Result<bool, Failure> {
    if machine::in_termux() || systemctl(&["is-enabled", "--quiet", NAME]).is_err() {
        return Ok(false);
    }
    let folders = Folders::here()?;
    let unit = [folders.unit(), PathBuf::from(PACKAGED.0)].into_iter().find(|unit| unit.exists());
    let text = unit.and_then(|unit| std::fs::read_to_string(unit).ok()).unwrap_or_default();
    if !starts(&text, home, &folders) {
        return Ok(false);
    }
    systemctl(&["start", NAME])?;
    Ok(true)
}

/// Whether the unit starts a Kai that uses this home.
fn starts(unit: &str, home: &Home, folders: &Folders) -> bool {
    let Some(line) = unit.lines().find(|line| line.starts_with("ExecStart=")) else { return false };
    let Ok(exec) = exec_start(Path::new("kai"), home, folders) else { return false };
    match exec.strip_prefix("ExecStart=kai") {
        Some(" serve") => line.ends_with(" serve") && !line.contains(" --home "),
        Some(arguments) => line.ends_with(arguments),
        None => false,
    }
}

/// The program to start: ourselves, by the path that stays when links change.
fn program(home: &Home) -> Result<PathBuf, Failure> {
    if home.is_demo() {
        return Err(Failure::usage("A demo is not started automatically. Try without --demo."));
    }
    std::env::current_exe()
        .map_err(|e| Failure::failed(format!("Kai could not find out where its own program is: {e}.")))
}

/// The line that starts Kai. A home that a service would not find by itself is named.
fn exec_start(program: &Path, home: &Home, folders: &Folders) -> Result<String, Failure> {
    let program = for_systemd(program)?;
    let usual = folders.usual_kai();
    if home.dir == usual.canonicalize().unwrap_or(usual) {
        return Ok(format!("ExecStart={program} serve"));
    }
    Ok(format!("ExecStart={program} --home {} serve", for_systemd(&home.dir)?))
}

fn default_exec() -> String {
    format!("ExecStart={} serve", PACKAGED.1)
}

/// A path as a word of a unit's command line.
fn for_systemd(path: &Path) -> Result<String, Failure> {
    let text =
        path.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| unusual(path))?;
    let plain = |c: char| c.is_alphanumeric() || "/._-+@~".contains(c);
    if text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

/// A path as a word of a shell script.
fn for_shell(path: &OsStr) -> Result<String, Failure> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| unusual(Path::new(path)))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

fn unusual(path: &Path) -> Failure {
    Failure::failed(format!(
        "The path {} has characters that a service cannot have in its path.",
        path.display()
    ))
}

/// The text with another line in place of the one that begins like this.
fn with_line(text: &str, begins: &str, line: &str) -> String {
    let lines = text.lines().map(|old| if old.starts_with(begins) { line } else { old });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A service has nobody to type the passphrase.
fn opens_without_a_person(home: &Home, folders: &Folders) -> Result<(), Failure> {
    let is_locked = home.read_key_file()?.is_some_and(|key| key.place.kind() == KeyKind::Passphrase);
    if is_locked && (machine::in_termux() || !folders.changes().is_dir()) {
        return Err(Failure::failed(
            "This home is locked with a passphrase, which nobody types when Kai starts automatically. Move the key \
             (kai key move file), or let systemd keep the passphrase: the first lines of packaging/kai.service say how.",
        ));
    }
    Ok(())
}

/// Refuses to touch a file that somebody wrote without us.
fn is_ours(file: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| unwritable(file, &e))?;
    if text.contains(OURS) {
        return Ok(());
    }
    let name = file.display();
    Err(Failure::failed(format!("{name} was not written by Kai, so it stays. Move it away, then try again.")))
}

/// Writes a file beside its destination, then renames it.
fn write(file: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    if file.exists() {
        is_ours(file)?;
    }
    let put = || -> io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let beside = file.with_extension("new");
        std::fs::write(&beside, text)?;
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(mode))?;
        std::fs::rename(&beside, file)
    };
    put().map_err(|e| unwritable(file, &e))
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{} could not be changed: {error}.", file.display()))
}

/// Answers if there is a service manager of this user.
const MANAGER: [&str; 2] = ["show", "--property=Version"];

fn has_manager(program: &Path) -> Result<(), Failure> {
    systemctl(&MANAGER).map_err(|_| {
        Failure::failed(format!(
            "There is no systemd here that starts services for you (systemctl --user does not answer). Nothing was \
             changed. Let your system start this when you log in: {} serve",
            program.display()
        ))
    })
}

/// Runs `systemctl --user`; what it complains about is the failure.
fn systemctl(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(arguments).stdin(Stdio::null());
    let failed =
        |why: &str| Failure::failed(format!("systemctl --user {} failed: {why}", arguments.join(" ")));
    let output = command.output().map_err(|e| failed(&format!("{e}.")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(&out::visible(said.trim().lines().next().unwrap_or("It did not say why."))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_names_this_program_and_a_home_that_a_service_would_not_find() {
        let folders = Folders { home: "/home/me".into(), config: "/home/me/.config".into() };
        let exec = |program: &str, dir: &str| {
            exec_start(Path::new(program), &Home { dir: dir.into() }, &folders)
                .map_err(|f| f.message.to_string())
        };
        let usual = "/home/me/.local/share/kai";
        assert_eq!(exec("/usr/bin/kai", usual).unwrap(), "ExecStart=/usr/bin/kai serve");
        assert_eq!(exec("/usr/bin/kai", usual).unwrap(), default_exec());
        assert!(UNIT.lines().any(|line| line == default_exec()), "packages install the unit as it is");
        assert_eq!(
            exec("/home/me/.cargo/bin/kai", "/srv/My 100% $HOME").unwrap(),
            "ExecStart=/home/me/.cargo/bin/kai --home \"/srv/My 100%% $$HOME\" serve"
        );
        assert!(exec("/a\nb/kai", usual).unwrap_err().contains("characters"));
        let unit = with_line(UNIT, "ExecStart=", "ExecStart=/x serve");
        assert!(
            unit.contains("\nExecStart=/x serve\n")
                && unit.contains(OURS)
                && !unit.contains("/usr/bin/kai serve")
        );
        assert_eq!(unit.lines().count(), UNIT.lines().count());
    }

    #[test]
    fn a_unit_is_for_one_home() {
        let folders = Folders { home: "/home/me".into(), config: "/home/me/.config".into() };
        let of = |unit: &str, dir: &str| starts(unit, &Home { dir: dir.into() }, &folders);
        let usual = "/home/me/.local/share/kai";
        assert!(of(UNIT, usual) && !of(UNIT, "/srv/other") && !of("", usual));
        let other = with_line(UNIT, "ExecStart=", "ExecStart=/x/kai --home /srv/other serve");
        assert!(of(&other, "/srv/other") && !of(&other, usual) && !of(&other, "/srv/third"));
    }

    #[test]
    fn the_boot_script_survives_any_path() {
        let script =
            with_line(BOOT, "home=", &format!("home={}", for_shell(OsStr::new("/a'; rm b")).unwrap()));
        assert!(script.contains(r"home='/a'\''; rm b'"), "{script}");
        assert!(script.contains(OURS));
    }
}
