//! The twin of `engine.rs` in a build without an engine: models that need it say so.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use kai_assistant::home::Home;
use kai_assistant::models::Candidate;
use kai_llm::{EngineTrouble, Model, ModelError};

/// Nothing: this build runs no models itself.
#[derive(Default)]
pub(crate) struct Engine {}

impl Engine {
    #[expect(clippy::unused_self, reason = "its twin needs it")]
    pub(crate) fn model(
        &self,
        _: &Home,
        _: &[u8; 32],
        _: &Candidate,
        _: Duration,
    ) -> Result<Box<dyn Model>, ModelError> {
        Err(ModelError::Engine(EngineTrouble::NotBuiltIn))
    }

    #[expect(clippy::unused_async, reason = "its twin needs it")]
    pub(crate) async fn end_of(&self, _: &Path) {}
}

pub(crate) fn work() -> ExitCode {
    ExitCode::FAILURE
}
