//! Erases everything Kai stores in a home, for `kai erase` and for the same request on the page.

use std::{fs, io};

use kai_assistant::home::{DEMO, Home, KeyPlace};

use crate::failure::Failure;
use crate::home::keyring;

/// What the user must type to confirm.
pub(crate) const WORDS: &str = "erase everything";

/// The files and folders that Kai creates in its home, with the temporary files that [`Home::half_replaced`] finds;
/// nothing else in the folder is touched.
const OURS: [&str; 17] = [
    "kai.db",
    "kai.db-wal",
    "kai.db-shm",
    "kai.db.new",
    "kai.db.new-journal",
    "kai.db.new-wal",
    "kai.db.new-shm",
    "kai.key",
    "kai.head",
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
    remove_ours(home).map_err(|e| failed(home, &e))
}

fn remove_ours(home: &Home) -> io::Result<()> {
    // A temporary file of the key opens the store wherever a copy of it may be, so it goes too.
    let temporary = home.half_replaced()?;
    for path in OURS.iter().map(|name| home.dir.join(name)).chain(temporary) {
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match gone {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn failed(home: &Home, error: &io::Error) -> Failure {
    Failure::failed(format!("{} could not be erased: {error}.", home.dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a loss of power left of the key and of the note about the ledger is erased with the rest, also what older
    /// versions called it.
    #[test]
    fn no_copy_of_the_key_outlives_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        let ours =
            ["kai.key", "kai.key.4711.new", "kai.key.new", "kai.head", "kai.head.12.new", "kai.head.new"];
        let theirs = ["kai.head.mine.new", "kai.key.4711", "kai.key.4711.new.txt", "kai.key.mine.new"];
        for name in ours.iter().chain(&theirs) {
            fs::write(home.dir.join(name), name).unwrap();
        }
        remove_ours(&home).unwrap();
        let left = fs::read_dir(&home.dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, theirs);
    }
}
