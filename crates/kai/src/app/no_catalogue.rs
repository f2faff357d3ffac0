//! The twin of `catalogue.rs` in a build without an engine: nothing is downloaded.

use std::path::Path;

/// No hub and no models.
pub(crate) struct Source;

impl Source {
    pub(crate) fn public() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "its twin needs it")]
    pub(crate) fn recommended(&self, _: &Path) -> Option<(&'static str, u64)> {
        None
    }
}
