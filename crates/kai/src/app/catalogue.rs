//! Where models are downloaded from, and which.

use std::path::Path;

use kai_local::catalogue::{CATALOGUE, Entry};
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
}
