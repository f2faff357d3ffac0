//! The HTTP client for the web tools.
//!
//! Pages are fetched with a client whose resolver applies the guard: a host is looked up once, the guard checks the
//! addresses, and the connection goes to those addresses. There is no second lookup that could return something else.
//! Connections are not reused, so every page is checked again. Only the request itself is sent: no cookies, no proxy,
//! no referrer.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url};

use super::guard::{Guard, Refused};
use super::{encoding, sentence};
use crate::tool::ToolError;

/// At most this many bytes of a page are read; the rest is dropped.
pub(super) const MOST_BYTES: usize = 2_000_000;
const REDIRECTS: usize = 5;
const CONNECT: Duration = Duration::from_secs(10);
/// The longest pause between two chunks of a response. The tool's own timeout limits the whole request.
const SILENCE: Duration = Duration::from_secs(15);

/// Looks up the IP addresses of a host.
pub trait Resolver: Send + Sync + 'static {
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// Looks up names as everything else in Kai does.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(async move {
            let found = kai_llm::names::lookup(&host, 0).await?;
            Ok(found.into_iter().map(|address| address.ip()).collect())
        })
    }
}

/// Fetches pages and sends requests to services. Clones share the same clients, which are built (and load their
/// certificates) on first use.
#[derive(Clone)]
pub struct Web(Arc<Shared>);

struct Shared {
    guard: Guard,
    resolver: Arc<dyn Resolver>,
    pages: OnceLock<Client>,
    services: OnceLock<Client>,
}

/// A response, with its body read completely or up to [`MOST_BYTES`].
pub(super) struct Page {
    /// The final URL, after redirects.
    pub(super) url: Url,
    pub(super) status: u16,
    /// The `Content-Type` header in lower case; empty if the server did not send one.
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    /// Whether the body was longer than what was read.
    pub(super) cut: bool,
}

impl Page {
    /// Decodes the body of a service's response.
    pub(super) fn text(&self) -> Result<String, ToolError> {
        let charset = encoding::charset(&self.content_type);
        encoding::text(&self.body, charset)
            .ok_or_else(|| sentence("The service answered in an unknown encoding."))
    }
}

impl Web {
    pub fn new(resolver: impl Resolver) -> Self {
        Self::guarded_by(Guard::default(), resolver)
    }

    /// A client for tests that run a local server: `stand_ins` count as public addresses although they are not.
    /// `floors.rs` checks that only test code calls this.
    pub fn with_stand_ins(resolver: impl Resolver, stand_ins: Vec<IpAddr>) -> Self {
        Self::guarded_by(Guard { stand_ins }, resolver)
    }

    pub(super) fn guarded_by(guard: Guard, resolver: impl Resolver) -> Self {
        let resolver = Arc::new(resolver);
        Self(Arc::new(Shared { guard, resolver, pages: OnceLock::new(), services: OnceLock::new() }))
    }

    /// Fetches a page from the public internet and follows up to [`REDIRECTS`] redirects.
    pub(super) async fn page(&self, mut url: Url) -> Result<Page, ToolError> {
        for _ in 0..=REDIRECTS {
            self.0.guard.admits(&url).map_err(sentence)?;
            let request = self
                .pages()?
                .get(url.clone())
                .header(ACCEPT, "text/html, text/*, application/json, */*;q=0.1");
            let response = send(request, &url).await?;
            match onward(&response, &url)? {
                Some(next) => url = next,
                None => return read(response, url).await,
            }
        }
        Err(ToolError(format!("The address redirects more than {REDIRECTS} times, so Kai gave up.")))
    }

    /// The client for services that the user chose. It connects without the guard.
    pub(super) fn service(&self) -> Result<&Client, ToolError> {
        built(&self.0.services, |client| client)
    }

    /// Sends a request to a service and reads the response.
    pub(super) async fn ask(&self, request: RequestBuilder, at: &Url) -> Result<Page, ToolError> {
        read(send(request, at).await?, at.clone()).await
    }

    fn pages(&self) -> Result<&Client, ToolError> {
        let Shared { guard, resolver, .. } = self.0.as_ref();
        let judged = GuardedResolver { guard: guard.clone(), resolver: Arc::clone(resolver) };
        built(&self.0.pages, |client| client.dns_resolver(judged).pool_max_idle_per_host(0))
    }
}

fn built(
    slot: &OnceLock<Client>,
    shape: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<&Client, ToolError> {
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    let impossible =
        |cause: &dyn std::fmt::Display| ToolError(format!("No secure connection can be made here: {cause}."));
    let builder = kai_llm::client_builder().map_err(|cause| impossible(&cause))?;
    let builder = shape(builder).connect_timeout(CONNECT).read_timeout(SILENCE).user_agent(concat!(
        "Mozilla/5.0 (compatible; Kai/",
        env!("CARGO_PKG_VERSION"),
        ")"
    ));
    let client = builder.build().map_err(|cause| impossible(&cause))?;
    Ok(slot.get_or_init(|| client))
}

/// The resolver of the client for pages. It returns only addresses that the guard accepted, and the client connects to
/// exactly those.
struct GuardedResolver {
    guard: Guard,
    resolver: Arc<dyn Resolver>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (guard, looking) = (self.guard.clone(), self.resolver.lookup(host.clone()));
        Box::pin(async move {
            let found = looking.await?;
            guard.judge(&host, &found)?;
            let addresses = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

async fn send(request: RequestBuilder, url: &Url) -> Result<Response, ToolError> {
    request.send().await.map_err(|error| failed(&error, url))
}

fn failed(error: &reqwest::Error, url: &Url) -> ToolError {
    let mut cause = error.source();
    while let Some(this) = cause {
        if let Some(refused) = this.downcast_ref::<Refused>() {
            return sentence(refused);
        }
        cause = this.source();
    }
    let host = url.host_str().unwrap_or_default();
    ToolError(format!("{host} could not be reached: {}.", kai_llm::why_no_answer(error)))
}

/// The URL that a response redirects to, or `None` if it is not a redirect.
fn onward(response: &Response, from: &Url) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = header(response, &LOCATION) else { return Ok(None) };
    let next = from
        .join(location)
        .map_err(|_| sentence("The address redirects to something that is not an address."))?;
    Ok(Some(next))
}

fn header<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

async fn read(mut response: Response, url: Url) -> Result<Page, ToolError> {
    // Requests do not ask for compression, because a small compressed response can unpack to a huge one.
    if header(&response, &CONTENT_ENCODING).is_some_and(|how| !how.eq_ignore_ascii_case("identity")) {
        return Err(sentence("The server sends only compressed pages, which Kai does not unpack."));
    }
    let content_type = header(&response, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let status = response.status().as_u16();
    let (mut body, mut cut) = (Vec::new(), false);
    while !cut && let Some(chunk) = response.chunk().await.map_err(|error| failed(&error, &url))? {
        let room = MOST_BYTES - body.len();
        cut = chunk.len() > room;
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(Page { url, status, content_type, body, cut })
}
