//! The states of prompts' beginnings on the disk, encrypted: they contain what the prompts contain.
//!
//! A file is a header and pieces, each sealed for its place in exactly this file, so that neither a piece nor the end
//! can be exchanged. States pass through a piece at a time: a whole one is tens of megabytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

use crate::frame::PIECE;

/// How many states are kept, and how large they may be together. The oldest go first.
const MOST: usize = 12;
const MOST_BYTES: u64 = 512 * 1024 * 1024;
/// How long nothing was written to an unfinished state before it counts as left behind by a Kai that was killed.
const LEFT_BEHIND: Duration = Duration::from_hours(1);
const MAGIC: &[u8; 8] = b"kaistat1";
const SALT: usize = 16;
/// What sealing adds to a piece.
const TAG: usize = 16;

/// The folder of the kept states, and the key that they are encrypted with.
#[derive(Clone)]
pub struct States {
    folder: PathBuf,
    cipher: XChaCha20Poly1305,
}

impl States {
    pub fn new(folder: impl Into<PathBuf>, key: &[u8; 32]) -> Self {
        Self { folder: folder.into(), cipher: XChaCha20Poly1305::new(key.into()) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.state"))
    }

    /// Opens a kept state.
    pub(crate) fn open(&self, name: &str) -> io::Result<Kept> {
        let path = self.path(name);
        let mut file = BufReader::with_capacity(PIECE, File::open(&path)?);
        let mut head = [0; MAGIC.len() + SALT + 8];
        file.read_exact(&mut head)?;
        let (magic, rest) = head.split_at(MAGIC.len());
        let (salt, bytes) = rest.split_at(SALT);
        let bytes = u64::from_le_bytes(bytes.try_into().map_err(|_| spoiled())?);
        if magic != MAGIC {
            return Err(spoiled());
        }
        // Used just now, so it is not the next to go.
        let _ = file.get_ref().set_modified(SystemTime::UNIX_EPOCH.max(modified_last(&self.folder)));
        let seal = Seal { cipher: self.cipher.clone(), salt: salt.to_vec(), name: name.to_owned(), bytes };
        Ok(Kept { file, seal, number: 0, left: bytes, bytes })
    }

    /// Begins to keep a state of this size. It counts only once it is finished.
    pub(crate) fn begin(&self, name: &str, bytes: u64) -> io::Result<Keeping> {
        fs::create_dir_all(&self.folder)?;
        let mut salt = vec![0; SALT];
        getrandom::fill(&mut salt).map_err(no_random)?;
        // Another Kai of this home may keep the same state at the same time.
        let part = self.folder.join(format!("{name}-{:016x}.part", getrandom::u64().map_err(no_random)?));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        let head = [MAGIC, &salt[..], &bytes.to_le_bytes()].concat();
        let seal = Seal { cipher: self.cipher.clone(), salt, name: name.to_owned(), bytes };
        let path = self.path(name);
        let mut keeping = Keeping { file, path, part, seal, number: 0, left: bytes, is_finished: false };
        keeping.file.write_all(&head)?;
        Ok(keeping)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).is_file()
    }

    /// Deletes a state that cannot be used.
    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    /// Deletes what was left behind unfinished, and the oldest states beyond what is kept.
    fn sweep(&self, now: SystemTime) -> io::Result<()> {
        for (written, _, part) in listed(&self.folder, "part") {
            if now.duration_since(written).is_ok_and(|age| age > LEFT_BEHIND) {
                let _ = fs::remove_file(part);
            }
        }
        let mut files = listed(&self.folder, "state");
        files.sort_by_key(|(at, _, _)| std::cmp::Reverse(*at));
        let mut bytes = 0;
        for (number, (_, size, path)) in files.into_iter().enumerate() {
            bytes += size;
            if number >= MOST || (bytes > MOST_BYTES && number > 0) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// The files of a folder whose names end like this, with their times and sizes.
fn listed(folder: &Path, ending: &str) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == ending));
    files
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        })
        .collect()
}

/// The time of the newest file, and a moment: the order of use needs no clock.
fn modified_last(folder: &Path) -> SystemTime {
    let newest = listed(folder, "state").into_iter().map(|(at, _, _)| at).max();
    newest.unwrap_or(SystemTime::UNIX_EPOCH) + Duration::from_millis(1)
}

/// Seals and opens the pieces of one file.
struct Seal {
    cipher: XChaCha20Poly1305,
    salt: Vec<u8>,
    name: String,
    bytes: u64,
}

impl Seal {
    fn nonce(&self, number: u64) -> XNonce {
        let mut nonce = [0; 24];
        nonce[..SALT].copy_from_slice(&self.salt);
        nonce[SALT..].copy_from_slice(&number.to_le_bytes());
        nonce.into()
    }

    /// What a piece is sealed for: this state, this size.
    fn about(&self) -> Vec<u8> {
        [self.name.as_bytes(), &self.bytes.to_le_bytes()].concat()
    }

    fn close(&self, number: u64, piece: &[u8]) -> io::Result<Vec<u8>> {
        let payload = Payload { msg: piece, aad: &self.about() };
        self.cipher.encrypt(&self.nonce(number), payload).map_err(|_| spoiled())
    }

    fn open(&self, number: u64, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let payload = Payload { msg: sealed, aad: &self.about() };
        self.cipher.decrypt(&self.nonce(number), payload).map_err(|_| spoiled())
    }
}

/// A kept state that is being read.
pub(crate) struct Kept {
    file: BufReader<File>,
    seal: Seal,
    number: u64,
    left: u64,
    pub(crate) bytes: u64,
}

impl Kept {
    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let size = usize::try_from(self.left).map_or(PIECE, |left| left.min(PIECE));
        let mut sealed = vec![0; size + TAG];
        self.file.read_exact(&mut sealed)?;
        let piece = self.seal.open(self.number, &sealed)?;
        self.number += 1;
        self.left -= u64::try_from(size).unwrap_or(self.left);
        Ok(Some(piece))
    }
}

/// A state that is being kept. What of it was written is deleted if it is not finished.
pub(crate) struct Keeping {
    file: File,
    path: PathBuf,
    part: PathBuf,
    seal: Seal,
    number: u64,
    left: u64,
    is_finished: bool,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(&self.part);
        }
    }
}

impl Keeping {
    /// Adds the next piece. All but the last must be full.
    pub(crate) fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        let size = u64::try_from(piece.len()).map_err(|_| spoiled())?;
        self.left = self.left.checked_sub(size).ok_or_else(spoiled)?;
        let sealed = self.seal.close(self.number, piece)?;
        self.number += 1;
        self.file.write_all(&sealed)
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Makes it count, and deletes the oldest beyond what is kept.
    pub(crate) fn finish(mut self, states: &States) -> io::Result<()> {
        if self.left > 0 {
            return Err(spoiled());
        }
        // It was written to just now.
        let now = self.file.metadata()?.modified()?;
        self.file.set_modified(modified_last(&states.folder))?;
        fs::rename(&self.part, &self.path)?;
        self.is_finished = true;
        states.sweep(now)
    }
}

fn no_random(error: getrandom::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn spoiled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a kept state is spoiled")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(states: &States, name: &str, bytes: &[u8]) {
        let mut keeping = states.begin(name, bytes.len().try_into().unwrap()).unwrap();
        bytes.chunks(PIECE).for_each(|piece| keeping.add(piece).unwrap());
        keeping.finish(states).unwrap();
    }

    fn read(states: &States, name: &str) -> io::Result<Vec<u8>> {
        let mut kept = states.open(name)?;
        let mut all = vec![];
        while let Some(piece) = kept.next()? {
            all.extend(piece);
        }
        Ok(all)
    }

    #[test]
    fn a_state_comes_back_as_it_was_and_lies_encrypted() {
        let folder = tempfile::tempdir().unwrap();
        let states = States::new(folder.path().join("states"), &[7; 32]);
        let bytes: Vec<u8> = b"The user's name is Ada. ".repeat(100_000);
        keep(&states, "a", &bytes);
        assert_eq!(read(&states, "a").unwrap(), bytes);
        let file = fs::read(states.path("a")).unwrap();
        assert!(!file.windows(8).any(|window| window == b"user's n"));
        assert!(states.has("a") && !states.has("b"));
        states.remove("a");
        assert!(!states.has("a"));
    }

    #[test]
    fn what_is_spoiled_exchanged_or_cut_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let states = States::new(folder.path(), &[7; 32]);
        let bytes = vec![3; PIECE + 10];
        let spoil = |change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
            keep(&states, "a", &bytes);
            let file = fs::read(states.path("a")).unwrap();
            fs::write(states.path("a"), change(file)).unwrap();
            read(&states, "a").is_err()
        };
        assert!(spoil(&|mut file| {
            file[100] ^= 1;
            file
        }));
        assert!(spoil(&|mut file| {
            file.truncate(500);
            file
        }));
        assert!(
            spoil(&|mut file| {
                file[24] = 9;
                file
            }),
            "the size is sealed too"
        );
        assert!(spoil(&|_| b"something else".to_vec()));
        keep(&states, "a", &bytes);
        fs::rename(states.path("a"), states.path("b")).unwrap();
        assert!(read(&states, "b").is_err(), "under another name it is not that state");
        keep(&states, "a", &bytes);
        assert!(read(&States::new(folder.path(), &[8; 32]), "a").is_err(), "with another key");
        let unfinished = states.begin("c", 5).unwrap();
        assert!(unfinished.finish(&states).is_err() && !states.has("c"));
    }

    #[test]
    fn the_oldest_go_first_and_using_one_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let states = States::new(folder.path(), &[7; 32]);
        for number in 0..MOST {
            keep(&states, &number.to_string(), b"x");
        }
        assert_eq!(read(&states, "0").unwrap(), b"x");
        keep(&states, "new", b"x");
        assert!(states.has("0") && !states.has("1") && states.has("new"));
        assert_eq!(listed(folder.path(), "state").len(), MOST);
    }

    #[test]
    fn what_is_not_finished_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let states = States::new(folder.path(), &[7; 32]);
        let (mut one, other) = (states.begin("a", 1).unwrap(), states.begin("a", 1).unwrap());
        drop(other);
        one.add(b"x").unwrap();
        one.finish(&states).unwrap();
        assert_eq!(
            read(&states, "a").unwrap(),
            b"x",
            "two that keep the same state do not disturb each other"
        );
        assert!(listed(folder.path(), "part").is_empty());
        // One was left behind by a Kai that was killed, and another Kai is writing the other one.
        for (name, age) in [("left.part", 2 * LEFT_BEHIND), ("growing.part", LEFT_BEHIND / 2)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(file.metadata().unwrap().modified().unwrap() - age).unwrap();
        }
        keep(&states, "b", b"x");
        let parts: Vec<PathBuf> =
            listed(folder.path(), "part").into_iter().map(|(_, _, path)| path).collect();
        assert_eq!(parts, [folder.path().join("growing.part")]);
    }
}
