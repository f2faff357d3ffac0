//! Limits what a server asks. The SDK answers everything, and would hold the answers that a server does not take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kai_assistant::mcp::port::LinkError;
use kai_assistant::untrusted::Untrusted;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;

use super::fault::Fault;

/// How many answers may wait for a server that does not take them.
const MOST_WAITING: usize = 200;
/// The most characters of the name that a server gives to a request. The answer holds it.
const LONGEST_ID: usize = 256;

/// A connection that ends when the server asks without taking our answers.
pub(super) struct Asked<T> {
    inner: T,
    waiting: Arc<AtomicUsize>,
    fault: Fault,
}

impl<T> Asked<T> {
    pub(super) fn new(inner: T, fault: Fault) -> Self {
        Self { inner, waiting: Arc::default(), fault }
    }

    /// Whether a message may be handed on.
    fn is_bearable(&self, message: &ServerJsonRpcMessage) -> bool {
        let ServerJsonRpcMessage::Request(request) = message else { return true };
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let short = !matches!(&request.id, RequestId::String(id) if id.len() > LONGEST_ID);
        short && waiting < MOST_WAITING
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Asked<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_));
        let (waiting, sending) = (Arc::clone(&self.waiting), self.inner.send(message));
        async move {
            let sent = sending.await;
            if answers {
                // An answer that was never counted must not make room for another.
                let fewer = |waiting: usize| waiting.checked_sub(1);
                let _ = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await?;
        if self.is_bearable(&message) {
            return Some(message);
        }
        self.fault.found(LinkError::Garbled { why: Untrusted::new("it asks and does not take the answers") });
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
