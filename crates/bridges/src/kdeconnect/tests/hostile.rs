//! Peers that lie, flood, dawdle or send too much.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::super::identity::Occasion;
use super::super::tls::Tls;
use super::*;

const NOW_MS: i64 = 1_794_702_151_000;

/// Something that speaks TLS, and the rest as it pleases.
struct Peer {
    identity: Identity,
    credentials: Credentials,
}

impl Peer {
    fn named(seed: u8) -> Self {
        let id = DeviceId::from_random([seed; 16]);
        let credentials = Credentials::make(&id, clock().now()).unwrap();
        let identity = Identity { id, kind: DeviceKind::Phone, ..setup(clock()).me };
        Self { identity, credentials }
    }

    fn line(&self) -> Vec<u8> {
        self.identity.line(Occasion::Plain, NOW_MS)
    }

    /// Connects as a phone does, up to the end of the TLS handshake.
    async fn connect(&self, to: SocketAddr) -> TlsStream<TcpStream> {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(&self.line()).await.unwrap();
        Tls::new(&self.credentials).unwrap().acceptor.accept(stream).await.unwrap()
    }

    /// A link of version 8, not paired.
    async fn link(&self, to: SocketAddr) -> TlsStream<TcpStream> {
        let mut stream = self.connect(to).await;
        stream.write_all(&self.line()).await.unwrap();
        stream
    }
}

async fn said(stream: &mut TlsStream<TcpStream>) -> String {
    let mut read = vec![];
    let mut byte = [0];
    while within(stream.read(&mut byte)).await.unwrap_or(0) == 1 && byte != *b"\n" {
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn what_is_no_identity_is_refused_before_encryption() {
    let me = setup(clock()).me;
    let good = Peer::named(7).line();
    let long = format!("{{\"type\":\"kdeconnect.identity\",\"x\":\"{}\"}}\n", "y".repeat(9_000));
    let foreign = Peer::named(7).identity.line(Occasion::Answering(&Peer::named(8).identity), NOW_MS);
    for (name, sent, why) in [
        ("too long", long.into_bytes(), Refusal::TooLong),
        ("not a packet", b"GET / HTTP/1.1\r\n".to_vec(), Refusal::NotADevice),
        ("another packet", Packet::Ping.line(clock().now()), Refusal::NotADevice),
        ("more than a line", [good.as_slice(), b"x"].concat(), Refusal::NotADevice),
        ("two lines", [good.as_slice(), b"\n"].concat(), Refusal::NotADevice),
        ("our own identity", me.line(Occasion::Plain, NOW_MS), Refusal::NotForUs),
        ("for somebody else", foreign, Refusal::NotForUs),
        ("no end", b"{\"type\":".to_vec(), Refusal::Closed),
        ("no TLS", good, Refusal::Encryption),
    ] {
        let mut kai = Kai::start(setup(clock())).await;
        let mut stream = TcpStream::connect(kai.address()).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        if matches!(why, Refusal::Closed) {
            drop(stream);
        } else if matches!(why, Refusal::Encryption) {
            stream.read_exact(&mut [0]).await.unwrap();
            stream.write_all(b"this is not a handshake").await.unwrap();
        }
        assert_eq!(kai.refused().await.why, why, "{name}");
    }
}

#[tokio::test]
async fn whoever_dawdles_is_cut_off() {
    let limits = Limits { handshake: Duration::from_millis(200), ..quick() };
    for sent in [vec![], Peer::named(7).line()] {
        let mut kai = Kai::start(Setup { limits: limits.clone(), ..setup(clock()) }).await;
        let mut stream = TcpStream::connect(kai.address()).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        assert_eq!(kai.refused().await.why, Refusal::TooSlow);
    }
    // Encryption that never gets done: a byte now and then, of a message that is long enough for an hour.
    let mut kai = Kai::start(Setup { limits: limits.clone(), ..setup(clock()) }).await;
    let mut stream = TcpStream::connect(kai.address()).await.unwrap();
    stream.write_all(&Peer::named(7).line()).await.unwrap();
    // Kai begins the encryption, and takes nothing of it before.
    stream.read_exact(&mut [0]).await.unwrap();
    let dripping = tokio::spawn(async move {
        let mut rest =
            [0x16, 0x03, 0x03, 0x40, 0x00, 0x02, 0x00, 0x3f, 0xfc].into_iter().chain(std::iter::repeat(0));
        while stream.write_all(&[rest.next().unwrap()]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(kai.refused().await.why, Refusal::TooSlow);
    within(dripping).await.unwrap();
    // An address that accepts and then says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let kai = Kai::start(Setup { limits, ..setup(clock()) }).await;
    let refused = kai.endpoint.connect(silent.local_addr().unwrap()).await.unwrap_err();
    assert_eq!(refused.why, Refusal::TooSlow);
}

#[tokio::test]
async fn strangers_are_refused_while_nobody_looks() {
    let mut kai = Kai::start(Setup { strangers: Strangers::Refused, ..setup(clock()) }).await;
    let handset = Handset::start(handset_setup(clock())).await.unwrap();
    handset.connect(kai.address()).await.unwrap_err();
    assert_eq!(kai.refused().await.why, Refusal::Stranger);
    let refused = kai.endpoint.connect(handset.address().unwrap()).await.unwrap_err();
    assert_eq!(refused.why, Refusal::Stranger);
    kai.endpoint.set_strangers(Strangers::Welcome);
    kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
    kai.endpoint.set_strangers(Strangers::Refused);
    kai.lost().await;
    assert!(kai.endpoint.devices().is_empty());
}

#[tokio::test]
async fn a_flood_of_connections_costs_no_paired_phone_its_link() {
    let (mut kai, handset, _) = paired().await;
    let mut flood = vec![];
    for _ in 0..100 {
        flood.push(TcpStream::connect(kai.address()).await.unwrap());
    }
    // All but the last few were cut off, and a phone still gets in.
    let places = Limits::default().strangers;
    for cut_off in flood.drain(..100 - places) {
        let read = within(async { cut_off.readable().await.and_then(|()| cut_off.try_read(&mut [0])) });
        assert_eq!(read.await.unwrap(), 0);
    }
    kai.endpoint.send(handset.id(), Packet::Ping).await.unwrap();
    handset.vanish().await;
    kai.lost().await;
    handset.appear().await.unwrap();
    assert!(handset.connect(kai.address()).await.unwrap().paired);
}

#[tokio::test]
async fn refusals_of_strangers_are_reported_once_a_minute() {
    let clock = clock();
    let limits = Limits { between_reports: Duration::from_mins(1), ..quick() };
    let mut kai = Kai::start(Setup { limits, ..setup(clock.clone()) }).await;
    let nonsense = async || {
        let mut stream = TcpStream::connect(kai.address()).await.unwrap();
        stream.write_all(b"nonsense\n").await.unwrap();
        // It is over when the connection is closed.
        within(stream.read_to_end(&mut vec![])).await.unwrap_or(0)
    };
    for _ in 0..20 {
        nonsense().await;
    }
    clock.advance(jiff::SignedDuration::from_secs(61));
    nonsense().await;
    let times = |event: &Event| match event {
        Event::Refused { times, .. } => Some(*times),
        _ => None,
    };
    assert_eq!(kai.until(times).await, 1);
    let second = kai.until(times).await;
    assert!((19..=20).contains(&second), "all others since then, but perhaps the last: {second}");
}

#[tokio::test]
async fn another_certificate_for_a_paired_phone_is_refused_and_told() {
    let (mut kai, handset, pin) = paired().await;
    let mut forger = Peer::named(7);
    forger.identity.id = handset.id().clone();
    // Its certificate has another name, then the right name but another key.
    for (credentials, why) in [
        (forger.credentials.clone(), Refusal::ForeignCertificate),
        (Credentials::make(handset.id(), clock().now()).unwrap(), Refusal::WrongCertificate),
    ] {
        forger.credentials = credentials;
        let _stream = forger.connect(kai.address()).await;
        assert_eq!(kai.refused().await, Refused { device: Some(pin.device.clone()), why });
    }
    kai.endpoint.send(handset.id(), Packet::Ping).await.unwrap();
    within(handset.until(|handset| (handset.pings() == 1).then_some(()))).await;
}

#[tokio::test]
async fn an_unpaired_device_cannot_take_over_the_id_of_another() {
    let mut kai = Kai::start(setup(clock())).await;
    let first = Peer::named(7);
    let _first = first.link(kai.address()).await;
    let Event::Linked(_) = kai.next().await else { panic!("a link comes first") };
    let second =
        Peer { credentials: Credentials::make(&first.identity.id, clock().now()).unwrap(), ..Peer::named(7) };
    let _second = second.link(kai.address()).await;
    assert_eq!(kai.refused().await.why, Refusal::WrongCertificate);
    assert_eq!(kai.endpoint.devices().len(), 1);
}

#[tokio::test]
async fn an_older_version_of_a_paired_phone_is_refused() {
    let (kai, handset, pin) = paired().await;
    assert_eq!(pin.protocol, Protocol::V8);
    drop((kai, handset));
    let clock = clock();
    let older = HandsetSetup { protocol: Protocol::V7, ..handset_setup(clock.clone()) };
    let pin = Pin { certificate: older.credentials.certificate().to_vec(), ..pin };
    let handset = Handset::start(older).await.unwrap();
    let mut kai = Kai::start(Setup { pins: vec![pin.clone()], ..setup(clock) }).await;
    handset.connect(kai.address()).await.unwrap_err();
    let expected = Refused { device: Some(pin.device), why: Refusal::OlderProtocol };
    assert_eq!(kai.refused().await, expected);
    // Also when Kai connects, and learns the version only from the phone's silence.
    assert_eq!(kai.endpoint.connect(handset.address().unwrap()).await.unwrap_err(), expected);
}

#[tokio::test]
async fn whoever_changes_its_identity_is_refused() {
    for change in [
        |identity: &mut Identity| identity.id = DeviceId::from_random([9; 16]),
        |identity: &mut Identity| identity.protocol = Protocol::new(9).unwrap(),
    ] {
        let mut kai = Kai::start(setup(clock())).await;
        let mut peer = Peer::named(7);
        let mut stream = peer.connect(kai.address()).await;
        change(&mut peer.identity);
        stream.write_all(&peer.line()).await.unwrap();
        assert_eq!(kai.refused().await.why, Refusal::IdentityChanged);
    }
}

#[tokio::test]
async fn an_unpaired_device_gets_nothing_through_and_is_told_so() {
    let mut kai = Kai::start(setup(clock())).await;
    let peer = Peer::named(7);
    let mut stream = peer.link(kai.address()).await;
    let Event::Linked(device) = kai.next().await else { panic!("a link comes first") };
    assert!(!device.paired);
    assert!(said(&mut stream).await.contains("kdeconnect.identity"));
    let sms = Packet::Messages(Messages::default()).line(clock().now());
    stream.write_all(&sms).await.unwrap();
    let answer = said(&mut stream).await;
    assert!(answer.contains("kdeconnect.pair") && answer.contains("false"), "{answer}");
    for _ in 0..30 {
        // It may be cut off before all is written.
        if stream.write_all(&sms).await.is_err() {
            break;
        }
    }
    let Event::Lost { why, .. } = kai.next().await else { panic!("no packet of a stranger is told") };
    assert_eq!(why, Refusal::TooMuch);
}

#[tokio::test]
async fn long_lines_are_cut_off_and_more_is_allowed_once_paired() {
    let clock = clock();
    let limits = Limits { longest_packet: 20_000, ..quick() };
    let mut kai = Kai::start(Setup { limits, ..setup(clock.clone()) }).await;
    let mut stranger = Peer::named(7).link(kai.address()).await;
    let Event::Linked(_) = kai.next().await else { panic!("a link comes first") };
    stranger.write_all(&[b'x'; 9_000]).await.unwrap();
    assert_eq!(kai.lost().await, Refusal::TooLong);
    let handset = Handset::start(handset_setup(clock.clone())).await.unwrap();
    kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
    kai.endpoint.request_pairing(handset.id()).unwrap();
    kai.pin().await;
    within(handset.until(|handset| (!handset.paired().is_empty()).then_some(()))).await;
    handset.post("org.x", "X", "Title", &"x".repeat(9_000)).await;
    assert!(matches!(kai.packet().await, Packet::Notification(_)));
    handset.post("org.x", "X", "Title", &"x".repeat(20_000)).await;
    assert_eq!(kai.lost().await, Refusal::TooLong);
}

/// With the limits that Kai really has: a packet of more than 32 MiB is not collected to its end.
#[tokio::test]
async fn no_packet_is_larger_than_32_mib() {
    let mut kai = Kai::start(setup(clock())).await;
    let peer = Peer::named(7);
    let mut stream = peer.link(kai.address()).await;
    let ask = Packet::Pair(Pair { pair: true, timestamp: Some(NOW_MS / 1_000) });
    stream.write_all(&ask.line(clock().now())).await.unwrap();
    let key = kai.key().await;
    kai.endpoint.accept_pairing(&peer.identity.id, &key).unwrap();
    kai.pin().await;
    let piece = vec![b'x'; 1 << 20];
    let mut written = 0;
    // It is cut off while it still writes, however much more it has.
    while within(stream.write_all(&piece)).await.is_ok() {
        written += 1;
        assert!(written < 200, "{written} MiB and no end");
    }
    assert!(written >= 32, "only {written} MiB were taken");
    assert_eq!(kai.lost().await, Refusal::TooLong);
}

/// Listens on one of the ports that an announcement may name.
async fn listening(address: &str) -> tokio::net::TcpListener {
    for port in PORTS {
        if let Ok(listener) = tokio::net::TcpListener::bind((address, port)).await {
            return listener;
        }
    }
    panic!("every port that devices listen on is taken");
}

/// Announcements cost nothing but a line. Whoever makes up devices is connected to once at a time, and the others are
/// heard as before.
#[tokio::test]
async fn made_up_announcements_do_not_make_kai_connect_everywhere() {
    let port = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let announcements = Some(Announcements { port, to: Audience::These(vec![]) });
    let reach = Reach { address: Ipv4Addr::UNSPECIFIED.into(), announcements, ..local() };
    // The one connection stays under way, however busy the machine is.
    let limits = Limits { handshake: 10 * LONG, ..quick() };
    let kai = Kai::start(Setup { reach, limits, ..setup(clock()) }).await;
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = listening("127.0.0.1").await;
    let forger = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let line = |number: u32, port: u16| {
        let mut peer = Peer::named(7).identity;
        let mut random = [9; 16];
        random[..4].copy_from_slice(&number.to_be_bytes());
        peer.id = DeviceId::from_random(random);
        peer.line(Occasion::Announcing { port }, NOW_MS)
    };
    for number in 0..500 {
        forger.send_to(&line(number, listener.local_addr().unwrap().port()), to).await.unwrap();
    }
    let (_held, _) = within(listener.accept()).await.unwrap();
    // Another address, which is heard in its turn. A busy machine may drop an announcement, so it is repeated.
    let elsewhere = listening("127.0.0.2").await;
    let honest = tokio::net::UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let heard = async {
        loop {
            honest.send_to(&line(1_000, elsewhere.local_addr().unwrap().port()), to).await.unwrap();
            if let Ok(accepted) = timeout(Duration::from_millis(200), elsewhere.accept()).await {
                return accepted.unwrap();
            }
        }
    };
    within(heard).await;
    let more = std::pin::pin!(listener.accept());
    assert!(futures_util::poll!(more).is_pending(), "one connection at a time to an address");
    drop(kai);
}

#[tokio::test]
async fn malformed_and_unknown_packets_of_a_paired_phone_cost_nothing_else() {
    let mut kai = Kai::start(setup(clock())).await;
    let peer = Peer::named(7);
    let mut stream = peer.link(kai.address()).await;
    kai.next().await;
    said(&mut stream).await;
    let ask = Packet::Pair(Pair { pair: true, timestamp: Some(NOW_MS / 1_000) });
    stream.write_all(&ask.line(clock().now())).await.unwrap();
    let key = kai.key().await;
    kai.endpoint.accept_pairing(&peer.identity.id, &key).unwrap();
    kai.pin().await;
    for line in [
        "nonsense",
        "{}",
        "{\"type\":\"kdeconnect.clipboard\",\"body\":{}}",
        "{\"type\":\"kdeconnect.notification\"}",
    ] {
        stream.write_all(format!("{line}\n").repeat(30).as_bytes()).await.unwrap();
    }
    stream.write_all(&Packet::Ping.line(clock().now())).await.unwrap();
    assert_eq!(kai.packet().await, Packet::Ping);
}

#[tokio::test]
async fn a_late_tap_does_not_pair_whoever_took_the_place() {
    let mut kai = Kai::start(setup(clock())).await;
    let ask = Packet::Pair(Pair { pair: true, timestamp: Some(NOW_MS / 1_000) }).line(clock().now());
    let honest = Peer::named(7);
    let mut stream = honest.link(kai.address()).await;
    stream.write_all(&ask).await.unwrap();
    let key = kai.key().await;
    drop(stream);
    let failed = |event: &Event| match event {
        Event::PairingFailed { why, .. } => Some(*why),
        _ => None,
    };
    assert_eq!(kai.until(failed).await, Failure::Disconnected);
    kai.lost().await;
    let credentials = Credentials::make(&honest.identity.id, clock().now()).unwrap();
    let mut stream = Peer { credentials, ..honest }.link(kai.address()).await;
    stream.write_all(&ask).await.unwrap();
    let other = kai.key().await;
    assert_ne!(other, key);
    let device = DeviceId::from_random([7; 16]);
    kai.endpoint.accept_pairing(&device, &key).unwrap();
    kai.endpoint.refuse_pairing(&device).unwrap();
    assert_eq!(kai.until(failed).await, Failure::Withdrawn, "it was still waiting");
}

#[tokio::test]
async fn phones_that_speak_only_tls_1_2_are_understood_in_both_roles() {
    const OLD: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS12];
    let mut kai = Kai::start(setup(clock())).await;
    let phone = Peer::named(7);
    let tls = Tls::with_versions(&phone.credentials, OLD).unwrap();
    let mut stream = TcpStream::connect(kai.address()).await.unwrap();
    stream.write_all(&phone.line()).await.unwrap();
    let mut stream = tls.acceptor.accept(stream).await.unwrap();
    stream.write_all(&phone.line()).await.unwrap();
    let Event::Linked(_) = kai.next().await else { panic!("a link comes first") };
    drop(stream);
    kai.lost().await;
    // The other way round: Kai connects, so that the phone is the client of the encryption.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answered = async {
        let (mut stream, from) = listener.accept().await.unwrap();
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).await.unwrap();
        }
        let name = rustls::pki_types::ServerName::from(from.ip());
        let mut stream = tls.connector.connect(name, stream).await.unwrap();
        stream.write_all(&phone.line()).await.unwrap();
        stream
    };
    let (connected, _stream) = within(async { tokio::join!(kai.endpoint.connect(address), answered) }).await;
    assert_eq!(connected.unwrap().identity.id, phone.identity.id);
}
