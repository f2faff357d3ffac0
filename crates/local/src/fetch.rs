//! Downloads a model: goes on where an earlier try ended, checks length and hash, and puts the file into its place only
//! when it is whole. Dropping the download stops it and keeps what was received.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kai_llm::{client_builder, why_no_answer};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, LOCATION, RANGE};
use reqwest::{Client, NoProxy, Proxy, Response, StatusCode, Url};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use crate::catalogue::{DISK_FOR_OTHERS, Entry};
use crate::machine;
use crate::part::{self, Finished, Part, Waiting};

/// The file to download, and how to recognise it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its path on the hub.
    pub path: String,
    pub bytes: u64,
    /// In lower-case hexadecimal.
    pub sha256: String,
    /// Where it is to lie.
    pub to: PathBuf,
}

impl Wanted {
    /// A model of the catalogue, for this folder.
    pub fn of(entry: &Entry, folder: &Path) -> Self {
        Self {
            path: entry.path(),
            bytes: entry.bytes,
            sha256: entry.sha256.to_owned(),
            to: folder.join(entry.file),
        }
    }
}

/// Where models are downloaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hub {
    base: String,
    /// Whether unencrypted connections to this machine are allowed, which only tests need.
    loopback: bool,
    /// The longest time without a byte.
    pub patience: Duration,
}

/// The public hub.
const PUBLIC: &str = "https://huggingface.co/";
const PATIENCE: Duration = Duration::from_mins(1);

impl Hub {
    /// The public hub, reached over https only.
    pub fn public() -> Self {
        Self { base: PUBLIC.to_owned(), loopback: false, patience: PATIENCE }
    }

    /// A server of a test on this machine. Any other address is refused when it is used.
    pub fn on_loopback(port: u16) -> Self {
        Self { base: format!("http://127.0.0.1:{port}/"), loopback: true, patience: PATIENCE }
    }

    fn allows(&self, url: &Url) -> bool {
        let is_loopback = || {
            let address = url.host_str().and_then(|host| host.parse::<IpAddr>().ok());
            address.is_some_and(|address| address.is_loopback())
        };
        match url.scheme() {
            "https" => true,
            "http" => self.loopback && is_loopback(),
            _ => false,
        }
    }
}

/// The proxy that the environment names, if any. The program reads the environment; this crate does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// `HTTPS_PROXY`, or else `ALL_PROXY`.
    pub https: Option<String>,
    /// `NO_PROXY`.
    pub none_for: Option<String>,
}

/// Why there is no file. The part of it that was received stays, except where a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No connection, or no answer on it.
    #[error("the server cannot be reached: {0}")]
    NoNetwork(String),
    /// The address in `HTTPS_PROXY` or `ALL_PROXY` is none.
    #[error("the proxy cannot be used: {0}")]
    BadProxy(String),
    #[error("the connection was lost")]
    Cut,
    #[error("nothing arrived for {} seconds", after.as_secs())]
    Stalled { after: Duration },
    #[error("the file is no longer on the server")]
    NotFound,
    #[error("the server refused the download (HTTP {0})")]
    Refused(u16),
    #[error("the server redirects to an address that Kai does not follow")]
    Redirected,
    /// The server has another file. What was received is deleted.
    #[error("the server has a file of another length")]
    WrongLength,
    /// The file is not the one that Kai knows. It is deleted.
    #[error("the file's checksum is wrong, so it was deleted")]
    WrongHash,
    #[error("the disk is too full: {needs} bytes are needed and {free} are free")]
    NoSpace { needs: u64, free: u64 },
    /// The disk became full while the file was written.
    #[error("the disk is full")]
    DiskFull,
    /// Another process downloads the same file.
    #[error("the file is being downloaded already")]
    Busy,
    #[error("the file cannot be written: {0}")]
    Disk(io::Error),
}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            // Only the lock on the part is not waited for.
            io::ErrorKind::WouldBlock => Self::Busy,
            _ => Self::Disk(error),
        }
    }
}

/// Called with how many bytes are there, of how many.
pub type OnProgress<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

const CONNECT: Duration = Duration::from_secs(20);
const MOST_REDIRECTS: usize = 5;
/// Progress is told at most this often.
const PACE: Duration = Duration::from_millis(100);
/// How much is collected before it is written.
const PIECE: usize = 256 << 10;

/// How long the end of an earlier download is waited for. One that was stopped a moment ago may still write its last piece.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const ENDED: Duration = Duration::from_millis(20);

/// Downloads a file unless it is there already, whole and with the right hash.
pub async fn fetch(
    wanted: &Wanted,
    hub: &Hub,
    proxies: &Proxies,
    told: OnProgress<'_>,
) -> Result<(), FetchError> {
    let waiting = Waiting::default();
    if is_there(wanted, &waiting).await? {
        return Ok(());
    }
    let mut part = open(&wanted.to, &waiting).await?;
    // A download that was stopped at its very end still puts the file into its place. It may have done so since we
    // looked, and then the part is a new one.
    if part.length() == 0 && is_there(wanted, &waiting).await? {
        part.remove()?;
        return Ok(());
    }
    if part.length() > wanted.bytes {
        part.clear()?;
    }
    has_room(wanted, part.length())?;
    told(part.length(), wanted.bytes);
    if part.length() < wanted.bytes {
        let client = client(proxies)?;
        let source = Source { hub, client: &client, wanted };
        part = receive(&source, part, told).await?;
    }
    let sha256 = wanted.sha256.clone();
    match blocking(move || part.finish(&sha256)).await? {
        Finished::WrongHash => Err(FetchError::WrongHash),
        Finished::InPlace => {
            told(wanted.bytes, wanted.bytes);
            Ok(())
        }
    }
}

/// Whether the file is in its place already.
async fn is_there(wanted: &Wanted, waiting: &Waiting) -> Result<bool, FetchError> {
    let (to, bytes, sha256, abandoned) =
        (wanted.to.clone(), wanted.bytes, wanted.sha256.clone(), waiting.told());
    blocking(move || part::is_whole(&to, bytes, &sha256, &abandoned)).await
}

/// Opens the part, after the end of a download that was stopped.
async fn open(to: &Path, waiting: &Waiting) -> Result<Part, FetchError> {
    let began = Instant::now();
    loop {
        let (to, abandoned) = (to.to_owned(), waiting.told());
        match blocking(move || Part::open(&to, &abandoned)).await {
            Err(FetchError::Busy) if began.elapsed() < ENDS_WITHIN => sleep(ENDED).await,
            opened => return opened,
        }
    }
}

/// How much of a file an interrupted download has received.
pub fn received(to: &Path) -> Option<u64> {
    std::fs::metadata(part::beside(to)).ok().map(|part| part.len())
}

/// Deletes a model's file and what an interrupted download left of it.
pub fn delete(to: &Path) -> io::Result<()> {
    for path in [to.to_owned(), part::beside(to)] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn has_room(wanted: &Wanted, received: u64) -> Result<(), FetchError> {
    let needs = wanted.bytes.saturating_sub(received) + DISK_FOR_OTHERS;
    match machine::free_disk(&wanted.to) {
        Some(free) if free < needs => Err(FetchError::NoSpace { needs, free }),
        _ => Ok(()),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FetchError> {
    Ok(spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))?)
}

fn client(proxies: &Proxies) -> Result<Client, FetchError> {
    let mut builder = client_builder().map_err(FetchError::NoNetwork)?;
    if let Some(address) = &proxies.https {
        let proxy = Proxy::all(address).map_err(|error| FetchError::BadProxy(error.to_string()))?;
        let none_for = proxies.none_for.as_deref().and_then(NoProxy::from_string);
        builder = builder.proxy(proxy.no_proxy(none_for));
    }
    builder.connect_timeout(CONNECT).build().map_err(|error| FetchError::NoNetwork(why_no_answer(&error)))
}

/// Where the bytes come from.
struct Source<'a> {
    hub: &'a Hub,
    client: &'a Client,
    wanted: &'a Wanted,
}

/// What the server sends, by the headers of its answer.
enum Sends {
    /// From where the part ends.
    Rest,
    /// From the beginning.
    All,
    /// Nothing that fits the part, so the part is of no use.
    Neither,
}

/// Receives the rest of the file, or all of it if the server does not go on in the middle.
async fn receive(source: &Source<'_>, mut part: Part, told: OnProgress<'_>) -> Result<Part, FetchError> {
    let mut response = source.ask(part.length()).await?;
    match source.sends(&response, part.length())? {
        Sends::Rest => {}
        Sends::All => part.clear()?,
        Sends::Neither => {
            part.clear()?;
            response = source.ask(0).await?;
            if !matches!(source.sends(&response, 0)?, Sends::All) {
                part.remove()?;
                return Err(FetchError::WrongLength);
            }
        }
    }
    if response.status() == StatusCode::OK
        && response.content_length().is_some_and(|length| length != source.wanted.bytes)
    {
        part.remove()?;
        return Err(FetchError::WrongLength);
    }
    source.read(response, part, told).await
}

impl Source<'_> {
    /// Asks for the file from a byte on, through redirects.
    async fn ask(&self, from: u64) -> Result<Response, FetchError> {
        let joined = Url::parse(&self.hub.base).and_then(|base| base.join(&self.wanted.path));
        let mut url = joined.map_err(|error| FetchError::NoNetwork(error.to_string()))?;
        for _ in 0..=MOST_REDIRECTS {
            if !self.hub.allows(&url) {
                return Err(FetchError::Redirected);
            }
            let mut request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
            if from > 0 {
                request = request.header(RANGE, format!("bytes={from}-"));
            }
            let after = self.hub.patience;
            let sent = timeout(after, request.send()).await.map_err(|_| FetchError::Stalled { after })?;
            let response = sent.map_err(|error| FetchError::NoNetwork(why_no_answer(&error)))?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            url = to.and_then(|to| url.join(to).ok()).ok_or(FetchError::Redirected)?;
        }
        Err(FetchError::Redirected)
    }

    fn sends(&self, response: &Response, from: u64) -> Result<Sends, FetchError> {
        match response.status() {
            StatusCode::OK => Ok(Sends::All),
            StatusCode::PARTIAL_CONTENT if from > 0 => {
                let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                let fits = range.is_some_and(|range| is_rest(range, from, self.wanted.bytes));
                Ok(if fits { Sends::Rest } else { Sends::Neither })
            }
            StatusCode::RANGE_NOT_SATISFIABLE if from > 0 => Ok(Sends::Neither),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(FetchError::NotFound),
            other => Err(FetchError::Refused(other.as_u16())),
        }
    }

    /// Reads the body into the part. What arrived before a failure is written.
    async fn read(
        &self,
        mut response: Response,
        mut part: Part,
        told: OnProgress<'_>,
    ) -> Result<Part, FetchError> {
        let (whole, mut last) = (self.wanted.bytes, Instant::now());
        let mut held = Vec::with_capacity(PIECE);
        loop {
            let next = self.next(&mut response).await;
            if let Ok(Some(bytes)) = &next {
                held.extend_from_slice(bytes.as_ref());
            }
            let there = part.length() + held.len() as u64;
            if there > whole {
                part.remove()?;
                return Err(FetchError::WrongLength);
            }
            let goes_on = matches!(next, Ok(Some(_)));
            if !goes_on || held.len() >= PIECE || there == whole {
                (part, held) = write(part, held).await?;
            }
            if last.elapsed() >= PACE {
                last = Instant::now();
                told(there, whole);
            }
            match next {
                Ok(Some(_)) => {}
                Ok(None) if there == whole => return Ok(part),
                Ok(None) => return Err(FetchError::Cut),
                Err(error) => return Err(error),
            }
        }
    }

    async fn next(&self, response: &mut Response) -> Result<Option<impl AsRef<[u8]> + use<>>, FetchError> {
        let after = self.hub.patience;
        match timeout(after, response.chunk()).await {
            Ok(chunk) => chunk.map_err(|_| FetchError::Cut),
            Err(_) => Err(FetchError::Stalled { after }),
        }
    }
}

async fn write(mut part: Part, mut held: Vec<u8>) -> Result<(Part, Vec<u8>), FetchError> {
    blocking(move || {
        part.append(&held)?;
        held.clear();
        Ok((part, held))
    })
    .await
}

/// Whether a `Content-Range` is the rest of our file: `bytes 100-999/1000`.
fn is_rest(range: &str, from: u64, whole: u64) -> bool {
    let parts = range.strip_prefix("bytes ").and_then(|range| range.split_once('/'));
    let Some((span, total)) = parts else { return false };
    let begins = span.split_once('-').and_then(|(begins, _)| begins.trim().parse::<u64>().ok());
    begins == Some(from) && total.trim().parse() == Ok(whole)
}

#[cfg(test)]
mod tests;
