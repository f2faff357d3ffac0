//! A connected server: what it offers, and calls to it.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::mcp::ToolText;
use kai_assistant::mcp::port::{Boxed, Link, LinkError, LinkEvent, Outcome, Progress};
use kai_assistant::untrusted::Untrusted;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, ErrorCode, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, RequestId, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestHandle, RoleClient,
    RunningService, ServiceError, serve_client_with_ct,
};
use rmcp::transport::{DynamicTransportError, Transport};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::PATIENCE;
use super::asked::Asked;
use super::fault::Fault;
use super::http::why_failed;
use super::outcome::outcome;
use super::program::{End, Program};

/// The most tools of a server, and the most pages in which it may list them.
const MOST_TOOLS: usize = 512;
const MOST_PAGES: usize = 64;
/// How many characters of a server's name, and of what it tells about a call, are kept.
const LONGEST_NAME: usize = 100;
const LONGEST_PROGRESS: usize = 200;
/// How long the end of a connection may take to be understood.
const A_MOMENT: Duration = Duration::from_secs(2);
/// How many notices about progress may wait. The oldest are dropped.
const WAITING_PROGRESS: usize = 16;

/// A server that Kai has introduced itself to. Dropping it ends the connection.
pub(super) struct ServerLink {
    peer: Peer<RoleClient>,
    ears: Ears,
    fault: Fault,
    program: Option<Program>,
    _end: DropGuard,
}

/// Why a connection was not opened.
pub(super) struct NotOpened(ClientInitializeError, Untrusted);

impl NotOpened {
    /// The server's demand to sign in, if that is the reason.
    pub(super) fn challenge(&self) -> Option<&str> {
        self.0.auth_challenge()
    }

    pub(super) fn link_error(self, fault: &Fault) -> LinkError {
        if let Some(known) = fault.known() {
            return known;
        }
        let Self(error, last_words) = self;
        match error {
            ClientInitializeError::TransportError { error, .. } => {
                of_transport(&error).unwrap_or(LinkError::Ended { last_words })
            }
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
                LinkError::Ended { last_words }
            }
            ClientInitializeError::JsonRpcError(error) => {
                LinkError::Failed { why: Untrusted::new(error.message) }
            }
            _ => garbled("its first answer is not one"),
        }
    }
}

impl ServerLink {
    /// Introduces Kai to the server at the other end.
    pub(super) async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        fault: Fault,
        program: Option<Program>,
    ) -> Result<Self, NotOpened> {
        let (ears, end) = (Ears::default(), CancellationToken::new());
        let guard = end.clone().drop_guard();
        let transport = Asked::new(transport, fault.clone());
        let service = match serve_client_with_ct(ears.clone(), transport, end).await {
            Ok(service) => service,
            Err(error) => {
                let last_words = last_words(program.as_ref().map(Program::end)).await;
                return Err(NotOpened(error, last_words));
            }
        };
        let peer = service.peer().clone();
        tokio::spawn(tell_end(fault.clone(), program.as_ref().map(Program::end), service));
        Ok(Self { peer, ears, fault, program, _end: guard })
    }

    pub(super) fn calls_itself(&self) -> Untrusted {
        let info = self.peer.peer_info().and_then(|info| info.server_info.clone());
        let name = info.map(|info| format!("{} {}", info.title.unwrap_or(info.name), info.version));
        Untrusted::new(Untrusted::new(name.unwrap_or_default()).line(LONGEST_NAME))
    }

    /// All tools that can be offered. What is too much or unfit is left out.
    pub(super) async fn list(&self) -> Result<Vec<ToolText>, LinkError> {
        let mut listed = Listed::default();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.ask(request, &|_| {}).await {
                Ok(ServerResult::ListToolsResult(page)) => page,
                Ok(_) => return Err(garbled("its list of tools is not one")),
                Err(Refusal::NoSuchMethod) => break,
                Err(refusal) => return Err(refusal.into()),
            };
            page.tools.iter().for_each(|tool| listed.add(tool));
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() || listed.tools.len() >= MOST_TOOLS {
                break;
            }
        }
        Ok(listed.finished())
    }

    /// Sends a request and waits for its answer, or for the end of the connection.
    async fn ask(&self, request: ClientRequest, progress: Progress<'_>) -> Result<ServerResult, Refusal> {
        let mut heard = self.ears.progress.subscribe();
        let sending = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = tokio::select! {
            sent = sending => sent,
            error = self.fault.happens() => return Err(error.into()),
        };
        let mut sent = match sent {
            Ok(handle) => Sent { handle, is_answered: false },
            Err(error) => return Err(self.refusal(error).await),
        };
        let token = sent.handle.progress_token.clone();
        let hear = |notice: Result<ProgressNotificationParam, RecvError>| match notice {
            Ok(notice) if notice.progress_token == token => progress(in_words(&notice)),
            // It belongs to another call, or notices were dropped.
            Ok(_) | Err(_) => {}
        };
        let answer = loop {
            tokio::select! {
                notice = heard.recv() => hear(notice),
                answer = &mut sent.handle.rx => break answer,
                error = self.fault.happens() => return Err(error.into()),
            }
        };
        sent.is_answered = true;
        // Notices that came before the answer.
        std::iter::from_fn(|| heard.try_recv().ok())
            .take(WAITING_PROGRESS)
            .for_each(|notice| hear(Ok(notice)));
        match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.refusal(error).await),
        }
    }

    /// Why a request has no answer. An error of the server leaves the connection as it is; every other ends it.
    async fn refusal(&self, error: ServiceError) -> Refusal {
        let found = match error {
            ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Refusal::NoSuchMethod;
            }
            ServiceError::McpError(error) => {
                let said = LinkError::Failed { why: Untrusted::new(error.message) };
                return self.fault.known().unwrap_or(said).into();
            }
            ServiceError::TransportSend(error) => of_transport(&error),
            ServiceError::UnexpectedResponse => Some(garbled("it answers something else")),
            _ => None,
        };
        if let Some(found) = found {
            self.fault.found(found);
        }
        // Whoever waits for the end of the connection knows more, if it has ended at all.
        let known = tokio::time::timeout(A_MOMENT, self.fault.happens()).await;
        let cut = |_| LinkError::Failed { why: Untrusted::new("its answer was cut off") };
        known.unwrap_or_else(cut).into()
    }
}

impl Link for ServerLink {
    fn tools(&self) -> Boxed<'_, Result<Vec<ToolText>, LinkError>> {
        Box::pin(async move {
            tokio::time::timeout(PATIENCE, self.list()).await.unwrap_or(Err(LinkError::Silent))
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
        progress: Progress<'a>,
    ) -> Boxed<'a, Result<Outcome, LinkError>> {
        Box::pin(async move {
            let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            match self.ask(request, progress).await? {
                ServerResult::CallToolResult(result) => Ok(outcome(result)),
                ServerResult::InputRequiredResult(_) => Err(LinkError::Failed {
                    why: Untrusted::new("it wants to ask something, which Kai does not allow"),
                }),
                _ => Err(garbled("its result is not one")),
            }
        })
    }

    fn event(&self) -> Boxed<'_, LinkEvent> {
        Box::pin(async move {
            tokio::select! {
                biased;
                error = self.fault.happens() => LinkEvent::Ended(error),
                () = self.ears.tools_changed.notified() => LinkEvent::ToolsChanged,
            }
        })
    }

    fn stderr(&self) -> Vec<Untrusted> {
        self.program.as_ref().map(Program::stderr).unwrap_or_default()
    }
}

/// Says that the connection has ended, when the server closes it or its program ends.
async fn tell_end(fault: Fault, program: Option<End>, service: RunningService<RoleClient, Ears>) {
    let ended = async {
        match &program {
            Some(program) => program.happens().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = service.waiting() => {}
        () = ended => {}
    }
    fault.found(LinkError::Ended { last_words: last_words(program).await });
}

async fn last_words(program: Option<End>) -> Untrusted {
    match program {
        Some(program) => program.last_words().await,
        None => Untrusted::default(),
    }
}

/// Why a request has no answer.
enum Refusal {
    /// The server does not know the request.
    NoSuchMethod,
    Other(LinkError),
}

impl From<LinkError> for Refusal {
    fn from(error: LinkError) -> Self {
        Self::Other(error)
    }
}

impl From<Refusal> for LinkError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoSuchMethod => {
                Self::Failed { why: Untrusted::new("it does not know what Kai asks of it") }
            }
            Refusal::Other(error) => error,
        }
    }
}

fn of_transport(error: &DynamicTransportError) -> Option<LinkError> {
    let first: &(dyn Error + 'static) = error.error.as_ref();
    std::iter::successors(Some(first), |error| (*error).source()).find_map(why_failed)
}

fn garbled(why: &str) -> LinkError {
    LinkError::Garbled { why: Untrusted::new(why) }
}

/// A request that was sent. If its answer is not waited for to the end, the server is told.
struct Sent {
    handle: RequestHandle<RoleClient>,
    is_answered: bool,
}

impl Drop for Sent {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(cancel(self.handle.peer.clone(), self.handle.id.clone()));
        }
    }
}

async fn cancel(peer: Peer<RoleClient>, id: RequestId) {
    let params = CancelledNotificationParam::new(Some(id), Some("Kai no longer waits for it".to_owned()));
    // If the connection is gone, the server knows.
    let _ = peer.notify_cancelled(params).await;
}

/// What a server tells by itself. What it asks is declined, which the SDK does by default.
#[derive(Clone)]
struct Ears {
    progress: broadcast::Sender<ProgressNotificationParam>,
    tools_changed: Arc<Notify>,
}

impl Default for Ears {
    fn default() -> Self {
        Self { progress: broadcast::Sender::new(WAITING_PROGRESS), tools_changed: Arc::default() }
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let kai = Implementation::new("Kai", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), kai)
    }

    async fn on_progress(&self, notice: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // Nobody may be waiting.
        let _ = self.progress.send(notice);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

/// How far a call is: `3/10`, and what the server says of it.
fn in_words(notice: &ProgressNotificationParam) -> Untrusted {
    let share = match notice.total {
        Some(total) => format!("{}/{total}", notice.progress),
        None => notice.progress.to_string(),
    };
    let words = notice.message.iter().fold(share, |share, message| format!("{share} {message}"));
    Untrusted::new(Untrusted::new(words).line(LONGEST_PROGRESS))
}

/// Tools as they are listed, page by page.
#[derive(Default)]
struct Listed {
    tools: Vec<ToolText>,
    names: HashSet<String>,
    left_out: usize,
}

impl Listed {
    fn add(&mut self, tool: &Tool) {
        let hint = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        let description = tool.description.as_deref().unwrap_or_default();
        match ToolText::read(&tool.name, description, &schema, hint.unwrap_or_default()) {
            // A name that comes twice would make two tools of one approval.
            Ok(text) if self.tools.len() < MOST_TOOLS && self.names.insert(text.name.clone()) => {
                self.tools.push(text);
            }
            _ => self.left_out += 1,
        }
    }

    fn finished(self) -> Vec<ToolText> {
        if self.left_out > 0 {
            tracing::warn!(left_out = self.left_out, "an MCP server lists tools that cannot be offered");
        }
        self.tools
    }
}
