//! The address of a phone as people type it: `192.168.1.20`, `pixel.lan`, `fe80::1%wlan0`, `[fd00::5]:1717`.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use kai_llm::names;

use super::identity::PORTS;

/// Finds the address that somebody typed. Without a port it is the one that phones prefer.
pub async fn typed_address(text: &str) -> io::Result<SocketAddr> {
    let (host, port) = host_and_port(text).ok_or(io::ErrorKind::InvalidInput)?;
    names::lookup(host, port).await?.into_iter().next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Takes host and port apart. `None` if that cannot be an address.
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let text = text.trim();
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (host, port)
        }
        None if is_ipv6(text) => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(*PORTS.start()), |port| port.parse().ok())?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    (!host.is_empty() && host.len() <= 253 && host.chars().all(plain)).then_some((host, port))
}

/// Whether a text is an address of version 6, perhaps with the network that it belongs to.
fn is_ipv6(text: &str) -> bool {
    text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        for (text, expected) in [
            ("192.168.1.20", Some(("192.168.1.20", 1716))),
            (" 192.168.1.20:1717 ", Some(("192.168.1.20", 1717))),
            ("pixel.lan", Some(("pixel.lan", 1716))),
            ("fe80::1%wlan0", Some(("fe80::1%wlan0", 1716))),
            ("fd00::5", Some(("fd00::5", 1716))),
            ("[fd00::5]", Some(("fd00::5", 1716))),
            ("[fe80::1%2]:1720", Some(("fe80::1%2", 1720))),
            ("", None),
            (":1716", None),
            ("192.168.1.20:phone", None),
            ("192.168.1.20:99999", None),
            ("[fd00::5", None),
            ("[fd00::5]1716", None),
            ("http://192.168.1.20", None),
            ("my phone", None),
        ] {
            assert_eq!(host_and_port(text), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn an_address_of_either_version_is_found() {
        for (text, expected) in [
            ("127.0.0.1:1717", "127.0.0.1:1717"),
            ("::1", "[::1]:1716"),
            ("[fe80::1%2]:1720", "[fe80::1%2]:1720"),
        ] {
            assert_eq!(typed_address(text).await.unwrap(), expected.parse().unwrap(), "{text}");
        }
        assert_eq!(typed_address("my phone").await.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
