//! The twin of `catalogue.rs` in a build without an engine: nothing is downloaded.

/// No hub and no models.
pub(crate) struct Source;

impl Source {
    pub(crate) fn public() -> Self {
        Self
    }
}
