//! The state that all handlers of the page share.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
use super::bin::Bin;
use super::demo_child::DemoChild;
use super::settings::ephemeral::Ephemeral;
use super::turns::Turns;
use crate::app::App;

/// Shared state of all handlers; cheap to clone.
#[derive(Clone)]
pub(crate) struct Web {
    pub(super) app: Arc<App>,
    /// The address that the page is served on.
    pub(super) address: SocketAddr,
    pub(super) turns: Arc<Turns>,
    pub(super) bin: Arc<Bin>,
    /// Limits how often sign-in links are tried.
    pub(super) attempts: Arc<Attempts>,
    pub(super) ephemeral: Arc<Ephemeral>,
    /// Cancelled when the daemon shuts down.
    pub(super) stop: CancellationToken,
    /// The demo that the page started.
    #[cfg_attr(not(feature = "foss"), expect(dead_code, reason = "this edition has none"))]
    pub(super) demo: DemoChild,
}
