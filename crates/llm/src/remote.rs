//! A model on a server, in any wire format: encodes a request, sends it, reads the answer and classifies errors.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::timeout;

use crate::config::{Config, Key, bad_setup, check_key, endpoint};
use crate::detail::{Detail, Hint, Unexpected};
use crate::format::{body, wire};
use crate::http::{Answer, Http, place};
use crate::incoming::{Incoming, Shape};
use crate::model::{Deltas, Replying};
use crate::refusal::{Refused, classify};
use crate::window::request_tokens;
use crate::wire::{Ask, Progress, Wire};
use crate::{Format, Model, ModelError, Place, Reply, Request};

pub(crate) struct Remote {
    config: Config,
    wire: &'static dyn Wire,
    url: Url,
    http: Http,
}

/// Creates a model for a configuration, and rejects one that cannot work. Nothing is sent yet.
pub fn connect(config: &Config, http: &Http) -> Result<Box<dyn Model>, ModelError> {
    if config.model.trim().is_empty() {
        return Err(bad_setup(Detail::NoModelNamed, Hint::ChooseListed));
    }
    if let Some(key) = &config.key {
        check_key(key.as_str())?;
    }
    let wire = wire(config.format);
    let url = endpoint(wire, config)?;
    Ok(Box::new(Remote::new(config.clone(), wire, url, http.clone())))
}

/// How long to wait for the token count once the model has stopped.
const FOR_TOKENS: Duration = Duration::from_secs(1);

/// How long to wait for the end of the body once the answer is complete. Only after a body is read to its end can the
/// connection be reused.
const FOR_END: Duration = Duration::from_millis(100);

impl Remote {
    pub(crate) fn new(config: Config, wire: &'static dyn Wire, url: Url, http: Http) -> Self {
        Self { config, wire, url, http }
    }

    async fn attempt(
        &self,
        request: &Request,
        body: Vec<u8>,
        deltas: Deltas<'_>,
    ) -> Result<Reply, ModelError> {
        // The estimate may be up to three times too high. Beyond four times the window, the request cannot fit. It has
        // fewer tokens than bytes, so most need not be estimated.
        let most = self.config.window.saturating_mul(4);
        if body.len() > most && request_tokens(request) > most {
            return Err(ModelError::TooLong { limit: None });
        }
        let mut answer = self.send(body).await?;
        match answer.status() {
            200..300 => self.read(answer, deltas).await,
            300..400 => Err(self.redirected(&answer)),
            status => Err(self.refused(status, &mut answer).await),
        }
    }

    async fn send(&self, body: Vec<u8>) -> Result<Answer, ModelError> {
        let limits = self.http.limits();
        // Without streaming, the server sends nothing until the whole answer is ready.
        let patience = if self.config.stream { limits.first_byte } else { limits.total };
        let late = |_| ModelError::TimedOut { at: place(&self.url), after: patience };
        timeout(patience, self.http.post(&self.url, self.headers()?, body)).await.map_err(late)?
    }

    fn headers(&self) -> Result<HeaderMap, ModelError> {
        let accept = if self.config.stream { "text/event-stream" } else { "application/json" };
        headers(self.wire, self.key(), accept)
    }

    fn key(&self) -> Option<&str> {
        self.config.key.as_ref().map(Key::as_str)
    }

    async fn read(&self, mut answer: Answer, deltas: Deltas<'_>) -> Result<Reply, ModelError> {
        let (shape, head) = self.shape(&mut answer).await?;
        let mut incoming = Incoming::new(shape, self.wire.reader(&self.config.model));
        incoming.feed(&head, deltas)?;
        while let Some(chunk) = next(&mut answer, incoming.progress()).await? {
            incoming.feed(chunk.as_ref(), deltas)?;
        }
        incoming.finish(deltas)
    }

    /// Reads just enough of the body to tell which kind of answer it is.
    async fn shape(&self, answer: &mut Answer) -> Result<(Shape, Vec<u8>), ModelError> {
        let kind = answer.content_type();
        let mut head = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            head.extend_from_slice(chunk.as_ref());
            match Shape::of(&kind, &head) {
                Some(shape) => return Ok((shape, head)),
                None if head.trim_ascii_start().len() >= Shape::TELLING => break,
                None => {}
            }
        }
        Err(if head.trim_ascii().is_empty() {
            ModelError::Garbled { what: Detail::Empty }
        } else {
            self.not_an_api(&kind, &head)
        })
    }

    fn not_an_api(&self, content_type: &str, first: &[u8]) -> ModelError {
        let what = match content_type {
            _ if first.trim_ascii_start().starts_with(b"<") => Detail::WebPage,
            "" => Detail::NeitherJsonNorEvents,
            kind => Detail::ContentType(kind.into()),
        };
        self.no_api(what)
    }

    fn no_api(&self, what: Detail) -> ModelError {
        ModelError::NotAnApi { at: place(&self.url), what, hint: self.hint() }
    }

    /// Advice for when the server does not know the address.
    fn hint(&self) -> Hint {
        let has_version = self.url.path().split('/').any(|part| part.starts_with('v') && part.len() <= 7);
        if self.config.format == Format::OpenAi && !has_version {
            let base = self.config.base_url.trim().trim_end_matches('/');
            return Hint::LacksVersion { base: base.into() };
        }
        Hint::CheckFormat
    }

    fn redirected(&self, answer: &Answer) -> ModelError {
        let to = answer.location().unwrap_or("nowhere");
        let what = Detail::Redirects(to.into());
        ModelError::NotAnApi { at: place(&self.url), what, hint: Hint::TrustRedirect }
    }

    async fn refused(&self, status: u16, answer: &mut Answer) -> ModelError {
        let wait = answer.wait();
        let body = answer.words().await;
        let refused = Refused { status, body: &body, model: &self.config.model, wait };
        classify(&refused).unwrap_or_else(|| {
            let answered = Box::new(Unexpected { path: self.url.path().to_owned(), status });
            let is_page = body.trim_start().starts_with('<');
            self.no_api(if is_page { Detail::StatusAndPage(answered) } else { Detail::Status(answered) })
        })
    }
}

/// The request headers: content type, accepted type and authentication.
pub(crate) fn headers(
    wire: &dyn Wire,
    key: Option<&str>,
    accept: &'static str,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    let wanted = wire.key_header();
    if let Some((name, value)) = wanted.also {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = key {
        let value = HeaderValue::from_str(&format!("{}{key}", wanted.prefix));
        let mut value = value.map_err(|_| ModelError::BadKey)?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(wanted.name), value);
    }
    Ok(headers)
}

/// The next chunk. Once the model has stopped, the wait is short and errors are ignored, because the answer is
/// already here.
async fn next(
    answer: &mut Answer,
    progress: Progress,
) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
    let patience = match progress {
        Progress::Open => return answer.chunk().await,
        Progress::Ended => FOR_TOKENS,
        Progress::Closed => FOR_END,
    };
    Ok(timeout(patience, answer.chunk()).await.ok().and_then(Result::ok).flatten())
}

impl Model for Remote {
    fn body(&self, request: &Request) -> Vec<u8> {
        let ask = Ask {
            request,
            model: self.config.model.trim(),
            host: self.url.host_str().unwrap_or_default(),
            window: self.config.window,
            stream: self.config.stream,
        };
        body(self.wire, &ask)
    }

    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a> {
        self.reply_to(request, self.body(request), deltas)
    }

    fn reply_to<'a>(&'a self, request: &'a Request, body: Vec<u8>, deltas: Deltas<'a>) -> Replying<'a> {
        Box::pin(async move {
            let total = self.http.limits().total;
            let late = ModelError::TimedOut { at: place(&self.url), after: total };
            let outcome = timeout(total, self.attempt(request, body, deltas)).await.unwrap_or(Err(late));
            outcome.map_err(|error| error.tidied(self.key()))
        })
    }

    fn window(&self) -> usize {
        self.config.window
    }

    fn place(&self) -> Option<Place> {
        Some(self.config.place())
    }
}
