//! Announcements over UDP: ours, and those of others.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

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
    pub to: Audience,
}

/// Whom announcements are sent to.
#[derive(Debug, Clone)]
pub enum Audience {
    /// Everyone on the networks that this machine is in at that moment.
    Network,
    /// These addresses and nobody else.
    These(Vec<SocketAddr>),
}

/// Where Linux lists the networks that this machine is in.
const ROUTES: &str = "/proc/net/route";

impl Announcements {
    /// Everyone whom an announcement is to reach now.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        match &self.to {
            Audience::These(addresses) => addresses.clone(),
            Audience::Network => {
                // The kernel makes the list up as it is read, so nobody waits. Where there is none, the broadcast to
                // everyone has to do.
                let routes = std::fs::read_to_string(ROUTES).unwrap_or_default();
                let everyone = [Ipv4Addr::BROADCAST].into_iter().chain(broadcasts(&routes));
                everyone.map(|address| SocketAddr::from((address, self.port))).collect()
            }
        }
    }
}

/// The broadcast addresses of the networks in a routing table. The broadcast to everyone leaves by one network only, and
/// some access points swallow it. Public networks are nobody's home.
fn broadcasts(routes: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    for line in routes.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, destination, gateway, _, _, _, _, mask, ..] = fields[..] else { continue };
        // The kernel prints addresses as they lie in memory.
        let bits =
            |hex: &str| u32::from_str_radix(hex, 16).ok().map(|raw| u32::from_be_bytes(raw.to_ne_bytes()));
        let (Some(network), Some(0), Some(mask)) = (bits(destination), bits(gateway), bits(mask)) else {
            continue;
        };
        let address = Ipv4Addr::from(network | !mask);
        let has_broadcast = mask != 0 && mask.count_zeros() >= 2;
        if has_broadcast && is_local(address.into()) && !address.is_loopback() && !found.contains(&address) {
            found.push(address);
        }
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_of_its_own_has_a_broadcast_address() {
        let row = |interface: &str, network: [u8; 4], gateway: [u8; 4], mask: [u8; 4]| {
            let hex = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
            format!(
                "{interface}\t{}\t{}\t0001\t0\t0\t600\t{}\t0\t0\t0\n",
                hex(network),
                hex(gateway),
                hex(mask)
            )
        };
        let none = [0; 4];
        let table = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned(),
            row("wlan0", none, [192, 168, 1, 1], none),
            row("wlan0", [192, 168, 1, 0], none, [255, 255, 255, 0]),
            row("eth0", [10, 1, 16, 0], none, [255, 255, 240, 0]),
            row("eth1", [192, 168, 1, 0], none, [255, 255, 255, 0]),
            row("vpn0", [10, 9, 0, 7], none, [255; 4]),
            row("ppp0", [8, 8, 8, 0], none, [255, 255, 255, 0]),
            row("wlan0", [172, 16, 0, 0], [192, 168, 1, 2], [255, 255, 0, 0]),
            "broken row\n".to_owned(),
        ];
        let found = broadcasts(&table.concat());
        assert_eq!(found, [Ipv4Addr::new(192, 168, 1, 255), Ipv4Addr::new(10, 1, 31, 255)]);
        assert_eq!(broadcasts(""), Vec::<Ipv4Addr>::new());
    }
}
