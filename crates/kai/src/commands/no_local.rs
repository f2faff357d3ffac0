//! The twin of `local.rs` in a build without an engine: no model runs inside Kai.

#![expect(clippy::unused_async, reason = "a build with an engine waits here")]

use kai_assistant::agent::Face;
use kai_words::said;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::call::local::{Catalogue, NewFile};
use crate::call::models::ModelRow;
use crate::caller_env::CallerEnv;
use crate::failure::Failure;

/// Whether Kai can run models itself.
pub(crate) const HAS_ENGINE: bool = false;

fn no_engine() -> Failure {
    Failure::failed(said::local_no_engine()).try_instead("kai models add --help")
}

pub(crate) async fn catalogue(_: &App) -> Result<Catalogue, Failure> {
    Err(no_engine())
}

pub(crate) async fn get(_: &App, _: &CallerEnv, _: &str, _: &dyn Face) -> Result<ModelRow, Failure> {
    Err(no_engine())
}

pub(crate) async fn begin(_: &App, _: &CallerEnv, _: &str) -> Result<Option<CancellationToken>, Failure> {
    Err(no_engine())
}

pub(crate) async fn add(_: &App, _: &CallerEnv, _: NewFile) -> Result<ModelRow, Failure> {
    Err(no_engine())
}
