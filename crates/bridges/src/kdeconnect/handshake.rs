//! Turns a TCP connection into an encrypted one with a known device.
//!
//! Whoever opened the TCP connection sends its identity in clear and is then the *server* of the TLS connection. Since
//! version 8 both repeat their identity under encryption, and only that one counts.

use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use super::certificate::Peer;
use super::event::Pin;
use super::identity::{self, Announced, DeviceId, DeviceKind, DeviceName, Identity, Occasion, Protocol};
use super::line::{Lines, TooLong};
use super::refusal::{Refusal, Refused};
use super::shared::Shared;

/// A connection on which packets can flow.
pub(super) struct Established {
    pub(super) stream: TlsStream<TcpStream>,
    /// Holds what arrived beyond the identity.
    pub(super) lines: Lines,
    pub(super) identity: Identity,
    pub(super) certificate: Vec<u8>,
    pub(super) public_key: Vec<u8>,
    pub(super) address: SocketAddr,
    /// We opened the connection.
    pub(super) dialled: bool,
}

/// What is known of a device before it shows its certificate.
enum Claimed<'a> {
    Identity(&'a Identity),
    /// Only its address was typed in.
    Nothing,
}

/// Takes a connection that a device opened.
pub(super) async fn accept(
    shared: &Shared,
    mut stream: TcpStream,
    address: SocketAddr,
) -> Result<Established, Refused> {
    let line = first_line(&mut stream, shared.limits.longest_identity).await?;
    let announced = identity::parse(&line).map_err(|_| Refusal::NotADevice)?;
    let claimed = announced.identity.id.clone();
    let refused = |why| Refused { device: Some(claimed.clone()), why };
    admissible(shared, &announced).map_err(refused)?;
    let name = ServerName::from(address.ip());
    let stream =
        shared.tls.connector.connect(name, stream).await.map_err(|_| refused(Refusal::Encryption))?;
    let identity = announced.identity;
    verified(shared, TlsStream::from(stream), Claimed::Identity(&identity), address).await
}

/// Opens a connection to a device that announced itself, or to an address that was typed in.
pub(super) async fn dial(
    shared: &Shared,
    address: SocketAddr,
    expected: Option<&Identity>,
) -> Result<Established, Refused> {
    let refused = |why| Refused { device: expected.map(|identity| identity.id.clone()), why };
    let connecting = timeout(shared.limits.connecting, TcpStream::connect(address)).await;
    let stream = connecting.map_err(|_| refused(Refusal::Unreachable))?;
    let mut stream = stream.map_err(|_| refused(Refusal::Unreachable))?;
    let occasion = expected.map_or(Occasion::Plain, Occasion::Answering);
    let line = shared.identity_line(occasion);
    stream.write_all(&line).await.map_err(|_| refused(Refusal::Closed))?;
    let stream = shared.tls.acceptor.accept(stream).await.map_err(|_| refused(Refusal::Encryption))?;
    let claimed = expected.map_or(Claimed::Nothing, Claimed::Identity);
    let established = verified(shared, TlsStream::from(stream), claimed, address).await?;
    Ok(Established { dialled: true, ..established })
}

/// Whether a device that opened a connection may go on to encryption.
fn admissible(shared: &Shared, announced: &Announced) -> Result<(), Refusal> {
    let Announced { identity, .. } = announced;
    if identity.id == shared.me.id || !announced.is_for(&shared.me.id, shared.me.protocol) {
        return Err(Refusal::NotForUs);
    }
    match shared.pin(&identity.id) {
        Some(pin) if identity.protocol < pin.protocol => Err(Refusal::OlderProtocol),
        None if !shared.registry().admits(&identity.id) => Err(Refusal::Stranger),
        Some(_) | None => Ok(()),
    }
}

/// Checks certificate and identity of an encrypted connection.
async fn verified(
    shared: &Shared,
    mut stream: TlsStream<TcpStream>,
    claimed: Claimed<'_>,
    address: SocketAddr,
) -> Result<Established, Refused> {
    let certificates = stream.get_ref().1.peer_certificates();
    let certificate = certificates.and_then(|all| all.first()).ok_or(Refusal::Encryption)?.to_vec();
    let peer = Peer::read(&certificate).ok_or(Refusal::ForeignCertificate)?;
    let id = peer.id.ok_or(Refusal::ForeignCertificate)?;
    let refused = |why| Refused { device: Some(claimed.id().unwrap_or(&id).clone()), why };
    let pin = recognized(shared, &claimed, &id, &certificate).map_err(refused)?;
    let mut lines = Lines::up_to(shared.limits.longest_identity);
    let identified = identified(shared, &mut stream, &mut lines, &claimed, &id, pin.as_ref());
    let identity = identified.await.map_err(refused)?;
    let public_key = peer.public_key;
    Ok(Established { stream, lines, identity, certificate, public_key, address, dialled: false })
}

impl Claimed<'_> {
    fn id(&self) -> Option<&DeviceId> {
        match self {
            Self::Identity(identity) => Some(&identity.id),
            Self::Nothing => None,
        }
    }
}

/// Decides whether this certificate may stand for that device, and returns its pin if it is paired.
fn recognized(
    shared: &Shared,
    claimed: &Claimed<'_>,
    id: &DeviceId,
    certificate: &[u8],
) -> Result<Option<Pin>, Refusal> {
    if claimed.id().is_some_and(|claimed| claimed != id) {
        return Err(Refusal::ForeignCertificate);
    }
    match shared.pin(id) {
        Some(pin) if pin.certificate != certificate => Err(Refusal::WrongCertificate),
        None if !shared.registry().admits(id) => Err(Refusal::Stranger),
        pin => Ok(pin),
    }
}

/// Exchanges identities under encryption if the device speaks version 8.
async fn identified(
    shared: &Shared,
    stream: &mut TlsStream<TcpStream>,
    lines: &mut Lines,
    claimed: &Claimed<'_>,
    id: &DeviceId,
    pin: Option<&Pin>,
) -> Result<Identity, Refusal> {
    let identity = match claimed {
        Claimed::Identity(identity) if shared.me.protocol.with(identity.protocol).is_8() => {
            let repeated = introduced(shared, stream, lines).await?;
            if repeated.id != *id || repeated.protocol != identity.protocol {
                return Err(Refusal::IdentityChanged);
            }
            repeated
        }
        Claimed::Identity(identity) => (*identity).clone(),
        Claimed::Nothing => {
            let must_speak = pin.is_some_and(|pin| pin.protocol.is_8());
            unannounced(shared, stream, lines, id, must_speak).await?
        }
    };
    let older = pin.is_some_and(|pin| identity.protocol < pin.protocol);
    if older { Err(Refusal::OlderProtocol) } else { Ok(identity) }
}

/// Sends our identity under encryption and reads the other one.
async fn introduced(
    shared: &Shared,
    stream: &mut TlsStream<TcpStream>,
    lines: &mut Lines,
) -> Result<Identity, Refusal> {
    introduce(shared, stream).await?;
    let line = next_line(stream, lines).await?;
    identity::parse(&line).map(|announced| announced.identity).map_err(|_| Refusal::IdentityChanged)
}

async fn introduce(shared: &Shared, stream: &mut TlsStream<TcpStream>) -> Result<(), Refusal> {
    let line = shared.identity_line(Occasion::Plain);
    stream.write_all(&line).await.map_err(|_| Refusal::Closed)?;
    stream.flush().await.map_err(|_| Refusal::Closed)
}

/// The identity of a device that never announced itself. One of version 8 speaks first; one of version 7 says nothing,
/// so that only its id is known, from its certificate.
async fn unannounced(
    shared: &Shared,
    stream: &mut TlsStream<TcpStream>,
    lines: &mut Lines,
    id: &DeviceId,
    must_speak: bool,
) -> Result<Identity, Refusal> {
    let line = match timeout(shared.limits.silence_of_7, next_line(stream, lines)).await {
        Ok(line) => line?,
        Err(_) if must_speak => return Err(Refusal::OlderProtocol),
        Err(_) => {
            return Ok(Identity {
                id: id.clone(),
                name: DeviceName::clean(""),
                kind: DeviceKind::Desktop,
                protocol: Protocol::V7,
                incoming: Vec::new(),
                outgoing: Vec::new(),
            });
        }
    };
    let identity = identity::parse(&line).map_err(|_| Refusal::NotADevice)?.identity;
    if identity.id != *id || !identity.protocol.is_8() {
        return Err(Refusal::IdentityChanged);
    }
    introduce(shared, stream).await?;
    Ok(identity)
}

/// The first line of a connection. Nothing may follow it before encryption.
async fn first_line(stream: &mut TcpStream, longest: usize) -> Result<Vec<u8>, Refusal> {
    let mut lines = Lines::up_to(longest);
    let mut buffer = [0; 2_048];
    loop {
        let length = stream.read(&mut buffer).await.map_err(|_| Refusal::Closed)?;
        let read = buffer.get(..length).unwrap_or_default();
        if read.is_empty() {
            return Err(Refusal::Closed);
        }
        lines.push(read).map_err(|TooLong| Refusal::TooLong)?;
        if let Some(line) = lines.pop() {
            let alone = read.ends_with(b"\n") && lines.pop().is_none();
            return if alone { Ok(line) } else { Err(Refusal::NotADevice) };
        }
    }
}

/// The next line of a connection. Losing the future between two lines loses nothing.
pub(super) async fn next_line<S: AsyncRead + Unpin>(
    stream: &mut S,
    lines: &mut Lines,
) -> Result<Vec<u8>, Refusal> {
    let mut buffer = vec![0; 16 * 1_024];
    loop {
        if let Some(line) = lines.pop() {
            return Ok(line);
        }
        let length = stream.read(&mut buffer).await.map_err(|_| Refusal::Closed)?;
        let read = buffer.get(..length).unwrap_or_default();
        if read.is_empty() {
            return Err(Refusal::Closed);
        }
        lines.push(read).map_err(|TooLong| Refusal::TooLong)?;
    }
}
