//! Where models are downloaded from, and which.

use std::path::Path;

use kai_local::catalogue::{self, CATALOGUE, Entry, Installed};
use kai_local::fetch::Hub;
use kai_local::machine::{self, Machine};

/// The hub, its models and the machine that is to run them. A test has its own, with small files.
pub(crate) struct Source {
    pub(crate) hub: Hub,
    pub(crate) entries: Vec<Entry>,
    /// Looks at this machine; the path is where models are kept.
    pub(crate) look: fn(&Path) -> Machine,
}

impl Source {
    pub(crate) fn public() -> Self {
        Self { hub: Hub::public(), entries: CATALOGUE.to_vec(), look: machine::look }
    }

    /// The model to take unless the user chooses another, with the length of its file; `None` if this machine cannot run
    /// it. `folder` is where models are kept.
    pub(crate) fn recommended(&self, folder: &Path) -> Option<(&'static str, u64)> {
        let entry = self.entries.first()?;
        let fits = catalogue::fits(entry, &(self.look)(folder), installed(entry, folder));
        fits.is_ok().then_some((entry.name, entry.bytes))
    }
}

/// Whether its file is here. A file of another length is not what was downloaded.
pub(crate) fn installed(entry: &Entry, folder: &Path) -> Installed {
    let file = std::fs::metadata(folder.join(entry.file));
    if file.is_ok_and(|file| file.len() == entry.bytes) { Installed::Yes } else { Installed::No }
}
