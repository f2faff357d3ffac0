//! The file that a download grows in, beside its final place. It holds only bytes that were received, in order, so a
//! later download goes on at its end.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FlockOperation, OFlags, flock};
use sha2::{Digest, Sha256};

/// An open part, locked against other downloads of the same file.
pub(crate) struct Part {
    file: File,
    hash: Sha256,
    length: u64,
    at: PathBuf,
    to: PathBuf,
}

/// Tells work on another thread that nobody waits for it any more, so that it lets go of the part.
#[derive(Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

/// The work's end of [`Waiting`].
#[derive(Clone, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Waiting {
    pub(crate) fn told(&self) -> Abandoned {
        Abandoned(Arc::clone(&self.0))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What became of a part.
pub(crate) enum Finished {
    InPlace,
    /// It is not the file that was wanted, and is deleted.
    WrongHash,
}

/// Where the part of a file lies.
pub(crate) fn beside(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    to.with_file_name(name)
}

impl Part {
    /// Opens the part of this file, or begins one, and hashes what it holds. Only the owner can read it. The error is
    /// `WouldBlock` while another download has it, and if one ended at this very moment.
    pub(crate) fn open(to: &Path, abandoned: &Abandoned) -> io::Result<Self> {
        Self::open_with(to, abandoned, lock)
    }

    /// The same with a lock of the caller's: a test ends another download just before the lock is taken.
    pub(crate) fn open_with(
        to: &Path,
        abandoned: &Abandoned,
        lock: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<Self> {
        if let Some(folder) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let at = beside(to);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        // A link that somebody left here would be written through.
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(&at)?;
        lock(&file)?;
        // The download that had it may have ended after it was opened here. Then this is the finished file or a deleted
        // one, and the caller opens again.
        if !is_at(&file, &at)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut part = Self { file, hash: Sha256::new(), length: 0, at, to: to.to_owned() };
        (part.hash, part.length) = digest(&mut part.file, abandoned)?;
        Ok(part)
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Throws away what was received.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.hash, self.length) = (Sha256::new(), 0);
        Ok(())
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Puts the finished file into its place, durably, if its hash is the right one. Otherwise nothing of it stays.
    pub(crate) fn finish(self, sha256: &str) -> io::Result<Finished> {
        if hex(self.hash) != sha256 {
            fs::remove_file(&self.at)?;
            return Ok(Finished::WrongHash);
        }
        self.file.sync_all()?;
        fs::rename(&self.at, &self.to)?;
        if let Some(folder) = self.to.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(Finished::InPlace)
    }

    /// Removes the part.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.at)
    }
}

fn lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)
}

/// Whether this open file is still the one at this path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the file is there whole, with this length and hash.
pub(crate) fn is_whole(path: &Path, bytes: u64, sha256: &str, abandoned: &Abandoned) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != bytes {
        return Ok(false);
    }
    Ok(hex(digest(&mut file, abandoned)?.0) == sha256)
}

/// The hash of what a file holds, and its length. A file of gigabytes takes many seconds, so it ends when nobody waits.
fn digest(file: &mut File, abandoned: &Abandoned) -> io::Result<(Sha256, u64)> {
    let (mut hash, mut length, mut piece) = (Sha256::new(), 0, vec![0; 1 << 18]);
    loop {
        if abandoned.0.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match file.read(&mut piece)? {
            0 => return Ok((hash, length)),
            read => {
                hash.update(&piece[..read]);
                length += read as u64;
            }
        }
    }
}

fn hex(hash: Sha256) -> String {
    use std::fmt::Write as _;
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
