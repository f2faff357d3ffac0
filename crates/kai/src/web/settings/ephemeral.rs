//! State that settings pages show but that is not stored: results of tests and checks, and an uploaded file that waits
//! to be imported. It is lost when the daemon ends.

use kai_words::Said;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::lock::lock;
use kai_assistant::models::trouble::Fault;
use kai_assistant::transfer::Outcome;
use kai_llm::{Key, Offered};

use crate::call::ledger::LedgerCheck;
use crate::call::mcp::Imported;
use crate::call::models::ModelTest;

/// How long a pasted list of MCP servers is kept while it waits to be added. It may contain secrets.
const LIFE_OF_A_LIST: Duration = Duration::from_mins(15);

/// State in memory that settings pages show.
#[derive(Default)]
pub(in crate::web) struct Ephemeral {
    /// By the name of the model.
    trials: Mutex<BTreeMap<String, Trial>>,
    /// The models of the service that is being added or changed.
    listing: Mutex<Option<Listing>>,
    upload: Mutex<Option<Upload>>,
    /// The last number assigned to a file or a list. Numbers are never reused, so a page that still shows an older one
    /// cannot import a newer one.
    numbers: AtomicU64,
    checked: Mutex<Option<Checked>>,
    /// A pasted list of MCP servers, which waits to be added.
    servers: Mutex<Option<PastedServers>>,
}

/// A pasted list of MCP servers, and what of it would be added.
#[derive(Debug, Clone)]
pub(super) struct PastedServers {
    pub(super) number: u64,
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

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Keeps this file and drops any earlier one; returns its number.
    pub(super) fn put_upload(&self, file: File) -> u64 {
        let number = self.next_number();
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

    /// Keeps this list for a while and drops any earlier one.
    pub(super) fn keep_servers(self: &Arc<Self>, text: String, plan: Imported) {
        let number = self.next_number();
        *lock(&self.servers) = Some(PastedServers { number, text, plan });
        let forgetting = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(LIFE_OF_A_LIST).await;
            forgetting.take_servers(number);
        });
    }

    /// Removes the list and returns it; `None` if it has been replaced or removed.
    pub(super) fn take_servers(&self, number: u64) -> Option<PastedServers> {
        lock(&self.servers).take_if(|pasted| pasted.number == number)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Imported {
        Imported { added: vec![], left_out: vec![], preview: true }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pasted_list_is_taken_by_its_number_and_expires() {
        let ephemeral = Arc::new(Ephemeral::default());
        let shown = || ephemeral.servers().map(|pasted| pasted.number);
        ephemeral.keep_servers("first".to_owned(), plan());
        let first = shown().unwrap();
        tokio::time::sleep(LIFE_OF_A_LIST / 2).await;
        ephemeral.keep_servers("second".to_owned(), plan());
        let second = shown().unwrap();
        assert!(ephemeral.take_servers(first).is_none(), "it was replaced");

        tokio::time::sleep(LIFE_OF_A_LIST / 2 + Duration::from_secs(1)).await;
        assert_eq!(shown(), Some(second), "the end of the first is not the end of the second");
        tokio::time::sleep(LIFE_OF_A_LIST / 2).await;
        assert_eq!(shown(), None);

        ephemeral.keep_servers("third".to_owned(), plan());
        let third = shown().unwrap();
        assert_eq!(ephemeral.take_servers(third).map(|pasted| pasted.text).as_deref(), Some("third"));
        assert!(ephemeral.take_servers(third).is_none(), "once");
    }
}
