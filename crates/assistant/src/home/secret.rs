//! The key of a store, and why it may be unavailable.

use std::io;
use std::path::PathBuf;

use kai_words::{Said, said};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::hex;

/// The raw encryption key of a store. Zeroized on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct StoreKey([u8; 32]);

impl StoreKey {
    pub fn random() -> Result<Self, KeyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|e| KeyError::NoRandomness(e.to_string()))?;
        Ok(Self(bytes))
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(&self.0))
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(hex::decode(text)?);
        Some(Self(bytes.as_slice().try_into().ok()?))
    }
}

impl std::fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreKey(…)")
    }
}

/// Why the key could not be read, written or moved.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum KeyError {
    /// This folder contains a store but not its key.
    Missing(PathBuf),
    /// This is not a valid key file.
    Unreadable(PathBuf),
    File {
        path: PathBuf,
        cause: io::Error,
    },
    #[error(
        "The key of this home is in the desktop keyring, which Kai cannot use: {0}. Log in to the desktop \
         session that created it, or unlock the keyring."
    )]
    KeyringUnreachable(Said),
    #[error(
        "The key of this home should be in the desktop keyring, but it is no longer there. Restore the keyring from your backup."
    )]
    GoneFromKeyring,
    #[error(
        "This home is locked with a passphrase. Run this on a terminal, or pass the passphrase with --passphrase-fd."
    )]
    PassphraseNeeded,
    #[error("That passphrase does not open this home.")]
    WrongPassphrase,
    #[error("Another process has just moved the key of this home. Check with `kai key show` and try again.")]
    Moved,
    #[error("The key was moved, but a copy is still in the keyring: {0}.")]
    StillInKeyring(Said),
    /// The note about the ledger's end, kept beside the key, could not be used.
    Note(Said),
    #[error(
        "The note about the ledger's end, kept beside the key, is cut off or overwritten. See: kai ledger verify"
    )]
    NoteSpoiled,
    #[error("The passphrase could not be read: {0}.")]
    PassphraseUnreadable(io::Error),
    #[error("This machine could not provide random numbers: {0}")]
    NoRandomness(String),
}

impl KeyError {
    /// The error in the user's language. Those that only a command meets, before there is a page, are in English.
    pub fn said(&self) -> Said {
        match self {
            Self::Missing(folder) => said::key_missing(folder.display()),
            Self::Unreadable(path) => said::key_unreadable(path.display()),
            Self::File { path, cause } => said::key_file(path.display(), cause),
            Self::Note(why) => said::key_note(why),
            Self::KeyringUnreachable(_)
            | Self::GoneFromKeyring
            | Self::PassphraseNeeded
            | Self::WrongPassphrase
            | Self::Moved
            | Self::StillInKeyring(_)
            | Self::NoteSpoiled
            | Self::PassphraseUnreadable(_)
            | Self::NoRandomness(_) => self.to_string().into(),
        }
    }
}
