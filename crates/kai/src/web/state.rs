//! What the handlers of the page work on.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::bin::Bin;
#[cfg(feature = "foss")]
use super::demo_child::DemoChild;
use super::settings::Ephemeral;
use super::turns::Turns;
use crate::app::App;

/// What handlers work on.
#[derive(Clone)]
pub(crate) struct Web {
    pub(super) app: Arc<App>,
    pub(super) address: SocketAddr,
    pub(super) turns: Arc<Turns>,
    pub(super) bin: Arc<Bin>,
    pub(super) ephemeral: Arc<Ephemeral>,
    pub(super) stop: CancellationToken,
    #[cfg(feature = "foss")]
    pub(super) demo: DemoChild,
}
