//! Finds the home from the command line and the environment, and unlocks it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kai_assistant::home::{Home, KeyFile, Keyring, Passphrase, StoreKey, Unlock};

use crate::failure::Failure;
use crate::terminal::{input, out};

/// The home that [`find`] would create, if there is nothing of it yet. Nothing is created.
pub(crate) fn not_yet(typed: Option<&Path>) -> Option<Home> {
    Home::not_yet_at(&named(typed).ok()?).ok().flatten()
}

/// The home that exists already: for those who must not create one, nor say anything.
pub(crate) fn existing(typed: Option<&Path>) -> Option<Home> {
    let dir = named(typed).ok()?;
    let home = Home::at(dir.canonicalize().ok().as_deref()?).ok()?;
    (home.key_file().exists() && !home.foreign_owner()).then_some(home)
}

/// The folder that is meant: `--home`, or `$KAI_HOME`, or the user's data folder.
fn named(typed: Option<&Path>) -> Result<PathBuf, Failure> {
    typed.map(Path::to_owned).or_else(from_environment).ok_or_else(|| {
        Failure::store(
            "Kai cannot find your home folder. Set HOME or KAI_HOME, or choose a folder with --home DIR.",
        )
    })
}

/// Opens the home, and creates it if there is none.
pub(crate) fn find(typed: Option<&Path>) -> Result<Home, Failure> {
    let dir = named(typed)?;
    let unusable = |cause| Failure::store(format!("The home {} cannot be used: {cause}.", dir.display()));
    // Say so, because with a mistyped folder Kai would seem to have forgotten everything.
    let is_named = typed.is_some() || set("KAI_HOME").is_some();
    let is_new = is_named && !dir.exists();
    let home = Home::at(&dir).map_err(unusable)?;
    if is_new {
        out::note(&format!("{} did not exist, so Kai created a new, empty home there.", home.dir.display()));
    }
    if home.foreign_owner() {
        let name = home.dir.display();
        return Err(Failure::store(format!(
            "The home {name} belongs to another user. Choose your own with --home DIR."
        )));
    }
    crate::crash::write_to(home.logs());
    Ok(home)
}

/// The path in this environment variable, if it is set and not empty.
fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn from_environment() -> Option<PathBuf> {
    set("KAI_HOME").or_else(usual)
}

/// The folder that is used unless another one is named.
fn usual() -> Option<PathBuf> {
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
    Some(data?.join("kai"))
}

/// Whether a Kai that is told nothing uses this home.
pub(crate) fn is_default(home: &Home) -> bool {
    usual().is_some_and(|dir| dir == home.dir)
}

/// How to get the passphrase of a locked home.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keys {
    pub(crate) passphrase_fd: Option<u32>,
}

impl Keys {
    pub(crate) fn unlock(self, home: &Home) -> Result<(KeyFile, StoreKey), Failure> {
        let keyring = keyring();
        let with = Unlock { keyring: keyring.as_deref(), passphrase: &|| self.passphrase() };
        Ok(home.unlock(&with)?)
    }

    /// Reads the passphrase from the file descriptor, from systemd or from the user; never from argv or the
    /// environment.
    fn passphrase(self) -> io::Result<Option<Passphrase>> {
        if let Some(fd) = self.passphrase_fd {
            return read_passphrase(Path::new(&format!("/dev/fd/{fd}"))).map(Some);
        }
        if let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY") {
            let credential = Path::new(&folder).join("kai-passphrase");
            if credential.exists() {
                return read_passphrase(&credential).map(Some);
            }
        }
        ask("Passphrase for this home: ")
    }
}

/// Asks on the terminal without showing what is typed. `None` if there is no terminal.
pub(crate) fn ask(question: &str) -> io::Result<Option<Passphrase>> {
    if !input::has_person() {
        return Ok(None);
    }
    rpassword::prompt_password(question).map(|typed| Some(Passphrase::new(typed)))
}

/// The same as [`ask`] for a secret that is not the passphrase of a home.
pub(crate) fn ask_text(question: &str) -> Option<String> {
    if !input::has_person() {
        return None;
    }
    rpassword::prompt_password(question).ok()
}

pub(crate) fn read_passphrase(path: &Path) -> io::Result<Passphrase> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(4096).read_to_string(&mut text)?;
    Ok(Passphrase::new(text))
}

/// The keyring of the desktop session, if there is a session bus.
#[cfg(target_os = "linux")]
pub(crate) fn keyring() -> Option<Box<dyn Keyring>> {
    let bus = crate::machine::session_bus()?;
    Some(Box::new(kai_bridges::desktop::SecretService::on(bus)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn keyring() -> Option<Box<dyn Keyring>> {
    None
}
