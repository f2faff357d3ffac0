//! The store's key: 32 random bytes, and the small file `kai.key` that says where they are kept.
//!
//! `kai.key` holds the key itself (mode 0600), names the keyring as its place, or holds the key encrypted with a
//! passphrase. It is written to a temporary file and renamed, so it is never half written. A temporary file that a loss
//! of power left may hold the key in clear, so it is removed as soon as the store is unlocked or the key is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kai_words::Said;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Home, KeyError, Passphrase, StoreKey, passphrase};
use crate::hex;

/// Identifies a home in the keyring and in cookie names; not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeId(String);

impl HomeId {
    fn random() -> Result<Self, KeyError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|e| KeyError::NoRandomness(e.to_string()))?;
        Ok(Self(hex::encode(&bytes)))
    }

    /// The id of a home that does not exist yet.
    fn none() -> Self {
        Self(String::new())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where the key is kept, with what is needed to get it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum KeyPlace {
    File { key: SecretHex },
    Keyring,
    Passphrase(passphrase::Sealed),
}

/// A secret in the key file. Its `Debug` output hides it.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct SecretHex(String);

impl std::fmt::Debug for SecretHex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// The kind of a [`KeyPlace`], without any secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    File,
    Keyring,
    Passphrase,
}

impl KeyKind {
    /// Its name, as shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Keyring => "keyring",
            Self::Passphrase => "passphrase",
        }
    }
}

impl KeyPlace {
    pub fn kind(&self) -> KeyKind {
        match self {
            Self::File { .. } => KeyKind::File,
            Self::Keyring => KeyKind::Keyring,
            Self::Passphrase(_) => KeyKind::Passphrase,
        }
    }
}

/// The content of `kai.key`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyFile {
    pub home: HomeId,
    #[serde(flatten)]
    pub place: KeyPlace,
    /// Whether the key is new and no store was created with it yet. Without this mark, a missing store means that one
    /// was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_store: bool,
}

impl KeyFile {
    /// Stands in for the file of a home that does not exist yet; it unlocks nothing.
    pub fn none() -> Self {
        Self { home: HomeId::none(), place: KeyPlace::Keyring, awaits_store: true }
    }
}

/// The desktop's keyring, where one exists.
pub trait Keyring {
    /// Whether a key can be stored now, without prompting the user.
    fn usable(&self) -> bool;
    fn get(&self, home: &HomeId) -> Result<Option<StoreKey>, KeyringError>;
    fn put(&self, home: &HomeId, key: &StoreKey) -> Result<(), KeyringError>;
    /// Reads the note about the ledger's end. It never prompts the user, who may be away: a locked keyring is an error.
    fn note(&self, home: &HomeId) -> Result<Option<String>, KeyringError>;
    fn put_note(&self, home: &HomeId, note: &str) -> Result<(), KeyringError>;
    /// Removes the key and the note.
    fn remove(&self, home: &HomeId) -> Result<(), KeyringError>;
}

/// Why the keyring failed, as the second half of a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyringError(pub Said);

/// The sources that [`Home::unlock`] may use.
pub struct Unlock<'a> {
    pub keyring: Option<&'a dyn Keyring>,
    /// Called only if the home has a passphrase. Returns `None` if there is nobody to ask.
    pub passphrase: &'a dyn Fn() -> io::Result<Option<Passphrase>>,
}

impl Home {
    /// Returns the key of this home. A new home gets a new key, stored in the keyring if one is usable, else in the
    /// file.
    pub fn unlock(&self, with: &Unlock<'_>) -> Result<(KeyFile, StoreKey), KeyError> {
        if let Some(file) = self.read_key_file()? {
            let key = fetch(&file, with)?;
            self.remove_stale_keys();
            return Ok((file, key));
        }
        let _setup = self.lock_setup().map_err(|cause| KeyError::File { path: self.dir.clone(), cause })?;
        // Another process may have created the key while we waited for the lock.
        if let Some(file) = self.read_key_file()? {
            let key = fetch(&file, with)?;
            return Ok((file, key));
        }
        if fs::symlink_metadata(self.store()).is_ok() {
            return Err(KeyError::Missing(self.dir.clone()));
        }
        self.new_key(with.keyring)
    }

    /// Reads the key file; `None` in a new home.
    pub fn read_key_file(&self) -> Result<Option<KeyFile>, KeyError> {
        let path = self.key_file();
        match fs::read(&path).map(Zeroizing::new) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| KeyError::Unreadable(path)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(KeyError::File { path, cause }),
        }
    }

    fn new_key(&self, keyring: Option<&dyn Keyring>) -> Result<(KeyFile, StoreKey), KeyError> {
        let (home, key) = (HomeId::random()?, StoreKey::random()?);
        let place = match keyring.filter(|k| k.usable() && k.put(&home, &key).is_ok()) {
            Some(_) => KeyPlace::Keyring,
            None => in_file(&key),
        };
        let file = KeyFile { home, place, awaits_store: true };
        self.write_key_file(&file)?;
        Ok((file, key))
    }

    /// Clears [`KeyFile::awaits_store`], now that the key has a store. The caller holds the setup lock.
    pub(crate) fn mark_store_created(&self) -> Result<(), KeyError> {
        match self.read_key_file()? {
            Some(file) if file.awaits_store => self.write_key_file(&KeyFile { awaits_store: false, ..file }),
            _ => Ok(()),
        }
    }

    /// Moves the key to another place. The new place holds it before it is removed from the old one. All of this
    /// happens under one lock, so if two processes move the key at once, the second gets an error. `old` is the keyring
    /// that may hold the key now.
    pub fn move_key(
        &self,
        to: &Destination<'_>,
        from: &KeyFile,
        key: &StoreKey,
        old: Option<&dyn Keyring>,
    ) -> Result<KeyFile, KeyError> {
        let _setup = self.lock_setup().map_err(|cause| KeyError::File { path: self.dir.clone(), cause })?;
        let now = self.read_key_file()?.filter(|now| now.place.kind() == from.place.kind());
        let now = now.ok_or(KeyError::Moved)?;
        let noted = self.read_note(&now, old)?;
        let place = match to {
            Destination::File => in_file(key),
            Destination::Keyring(keyring) => {
                keyring.put(&from.home, key).map_err(|e| KeyError::KeyringUnreachable(e.0))?;
                KeyPlace::Keyring
            }
            Destination::Passphrase(words) => KeyPlace::Passphrase(passphrase::wrap(key, words)?),
        };
        let file = KeyFile { home: from.home.clone(), place, awaits_store: now.awaits_store };
        // The note about the ledger is kept beside the key, so it is written to the new place first.
        let ring = if let Destination::Keyring(ring) = to { Some(*ring) } else { None };
        noted.map_or(Ok(()), |note| self.write_note(&file, ring, &note))?;
        self.write_key_file(&file)?;
        self.leave(&from.home, &now.place, &file.place, old)?;
        Ok(file)
    }

    /// Removes the key or note that the old place of a moved key still holds.
    fn leave(
        &self,
        home: &HomeId,
        from: &KeyPlace,
        to: &KeyPlace,
        keyring: Option<&dyn Keyring>,
    ) -> Result<(), KeyError> {
        match (from, to, keyring) {
            (KeyPlace::Keyring, KeyPlace::File { .. } | KeyPlace::Passphrase(_), Some(keyring)) => {
                keyring.remove(home).map_err(|e| KeyError::StillInKeyring(e.0))
            }
            (KeyPlace::File { .. } | KeyPlace::Passphrase(_), KeyPlace::Keyring, _) => {
                // The file is no longer read, so a leftover does no harm.
                drop(fs::remove_file(self.note_file()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Removes stale copies of the key, unless another process is writing one right now. That the key could be fetched
    /// shows that nobody needs them. Failing to remove one keeps nobody from their data; the next start tries again.
    fn remove_stale_keys(&self) {
        // Looks first, because there is hardly ever one, and then nothing needs the lock.
        if self.half_replaced_of(&self.key_file()).is_ok_and(|stale| stale.is_empty()) {
            return;
        }
        if let Ok(Some(_setup)) = self.try_lock_setup()
            && self.remove_stale_keys_under_lock().is_ok()
        {
            drop(self.sync());
        }
    }

    /// Whoever writes the key holds the setup lock, so under that lock every temporary file of the key is stale.
    fn remove_stale_keys_under_lock(&self) -> io::Result<()> {
        self.half_replaced_of(&self.key_file())?.iter().try_for_each(fs::remove_file)
    }

    /// The temporary files that [`Self::replace`] makes for this file, of any process.
    pub(super) fn half_replaced_of(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let wanted = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Older versions used the same name in every process.
        let is_one = |name: &str| {
            let process = name.strip_prefix(wanted).and_then(|rest| rest.strip_suffix(".new"));
            process.is_some_and(|text| text.is_empty() || text.strip_prefix('.').is_some_and(is_number))
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_one) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    /// Writes the key file. The caller holds the setup lock.
    fn write_key_file(&self, file: &KeyFile) -> Result<(), KeyError> {
        let path = self.key_file();
        // Before the new file, so that the sync after it makes both durable.
        self.remove_stale_keys_under_lock()
            .map_err(|cause| KeyError::File { path: self.dir.clone(), cause })?;
        let text = serde_json::to_vec(file).map(Zeroizing::new);
        let text = text.map_err(|e| KeyError::File { path: path.clone(), cause: e.into() })?;
        self.replace(&path, &text)
    }

    /// Replaces a private file: writes a temporary file beside it and renames it, so it is never half written.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
        // Two commands that run without a daemon may write at the same moment, so each uses its own temporary file.
        let fresh = path.with_added_extension(format!("{}.new", std::process::id()));
        let failed = |cause| KeyError::File { path: path.to_owned(), cause };
        let written = write_private(&fresh, bytes).and_then(|()| fs::rename(&fresh, path));
        if let Err(cause) = written {
            drop(fs::remove_file(&fresh));
            return Err(failed(cause));
        }
        self.sync().map_err(failed)
    }
}

/// Where to move a key.
pub enum Destination<'a> {
    File,
    Keyring(&'a dyn Keyring),
    Passphrase(&'a Passphrase),
}

fn in_file(key: &StoreKey) -> KeyPlace {
    KeyPlace::File { key: SecretHex(hex::encode(key.bytes())) }
}

fn fetch(file: &KeyFile, with: &Unlock<'_>) -> Result<StoreKey, KeyError> {
    match &file.place {
        KeyPlace::File { key } => StoreKey::from_hex(&key.0).ok_or(KeyError::Unreadable("kai.key".into())),
        KeyPlace::Keyring => {
            let unreachable = || KeyError::KeyringUnreachable("there is no keyring in this session".into());
            let keyring = with.keyring.ok_or_else(unreachable)?;
            let found = keyring.get(&file.home).map_err(|e| KeyError::KeyringUnreachable(e.0))?;
            found.ok_or(KeyError::GoneFromKeyring)
        }
        KeyPlace::Passphrase(wrapped) => {
            let asked = (with.passphrase)().map_err(KeyError::PassphraseUnreadable)?;
            passphrase::unwrap(wrapped, &asked.ok_or(KeyError::PassphraseNeeded)?)
        }
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    drop(fs::remove_file(path));
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
