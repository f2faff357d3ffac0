//! A home is one folder that holds everything Kai stores: the store, its key, the socket, copies, logs.
//!
//! Only its owner can access the folder. One daemon at a time holds `kai.lock`. A home is created or upgraded under a
//! lock on the folder itself, by the first process that gets it.

mod key;
mod note;
mod passphrase;
mod secret;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub use key::{Destination, HomeId, KeyFile, KeyKind, KeyPlace, Keyring, KeyringError, Unlock};
pub use note::LedgerEnd;
pub use passphrase::{Passphrase, Sealed};
pub use secret::{KeyError, StoreKey};

/// The folder that holds all data of one Kai.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub dir: PathBuf,
}

/// The lock on `kai.lock`, which the daemon of a home holds until it exits.
#[derive(Debug)]
pub struct DaemonLock(
    #[expect(dead_code, reason = "held, not read: closing the file releases the lock")] File,
);

/// The file that a daemon locks.
const LOCK: &str = "kai.lock";

/// The file that marks the home of a demo.
pub const DEMO: &str = "this-is-a-demo";

impl Home {
    /// Uses `dir` as the home, and creates it (accessible only to its owner) if it does not exist.
    pub fn at(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // An absolute path, so that the daemon and commands name the folder the same way in their messages.
        Ok(Self { dir: fs::canonicalize(dir)? })
    }

    /// The home in `dir` if there is nothing of a home yet. Creates nothing, so it can only be looked at.
    pub fn not_yet_at(dir: &Path) -> io::Result<Option<Self>> {
        let is_there = fs::exists(dir)?;
        let home = Self { dir: if is_there { fs::canonicalize(dir)? } else { std::path::absolute(dir)? } };
        let is_begun = is_there && (!home.dir.is_dir() || home.foreign_owner() || home.has_key_or_store());
        Ok((!is_begun).then_some(home))
    }

    fn has_key_or_store(&self) -> bool {
        [self.key_file(), self.store()].iter().any(|path| fs::symlink_metadata(path).is_ok())
    }

    /// Whether a daemon ever ran here, or something asked for its lock.
    pub fn has_daemon_lock(&self) -> bool {
        self.dir.join(LOCK).exists()
    }

    /// The encrypted database.
    pub fn store(&self) -> PathBuf {
        self.dir.join("kai.db")
    }

    pub fn key_file(&self) -> PathBuf {
        self.dir.join("kai.key")
    }

    /// The note about the ledger's end, unless the key is in the keyring.
    pub fn note_file(&self) -> PathBuf {
        self.dir.join("kai.head")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("kai.sock")
    }

    /// Copies of the store from before upgrades.
    pub fn copies(&self) -> PathBuf {
        self.dir.join("copies")
    }

    /// Files that Kai creates for the user to open.
    pub fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// The files of models that run inside Kai.
    pub fn models(&self) -> PathBuf {
        self.dir.join("models")
    }

    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The demo's home inside this one, if a demo ever ran.
    pub fn old_demo(&self) -> Option<Self> {
        Some(Self { dir: self.dir.join("demo") }).filter(Self::is_demo)
    }

    /// Creates the home that demo mode uses, with its own store, key and socket.
    pub fn demo(&self) -> io::Result<Self> {
        let demo = Self::at(&self.dir.join("demo"))?;
        // Marks the folder, so that any later process that opens it knows that nothing in it is real.
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(demo.dir.join(DEMO))?;
        Ok(demo)
    }

    pub fn is_demo(&self) -> bool {
        self.dir.join(DEMO).exists()
    }

    /// Waits until no other process creates or upgrades this home, and locks it. Dropping the file releases the lock.
    pub(crate) fn lock_setup(&self) -> io::Result<File> {
        let folder = File::open(&self.dir)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(folder)
    }

    /// [`Self::lock_setup`] without waiting; `None` if another process holds the lock.
    pub(crate) fn try_lock_setup(&self) -> io::Result<Option<File>> {
        let folder = File::open(&self.dir)?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(folder)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The temporary files of the key and of the note about the ledger, which a loss of power may have left.
    pub fn half_replaced(&self) -> io::Result<Vec<PathBuf>> {
        let found = |file: &Path| self.half_replaced_of(file);
        Ok([found(&self.key_file())?, found(&self.note_file())?].concat())
    }

    /// Takes the daemon lock; `None` if another daemon holds it.
    pub fn lock_daemon(&self) -> io::Result<Option<DaemonLock>> {
        let path = self.dir.join(LOCK);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        // The standard library's lock is not available on Android.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(DaemonLock(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Syncs the folder, which makes a rename or a new file in it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    /// The mode of the folder, if other users of this machine can access it.
    pub fn folder_too_open(&self) -> Option<u32> {
        open_to_others(&self.dir)
    }

    /// The mode of the key file, if other users of this machine can access it.
    pub fn key_too_open(&self) -> Option<u32> {
        open_to_others(&self.key_file())
    }

    /// Whether another user owns the folder. Then nothing in it can be trusted.
    pub fn foreign_owner(&self) -> bool {
        fs::metadata(&self.dir).is_ok_and(|m| m.uid() != rustix::process::geteuid().as_raw())
    }
}

fn open_to_others(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}
