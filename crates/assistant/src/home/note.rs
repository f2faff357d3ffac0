//! A note about where the ledger ended, kept beside the key and so outside the store.
//!
//! The note is a lower bound, written after the records it names are on disk: a store whose ledger ends before it, or
//! has other records there, is an older copy or was truncated. If the key is in the keyring, so is the note; otherwise
//! it is in `kai.head`. The note needs no signature: someone who cannot read the store does not know the hash of any of
//! its records, so they can only put an older note or garbage here.

use std::{fs, io};

use kai_words::said;
use serde::{Deserialize, Serialize};

use super::{Home, KeyError, KeyFile, KeyPlace, Keyring};

/// The last record of a ledger: its number and its hash in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEnd {
    pub seq: i64,
    pub hash: String,
}

impl Home {
    /// Reads the note; `None` if there is none.
    pub fn read_note(
        &self,
        key: &KeyFile,
        keyring: Option<&dyn Keyring>,
    ) -> Result<Option<LedgerEnd>, KeyError> {
        let text = match &key.place {
            KeyPlace::Keyring => reachable(keyring)?.note(&key.home).map_err(|e| KeyError::Note(e.0))?,
            KeyPlace::File { .. } | KeyPlace::Passphrase(_) => match fs::read_to_string(self.note_file()) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
                read => Some(read.map_err(|cause| KeyError::File { path: self.note_file(), cause })?),
            },
        };
        let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
        parsed.map_err(|_| KeyError::NoteSpoiled)
    }

    /// Replaces the note.
    pub fn write_note(
        &self,
        key: &KeyFile,
        keyring: Option<&dyn Keyring>,
        end: &LedgerEnd,
    ) -> Result<(), KeyError> {
        let text = serde_json::to_string(end).map_err(|e| KeyError::Note(e.to_string().into()))?;
        match &key.place {
            KeyPlace::Keyring => {
                reachable(keyring)?.put_note(&key.home, &text).map_err(|e| KeyError::Note(e.0))
            }
            KeyPlace::File { .. } | KeyPlace::Passphrase(_) => {
                self.replace(&self.note_file(), text.as_bytes())
            }
        }
    }
}

fn reachable(keyring: Option<&dyn Keyring>) -> Result<&dyn Keyring, KeyError> {
    keyring.ok_or_else(|| KeyError::Note(said::key_no_keyring()))
}
