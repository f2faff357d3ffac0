//! What `resolv.conf` and `hosts` say. Pure.

use std::io::BufRead;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How many name servers are asked; further ones are ignored, as everywhere.
const MOST_SERVERS: usize = 3;
/// A line of `hosts` or `resolv.conf` that is longer is none.
const LONGEST_LINE: u64 = 4096;

/// The name servers of this system, and how they are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Servers {
    pub(super) addresses: Vec<SocketAddr>,
    /// How long each is waited for.
    pub(super) patience: Duration,
    /// How often all of them are asked.
    pub(super) rounds: u32,
}

impl Servers {
    /// Reads `resolv.conf`. Search domains are ignored: Kai asks for the names that were typed, and for no others.
    pub(super) fn read(file: impl BufRead, port: u16) -> Self {
        let mut servers = Self { addresses: vec![], patience: Duration::from_secs(3), rounds: 2 };
        for line in lines(file) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") if servers.addresses.len() < MOST_SERVERS => {
                    servers.addresses.extend(words.next().and_then(|address| server(address, port)));
                }
                Some("options") => words.for_each(|option| servers.set(option)),
                _ => {}
            }
        }
        servers
    }

    fn set(&mut self, option: &str) {
        match option.split_once(':').map(|(name, value)| (name, value.parse::<u32>())) {
            Some(("timeout", Ok(seconds))) => {
                self.patience = Duration::from_secs(seconds.clamp(1, 30).into());
            }
            Some(("attempts", Ok(rounds))) => self.rounds = rounds.clamp(1, 5),
            _ => {}
        }
    }
}

/// An address such as `192.168.1.1` or `fe80::1%3`.
fn server(address: &str, port: u16) -> Option<SocketAddr> {
    let plain = || Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port));
    plain().or_else(|| format!("[{address}]:{port}").parse().ok())
}

/// The addresses that `hosts` has for a name. Empty if it does not have the name.
pub(super) fn hosts(file: impl BufRead, host: &str) -> Vec<IpAddr> {
    let found = lines(file).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    });
    found.take(MOST_SERVERS * 8).collect()
}

/// The lines of a file without their comments. Bytes that are no text end nothing but their own line's sense.
fn lines(mut file: impl BufRead) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut file, LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        let text = String::from_utf8_lossy(&line);
        let text = text.split(['#', ';']).next().unwrap_or_default().to_owned();
        (read > 0).then_some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_options_are_read() {
        let text = "# made by hand\nnameserver 192.168.1.1 ; the router\nnameserver fd00::1\nnameserver fe80::1%3\n\
                    nameserver 9.9.9.9\nsearch lan\noptions timeout:1 attempts:9 rotate\n";
        let servers = Servers::read(text.as_bytes(), 53);
        let addresses: Vec<String> = servers.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.168.1.1:53", "[fd00::1]:53", "[fe80::1%3]:53"]);
        assert_eq!((servers.patience, servers.rounds), (Duration::from_secs(1), 5));
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let long = format!("nameserver {}1.1.1.1\n", " ".repeat(5000));
        for text in [
            "",
            "\n\n",
            "nameserver",
            "nameserver localhost",
            "#nameserver 1.1.1.1",
            "nameserver ::1%wlan0",
            &long,
        ] {
            assert_eq!(Servers::read(text.as_bytes(), 53).addresses, [], "{text}");
        }
        let servers = Servers::read(&b"\xff\xfe\noptions timeout:0 attempts:x\nnameserver 1.1.1.1"[..], 53);
        assert_eq!(
            (servers.addresses.len(), servers.patience, servers.rounds),
            (1, Duration::from_secs(1), 2)
        );
    }

    #[test]
    fn a_name_is_found_among_the_hosts() {
        let text =
            "127.0.0.1 localhost\n192.168.1.9\tnas NAS.lan # the box\n::9 nas\nx nas\n10.0.0.1 nasty\n";
        let found = |host| hosts(text.as_bytes(), host);
        let nas: Vec<IpAddr> = ["192.168.1.9", "::9"].map(|address| address.parse().unwrap()).into();
        assert_eq!(found("Nas"), nas);
        assert_eq!(found("nas.lan"), nas[..1]);
        assert_eq!(found("box"), [] as [IpAddr; 0]);
    }
}
