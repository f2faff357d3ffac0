//! Which user of this machine a local connection belongs to, by the kernel's own list (`/proc/net/tcp`).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The lists of the kernel; each is empty where it cannot be read.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// A connection that is over; it belongs to nobody any more.
const TIME_WAIT: &str = "06";

/// The users at the other ends of connections to `port`, by the address we see them at. Blocks.
pub(super) fn of_connections_to(port: u16) -> BTreeMap<SocketAddr, u32> {
    let read = |list: &&str| std::fs::read_to_string(list).unwrap_or_default();
    LISTS.iter().map(read).flat_map(|list| owners(&list, port)).collect()
}

/// What a list says of connections to `port`. Pure.
fn owners(list: &str, port: u16) -> Vec<(SocketAddr, u32)> {
    let row = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (_, local, remote) = (fields.next()?, address(fields.next()?)?, address(fields.next()?)?);
        let state = fields.next()?;
        let uid = fields.nth(3)?.parse().ok()?;
        (remote.port() == port && state != TIME_WAIT).then_some((local, uid))
    };
    list.lines().filter_map(row).collect()
}

/// As the kernel writes it: the address as numbers of 32 bits in the machine's own order, the port as it is read.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_kernels_list_is_read_and_nonsense_is_not() {
        let list = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0
   1: 0100007F:D431 0100007F:2253 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0
   2: 0100007F:2253 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0
   3: 0100007F:D432 0100007F:2253 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
   4: 00000000000000000000000001000000:D433 00000000000000000000000001000000:2253 08 0:0 00:0 0  1002 0 4
   5: 0000000000000000FFFF00000100007F:D434 0000000000000000FFFF00000100007F:2253 01 0:0 00:0 0  1003 0 5
   6: 0100007F 0100007F:2253 01
   7: ZZ00007F:D431 0100007F:2253 01 0:0 00:0 0 1 0 2
";
        let at = |text: &str, uid| (text.parse().unwrap(), uid);
        let expected = [at("127.0.0.1:54321", 1001), at("[::1]:54323", 1002), at("127.0.0.1:54324", 1003)];
        assert_eq!(owners(list, 8787), expected);
        assert_eq!(owners(list, 80), []);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_real_connection_belongs_to_us() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let ours = std::net::TcpStream::connect(at).unwrap();
        let owner = of_connections_to(at.port()).get(&ours.local_addr().unwrap()).copied();
        assert_eq!(owner, Some(rustix::process::geteuid().as_raw()));
    }
}
