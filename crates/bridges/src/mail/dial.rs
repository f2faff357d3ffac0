//! Connects to mail servers: finds the addresses of a name, connects to one of them, and encrypts the connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::email::account::{Security, Server};
use kai_assistant::email::port::Why;
use kai_llm::names::{self, NameError};
use kai_words::{Said, said};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::limits::Limits;
use super::line::Line;

/// Connects to mail servers.
#[derive(Clone)]
pub(super) struct Dial {
    tls: Arc<ClientConfig>,
    limits: Limits,
}

impl Dial {
    pub(super) fn new(tls: ClientConfig, limits: Limits) -> Self {
        Self { tls: Arc::new(tls), limits }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A connection to the server. It is encrypted if the server does that from the first byte on.
    pub(super) async fn connect(&self, server: &Server) -> Result<Line, Why> {
        let addresses = self.addresses(&name(&server.host)?, server.port).await?;
        if server.security == Security::Plain && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(Why::PlainElsewhere);
        }
        let stream = timeout(self.limits.connect, first(&addresses, self.limits.connect));
        let stream = stream.await.map_err(|_| Why::Silent)??;
        let line = Line::new(Box::new(stream), self.limits.bytes);
        if server.security == Security::Tls { self.encrypt(line, server).await } else { Ok(line) }
    }

    /// Encrypts a connection. What the server said in plain text beforehand must not count as said in private, so a
    /// server that has said more than it was asked is refused.
    pub(super) async fn encrypt(&self, line: Line, server: &Server) -> Result<Line, Why> {
        let stream = line.into_stream().ok_or(Why::Nonsense)?;
        let handshake = TlsConnector::from(Arc::clone(&self.tls)).connect(name(&server.host)?, stream);
        let stream = timeout(self.limits.handshake, handshake).await.map_err(|_| Why::Silent)?;
        Ok(Line::new(Box::new(stream.map_err(|error| no_handshake(&error))?), self.limits.bytes))
    }

    async fn addresses(&self, name: &ServerName<'_>, port: u16) -> Result<Vec<SocketAddr>, Why> {
        let name = name.to_str();
        let found = timeout(self.limits.resolve, names::lookup(&name, port));
        let found = found.await.map_err(|_| Why::Silent)?.map_err(|error| no_addresses(&error))?;
        if found.is_empty() { Err(Why::NameNotFound) } else { Ok(found) }
    }
}

/// The name of a host as servers spell it, or its address.
fn name(host: &str) -> Result<ServerName<'static>, Why> {
    if let Ok(address) = host.trim().parse::<IpAddr>() {
        return Ok(ServerName::from(address));
    }
    match url::Host::parse(host.trim()) {
        Ok(url::Host::Domain(name)) => ServerName::try_from(name).map_err(|_| Why::NameNotFound),
        Ok(url::Host::Ipv4(address)) => Ok(ServerName::from(IpAddr::from(address))),
        Ok(url::Host::Ipv6(address)) => Ok(ServerName::from(IpAddr::from(address))),
        Err(_) => Err(Why::NameNotFound),
    }
}

/// Why a name has no addresses. A system that can ask nobody says what to do about it.
fn no_addresses(error: &io::Error) -> Why {
    match NameError::of(error) {
        Some(why @ (NameError::NoServer { .. } | NameError::NoAnswer { .. })) => {
            Why::NotReached(why.to_string())
        }
        Some(NameError::NotAName | NameError::Unknown) | None => Why::NameNotFound,
    }
}

/// Connects to the first address that answers. One that does not answer gets its share of the time.
async fn first(addresses: &[SocketAddr], longest: Duration) -> Result<TcpStream, Why> {
    let share = longest / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut why = Why::Silent;
    for address in addresses {
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Commands are short, and each waits for its answer.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => why = Why::NotReached(reason(&error)),
            Err(_) => {}
        }
    }
    Err(why)
}

/// The system's reason without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn no_handshake(error: &io::Error) -> Why {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => Why::Certificate(fault(why)),
        Some(rustls::Error::NoCertificatesPresented) => Why::Certificate(said::mail_certificate_none()),
        Some(_) => Why::NoTls,
        None => Why::Broken,
    }
}

fn fault(why: &rustls::CertificateError) -> Said {
    use rustls::CertificateError as Fault;
    match why {
        Fault::Expired | Fault::ExpiredContext { .. } => said::mail_certificate_expired(),
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => said::mail_certificate_early(),
        Fault::UnknownIssuer => said::mail_certificate_issuer(),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => said::mail_certificate_name(),
        other => said::mail_certificate_other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_name_servers_is_not_taken_for_a_wrong_name() {
        let file = || "/etc/resolv.conf".into();
        for (error, expected) in [
            (NameError::Unknown.into(), None),
            (io::ErrorKind::NotFound.into(), None),
            (NameError::NoServer { file: file() }.into(), Some("nameserver 192.168.1.1")),
            (NameError::NoAnswer { file: file() }.into(), Some("/etc/resolv.conf")),
        ] {
            match (no_addresses(&error), expected) {
                (Why::NotReached(why), Some(says)) => assert!(why.contains(says), "{why}"),
                (why, _) => assert_eq!((why, expected), (Why::NameNotFound, None)),
            }
        }
    }
}
