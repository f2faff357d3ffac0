//! Finds out which user of this machine is at the other end of a connection, from the kernel's tables of TCP sockets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The two addresses of a connection that we accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) theirs: SocketAddr,
    pub(crate) ours: SocketAddr,
}

/// The socket tables. An IPv6 socket can also be connected to an IPv4 address, so a connection may be in either table.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Returns the user who owns the socket at the other end. `None` if no process of this machine has it open: it belongs
/// to another machine, or is closed already. An error means that this system gives no access to the tables, as on
/// Android.
pub(crate) fn uid(ends: Ends) -> io::Result<Option<u32>> {
    let mut unread = None;
    for table in TABLES {
        match File::open(table).and_then(|table| uid_in(BufReader::new(table), ends)) {
            Ok(Some(uid)) => return Ok(Some(uid)),
            Ok(None) => {}
            // A machine without IPv6 has no IPv6 table.
            Err(error) if error.kind() == io::ErrorKind::NotFound && table != TABLES[0] => {}
            Err(error) => unread = Some(error),
        }
    }
    unread.map_or(Ok(None), Err)
}

/// Returns the users at the other ends of all connections to `port`, by their addresses. Empty if this system gives no
/// access to the tables. Blocks.
pub(super) fn uids_at(port: u16) -> BTreeMap<SocketAddr, u32> {
    let tables = TABLES.iter().filter_map(|table| File::open(table).ok());
    tables.flat_map(|table| uids_in(BufReader::new(table), port)).collect()
}

fn uids_in(table: impl BufRead, port: u16) -> Vec<(SocketAddr, u32)> {
    let sockets = table.lines().skip(1).map_while(Result::ok).filter_map(|line| Socket::parse(&line));
    let held = sockets.filter(|socket| socket.inode != 0 && socket.remote.1 == port);
    held.map(|socket| (SocketAddr::from(socket.local), socket.uid)).collect()
}

fn uid_in(table: impl BufRead, ends: Ends) -> io::Result<Option<u32>> {
    for line in table.lines().skip(1) {
        if let Some(socket) = Socket::parse(&line?)
            && socket.is_other_end_of(ends)
        {
            return Ok(Some(socket.uid));
        }
    }
    Ok(None)
}

/// One line of a socket table.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    uid: u32,
    /// 0 once no process has the socket open. The kernel then reports root as its owner, which may be wrong.
    inode: u64,
}

impl Socket {
    /// Parses a line with these columns:
    /// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let local = address(fields.nth(1)?)?;
        let remote = address(fields.next()?)?;
        let uid = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self { local, remote, uid, inode })
    }

    fn is_other_end_of(&self, ends: Ends) -> bool {
        let plain = |end: SocketAddr| (end.ip().to_canonical(), end.port());
        self.inode != 0 && self.local == plain(ends.theirs) && self.remote == plain(ends.ours)
    }
}

/// Parses an address as the kernel prints it, `0100007F:2253`: the IP address in 32-bit words, each in the machine's
/// byte order, then the port.
fn address(printed: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = printed.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let words = bytes.chunks_exact_mut(4).take(ip.len() / 8);
    for (word, at) in words.zip((0..).step_by(8)) {
        let value = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        word.copy_from_slice(&value.to_ne_bytes());
    }
    let ip = match ip.len() {
        8 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        32 => Ipv6Addr::from(bytes).to_canonical(),
        _ => return None,
    };
    Some((ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn ends(theirs: &str, ours: &str) -> Ends {
        Ends { theirs: theirs.parse().unwrap(), ours: ours.parse().unwrap() }
    }

    /// The tables are as a little-endian machine prints them.
    #[cfg(target_endian = "little")]
    #[test]
    fn a_table_is_read_as_the_kernel_writes_it() {
        let v4 = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 20001 1 0000000000000000 100 0 0 10 0
   1: 0100007F:2253 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 20002 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:D431 0100007F:2253 01 00000000:00000000 00:00000000 00000000  1001        0 20003 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:D432 0100007F:2253 06 00000000:00000000 03:00000F3C 00000000     0        0 0 3 0000000000000000
   4: 0100007F:D433 0100007F:2253 08 00000000:00000000 00:00000000 00000000  1002
 garbage: zz:zz
";
        for (name, theirs, ours, expected) in [
            ("another user's", "127.0.0.1:54321", "127.0.0.1:8787", Some(1001)),
            ("ours, the other way round", "127.0.0.1:8787", "127.0.0.1:54321", Some(1000)),
            ("closed: nobody's, not root's", "127.0.0.1:54322", "127.0.0.1:8787", None),
            ("cut off", "127.0.0.1:54323", "127.0.0.1:8787", None),
            ("another machine's", "192.168.1.7:54321", "127.0.0.1:8787", None),
            ("another address of ours", "127.0.0.1:54321", "127.0.0.2:8787", None),
            ("the same in IPv6", "[::ffff:127.0.0.1]:54321", "127.0.0.1:8787", Some(1001)),
        ] {
            assert_eq!(uid_in(v4.as_bytes(), ends(theirs, ours)).unwrap(), expected, "{name}");
        }
        assert_eq!(uids_in(v4.as_bytes(), 8787), [("127.0.0.1:54321".parse().unwrap(), 1001)]);
        assert_eq!(uids_in(v4.as_bytes(), 80), []);
        let v6 = "  sl  local_address                         remote_address                        st …
   0: 00000000000000000000000001000000:C001 00000000000000000000000001000000:2253 01 00000000:00000000 00:00000000 00000000  1001        0 30001 1 0
   1: 0000000000000000FFFF00000100007F:C002 0000000000000000FFFF00000100007F:2253 01 00000000:00000000 00:00000000 00000000  1003        0 30002 1 0
   2: B80D0120000000000000000001000000:C003 B80D0120000000000000000001000000:2253 01 00000000:00000000 00:00000000 00000000  1004        0 30003 1 0
";
        for (theirs, ours, expected) in [
            ("[::1]:49153", "[::1]:8787", Some(1001)),
            ("127.0.0.1:49154", "127.0.0.1:8787", Some(1003)),
            ("[2001:db8::1]:49155", "[2001:db8::1]:8787", Some(1004)),
            ("[::1]:49155", "[::1]:8787", None),
        ] {
            assert_eq!(uid_in(v6.as_bytes(), ends(theirs, ours)).unwrap(), expected, "{theirs}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_whose_a_connection_is() {
        let own = rustix::process::geteuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, theirs) = listener.accept().unwrap();
            let ends = Ends { theirs, ours: ours.local_addr().unwrap() };
            assert_eq!(uid(ends).unwrap(), Some(own), "{address}");
            assert_eq!(uids_at(ends.ours.port()).get(&theirs), Some(&own), "{address}");
            drop(client);
        }
        let nobodys = ends("127.0.0.1:1", "127.0.0.1:2");
        assert_eq!(uid(nobodys).unwrap(), None);
    }

    /// Only runs as root, since only root can start a process as another user.
    #[cfg(target_os = "linux")]
    #[test]
    fn another_user_is_told_apart() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut other = Command::new("bash")
            .args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -r line <&3")])
            .uid(65_534)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let (ours, theirs) = listener.accept().unwrap();
        let found = uid(Ends { theirs, ours: ours.local_addr().unwrap() });
        drop(ours);
        other.wait().unwrap();
        assert_eq!(found.unwrap(), Some(65_534));
    }
}
