//! The HTTP client for all models. It reuses connections, enforces limits and follows no redirects. It resends a
//! request only if it was sent on a reused connection that the server had closed; the caller decides about every
//! other failure.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hyper::http::Extensions;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, Response, Url, redirect};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::detail::{Detail, Hint};
use crate::names::{NameError, Resolver};
use crate::{ModelError, refusal};

/// Timeouts, and the largest answer to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time to establish a connection.
    pub connect: Duration,
    /// Time to wait for the headers of a streamed answer, and again for the first byte of a body. A slow machine
    /// needs long for a long prompt.
    pub first_byte: Duration,
    /// Time between two chunks of an answer.
    pub idle: Duration,
    /// Time for the whole exchange.
    pub total: Duration,
    /// Largest answer that is read, in bytes.
    pub max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(3),
            idle: Duration::from_secs(90),
            total: Duration::from_mins(15),
            max_bytes: 16 << 20,
        }
    }
}

/// The HTTP client and its open connections. Clones share them.
#[derive(Clone)]
pub struct Http(Arc<Shared>);

struct Shared {
    limits: Limits,
    /// For `http://`. It has no root certificates, so a process that only talks to its own machine never loads them.
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
    /// Connections, by their local address, on which an answer was read to its end, so the client may reuse them. The
    /// newest is last.
    kept: Mutex<VecDeque<SocketAddr>>,
}

/// How many reusable connections are remembered.
const MOST_KEPT: usize = 32;

impl Http {
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            limits,
            plain: OnceLock::new(),
            secure: OnceLock::new(),
            kept: Mutex::default(),
        }))
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<SocketAddr>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, connection: SocketAddr) {
        let mut kept = self.kept();
        kept.retain(|known| *known != connection);
        kept.push_back(connection);
        let surplus = kept.len().saturating_sub(MOST_KEPT);
        kept.drain(..surplus);
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    fn client(&self, url: &Url) -> Result<&Client, ModelError> {
        let secure = url.scheme() == "https";
        let slot = if secure { &self.0.secure } else { &self.0.plain };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let roots = if secure { trusted() } else { Arc::new(RootCertStore::empty()) };
        let client = build(roots, &self.0.limits).map_err(|cause| ModelError::BadSetup {
            what: Detail::NoSecureConnection(cause.to_string().into()),
            hint: Hint::UseLocal,
        })?;
        Ok(slot.get_or_init(|| client))
    }

    /// Sends a POST request and waits for the response headers.
    ///
    /// A server may close a reused connection at the very moment it is used again (llama.cpp does so after each
    /// stream). That does not count as a failed attempt: the server did not answer, and the request is resent on a
    /// new connection. If a connection made for this request breaks, it does count: the server may have read the
    /// request, so the caller decides whether to send it again.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, ModelError> {
        let limits = self.0.limits;
        let failed = |error| failed(url, &error, &limits);
        let client = self.client(url)?;
        let request = client.post(url.clone()).headers(headers).body(body).build().map_err(failed)?;
        let again = request.try_clone();
        let response = match (client.execute(request).await, again) {
            (Err(error), Some(again)) if closed_unanswered(&error) && self.was_kept(&error) => {
                client.execute(again).await
            }
            (outcome, _) => outcome,
        };
        Ok(Answer { response: response.map_err(failed)?, url: url.clone(), http: self.clone(), read: 0 })
    }

    /// Sends a GET request and waits for the response headers.
    pub(crate) async fn get(&self, url: &Url, headers: HeaderMap) -> Result<Answer, ModelError> {
        let limits = self.0.limits;
        let sent = self.client(url)?.get(url.clone()).headers(headers).send().await;
        let response = sent.map_err(|error| failed(url, &error, &limits))?;
        Ok(Answer { response, url: url.clone(), http: self.clone(), read: 0 })
    }

    /// Whether the broken connection had been used by an earlier request. Removes it from the list of reusable ones.
    fn was_kept(&self, error: &reqwest::Error) -> bool {
        let Some(broken) = connection_of(error) else { return false };
        let mut kept = self.kept();
        let before = kept.len();
        kept.retain(|known| *known != broken);
        kept.len() < before
    }
}

/// The local address of the connection on which this error happened.
fn connection_of(error: &reqwest::Error) -> Option<SocketAddr> {
    let info = causes(error).find_map(|cause| cause.downcast_ref::<legacy::Error>()?.connect_info())?;
    let mut extensions = Extensions::new();
    info.get_extras(&mut extensions);
    extensions.get().map(HttpInfo::local_addr)
}

/// Whether the server closed the connection before it sent an answer.
fn closed_unanswered(error: &reqwest::Error) -> bool {
    let hyper_says = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
    };
    let system_says = |cause: &(dyn Error + 'static)| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(kind, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
    };
    error.is_request() && causes(error).any(|cause| hyper_says(cause) || system_says(cause))
}

fn build(roots: Arc<RootCertStore>, limits: &Limits) -> Result<Client, Box<dyn Error>> {
    Ok(builder(roots)?.connect_timeout(limits.connect).build()?)
}

fn builder(roots: Arc<RootCertStore>) -> Result<ClientBuilder, rustls::Error> {
    let tls = tls(roots)?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Resolver)
        // A redirected POST would become a GET, or send the key to another server.
        .redirect(redirect::Policy::none())
        // This crate does not read the environment, and a model on this machine is not behind a proxy.
        .no_proxy()
        .user_agent(concat!("kai/", env!("CARGO_PKG_VERSION")));
    Ok(client)
}

/// A client builder for other code that uses HTTP: our root certificates, no redirects, no proxy.
pub fn client_builder() -> Result<ClientBuilder, String> {
    builder(trusted()).map_err(|cause| cause.to_string())
}

/// The TLS settings with our root certificates, for connections that are not HTTP.
pub fn tls_config() -> Result<ClientConfig, rustls::Error> {
    tls(trusted())
}

fn tls(roots: Arc<RootCertStore>) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(tls.with_root_certificates(roots).with_no_client_auth())
}

/// A short reason why a request by such a client got no answer.
pub fn why_no_answer(error: &reqwest::Error) -> String {
    if let Some(cause) = causes(error).find_map(certificate) {
        return format!("its certificate cannot be trusted: {cause}");
    }
    if let Some((what, _)) = causes(error).find_map(wrong_protocol) {
        return what.to_string();
    }
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    if closed_unanswered(error) {
        return Detail::Closed.to_string();
    }
    root_cause(error).to_string()
}

/// The root certificates of the web PKI and those this system trusts in addition. A system without a certificate
/// store is not an error. Loaded once and shared by all clients.
fn trusted() -> Arc<RootCertStore> {
    static TRUSTED: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    Arc::clone(&TRUSTED)
}

/// A response whose headers have been received.
pub(crate) struct Answer {
    response: Response,
    url: Url,
    http: Http,
    read: usize,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn content_type(&self) -> String {
        self.header(CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase()
    }

    pub(crate) fn location(&self) -> Option<&str> {
        self.header(LOCATION.as_str())
    }

    /// How long the server asks us to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let millis = self.header("retry-after-ms").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        let said = || refusal::retry_after(self.header(RETRY_AFTER.as_str())?, self.header(DATE.as_str()));
        millis.or_else(said)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).map(HeaderValue::to_str)?.ok()
    }

    /// The next chunk of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
        let limits = *self.http.limits();
        let patience = if self.read == 0 { limits.first_byte } else { limits.idle };
        let late = |_| ModelError::TimedOut { at: place(&self.url), after: patience };
        let chunk = timeout(patience, self.response.chunk()).await.map_err(late)?;
        let chunk = chunk.map_err(|error| failed(&self.url, &error, &limits))?;
        match &chunk {
            Some(bytes) => self.read += bytes.len(),
            None => {
                if let Some(info) = self.response.extensions().get::<HttpInfo>() {
                    self.http.keep(info.local_addr());
                }
            }
        }
        if self.read > limits.max_bytes {
            return Err(ModelError::TooLarge { limit: limits.max_bytes });
        }
        Ok(chunk)
    }

    /// The body of an error response, up to about 64 KB.
    pub(crate) async fn words(&mut self) -> String {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            body.extend_from_slice(chunk.as_ref());
            if body.len() > 64 << 10 {
                break;
            }
        }
        String::from_utf8_lossy(&body).into_owned()
    }
}

/// Host, and port if it is not the default.
pub(crate) fn place(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    }
}

/// Classifies a failed request by the chain of causes in the client's error.
fn failed(url: &Url, error: &reqwest::Error, limits: &Limits) -> ModelError {
    let at = place(url);
    if let Some(cause) = causes(error).find_map(certificate) {
        return ModelError::Certificate { at, cause };
    }
    if let Some((what, hint)) = causes(error).find_map(wrong_protocol) {
        return ModelError::NotAnApi { at, what, hint };
    }
    if error.is_timeout() {
        return ModelError::TimedOut { at, after: limits.connect };
    }
    if closed_unanswered(error) {
        return ModelError::Network { at, cause: Detail::Closed };
    }
    ModelError::Network { at, cause: root_cause(error) }
}

fn root_cause(error: &reqwest::Error) -> Detail {
    if let Some(cause) = causes(error).find_map(|cause| cause.downcast_ref().map(no_addresses)) {
        return cause;
    }
    let last = || causes(error).last().map(ToString::to_string).unwrap_or_default();
    causes(error).find_map(plain_cause).unwrap_or_else(|| last().into())
}

/// The error and all its causes. `source` skips what an I/O error wraps, so that is followed separately.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause_of(*error))
}

fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn certificate(error: &(dyn Error + 'static)) -> Option<Detail> {
    match error.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => Some(certificate_fault(why)),
        rustls::Error::NoCertificatesPresented => Some(Detail::NoCertificate),
        _ => None,
    }
}

/// What the server does not speak, and what the user can try.
fn wrong_protocol(error: &(dyn Error + 'static)) -> Option<(Detail, Hint)> {
    if let Some(rustls::Error::InvalidMessage(_)) = error.downcast_ref() {
        return Some((Detail::NoTls, Hint::TryHttp));
    }
    let no_http = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
    no_http.then_some((Detail::NoHttp, Hint::MaybeHttps))
}

fn certificate_fault(why: &rustls::CertificateError) -> Detail {
    use rustls::CertificateError as Fault;
    match why {
        Fault::Expired | Fault::ExpiredContext { .. } => Detail::Expired,
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => Detail::NotYetValid,
        Fault::UnknownIssuer => Detail::UnknownIssuer,
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => Detail::OtherName,
        other => other.to_string().into(),
    }
}

fn no_addresses(why: &NameError) -> Detail {
    let file = |path: &Path| path.to_string_lossy().into();
    match why {
        NameError::NotAName | NameError::Unknown => Detail::UnknownHost,
        NameError::NoServer { file: path } => Detail::NoNameServer(file(path)),
        NameError::NoAnswer { file: path } => Detail::NameServersSilent(file(path)),
    }
}

fn plain_cause(error: &(dyn Error + 'static)) -> Option<Detail> {
    if error.to_string().contains("dns error") {
        return Some(Detail::UnknownHost);
    }
    match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused => Some(Detail::NothingListens),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Some(Detail::Cut),
        io::ErrorKind::UnexpectedEof => Some(Detail::EndedEarly),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Some(Detail::Unreachable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::dns::{Name, Resolve, Resolving};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    /// Starts a server that answers one request over TLS. Returns its address and roots that trust it.
    async fn secure_server() -> (Url, RootCertStore) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let mut roots = trusted().as_ref().clone();
        assert!(roots.len() > 100, "the usual roots are missing");
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let tls = tls.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/v1", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = TlsAcceptor::from(Arc::new(tls)).accept(stream).await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
        });
        (Url::parse(&url).unwrap(), roots)
    }

    #[tokio::test]
    async fn a_trusted_server_is_reached_over_tls() {
        let (url, roots) = secure_server().await;
        let http = Http::new(Limits::default());
        assert!(http.0.secure.set(build(roots.into(), http.limits()).unwrap()).is_ok());
        let mut answer = http.post(&url, HeaderMap::new(), b"hello".to_vec()).await.unwrap();
        assert_eq!((answer.status(), answer.words().await.as_str()), (200, "hi"));
    }

    /// Fails every lookup.
    struct Fails(NameError);

    impl Resolve for Fails {
        fn resolve(&self, _: Name) -> Resolving {
            let error = io::Error::from(self.0.clone());
            Box::pin(async move { Err(error.into()) })
        }
    }

    #[tokio::test]
    async fn a_name_without_addresses_is_told_with_its_reason() {
        let file = || "/etc/resolv.conf".into();
        for (error, expected) in [
            (NameError::Unknown, Detail::UnknownHost),
            (NameError::NoServer { file: file() }, Detail::NoNameServer("/etc/resolv.conf".into())),
            (NameError::NoAnswer { file: file() }, Detail::NameServersSilent("/etc/resolv.conf".into())),
        ] {
            let client = client_builder().unwrap().dns_resolver(Fails(error)).build().unwrap();
            let http = Http::new(Limits::default());
            assert!(http.0.plain.set(client).is_ok());
            let url = Url::parse("http://model.example/v1").unwrap();
            let failed = http.get(&url, HeaderMap::new()).await.err().unwrap();
            assert_eq!(failed, ModelError::Network { at: "model.example".to_owned(), cause: expected });
        }
    }

    #[tokio::test]
    async fn certificates_are_loaded_only_for_https() {
        let http = Http::new(Limits::default());
        http.client(&Url::parse("http://127.0.0.1/v1").unwrap()).unwrap();
        assert!(http.0.plain.get().is_some() && http.0.secure.get().is_none());
    }
}
