//! Connecting, pairing, reconnecting and unpairing.

use super::*;

#[tokio::test]
async fn pairing_works_from_both_sides_and_in_both_versions() {
    for protocol in [Protocol::V7, Protocol::V8] {
        for kai_asks in [true, false] {
            for kai_connects in [true, false] {
                pair(protocol, kai_asks, kai_connects).await;
            }
        }
    }
}

async fn pair(protocol: Protocol, kai_asks: bool, kai_connects: bool) {
    let clock = clock();
    let mut kai = Kai::start(setup(clock.clone())).await;
    let setup = HandsetSetup { protocol, pairing: OnPairing::Wait, ..handset_setup(clock) };
    let handset = Handset::start(setup).await.unwrap();
    if kai_connects {
        let device = kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
        assert_eq!((device.identity.protocol, device.paired), (protocol, false));
    } else {
        handset.connect(kai.address()).await.unwrap();
    }
    let Event::Linked(device) = kai.next().await else { panic!("a link comes first") };
    assert_eq!(device.identity.id, *handset.id());
    within(handset.linked(&kai.id)).await;
    if kai_asks {
        kai.endpoint.request_pairing(handset.id()).unwrap();
    } else {
        handset.request_pairing(&kai.id).unwrap();
    }
    let key = kai.key().await;
    assert_eq!(within(handset.shows_key()).await, key);
    assert_eq!(key.len(), 8);
    assert!(kai.endpoint.devices().iter().all(|device| !device.paired), "nothing is paired without a tap");
    if kai_asks {
        handset.accept_pairing(&kai.id).unwrap();
    } else {
        // A tap that was meant for another request changes nothing.
        kai.endpoint.accept_pairing(handset.id(), "00000000").unwrap();
        kai.endpoint.accept_pairing(handset.id(), &key).unwrap();
    }
    let pin = kai.pin().await;
    assert_eq!((&pin.device, pin.protocol), (handset.id(), protocol));
    within(handset.until(|handset| (handset.paired() == [kai.id.clone()]).then_some(()))).await;
    kai.endpoint.send(handset.id(), Packet::Ping).await.unwrap();
    within(handset.until(|handset| (handset.pings() == 1).then_some(()))).await;
}

#[tokio::test]
async fn a_refusal_and_a_time_out_are_told_to_both() {
    for (pairing, ours, theirs) in [
        (OnPairing::Refuse, Failure::Refused, Failure::Withdrawn),
        (OnPairing::Wait, Failure::TimedOut, Failure::Refused),
    ] {
        let clock = clock();
        let mut kai = Kai::start(setup(clock.clone())).await;
        let setup = HandsetSetup { pairing, ..handset_setup(clock.clone()) };
        let handset = Handset::start(setup).await.unwrap();
        kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
        kai.endpoint.request_pairing(handset.id()).unwrap();
        kai.key().await;
        if pairing == OnPairing::Wait {
            within(handset.shows_key()).await;
            clock.advance(jiff::SignedDuration::from_secs(31));
            // The next thing that the link looks at is the time; a second tap does nothing else.
            kai.endpoint.request_pairing(handset.id()).unwrap();
        }
        let failed = |event: &Event| match event {
            Event::PairingFailed { why, .. } => Some(*why),
            _ => None,
        };
        assert_eq!(kai.until(failed).await, ours);
        let told = within(handset.until(|handset| handset.events().iter().find_map(failed))).await;
        assert!(told == theirs || (pairing == OnPairing::Wait && told == Failure::TimedOut), "{told:?}");
        assert!(handset.paired().is_empty());
    }
}

#[tokio::test]
async fn a_paired_phone_comes_back_with_its_pin() {
    let (mut kai, handset, pin) = paired().await;
    handset.vanish().await;
    assert_eq!(kai.lost().await, Refusal::Closed);
    assert_eq!(kai.endpoint.send(handset.id(), Packet::Ping).await, Err(SendError::NotConnected));
    handset.appear().await.unwrap();
    let device = kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
    assert!(device.paired);
    kai.endpoint.send(handset.id(), Packet::Ping).await.unwrap();
    within(handset.until(|handset| (handset.pings() == 1).then_some(()))).await;
    // Also after a restart of Kai, when it is not looking for devices.
    drop(kai);
    let clock = clock();
    let pins = vec![pin];
    let restarted = Setup { pins, strangers: Strangers::Refused, ..setup(clock) };
    // The certificate is another one, so the handset refuses it.
    let kai = Kai::start(restarted).await;
    assert_eq!(handset.connect(kai.address()).await.unwrap_err().why, Refusal::WrongCertificate);
}

#[tokio::test]
async fn a_restart_with_kept_credentials_goes_on() {
    let clock = clock();
    let first = setup(clock.clone());
    let credentials = first.credentials.clone();
    let mut kai = Kai::start(first).await;
    let handset = Handset::start(handset_setup(clock.clone())).await.unwrap();
    handset.connect(kai.address()).await.unwrap();
    within(handset.linked(&kai.id)).await;
    handset.request_pairing(&kai.id).unwrap();
    let key = kai.key().await;
    kai.endpoint.accept_pairing(handset.id(), &key).unwrap();
    let pin = kai.pin().await;
    within(handset.until(|handset| (!handset.paired().is_empty()).then_some(()))).await;
    kai.endpoint.close().await;
    drop(kai);
    let setup = setup(clock);
    let restarted = Setup { credentials, pins: vec![pin], strangers: Strangers::Refused, ..setup };
    let mut kai = Kai::start(restarted).await;
    handset.connect(kai.address()).await.unwrap();
    let Event::Linked(device) = kai.next().await else { panic!("a link comes first") };
    assert!(device.paired);
}

#[tokio::test]
async fn unpairing_ends_it_on_both_sides() {
    let (mut kai, handset, _) = paired().await;
    kai.endpoint.unpair(handset.id());
    let by = |event: &Event| match event {
        Event::Unpaired { by, .. } => Some(*by),
        _ => None,
    };
    assert_eq!(kai.until(by).await, By::Us);
    within(handset.until(|handset| handset.paired().is_empty().then_some(()))).await;
    assert_eq!(kai.endpoint.send(handset.id(), Packet::Ping).await, Err(SendError::NotPaired));

    let (mut kai, handset, _) = paired().await;
    handset.unpair(&kai.id);
    assert_eq!(kai.until(by).await, By::Them);
    assert!(kai.endpoint.devices().iter().all(|device| !device.paired));
}

#[tokio::test]
async fn a_phone_that_asks_anew_is_unpaired_first() {
    let (mut kai, handset, _) = paired().await;
    // The handset forgot Kai while it was away.
    handset.vanish().await;
    kai.lost().await;
    handset.unpair(&kai.id);
    handset.appear().await.unwrap();
    kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
    within(handset.until(|handset| {
        let links = handset.events().iter().filter(|event| matches!(event, Event::Linked(_))).count();
        (links == 2).then_some(())
    }))
    .await;
    handset.request_pairing(&kai.id).unwrap();
    let next = kai.until(|event| match event {
        Event::Unpaired { by, .. } => Some(*by),
        _ => None,
    });
    assert_eq!(next.await, By::Them);
    let key = kai.key().await;
    kai.endpoint.accept_pairing(handset.id(), &key).unwrap();
    kai.pin().await;
}

#[tokio::test]
async fn announcements_make_devices_connect() {
    // Each on its own port, because only one of two programs gets what is sent to a single address.
    let free = [0, 1].map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let [kai_port, phone_port] = free.map(|socket| socket.local_addr().unwrap().port());
    let reach = |port: u16, other: u16| Reach {
        ports: PORTS,
        announcements: Some(Announcements {
            port,
            to: Audience::These(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, other))]),
        }),
        ..local()
    };
    let clock = clock();
    let mut kai = Kai::start(Setup { reach: reach(kai_port, phone_port), ..setup(clock.clone()) }).await;
    assert!(kai.endpoint.hears());
    let phone = HandsetSetup { reach: reach(phone_port, kai_port), ..handset_setup(clock) };
    let handset = Handset::start(phone).await.unwrap();
    // What is no announcement is not even reported.
    let noise = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in [&b"nonsense"[..], b"", &[b'x'; 9_000], br#"{"type":"kdeconnect.identity","body":{}}"#] {
        noise.send_to(datagram, ("127.0.0.1", kai_port)).unwrap();
    }
    handset.announce().await.unwrap();
    let linked = |event: &Event| match event {
        Event::Linked(device) => Some(device.clone()),
        _ => None,
    };
    let Event::Linked(device) = kai.next().await else { panic!("a link comes first") };
    assert_eq!(device.identity.name.as_str(), "Pixel");
    handset.vanish().await;
    kai.lost().await;
    handset.appear().await.unwrap();
    kai.endpoint.announce().await.unwrap();
    assert_eq!(kai.until(linked).await.identity.id, *handset.id());
}

#[tokio::test]
async fn nothing_listens_after_closing() {
    let kai = Kai::start(setup(clock())).await;
    let address = kai.address();
    tokio::net::TcpStream::connect(address).await.unwrap();
    kai.endpoint.close().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    let kai = Kai::start(setup(clock())).await;
    let (address, handset) = (kai.address(), Handset::start(handset_setup(clock())).await.unwrap());
    drop(kai);
    let refused = handset.connect(address).await.unwrap_err();
    assert!(
        matches!(refused.why, Refusal::Unreachable | Refusal::Encryption | Refusal::Closed),
        "{refused:?}"
    );
}
