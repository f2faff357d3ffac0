//! The resolver against a name server on loopback that answers, lies, truncates and stalls. A server that is waited for
//! is waited for by a clock that the test moves once the server has the question.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;

use super::ask::{NoAnswer, addresses};
use super::files::Servers;
use super::message::Name;
use super::message::tests::{ASKED, BROKEN, CUT, GOOD, UNKNOWN, built};
use super::own::{Own, Source};
use super::trouble::NameError;

const PATIENCE: Duration = Duration::from_hours(1);

/// What the server does with a question.
enum Reply {
    /// Sends these bytes.
    Says(Vec<u8>),
    /// Sends them from another port.
    Elsewhere(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Datagram,
    Stream,
}

/// A name server, and the questions that it was asked: how, and about which family (1 or 28).
struct StandIn {
    address: SocketAddr,
    asked: mpsc::UnboundedReceiver<(Way, u8)>,
}

type Play = dyn Fn(&[u8], Way) -> Vec<Reply> + Send + Sync;

impl StandIn {
    async fn start(play: impl Fn(&[u8], Way) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        let (datagrams, streams) = sockets().await;
        let address = datagrams.local_addr().unwrap();
        let (told, asked) = mpsc::unbounded_channel();
        let play: Arc<Play> = Arc::new(play);
        tokio::spawn(by_datagram(datagrams, Arc::clone(&play), told.clone()));
        tokio::spawn(by_stream(streams, play, told));
        Self { address, asked }
    }

    /// Waits until it was asked about both families.
    async fn asked_for_both(&mut self) {
        let mut asked = [self.asked.recv().await.unwrap(), self.asked.recv().await.unwrap()];
        asked.sort_by_key(|(_, family)| *family);
        assert_eq!(asked, [(Way::Datagram, 1), (Way::Datagram, 28)]);
    }
}

/// Both sockets of a server, which have the same port.
async fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let streams = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(datagrams) = UdpSocket::bind(streams.local_addr().unwrap()).await {
            return (datagrams, streams);
        }
    }
}

async fn by_datagram(socket: UdpSocket, play: Arc<Play>, told: mpsc::UnboundedSender<(Way, u8)>) {
    let elsewhere = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut bytes = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
        let question = &bytes[..length];
        let _ = told.send((Way::Datagram, family(question)));
        for reply in play(question, Way::Datagram) {
            let sent = match reply {
                Reply::Says(bytes) => socket.send_to(&bytes, from).await,
                Reply::Elsewhere(bytes) => elsewhere.send_to(&bytes, from).await,
            };
            sent.unwrap();
        }
    }
}

async fn by_stream(listener: TcpListener, play: Arc<Play>, told: mpsc::UnboundedSender<(Way, u8)>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut question = vec![0; stream.read_u16().await.unwrap().into()];
        stream.read_exact(&mut question).await.unwrap();
        let _ = told.send((Way::Stream, family(&question)));
        for reply in play(&question, Way::Stream) {
            let Reply::Says(bytes) = reply else { continue };
            stream.write_u16(u16::try_from(bytes.len()).unwrap()).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        }
    }
}

/// What a question asks for: 1 or 28.
fn family(question: &[u8]) -> u8 {
    question[question.len() - 3]
}

/// The right answer: 192.0.2.1 and so on, or `2001:db8::1` and so on.
fn right(question: &[u8], count: u8) -> Vec<u8> {
    let base: &[u8] = &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let base = if family(question) == 1 { &[192, 0, 2] } else { base };
    let data: Vec<Vec<u8>> = (1..=count).map(|last| [base, &[last]].concat()).collect();
    let records: Vec<_> =
        data.iter().map(|data| (ASKED, u16::from(family(question)), data.as_slice())).collect();
    built(question, GOOD, &records)
}

fn both() -> Vec<IpAddr> {
    ["192.0.2.1", "2001:db8::1"].map(|address| address.parse().unwrap()).into()
}

fn servers(addresses: &[SocketAddr]) -> Servers {
    Servers { addresses: addresses.to_vec(), patience: PATIENCE, rounds: 2 }
}

/// The addresses of `example.org`, sorted: their order depends on the networks of this machine.
async fn found(servers: &Servers) -> Result<Vec<IpAddr>, NoAnswer> {
    let mut found = addresses(servers, &Name::parse("example.org").unwrap()).await?;
    found.sort();
    Ok(found)
}

/// Moves the clock until the one who waits gives up.
async fn give_up() {
    tokio::time::pause();
    tokio::time::advance(PATIENCE).await;
    tokio::time::resume();
}

#[tokio::test]
async fn both_families_are_asked_for_at_once() {
    let mut server = StandIn::start(|question, _| vec![Reply::Says(right(question, 1))]).await;
    assert_eq!(found(&servers(&[server.address])).await, Ok(both()));
    server.asked_for_both().await;
}

#[tokio::test]
async fn what_is_no_answer_to_the_question_is_ignored() {
    let lies = |question: &[u8]| {
        let mut forged = right(question, 3);
        let elsewhere = Reply::Elsewhere(forged.clone());
        forged[0] ^= 1;
        let mut other = right(question, 3);
        other[13] = b'f';
        [
            Reply::Says(forged),
            Reply::Says(other),
            elsewhere,
            Reply::Says(b"nonsense".to_vec()),
            Reply::Says(vec![]),
        ]
    };
    let play = move |question: &[u8], _| {
        let mut replies: Vec<Reply> = lies(question).into();
        replies.push(Reply::Says(right(question, 1)));
        replies
    };
    let server = StandIn::start(play).await;
    assert_eq!(found(&servers(&[server.address])).await, Ok(both()));
}

#[tokio::test]
async fn a_truncated_answer_is_asked_for_again_over_tcp() {
    let play = |question: &[u8], way| match way {
        Way::Datagram => vec![Reply::Says(built(question, CUT, &[]))],
        Way::Stream => vec![Reply::Says(right(question, 20))],
    };
    let server = StandIn::start(play).await;
    assert_eq!(found(&servers(&[server.address])).await.unwrap().len(), 40);

    let cut = StandIn::start(|question, _| vec![Reply::Says(built(question, CUT, &[]))]).await;
    assert_eq!(found(&servers(&[cut.address])).await, Err(NoAnswer), "truncated over TCP, too");
}

#[tokio::test]
async fn a_server_that_fails_hands_over_to_the_next() {
    let right = StandIn::start(|question, _| vec![Reply::Says(right(question, 1))]).await;
    let broken = StandIn::start(|question, _| vec![Reply::Says(built(question, BROKEN, &[]))]).await;
    let hung_up = StandIn::start(|question, way| match way {
        Way::Datagram => vec![Reply::Says(built(question, CUT, &[]))],
        Way::Stream => vec![],
    });
    let nobody = sockets().await.0.local_addr().unwrap();
    for first in [broken.address, nobody, hung_up.await.address] {
        assert_eq!(found(&servers(&[first, right.address])).await, Ok(both()), "{first}");
    }
}

#[tokio::test]
async fn a_silent_server_hands_over_to_the_next() {
    let right = StandIn::start(|question, _| vec![Reply::Says(right(question, 1))]).await;
    let mut silent = StandIn::start(|_, _| vec![]).await;
    let servers = servers(&[silent.address, right.address]);
    let asking = tokio::spawn(async move { found(&servers).await });
    silent.asked_for_both().await;
    give_up().await;
    assert_eq!(asking.await.unwrap(), Ok(both()));
}

#[tokio::test]
async fn after_all_rounds_nobody_answered() {
    let mut silent = StandIn::start(|_, _| vec![]).await;
    let servers = servers(&[silent.address]);
    let asking = tokio::spawn(async move { found(&servers).await });
    for _ in 0..2 {
        silent.asked_for_both().await;
        assert!(!asking.is_finished());
        give_up().await;
    }
    assert_eq!(asking.await.unwrap(), Err(NoAnswer));
    assert!(silent.asked.is_empty(), "it was asked a third time");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_asked_for_once() {
    let unknown = StandIn::start(|question, _| vec![Reply::Says(built(question, UNKNOWN, &[]))]).await;
    let second = StandIn::start(|question, _| vec![Reply::Says(right(question, 1))]).await;
    assert_eq!(found(&servers(&[unknown.address, second.address])).await, Ok(vec![]));
    assert!(second.asked.is_empty());
}

#[tokio::test]
async fn each_question_has_a_number_of_its_own() {
    let (told, mut numbers) = mpsc::unbounded_channel();
    let play = move |question: &[u8], _| {
        told.send(u16::from_be_bytes([question[0], question[1]])).unwrap();
        vec![Reply::Says(right(question, 1))]
    };
    let server = StandIn::start(play).await;
    for _ in 0..8 {
        found(&servers(&[server.address])).await.unwrap();
    }
    let mut seen = vec![];
    while let Ok(number) = numbers.try_recv() {
        seen.push(number);
    }
    assert_eq!(seen.len(), 16);
    seen.dedup();
    assert!(seen.len() > 8, "{seen:?}");
}

fn own(folder: &Path, port: u16) -> Own {
    let at = |name: &str| folder.join(name);
    Own::of_files(at("system"), at("resolv.conf"), vec![at("none"), at("hosts")], port)
}

async fn looked_up(own: &Own, host: &str) -> io::Result<Vec<String>> {
    let mut found: Vec<String> = own.lookup(host, 443).await?.iter().map(ToString::to_string).collect();
    found.sort();
    Ok(found)
}

#[tokio::test]
async fn names_are_looked_up_as_the_files_say() {
    let mut server = StandIn::start(|question, _| vec![Reply::Says(right(question, 1))]).await;
    let folder = tempfile::tempdir().unwrap();
    let own = own(folder.path(), server.address.port());
    let file = folder.path().join("resolv.conf");

    let error = own.lookup("example.org", 443).await.unwrap_err();
    assert_eq!(NameError::of(&error), Some(&NameError::NoServer { file: file.clone() }));
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");

    fs::write(&file, "nameserver 127.0.0.1\n").unwrap();
    fs::write(folder.path().join("hosts"), "192.0.2.7 nas.lan nas\n").unwrap();
    assert_eq!(looked_up(&own, "NAS.").await.unwrap(), ["192.0.2.7:443"]);
    for (host, expected) in [
        ("localhost", &["127.0.0.1:443", "[::1]:443"][..]),
        ("Page.LOCALHOST.", &["127.0.0.1:443", "[::1]:443"]),
        ("192.0.2.9", &["192.0.2.9:443"]),
        ("2001:db8::9", &["[2001:db8::9]:443"]),
        ("::1%1", &["[::1%1]:443"]),
    ] {
        assert_eq!(looked_up(&own, host).await.unwrap(), expected, "{host}");
    }
    for host in ["", "a b", "127.1", "x".repeat(64).as_str()] {
        let error = own.lookup(host, 443).await.unwrap_err();
        assert_eq!(NameError::of(&error), Some(&NameError::NotAName), "{host}");
    }
    assert!(server.asked.is_empty(), "one of these left the machine");

    assert_eq!(looked_up(&own, "example.org").await.unwrap(), ["192.0.2.1:443", "[2001:db8::1]:443"]);
    server.asked_for_both().await;

    // Once the system's own resolver has a server, it is the one to ask, also for what is in our files.
    assert!(matches!(own.source("nas").await.unwrap(), Source::Hosts(_)));
    fs::write(folder.path().join("system"), "nameserver 127.0.0.1\n").unwrap();
    assert!(matches!(own.source("nas").await.unwrap(), Source::System));
}

#[tokio::test]
async fn what_went_wrong_is_told_apart() {
    let unknown = StandIn::start(|question, _| vec![Reply::Says(built(question, UNKNOWN, &[]))]).await;
    let broken = StandIn::start(|question, _| vec![Reply::Says(built(question, BROKEN, &[]))]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resolv.conf");
    fs::write(&file, "nameserver 127.0.0.1\n").unwrap();
    for (port, expected) in
        [(unknown.address.port(), NameError::Unknown), (broken.address.port(), NameError::NoAnswer { file })]
    {
        let error = own(folder.path(), port).lookup("example.org", 443).await.unwrap_err();
        assert_eq!(NameError::of(&error), Some(&expected));
    }
}

#[test]
fn ipv6_comes_first_only_where_it_leads_somewhere() {
    use super::ask::ordered;
    let (four, six) = (vec![both()[0]], vec![both()[1]]);
    assert_eq!(ordered(four.clone(), six.clone(), |_| true), [six[0], four[0]]);
    assert_eq!(ordered(four.clone(), six.clone(), |_| false), [four[0], six[0]]);
    assert_eq!(ordered(four.clone(), vec![], |_: IpAddr| unreachable!()), four);
    assert_ne!(six[0], IpAddr::from(Ipv6Addr::LOCALHOST));
}

#[tokio::test(start_paused = true)]
async fn one_family_does_not_wait_long_for_the_other() {
    use super::ask::other;
    let never = std::future::pending::<Result<Vec<IpAddr>, NoAnswer>>;
    assert_eq!(other(&Ok(both()), never()).await, Err(NoAnswer));
    let late = || async {
        tokio::time::sleep(PATIENCE).await;
        Ok(both())
    };
    assert_eq!(other(&Ok(vec![]), late()).await, Ok(both()), "nothing is there yet");
    assert_eq!(other(&Err(NoAnswer), late()).await, Ok(both()));
}
