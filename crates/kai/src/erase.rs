//! Erases everything Kai stores in a home, for `kai erase` and for the same request on the page.

use std::{fs, io};

use kai_assistant::home::{DEMO, Home, KeyPlace};

use crate::failure::Failure;
use crate::home::keyring;

/// What the user must type to confirm.
pub(crate) const WORDS: &str = "erase everything";

/// The files and folders that Kai creates in its home; nothing else in the folder is touched.
const OURS: [&str; 19] = [
    "kai.db",
    "kai.db-wal",
    "kai.db-shm",
    "kai.db.new",
    "kai.db.new-journal",
    "kai.db.new-wal",
    "kai.db.new-shm",
    "kai.key",
    "kai.key.new",
    "kai.head",
    "kai.head.new",
    "kai.sock",
    "kai.lock",
    "copies",
    "logs",
    "files",
    "models",
    "kai.db-journal",
    DEMO,
];

/// Erases the home and its demo. The caller holds the daemon's lock, so no other process uses the home; the demo has
/// its own lock.
pub(crate) fn everything(home: &Home) -> Result<(), Failure> {
    if let Some(demo) = home.old_demo() {
        let Some(_lock) = demo.lock_daemon().map_err(|e| failed(&demo, &e))? else {
            return Err(Failure::failed(
                "The demo is still running in this home. Stop it first: kai stop --demo",
            ));
        };
        one(&demo)?;
        // The folder stays if it contains files that are not ours.
        drop(fs::remove_dir(&demo.dir));
    }
    one(home)
}

fn one(home: &Home) -> Result<(), Failure> {
    if let (Ok(Some(file)), Some(ring)) = (home.read_key_file(), keyring())
        && matches!(file.place, KeyPlace::Keyring)
    {
        drop(ring.remove(&file.home));
    }
    for name in OURS {
        let path = home.dir.join(name);
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match gone {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(home, &e)),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn failed(home: &Home, error: &io::Error) -> Failure {
    Failure::failed(format!("{} could not be erased: {error}.", home.dir.display()))
}
