//! State that settings pages show but that is not stored: results of tests and checks, and an uploaded file that waits
//! to be imported. It is lost when the daemon ends.

use kai_words::Said;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kai_assistant::lock::lock;
use kai_assistant::models::trouble::Fault;
use kai_assistant::transfer::Outcome;
use kai_llm::{Key, Offered};

use crate::call::ledger::LedgerCheck;
use crate::call::mcp::Imported;
use crate::call::models::ModelTest;

/// State in memory that settings pages show.
#[derive(Default)]
pub(in crate::web) struct Ephemeral {
    /// By the name of the model.
    trials: Mutex<BTreeMap<String, Trial>>,
    /// The models of the service that is being added or changed.
    listing: Mutex<Option<Listing>>,
    upload: Mutex<Option<Upload>>,
    /// The last number assigned. Numbers are never reused, so a page that still shows an older file cannot import a
    /// newer one.
    uploads: AtomicU64,
    checked: Mutex<Option<Checked>>,
    /// A pasted list of MCP servers, which waits to be added.
    servers: Mutex<Option<PastedServers>>,
    /// The pages on which the user signs in to MCP servers, by the name of the server.
    sign_ins: Mutex<BTreeMap<String, String>>,
}

/// A pasted list of MCP servers, and what of it would be added.
#[derive(Debug, Clone)]
pub(super) struct PastedServers {
    pub(super) text: String,
    pub(super) plan: Imported,
}

/// A test whether a model works, running or finished.
#[derive(Debug, Clone)]
pub(super) enum Trial {
    Asking,
    Asked(ModelTest),
    /// The model could not even be asked.
    Failed(Said),
}

/// What was asked of a service or server before one of its models is added: which models it has.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    /// The card whose form asked.
    pub(super) card: String,
    /// What was typed besides the API key, by the name of the field.
    pub(super) typed: BTreeMap<String, String>,
    /// The API key, which no page shows again.
    pub(super) key: Option<Key>,
    pub(super) offers: Offers,
}

/// The models of a service, as far as they are known.
#[derive(Debug, Clone)]
pub(super) enum Offers {
    Asking,
    Listed(Vec<Offered>),
    /// It did not say, with the part of the setup that is at fault.
    Failed(Said, Option<Fault>),
}

impl Listing {
    /// Whether it is about this service, and this model if one is changed.
    pub(super) fn is_of(&self, card: &str, preset: &str, name: Option<&str>) -> bool {
        let typed = |field: &str| self.typed.get(field).map(String::as_str);
        self.card == card
            && typed("preset") == Some(preset)
            && name.is_none_or(|name| typed("name") == Some(name))
    }
}

/// A check of the ledger, running or finished.
#[derive(Debug, Clone)]
pub(super) enum Checked {
    Checking,
    At(Timestamp, LedgerCheck),
    Failed(Said),
}

/// A file that the user uploaded to import.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) number: u64,
    pub(super) file: File,
}

/// How far the import of an uploaded file has come.
#[derive(Debug, Clone)]
pub(super) enum File {
    /// Waits for the user to confirm the import.
    Waiting {
        text: Arc<str>,
        /// The file contains keys, encrypted with a passphrase.
        sealed: bool,
        /// What the import would change if existing items are kept.
        merged: Vec<Outcome>,
        /// What the import would change if existing items are replaced.
        replaced: Vec<Outcome>,
    },
    /// Was imported, with these changes.
    Taken(Vec<Outcome>),
}

impl Ephemeral {
    pub(super) fn trial(&self, model: &str) -> Option<Trial> {
        lock(&self.trials).get(model).cloned()
    }

    /// Marks the model as being tested; `false` if a test is running already.
    pub(super) fn begin_trial(&self, model: &str) -> bool {
        let mut trials = lock(&self.trials);
        let idle = !matches!(trials.get(model), Some(Trial::Asking));
        trials.insert(model.to_owned(), Trial::Asking);
        idle
    }

    pub(super) fn end_trial(&self, model: &str, trial: Trial) {
        lock(&self.trials).insert(model.to_owned(), trial);
    }

    /// Drops the result of a test, because the model was changed or removed.
    pub(super) fn forget_trial(&self, model: &str) {
        lock(&self.trials).remove(model);
    }

    pub(super) fn listing(&self) -> Option<Listing> {
        lock(&self.listing).clone()
    }

    /// Keeps what was asked, in place of anything older.
    pub(super) fn begin_listing(&self, listing: Listing) {
        *lock(&self.listing) = Some(listing);
    }

    /// Keeps the answer, unless something else was asked meanwhile.
    pub(super) fn end_listing(&self, asked: &BTreeMap<String, String>, offers: Offers) {
        if let Some(listing) = lock(&self.listing).as_mut().filter(|listing| listing.typed == *asked) {
            listing.offers = offers;
        }
    }

    pub(super) fn forget_listing(&self) {
        *lock(&self.listing) = None;
    }

    pub(super) fn upload(&self, number: u64) -> Option<Upload> {
        lock(&self.upload).clone().filter(|upload| upload.number == number)
    }

    /// Keeps this file and drops any earlier one; returns its number.
    pub(super) fn put_upload(&self, file: File) -> u64 {
        let number = self.uploads.fetch_add(1, Ordering::Relaxed) + 1;
        *lock(&self.upload) = Some(Upload { number, file });
        number
    }

    /// Removes the file and returns it; `None` if it has been replaced or removed.
    pub(super) fn take_upload(&self, number: u64) -> Option<Upload> {
        lock(&self.upload).take_if(|upload| upload.number == number)
    }

    /// Records that the file was imported.
    pub(super) fn taken_in(&self, number: u64, outcomes: Vec<Outcome>) {
        *lock(&self.upload) = Some(Upload { number, file: File::Taken(outcomes) });
    }

    pub(super) fn servers(&self) -> Option<PastedServers> {
        lock(&self.servers).clone()
    }

    pub(super) fn keep_servers(&self, text: String, plan: Imported) {
        *lock(&self.servers) = Some(PastedServers { text, plan });
    }

    pub(super) fn take_servers(&self) -> Option<PastedServers> {
        lock(&self.servers).take()
    }

    pub(super) fn begin_sign_in(&self, server: String, page: String) {
        lock(&self.sign_ins).insert(server, page);
    }

    /// The page on which the user signs in to this server.
    pub(super) fn signing_in(&self, server: &str) -> Option<String> {
        lock(&self.sign_ins).get(server).cloned()
    }

    pub(super) fn checked(&self) -> Option<Checked> {
        lock(&self.checked).clone()
    }

    /// Marks the ledger as being checked; `false` if a check is running already.
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
