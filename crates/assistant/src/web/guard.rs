//! Decides which addresses a page may be fetched from: only those on the public internet.
//!
//! A page, or a model that has read one, must not be able to reach the user's own network: the router, the printer, a
//! service on this machine. So a host name is checked by the addresses it resolves to, and an IPv6 address that embeds
//! an IPv4 address is checked by the embedded one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Why an address is not fetched; the message goes to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("This is not a web address: {0}. Write it like https://example.org/page.")]
    NoAddress(String),
    #[error("Only http:// and https:// addresses can be fetched, not {0}:")]
    Scheme(String),
    #[error("The address contains a user name or a password, which Kai does not send. Leave it out.")]
    Credentials,
    #[error(
        "{host} leads to {ip}, which is not a public internet address. Only public pages can be fetched."
    )]
    Private { host: String, ip: IpAddr },
}

/// Checks addresses before a connection is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    /// Addresses that count as public although they are not, so that tests can run a local server. Always empty outside
    /// of tests.
    pub(super) stand_ins: Vec<IpAddr>,
}

impl Guard {
    /// Checks what the URL alone shows: scheme, credentials and a literal IP address. A host name is checked later by
    /// [`Guard::judge`], once it is resolved.
    pub(super) fn admits(&self, url: &Url) -> Result<(), Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        // The URL parser has already normalized 127.1, 0x7f000001, 2130706433 and 0177.0.0.1.
        match url.host() {
            Some(url::Host::Ipv4(ip)) => self.judge(url.host_str().unwrap_or_default(), &[ip.into()]),
            Some(url::Host::Ipv6(ip)) => self.judge(url.host_str().unwrap_or_default(), &[ip.into()]),
            Some(url::Host::Domain(_)) => Ok(()),
            None => Err(Refused::NoAddress("it names no host".to_owned())),
        }
    }

    /// Checks the addresses that `host` resolved to. One private address among public ones rejects them all: no honest
    /// site mixes them, and a name that does may be attempting DNS rebinding.
    pub(super) fn judge(&self, host: &str, addresses: &[IpAddr]) -> Result<(), Refused> {
        let allowed = |ip: &IpAddr| is_public(*ip) || self.stand_ins.contains(ip);
        match addresses.iter().find(|ip| !allowed(ip)) {
            Some(ip) => Err(Refused::Private { host: host.to_owned(), ip: *ip }),
            None => Ok(()),
        }
    }
}

/// Parses the URL that a model wrote.
pub(super) fn parse(typed: &str) -> Result<Url, Refused> {
    Url::parse(typed.trim()).map_err(|why| Refused::NoAddress(why.to_string()))
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let octets = ip.octets();
    let home = matches!(octets, [10 | 127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]);
    // This network (0/8), carrier-grade NAT, IETF protocol assignments and the 6to4 relay.
    let theirs = matches!(octets, [0, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [192, 88, 99, _]);
    let examples =
        matches!(octets, [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18 | 19, ..]);
    let to_many = matches!(octets, [224..=255, ..]);
    !(home || theirs || examples || to_many)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let inner = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // An embedded IPv4 address: IPv4-mapped, public NAT64 (the only way to IPv4 on some mobile networks) or 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => inner(high, low),
        // IETF protocol assignments (including Teredo, which embeds an obfuscated IPv4 address that may be private) and
        // documentation.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // The whole range from which global unicast addresses are assigned.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_internet_are_public() {
        for (public, addresses) in [
            (true, "1.1.1.1 8.8.8.8 93.184.216.34 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1"),
            (true, "198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2a00:1450::1 2001:4860::8888"),
            (true, "::ffff:8.8.8.8 64:ff9b::808:808 2002:0808:0808::1"),
            (
                false,
                "0.0.0.0 0.1.2.3 10.0.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255",
            ),
            (false, "192.168.0.1 100.64.0.1 100.127.255.255 192.0.0.1 192.0.0.170 192.0.2.1 192.88.99.1"),
            (false, "198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.250 240.0.0.1"),
            (false, "255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0.0.0.0"),
            (false, "64:ff9b::7f00:1 64:ff9b::c0a8:1 64:ff9b:1::808:808 2002:7f00:1::1 2002:c0a8:0101::"),
            (false, "2001::1 2001:0:808:808::f7f7:f7f7 2001:2::1 2001:10::1 2001:db8::1 3fff::1 100::1"),
            (false, "fe80::1 fec0::1 fc00::1 fd12:3456::1 ff02::1 ff0e::1 4000::1 5f00::1"),
        ] {
            for address in addresses.split(' ') {
                let ip: IpAddr = address.parse().unwrap();
                assert_eq!(is_public(ip), public, "{address}");
            }
        }
    }

    #[test]
    fn an_address_in_any_spelling_is_judged_by_what_it_means() {
        let guard = Guard::default();
        let private =
            |host: &str, ip: &str| Some(Refused::Private { host: host.to_owned(), ip: ip.parse().unwrap() });
        for (typed, refused) in [
            ("https://example.org/a?b=c", None),
            ("http://example.org:8080/", None),
            ("http://8.8.8.8/", None),
            ("http://127.0.0.1/", private("127.0.0.1", "127.0.0.1")),
            ("http://127.1/", private("127.0.0.1", "127.0.0.1")),
            ("http://2130706433/", private("127.0.0.1", "127.0.0.1")),
            ("http://0x7f000001/", private("127.0.0.1", "127.0.0.1")),
            ("http://0177.0.0.1/", private("127.0.0.1", "127.0.0.1")),
            ("http://0x7f.0x0.1/", private("127.0.0.1", "127.0.0.1")),
            ("http://①②⑦.0.0.1/", private("127.0.0.1", "127.0.0.1")),
            ("http://0.0.0.0/", private("0.0.0.0", "0.0.0.0")),
            ("http://0/", private("0.0.0.0", "0.0.0.0")),
            ("http://[::1]/", private("[::1]", "::1")),
            ("http://[::ffff:127.0.0.1]/", private("[::ffff:7f00:1]", "::ffff:7f00:1")),
            ("http://10.0.0.1./", private("10.0.0.1", "10.0.0.1")),
            ("ftp://example.org/", Some(Refused::Scheme("ftp".to_owned()))),
            ("file:///etc/passwd", Some(Refused::Scheme("file".to_owned()))),
            ("javascript:alert(1)", Some(Refused::Scheme("javascript".to_owned()))),
            ("http://me:secret@example.org/", Some(Refused::Credentials)),
            ("http://me@example.org/", Some(Refused::Credentials)),
        ] {
            assert_eq!(guard.admits(&parse(typed).unwrap()).err(), refused, "{typed}");
        }
        for typed in ["", "  ", "example.org", "/page", "http://", "http://256.1.1.1/", "http://a b/"] {
            assert!(matches!(parse(typed), Err(Refused::NoAddress(_))), "{typed:?}");
        }
    }

    #[test]
    fn one_private_answer_among_public_ones_refuses_all() {
        let guard = Guard::default();
        let ips = |list: &str| list.split(' ').map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(guard.judge("a.test", &ips("1.1.1.1 2606:4700::1")), Ok(()));
        let mixed = guard.judge("a.test", &ips("1.1.1.1 192.168.1.1")).unwrap_err();
        assert_eq!(
            mixed.to_string(),
            "a.test leads to 192.168.1.1, which is not a public internet address. \
             Only public pages can be fetched."
        );
    }
}
