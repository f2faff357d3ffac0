//! Announcements over UDP: ours, and those of others.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use tokio::net::UdpSocket;

use super::identity::{self, Announced};
use super::limits::is_local;

/// The UDP port on which devices hear each other.
pub const UDP_PORT: u16 = 1716;

/// How devices hear each other.
#[derive(Debug, Clone)]
pub struct Announcements {
    pub port: u16,
    /// Whom our own are sent to.
    pub to: Vec<SocketAddr>,
}

/// The largest announcement that is read, in bytes.
const LARGEST: usize = 8 * 1024;

/// Opens the socket for announcements. Several programs may share the port.
pub(super) fn open(address: IpAddr, port: u16) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_broadcast(&socket, true)?;
    bind(&socket, &SocketAddr::new(address, port))?;
    UdpSocket::from_std(std::net::UdpSocket::from(socket))
}

/// Waits for the next announcement from the local network. Anything else is skipped.
pub(super) async fn hear(socket: &UdpSocket) -> io::Result<(Announced, SocketAddr)> {
    let mut buffer = vec![0; LARGEST + 1];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await?;
        if length > LARGEST || !is_local(from.ip()) {
            continue;
        }
        let Some(read) = buffer.get(..length) else { continue };
        if let Ok(announced) = identity::parse(read) {
            return Ok((announced, from));
        }
    }
}
