//! Reaches MCP servers, with the protocol's official SDK.
//!
//! ```text
//! Kai ── leash ── program      over its input and output
//! Kai ── server                over HTTP
//! ```
//!
//! A server is a stranger: everything that it sends is bounded before the SDK sees it (`bounds`, `http`, `asked`), and
//! whoever notices first why a connection cannot go on says so in a `Fault`, so that nothing waits for
//! an answer that will never come. A program is started by its **leash**: Kai itself, started again (`kai __leash`),
//! which ends the program when Kai lets go of it or dies. Signing in (`sign_in`) listens on this machine only while
//! it runs.

mod asked;
mod bounds;
mod fault;
mod http;
mod leash;
mod link;
mod outcome;
mod program;
mod redirect;
mod sign_in;
mod tokens;
mod visitor;

use std::sync::Arc;
use std::time::Duration;

use kai_assistant::mcp::port::{Boxed, Connected, Connector, Launch, LinkError, SigningIn, Transport};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};

use crate::environment::Environment;
use bounds::Bounded;
use fault::Fault;
use http::Http;
use link::ServerLink;
use program::Program;
use visitor::Visitor;

pub use leash::{Leash, SUBCOMMAND, hold as hold_leash};

/// How long connecting and listing the tools may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most bytes of one message.
const LARGEST_MESSAGE: usize = 8 * 1024 * 1024;

/// Reaches servers as programs and over HTTP.
pub struct McpConnector {
    environment: Environment,
    leash: Leash,
}

impl McpConnector {
    /// `environment` is what programs may see of Kai's own.
    pub fn new(environment: Environment, leash: Leash) -> Self {
        Self { environment, leash }
    }

    async fn reach(&self, launch: &Launch, fault: &Fault) -> Result<Connected, LinkError> {
        let link = match &launch.transport {
            Transport::Stdio { command, args } => self.start(launch, command, args, fault).await?,
            Transport::Http { url } => reach_over_http(launch, url, fault).await?,
        };
        let tools = link.list().await?;
        let calls_itself = link.calls_itself();
        Ok(Connected { link: Arc::new(link), tools, calls_itself })
    }

    async fn start(
        &self,
        launch: &Launch,
        command: &str,
        args: &[String],
        fault: &Fault,
    ) -> Result<ServerLink, LinkError> {
        let order = program::order(command, args, &launch.secrets, &self.environment)?;
        let (program, input, output) = Program::start(&order, &self.leash).await?;
        let transport = AsyncRwTransport::new_client(Bounded::new(output, fault.clone()), input);
        ServerLink::open(transport, fault.clone(), Some(program))
            .await
            .map_err(|error| error.link_error(fault))
    }
}

/// Opens a connection over HTTP, with the tokens of an earlier sign-in if there are any.
async fn reach_over_http(launch: &Launch, url: &str, fault: &Fault) -> Result<ServerLink, LinkError> {
    let http = Http::new(url, &launch.secrets, fault.clone())?;
    let config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(LARGEST_MESSAGE);
    let visitor = match sign_in::signed_in(launch, url).await? {
        Some(manager) => Visitor::SignedIn(AuthClient::new(http.clone(), manager)),
        None => Visitor::Anybody(http.clone()),
    };
    let transport = StreamableHttpClientTransport::with_client(visitor, config);
    match ServerLink::open(transport, fault.clone(), None).await {
        Ok(link) => Ok(link),
        Err(error) => match error.challenge() {
            Some(challenge) => Err(sign_in::wanted(url, challenge, &http).await),
            None => Err(error.link_error(fault)),
        },
    }
}

impl Connector for McpConnector {
    fn connect(&self, launch: Launch) -> Boxed<'_, Result<Connected, LinkError>> {
        Box::pin(async move {
            let fault = Fault::default();
            let reached = tokio::time::timeout(PATIENCE, self.reach(&launch, &fault)).await;
            reached.unwrap_or_else(|_| Err(fault.suspected().unwrap_or(LinkError::Silent)))
        })
    }

    fn sign_in(&self, launch: Launch) -> Boxed<'_, Result<SigningIn, LinkError>> {
        Box::pin(async move {
            let begun = tokio::time::timeout(PATIENCE, sign_in::begin(&launch)).await;
            begun.unwrap_or(Err(LinkError::Silent))
        })
    }
}
