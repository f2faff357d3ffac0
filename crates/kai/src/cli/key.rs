//! `kai key`: shows where the store's key is kept, and moves it. Works on the home directly, never through the daemon.

use std::path::Path;
use std::process::ExitCode;

use kai_assistant::home::{Destination, Home, KeyKind, KeyPlace, Passphrase};

use super::args::{KeyCommand, KeyDestination};
use crate::failure::Failure;
use crate::home::{Keys, ask, keyring, read_passphrase};
use crate::terminal::out;

pub(super) fn run(home: &Home, keys: Keys, command: &KeyCommand, json: bool) -> Result<ExitCode, Failure> {
    let place = match command {
        KeyCommand::Show => keys.unlock(home)?.0.place.kind(),
        KeyCommand::Move { to } => relocate(home, keys, *to)?,
    };
    if json {
        out::json(&serde_json::json!({"key": place}));
    } else {
        out::line(match place {
            KeyKind::Keyring => "The key is in the desktop keyring.",
            KeyKind::Passphrase => "The key is locked with a passphrase.",
            KeyKind::File if home.key_too_open().is_some() => {
                "The key is in kai.key, which other users can read."
            }
            KeyKind::File => "The key is in kai.key, which only you can read.",
        });
        if home.key_too_open().is_some() {
            out::note(&format!("To make it private: chmod 600 {}", home.key_file().display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn relocate(home: &Home, keys: Keys, to: KeyDestination) -> Result<KeyKind, Failure> {
    let (from, key) = keys.unlock(home)?;
    let (ring, passphrase);
    let destination = match to {
        KeyDestination::File => Destination::File,
        KeyDestination::Keyring => {
            ring = keyring().ok_or_else(|| {
                Failure::failed("Kai found no desktop keyring. Run this inside your desktop session.")
            })?;
            Destination::Keyring(ring.as_ref())
        }
        KeyDestination::Passphrase => {
            passphrase = new_passphrase(keys, &from.place)?;
            Destination::Passphrase(&passphrase)
        }
    };
    let old = keyring();
    let moved = home.move_key(&destination, &from, &key, old.as_deref())?;
    Ok(moved.place.kind())
}

fn new_passphrase(keys: Keys, from: &KeyPlace) -> Result<Passphrase, Failure> {
    // The descriptor holds the new passphrase, unless the old one had to be read from it.
    if let (Some(fd), false) = (keys.passphrase_fd, matches!(from, KeyPlace::Passphrase(_))) {
        let path = format!("/dev/fd/{fd}");
        let read = read_passphrase(Path::new(&path));
        return good(
            read.map_err(|e| Failure::usage(format!("The passphrase could not be read from {path}: {e}.")))?,
        );
    }
    let nobody = || {
        Failure::usage(
            "Kai has to ask for the new passphrase. Run this on a terminal, or use --passphrase-fd N.",
        )
    };
    let first = ask("New passphrase: ").ok().flatten().ok_or_else(nobody)?;
    let again = ask("Repeat the passphrase: ").ok().flatten().ok_or_else(nobody)?;
    if !first.same_as(&again) {
        return Err(Failure::usage("The two passphrases do not match. Nothing was changed."));
    }
    good(first)
}

fn good(passphrase: Passphrase) -> Result<Passphrase, Failure> {
    if passphrase.is_empty() {
        return Err(Failure::usage("The passphrase is empty. Nothing was changed."));
    }
    if passphrase.is_short() {
        out::note("Anyone who gets your disk could guess a short passphrase. Use four words or more.");
    }
    Ok(passphrase)
}
