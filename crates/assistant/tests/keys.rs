//! The key of a home: made once, moved without a gap, and never replaced while a store needs it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use kai_assistant::home::{
    Destination, Home, HomeId, KeyError, KeyKind, Keyring, KeyringError, Passphrase, StoreKey, Unlock,
};

/// A keyring in memory that can be taken away.
#[derive(Default)]
struct Pocket {
    keys: RefCell<BTreeMap<String, StoreKey>>,
    notes: RefCell<BTreeMap<String, String>>,
    locked: bool,
}

impl Keyring for Pocket {
    fn usable(&self) -> bool {
        !self.locked
    }

    fn get(&self, home: &HomeId) -> Result<Option<StoreKey>, KeyringError> {
        Ok(self.keys.borrow().get(home.as_str()).cloned())
    }

    fn put(&self, home: &HomeId, key: &StoreKey) -> Result<(), KeyringError> {
        self.keys.borrow_mut().insert(home.as_str().to_owned(), key.clone());
        Ok(())
    }

    fn note(&self, home: &HomeId) -> Result<Option<String>, KeyringError> {
        Ok(self.notes.borrow().get(home.as_str()).cloned())
    }

    fn put_note(&self, home: &HomeId, note: &str) -> Result<(), KeyringError> {
        self.notes.borrow_mut().insert(home.as_str().to_owned(), note.to_owned());
        Ok(())
    }

    fn remove(&self, home: &HomeId) -> Result<(), KeyringError> {
        self.notes.borrow_mut().remove(home.as_str());
        self.keys.borrow_mut().remove(home.as_str());
        Ok(())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape that Unlock asks for")]
fn nobody() -> std::io::Result<Option<Passphrase>> {
    Ok(None)
}

fn typed(text: &'static str) -> impl Fn() -> std::io::Result<Option<Passphrase>> {
    move || Ok(Some(Passphrase::new(text.to_owned())))
}

#[test]
fn a_new_home_gets_one_key_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let plain = Unlock { keyring: None, passphrase: &nobody };
    let (file, key) = home.unlock(&plain).unwrap();
    assert_eq!(file.place.kind(), KeyKind::File);
    assert_eq!(fs::metadata(home.key_file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(home.unlock(&plain).unwrap().1 == key);
}

#[test]
fn many_first_starts_at_once_agree_on_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let unlock = || home.unlock(&Unlock { keyring: None, passphrase: &nobody }).unwrap().1;
    std::thread::scope(|threads| {
        let starts: Vec<_> = (0..16).map(|_| threads.spawn(unlock)).collect();
        let keys: Vec<StoreKey> = starts.into_iter().map(|start| start.join().unwrap()).collect();
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
    });
}

#[test]
fn a_store_without_its_key_gets_no_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    fs::write(home.store(), b"somebody's messages").unwrap();
    let refused = home.unlock(&Unlock { keyring: None, passphrase: &nobody }).unwrap_err();
    assert!(matches!(refused, KeyError::Missing(_)));
    assert!(!home.key_file().exists());
}

#[test]
fn half_a_key_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    for broken in ["", "{\"place\":\"file\"", "{\"home\":\"x\",\"place\":\"file\",\"key\":\"abc\"}"] {
        fs::write(home.key_file(), broken).unwrap();
        let refused = home.unlock(&Unlock { keyring: None, passphrase: &nobody }).unwrap_err();
        assert!(matches!(refused, KeyError::Unreadable(_)), "{broken:?}: {refused}");
        assert_eq!(fs::read_to_string(home.key_file()).unwrap(), broken);
    }
}

#[test]
fn the_keyring_is_used_where_it_can_be_and_missed_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let pocket = Pocket::default();
    let (file, key) = home.unlock(&Unlock { keyring: Some(&pocket), passphrase: &nobody }).unwrap();
    assert_eq!(file.place.kind(), KeyKind::Keyring);
    let written = fs::read_to_string(home.key_file()).unwrap();
    assert!(!written.contains(key.hex().as_str()), "the key is not in the file as well");
    let gone = home.unlock(&Unlock { keyring: None, passphrase: &nobody }).unwrap_err();
    assert!(matches!(gone, KeyError::KeyringUnreachable(_)));
    let empty = Pocket::default();
    let gone = home.unlock(&Unlock { keyring: Some(&empty), passphrase: &nobody }).unwrap_err();
    assert!(matches!(gone, KeyError::GoneFromKeyring));

    let other = tempfile::tempdir().unwrap();
    let locked = Pocket { locked: true, ..Pocket::default() };
    let (file, _) = Home::at(other.path())
        .unwrap()
        .unlock(&Unlock { keyring: Some(&locked), passphrase: &nobody })
        .unwrap();
    assert_eq!(file.place.kind(), KeyKind::File, "a locked keyring is not asked for a new key");
}

#[test]
fn a_key_moves_without_changing() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let pocket = Pocket::default();
    let with = Unlock { keyring: Some(&pocket), passphrase: &typed("sésame") };
    let (mut file, key) = home.unlock(&with).unwrap();
    let kept = file.clone();
    let words = Passphrase::new("sésame".to_owned());
    let places = [
        (Destination::Passphrase(&words), KeyKind::Passphrase),
        (Destination::File, KeyKind::File),
        (Destination::Keyring(&pocket), KeyKind::Keyring),
        (Destination::Passphrase(&words), KeyKind::Passphrase),
    ];
    for (to, kind) in places {
        file = home.move_key(&to, &file, &key, Some(&pocket)).unwrap();
        assert_eq!(file.place.kind(), kind);
        assert!(home.unlock(&with).unwrap().1 == key, "after moving to {kind:?}");
    }
    assert!(pocket.keys.borrow().is_empty(), "the keyring let go");
    let stale = home.move_key(&Destination::File, &kept, &key, Some(&pocket));
    assert!(matches!(stale, Err(KeyError::Moved)), "who looked before somebody else moved it is refused");
    let wrong = Unlock { keyring: None, passphrase: &typed("Sesame") };
    assert!(matches!(home.unlock(&wrong).unwrap_err(), KeyError::WrongPassphrase));
    let alone = Unlock { keyring: None, passphrase: &nobody };
    assert!(matches!(home.unlock(&alone).unwrap_err(), KeyError::PassphraseNeeded));
}

/// What is left of the key in temporary files, by their names.
fn temporary(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(&home.dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension() == Some("new".as_ref()));
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = paths.filter_map(name).collect();
    names.sort();
    names
}

/// The power failed between writing the new key file and renaming it. Its copy of the key would open the store for
/// ever.
#[test]
fn a_copy_of_the_key_that_a_crash_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let pocket = Pocket::default();
    let plain = Unlock { keyring: Some(&pocket), passphrase: &nobody };
    let (file, key) = home.unlock(&plain).unwrap();
    let crash = || {
        for name in ["kai.key.4711.new", "kai.key.new", "kai.key.mine.new", "kai.head.4711.new"] {
            fs::write(home.dir.join(name), key.hex().as_bytes()).unwrap();
        }
    };
    let harmless = ["kai.head.4711.new", "kai.key.mine.new"];

    crash();
    let out_of_reach = Unlock { keyring: None, passphrase: &nobody };
    assert!(home.unlock(&out_of_reach).is_err());
    assert_eq!(temporary(&home).len(), 4, "while the key is out of reach, it may be the last copy");
    assert!(home.unlock(&plain).unwrap().1 == key);
    assert_eq!(temporary(&home), harmless, "the next start removes it");

    crash();
    let words = Passphrase::new("sésame".to_owned());
    home.move_key(&Destination::Passphrase(&words), &file, &key, Some(&pocket)).unwrap();
    assert_eq!(temporary(&home), harmless, "so does whoever moves the key");
}

/// A temporary file may also be one that another process is writing right now.
#[test]
fn a_key_that_is_being_written_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let plain = Unlock { keyring: None, passphrase: &nobody };
    home.unlock(&plain).unwrap();
    let other = fs::File::open(&home.dir).unwrap();
    other.lock().unwrap();
    fs::write(home.dir.join("kai.key.4711.new"), "{}").unwrap();
    home.unlock(&plain).unwrap();
    assert_eq!(temporary(&home), ["kai.key.4711.new"], "nor does the start wait for it");
    drop(other);
    home.unlock(&plain).unwrap();
    assert!(temporary(&home).is_empty());
}
