//! Speaks HTTP with a server through our own client. What comes back is bounded, and headers go to that server only.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use kai_assistant::mcp::port::{LinkError, Secret};
use kai_assistant::untrusted::Untrusted;
use reqwest::{Client, Method, Request, Response};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::auth::AuthError;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use super::LARGEST_MESSAGE;
use super::fault::Fault;

/// How long making a connection may take.
const TO_CONNECT: Duration = Duration::from_secs(10);
/// How often a server may send us to another path of its own.
const MOST_REDIRECTS: usize = 3;
/// How many characters of a type that we cannot read an error shows.
const LONGEST_TYPE: usize = 60;

/// Our client, with the headers that the user set for one server.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    headers: HeaderMap,
    fault: Fault,
}

/// Why a request failed, inside the SDK's errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failed(LinkError);

pub(super) type Wrapped<T> = Result<T, StreamableHttpError<Failed>>;

impl Http {
    pub(super) fn new(url: &str, secrets: &[(String, Secret)], fault: Fault) -> Result<Self, LinkError> {
        address(url)?;
        Ok(Self { client: client()?, headers: headers(secrets)?, fault })
    }

    /// The user set the header by which the server knows us.
    pub(super) fn has_own_authorization(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }

    fn request(
        &self,
        method: Method,
        uri: &str,
        session: Option<&str>,
        token: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Wrapped<Request> {
        let mut request = Request::new(method, address(uri).map_err(|error| self.failed(error))?);
        let all = request.headers_mut();
        *all = self.headers.clone();
        all.extend(headers);
        let accepted = [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", ");
        let bearer = token.map(|token| format!("Bearer {token}"));
        for (name, value) in [
            (ACCEPT, Some(accepted.as_str())),
            (HeaderName::from_static("mcp-session-id"), session),
            (AUTHORIZATION, bearer.as_deref()),
        ] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                all.insert(name, value);
            }
        }
        Ok(request)
    }

    /// Sends a request and refuses what means that the server does not want us.
    async fn send(&self, request: Request) -> Wrapped<Response> {
        let response = self.sent(request).await?;
        match response.status() {
            status @ (StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED) => {
                Err(self.failed(LinkError::Refused { status: status.as_u16() }))
            }
            _ => Ok(response),
        }
    }

    /// Sends a request. A redirect is followed only to the same server, because the headers are secrets.
    async fn sent(&self, mut request: Request) -> Wrapped<Response> {
        for _ in 0..=MOST_REDIRECTS {
            let again = request.try_clone();
            let response = self.client.execute(request).await.map_err(|error| {
                self.failed(LinkError::Unreachable { why: kai_llm::why_no_answer(&error) })
            })?;
            match (again, moved(&response)) {
                (_, Moved::Nowhere) => return authorized(response),
                (Some(mut again), Moved::Within(url)) => {
                    *again.url_mut() = url;
                    request = again;
                }
                _ => break,
            }
        }
        Err(self.failed(LinkError::Unreachable { why: "it redirects to another address".to_owned() }))
    }

    /// Notes a reason that ends the connection.
    fn failed(&self, error: LinkError) -> StreamableHttpError<Failed> {
        self.fault.found(error.clone());
        StreamableHttpError::Client(Failed(error))
    }

    fn status(&self, status: StatusCode) -> StreamableHttpError<Failed> {
        self.failed(LinkError::Unreachable { why: format!("it answers with status {}", status.as_u16()) })
    }

    async fn body(&self, response: Response) -> Wrapped<Vec<u8>> {
        body(response, LARGEST_MESSAGE).await.map_err(|error| self.failed(error))
    }

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let (fault, mut size) = (self.fault.clone(), EventSize::default());
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk
                .map_err(|error| Failed(LinkError::Unreachable { why: kai_llm::why_no_answer(&error) }))?;
            if size.add(&chunk) > LARGEST_MESSAGE {
                fault.found(LinkError::TooLarge);
                return Err(Failed(LinkError::TooLarge));
            }
            Ok(chunk)
        });
        SseStream::from_bytes_stream(bytes).boxed()
    }

    /// The answer to a message that we sent.
    async fn answer(
        &self,
        response: Response,
        expects_one: bool,
        had_session: bool,
    ) -> Wrapped<StreamableHttpPostResponse> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let kind = content_type(&response);
        if status.is_success() && kind.starts_with(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        if status.is_success() && !expects_one {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !kind.starts_with(JSON_MIME_TYPE) {
            return Err(if status.is_success() { self.unreadable(&kind) } else { self.status(status) });
        }
        let message = serde_json::from_slice(&self.body(response).await?);
        match message {
            Ok(message) if status.is_success() || matches!(message, ServerJsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ if status.is_success() => Err(self.unreadable("something that is not a message")),
            _ => Err(self.status(status)),
        }
    }

    fn unreadable(&self, what: &str) -> StreamableHttpError<Failed> {
        let what = Untrusted::new(what).line(LONGEST_TYPE);
        self.failed(LinkError::Garbled { why: Untrusted::new(format!("it answers with {what}")) })
    }
}

impl StreamableHttpClient for Http {
    type Error = Failed;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Wrapped<StreamableHttpPostResponse> {
        let (session, token) = (session_id.as_deref(), auth_header.as_deref());
        let mut request = self.request(Method::POST, &uri, session, token, custom_headers)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MIME_TYPE));
        *request.body_mut() = Some(serde_json::to_vec(&message)?.into());
        let response = self.send(request).await?;
        let expects_one = matches!(message, ClientJsonRpcMessage::Request(_));
        self.answer(response, expects_one, session.is_some()).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Wrapped<()> {
        let token = auth_header.as_deref();
        let request = self.request(Method::DELETE, &uri, Some(&session_id), token, custom_headers)?;
        // The session is over for us, whatever the server says.
        self.sent(request).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Wrapped<BoxStream<'static, Result<Sse, SseError>>> {
        let (session, token) = (session_id.as_deref(), auth_header.as_deref());
        let mut request = self.request(Method::GET, &uri, session, token, custom_headers)?;
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            request.headers_mut().insert(HEADER_LAST_EVENT_ID, id);
        }
        let response = self.sent(request).await?;
        // A server need not offer this stream, and says so in many ways.
        if !response.status().is_success() || !content_type(&response).starts_with(EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.events(response))
    }
}

/// Why a request failed, if this is one of the errors that say so.
pub(super) fn why_failed(error: &(dyn Error + 'static)) -> Option<LinkError> {
    if let Some(Failed(error)) = error.downcast_ref() {
        return Some(error.clone());
    }
    if let Some(AuthRequiredError { www_authenticate_header: challenge, .. }) = error.downcast_ref() {
        let refused = LinkError::Refused { status: StatusCode::UNAUTHORIZED.as_u16() };
        return Some(if challenge.contains("resource_metadata") { LinkError::SignIn } else { refused });
    }
    match error.downcast_ref::<AuthError>()? {
        AuthError::AuthorizationRequired => Some(LinkError::SignIn),
        other => Some(LinkError::NotSignedIn { why: Untrusted::new(other.to_string()) }),
    }
}

/// The address of a server, if it is one of HTTP.
pub(super) fn address(url: &str) -> Result<Url, LinkError> {
    let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let wrong =
        || LinkError::Unreachable { why: "it is not an address that begins with https://".to_owned() };
    parsed.filter(Url::has_host).ok_or_else(wrong)
}

/// Our client for servers, without any of their headers.
pub(super) fn client() -> Result<Client, LinkError> {
    let unusable = |why| LinkError::Unreachable { why };
    let builder = kai_llm::client_builder().map_err(unusable)?;
    builder.connect_timeout(TO_CONNECT).build().map_err(|error| unusable(error.to_string()))
}

/// The whole body, unless it is too large.
pub(super) async fn body(mut response: Response, largest: usize) -> Result<Vec<u8>, LinkError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() <= largest - body.len() => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(LinkError::TooLarge),
            Ok(None) => return Ok(body),
            Err(error) => return Err(LinkError::Unreachable { why: kai_llm::why_no_answer(&error) }),
        }
    }
}

fn authorized(response: Response) -> Wrapped<Response> {
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(response);
    }
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let challenge = challenge.unwrap_or_default().to_owned();
    Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
}

fn headers(secrets: &[(String, Secret)]) -> Result<HeaderMap, LinkError> {
    let read = |(name, value): &(String, Secret)| {
        let value = HeaderValue::from_str(value.reveal());
        let mut header = HeaderName::from_bytes(name.as_bytes()).ok().zip(value.ok()).ok_or_else(|| {
            let name = Untrusted::new(name.as_str()).line(LONGEST_TYPE);
            LinkError::Unreachable { why: format!("the header \"{name}\" cannot be sent") }
        })?;
        header.1.set_sensitive(true);
        Ok(header)
    };
    secrets.iter().map(read).collect()
}

/// The type of a body, in lower case.
pub(super) fn content_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.unwrap_or("no type").to_ascii_lowercase()
}

/// Where a server sends us.
enum Moved {
    Nowhere,
    /// To another path of its own.
    Within(Url),
    Away,
}

fn moved(response: &Response) -> Moved {
    let status = response.status();
    if !status.is_redirection() {
        return Moved::Nowhere;
    }
    let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
    let target = target.and_then(|target| response.url().join(target).ok());
    let keeps_method = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&status);
    match target {
        Some(url) if keeps_method && url.origin() == response.url().origin() => Moved::Within(url),
        _ => Moved::Away,
    }
}

/// Counts the bytes of an event as they pass.
#[derive(Default)]
struct EventSize {
    event: usize,
    line: usize,
    after_return: bool,
}

impl EventSize {
    /// Adds a chunk. Returns the size of the largest event that it belongs to.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for byte in chunk {
            let newline = *byte == b'\n' && self.after_return;
            self.after_return = *byte == b'\r';
            match byte {
                // The end of the line was counted with the return.
                _ if newline => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => self.line += 1,
            }
            self.event += 1;
            largest = largest.max(self.event);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_with_an_empty_line_only() {
        for (text, expected) in [
            ("data: a\n\ndata: b\n\n", 9),
            ("data: a\r\n\r\ndata: b\r\n\r\n", 11),
            ("data: a\rdata: b\r\rx", 16),
            ("data: a\r\ndata: b\r\ndata: c\r\n", 27),
            ("aaaa", 4),
        ] {
            assert_eq!(EventSize::default().add(text.as_bytes()), expected, "{text:?}");
            let mut size = EventSize::default();
            let split = text.bytes().map(|byte| size.add(&[byte])).max();
            assert_eq!(split, Some(expected), "{text:?}, byte by byte");
        }
    }

    #[test]
    fn only_addresses_of_http_are_reached() {
        for url in ["https://example.org/mcp", "http://127.0.0.1:8000/mcp"] {
            assert!(address(url).is_ok(), "{url}");
        }
        for url in ["", "example.org", "file:///etc/passwd", "ftp://example.org", "https://"] {
            assert!(matches!(address(url), Err(LinkError::Unreachable { .. })), "{url}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let secret = |name: &str, value: &str| [(name.to_owned(), Secret::new(value))];
        assert!(headers(&secret("Authorization", "Bearer x")).is_ok());
        for wrong in [secret("a b", "x"), secret("x", "hidden\nX-Other: y"), secret("", "x")] {
            let error = headers(&wrong).unwrap_err().to_string();
            assert!(error.contains("cannot be sent") && !error.contains("hidden"), "{error}");
        }
    }
}
