//! Why a connection cannot go on, known to everybody who waits on it.

use std::sync::Arc;

use kai_assistant::mcp::port::LinkError;
use tokio::sync::watch;

/// The first reason why a connection ended. Whoever notices it says it; whoever waits for the server hears it.
#[derive(Debug, Clone)]
pub(super) struct Fault(Arc<watch::Sender<State>>);

#[derive(Debug, Clone, Default)]
struct State {
    found: Option<LinkError>,
    /// What is probably wrong if the server never answers.
    suspected: Option<LinkError>,
}

impl Default for Fault {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Fault {
    /// Says why the connection ended. Only the first reason counts: the others follow from it.
    pub(super) fn found(&self, error: LinkError) {
        self.0.send_if_modified(|state| {
            let first = state.found.is_none();
            if first {
                state.found = Some(error);
            }
            first
        });
    }

    /// Notes what may be wrong now, which counts only if the server does not answer in time.
    pub(super) fn suspect(&self, error: Option<LinkError>) {
        self.0.send_if_modified(|state| {
            state.suspected = error;
            false
        });
    }

    pub(super) fn known(&self) -> Option<LinkError> {
        self.0.borrow().found.clone()
    }

    /// What is wrong, or else probably wrong.
    pub(super) fn suspected(&self) -> Option<LinkError> {
        let state = self.0.borrow();
        state.found.clone().or_else(|| state.suspected.clone())
    }

    /// Waits until the connection has ended.
    pub(super) async fn happens(&self) -> LinkError {
        let mut states = self.0.subscribe();
        // The sender lives in `self`, so the wait ends only with a reason.
        let ended = states.wait_for(|state| state.found.is_some()).await.ok();
        ended.and_then(|state| state.found.clone()).unwrap_or(LinkError::Silent)
    }
}
