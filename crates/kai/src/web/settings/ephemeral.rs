//! What pages show and the store does not keep: how a test went, a file that waits for a yes. It passes with the daemon.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kai_assistant::lock::lock;
use kai_assistant::transfer::Outcome;

use crate::call::ledger::LedgerCheck;
use crate::call::models::ModelTest;

#[derive(Default)]
pub(in crate::web) struct Ephemeral {
    trials: Mutex<BTreeMap<String, Trial>>,
    upload: Mutex<Option<Upload>>,
    /// Numbers are not used twice: a page that still shows an older file must not take in a newer one.
    uploads: AtomicU64,
    checked: Mutex<Option<Checked>>,
}

/// A model being asked whether it works, by the name of the model.
#[derive(Debug, Clone)]
pub(super) enum Trial {
    Asking,
    Asked(ModelTest),
    /// It could not even be asked.
    Failed(String),
}

/// The ledger being checked.
#[derive(Debug, Clone)]
pub(super) enum Checked {
    Checking,
    At(Timestamp, LedgerCheck),
    Failed(String),
}

/// A file that was sent to be taken in.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) number: u64,
    pub(super) file: File,
}

#[derive(Debug, Clone)]
pub(super) enum File {
    Waiting {
        text: Arc<str>,
        /// Keys are in it, under a passphrase.
        sealed: bool,
        /// What would become of it if what is there stays, and if it does not.
        merged: Vec<Outcome>,
        replaced: Vec<Outcome>,
    },
    Taken(Vec<Outcome>),
}

impl Ephemeral {
    pub(super) fn trial(&self, model: &str) -> Option<Trial> {
        lock(&self.trials).get(model).cloned()
    }

    /// False if it is being asked already.
    pub(super) fn begin_trial(&self, model: &str) -> bool {
        let mut trials = lock(&self.trials);
        let idle = !matches!(trials.get(model), Some(Trial::Asking));
        trials.insert(model.to_owned(), Trial::Asking);
        idle
    }

    pub(super) fn end_trial(&self, model: &str, trial: Trial) {
        lock(&self.trials).insert(model.to_owned(), trial);
    }

    /// What was found out is about a model that was other.
    pub(super) fn forget_trial(&self, model: &str) {
        lock(&self.trials).remove(model);
    }

    pub(super) fn upload(&self, number: u64) -> Option<Upload> {
        lock(&self.upload).clone().filter(|upload| upload.number == number)
    }

    /// Only the newest file waits; returns its number.
    pub(super) fn put_upload(&self, file: File) -> u64 {
        let number = self.uploads.fetch_add(1, Ordering::Relaxed) + 1;
        *lock(&self.upload) = Some(Upload { number, file });
        number
    }

    /// Takes it away; `None` if another came since.
    pub(super) fn take_upload(&self, number: u64) -> Option<Upload> {
        lock(&self.upload).take_if(|upload| upload.number == number)
    }

    /// It was taken in.
    pub(super) fn taken_in(&self, number: u64, outcomes: Vec<Outcome>) {
        *lock(&self.upload) = Some(Upload { number, file: File::Taken(outcomes) });
    }

    pub(super) fn checked(&self) -> Option<Checked> {
        lock(&self.checked).clone()
    }

    /// False if it is being checked already.
    pub(super) fn begin_check(&self) -> bool {
        let mut checked = lock(&self.checked);
        let idle = !matches!(*checked, Some(Checked::Checking));
        *checked = Some(Checked::Checking);
        idle
    }

    pub(super) fn end_check(&self, done: Checked) {
        *lock(&self.checked) = Some(done);
    }
}
