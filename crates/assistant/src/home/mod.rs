//! A home is one folder that holds everything Kai keeps: the store, its key, the socket, copies, logs.
//!
//! The folder is its owner's alone. One daemon at a time holds `kai.lock`; creating and upgrading is done
//! under a lock on the folder itself, by whoever comes first.

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

/// Where everything of one Kai lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub dir: PathBuf,
}

/// Held by the one daemon of a home for as long as it lives.
#[derive(Debug)]
pub struct DaemonLock(
    #[expect(dead_code, reason = "held, not read: closing the file releases the lock")] File,
);

/// The file that marks a demo's home.
pub const DEMO: &str = "this-is-a-demo";

impl Home {
    /// Uses `dir`, making it (for its owner alone) if it is not there.
    pub fn at(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // An absolute path, so that a daemon and a command mean the same folder in what they say.
        Ok(Self { dir: fs::canonicalize(dir)? })
    }

    pub fn store(&self) -> PathBuf {
        self.dir.join("kai.db")
    }

    pub fn key_file(&self) -> PathBuf {
        self.dir.join("kai.key")
    }

    /// The note about the ledger's end, where the key lies in a file.
    pub fn note_file(&self) -> PathBuf {
        self.dir.join("kai.head")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("kai.sock")
    }

    pub fn copies(&self) -> PathBuf {
        self.dir.join("copies")
    }

    /// What Kai makes for the person to open.
    pub fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The demo's home in this one, if there was a demo.
    pub fn old_demo(&self) -> Option<Self> {
        Some(Self { dir: self.dir.join("demo") }).filter(Self::is_demo)
    }

    /// The home that demo mode uses: its own store, key and socket.
    pub fn demo(&self) -> io::Result<Self> {
        let demo = Self::at(&self.dir.join("demo"))?;
        // So that whoever opens it later, by whatever name, knows that nothing in it is real.
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(demo.dir.join(DEMO))?;
        Ok(demo)
    }

    pub fn is_demo(&self) -> bool {
        self.dir.join(DEMO).exists()
    }

    /// Waits until nobody else creates or upgrades this home. Released when the file is dropped.
    pub(crate) fn lock_setup(&self) -> io::Result<File> {
        let folder = File::open(&self.dir)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(folder)
    }

    /// Takes the place of the one daemon, or `None` if somebody has it.
    pub fn lock_daemon(&self) -> io::Result<Option<DaemonLock>> {
        let path = self.dir.join("kai.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        // Not the standard library's lock, which Android does not have.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(DaemonLock(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a rename or a new file in the folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    /// The mode of the folder, if others on this machine may use it.
    pub fn folder_too_open(&self) -> Option<u32> {
        open_to_others(&self.dir)
    }

    /// The mode of the key file, if others on this machine may read or write it.
    pub fn key_too_open(&self) -> Option<u32> {
        open_to_others(&self.key_file())
    }

    /// Is the folder owned by someone else than us? Then nothing in it is ours to trust.
    pub fn foreign_owner(&self) -> bool {
        fs::metadata(&self.dir).is_ok_and(|m| m.uid() != rustix::process::geteuid().as_raw())
    }
}

fn open_to_others(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}
