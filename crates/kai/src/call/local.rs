//! Calls about models that run inside Kai, and the rows they return.

use kai_words::Said;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LocalCall {
    /// What can be downloaded, and what this machine can bear.
    Catalogue,
    /// Downloads a model and adds it. Ends with its caller, unless the page began the download.
    Get { name: String },
    /// Adds a model that is a file on this machine.
    Add(NewFile),
    /// Deletes a downloaded file that no model uses.
    DeleteFile {
        /// Its name in the folder of models.
        file: String,
    },
}

/// A model file to add, as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewFile {
    /// An absolute path.
    pub(crate) file: String,
    pub(crate) name: Option<String>,
    /// The context window as typed: a number of tokens, or `auto`.
    pub(crate) context: Option<String>,
}

/// The answer of `kai models get`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Catalogue {
    pub(crate) machine: MachineRow,
    pub(crate) recommended: Option<String>,
    /// Why none is recommended.
    pub(crate) why_none: Option<Said>,
    pub(crate) models: Vec<CatalogueRow>,
}

/// What this machine can bear. Sizes are in bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MachineRow {
    pub(crate) memory: u64,
    pub(crate) memory_available: u64,
    pub(crate) cores: usize,
    /// Free disk space where models are kept.
    pub(crate) disk_free: Option<u64>,
}

/// A model that can be downloaded. Sizes are in bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CatalogueRow {
    pub(crate) name: String,
    /// The name of its file in the folder of models.
    pub(crate) file: String,
    pub(crate) bytes: u64,
    /// Estimated memory while it answers.
    pub(crate) memory: u64,
    pub(crate) good_for: Said,
    pub(crate) licence: String,
    /// Whether Kai was tried with it.
    pub(crate) tried: bool,
    pub(crate) recommended: bool,
    /// Its file is here.
    pub(crate) downloaded: bool,
    /// How much an interrupted download has received.
    pub(crate) received: u64,
    /// The names of the models that use its file.
    pub(crate) used_by: Vec<String>,
    /// Why this machine cannot run it.
    pub(crate) why_not: Option<Said>,
    /// Owner and name of its repository on the hub.
    pub(crate) repository: String,
}

/// A download, running or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Download {
    pub(crate) name: String,
    pub(crate) phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "local"), expect(dead_code, reason = "nothing is downloaded"))]
pub(crate) enum Phase {
    Running(Progress),
    /// The user stopped it, or Kai ended.
    Stopped,
    Failed(Said),
    /// The file is here and the model was added.
    Done,
}

/// How far a download is, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) received: u64,
    pub(crate) total: u64,
    pub(crate) per_second: u64,
}

impl Progress {
    pub(crate) fn percent(&self) -> u64 {
        self.received.saturating_mul(100).checked_div(self.total).unwrap_or_default()
    }

    /// How long the rest takes at this speed.
    pub(crate) fn seconds_left(&self) -> Option<u64> {
        self.total.saturating_sub(self.received).checked_div(self.per_second)
    }
}

/// The file of a model that was removed, if no other model uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelFile {
    /// Its name in the folder of models.
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// A file that was deleted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileDeleted {
    pub(crate) deleted: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_share_and_a_time() {
        for (received, total, per_second, percent, left) in [
            (0, 1000, 0, 0, None),
            (500, 1000, 100, 50, Some(5)),
            (1000, 1000, 100, 100, Some(0)),
            (0, 0, 0, 0, None),
            (u64::MAX, u64::MAX, 1, 1, Some(0)),
        ] {
            let progress = Progress { received, total, per_second };
            assert_eq!((progress.percent(), progress.seconds_left()), (percent, left), "{progress:?}");
        }
    }
}
