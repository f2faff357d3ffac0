//! What a daemon opens to the network, and when. It runs in a network of its own, which no announcement leaves.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{Db, Migration, OpenError};
use kai_assistant::home::{StoreKey, Unlock};
use kai_assistant::phones::store::{self, NewPhone, OwnIdentity};
use kai_assistant::{db, home};
use kai_bridges::kdeconnect::{
    Capabilities, Credentials, DeviceId, DeviceKind, DeviceName, Endpoint, Event, Identity, Limits, Protocol,
    Reach, Setup, Strangers,
};
use kai_bridges::simulated::{Handset, HandsetSetup};

use crate::kit::{Daemon, Home, wait_for};

/// A network with nothing in it but this machine, where even a broadcast comes back.
const NETWORK: &str = "ip link set lo up
    ip addr add 10.77.0.1/32 dev lo
    ip route add default dev lo src 10.77.0.1
    exec \"$0\" \"$@\"";

/// A machine that is in no network.
const NONE: &str = "ip link set lo up
    exec \"$0\" \"$@\"";

const NOTHING: [&str; 0] = [];

#[test]
fn nothing_listens_outside_loopback_unless_a_phone_is_paired() {
    in_own_network("paired::inside");
}

#[test]
fn whoever_is_in_no_network_is_told() {
    in_network(NONE, "paired::without_network");
}

#[test]
fn whoever_has_no_port_is_told() {
    in_own_network("paired::without_ports");
}

/// Runs an ignored test in a network of its own.
pub(crate) fn in_own_network(test: &str) {
    in_network(NETWORK, test);
}

fn in_network(network: &str, test: &str) {
    let namespace = if rustix::process::geteuid().is_root() { "-n" } else { "-rn" };
    let allowed = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|done| done.status.success())
    };
    if !allowed("unshare", &[namespace, "true"]) || !allowed("ss", &["-h"]) || !allowed("ip", &["-V"]) {
        // Not `eprintln`, which a test without --nocapture would swallow.
        drop(writeln!(
            std::io::stderr(),
            "skipped: this needs a network namespace, and ip and ss from iproute2"
        ));
        return;
    }
    let mut command = Command::new("unshare");
    command.args([namespace, "sh", "-euc", network]).arg(std::env::current_exe().unwrap());
    let done = command.args([test, "--exact", "--ignored", "--nocapture"]).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", said(&done.stdout), said(&done.stderr));
    assert!(said(&done.stdout).contains("1 passed"), "it ran: {}", said(&done.stdout));
}

/// Everything that a daemon has open for others than this machine: protocol and port.
pub(crate) fn open_to_others(daemon: &Daemon) -> Vec<String> {
    let listed = Command::new("ss").args(["-Hltunp"]).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let ours = listed.lines().filter(|line| line.contains(&format!("pid={},", daemon.pid())));
    let mut open = vec![];
    let mut page = false;
    for line in ours {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields[4].rsplit_once(':').unwrap();
        if address.starts_with("127.") || address == "[::1]" {
            page = true;
        } else {
            open.push(format!("{} {port}", fields[0]));
        }
    }
    assert!(page, "the page is seen, so the others would be: {listed}");
    open.sort();
    open
}

/// Whether this is a network with nothing in it but this machine.
pub(crate) fn only_here() -> bool {
    let routes = std::fs::read_to_string("/proc/net/route").unwrap();
    let mut routes = routes.lines().skip(1).peekable();
    routes.peek().is_some() && routes.all(|line| line.starts_with("lo"))
}

#[test]
#[ignore = "only in a network of its own"]
fn inside() {
    assert!(only_here(), "only in a network of its own");
    let fresh = Home::new();
    let daemon = fresh.start();
    assert!(fresh.run(&["status"]).out.contains("none paired. No port is open"));
    assert_eq!(open_to_others(&daemon), NOTHING, "nobody searches and nothing is paired");
    while_somebody_searches(&fresh, &daemon);
    assert_eq!(daemon.stop("-TERM").0, Some(0));

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let home = Home::new();
    let (handset, kai) = runtime.block_on(paired(&home));
    let daemon = home.start();
    let connects = handset.until(|handset| (links(handset) == 2).then_some(()));
    runtime.block_on(async { tokio::time::timeout(Duration::from_mins(1), connects).await }).unwrap();
    assert_eq!(open_to_others(&daemon), ["tcp 1716", "udp 1716"], "a phone is paired");
    let open = "Port 1716 is open on your local network, to paired phones only. To close the port, unpair every phone";
    for command in ["status", "doctor"] {
        let said = home.run(&[command]).out;
        assert!(said.contains(open), "{said}");
    }
    handset.unpair(&kai);
    wait_for("the last pairing to be over", || open_to_others(&daemon).is_empty());
    assert!(home.run(&["status"]).out.contains("none paired. No port is open"));
    let records = home.run(&["ledger", "show"]);
    assert!(records.out.contains("The phone \"Pixel\" ended its pairing"), "{records:?}");
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    // And it stays so.
    let daemon = home.start();
    assert_eq!(home.run(&["status"]).code, 0);
    assert_eq!(open_to_others(&daemon), NOTHING);
}

/// What is open during a search is closed when that ends, and everybody can read how it stands.
fn while_somebody_searches(home: &Home, daemon: &Daemon) {
    let mut search = home.terminal("phones pair");
    wait_for("the port to open", || open_to_others(daemon) == ["tcp 1716", "udp 1716"]);
    for command in ["status", "doctor"] {
        let said = home.run(&[command]).out;
        assert!(said.contains("Port 1716 is open on your local network, to any device"), "{said}");
        assert!(said.contains("To end the search"), "{said}");
    }
    let page = daemon.get("/settings/phones", &daemon.sign_in()).text;
    assert!(page.contains("port 1716 is open to devices on your network"), "{page}");
    search.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    wait_for("the search to end", || open_to_others(daemon).is_empty());
    assert_ne!(search.wait().unwrap().code(), Some(0));
    assert!(home.run(&["status"]).out.contains("none paired. No port is open"));
}

/// A phone is paired, so Kai would be reachable if it could.
fn with_a_paired_phone(home: &Home) -> (tokio::runtime::Runtime, Handset) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (handset, _) = runtime.block_on(paired(home));
    runtime.block_on(handset.vanish());
    (runtime, handset)
}

#[test]
#[ignore = "only in a network of its own"]
fn without_network() {
    assert_eq!(std::fs::read_to_string("/proc/net/route").unwrap().lines().count(), 1, "there is no route");
    let home = Home::new();
    let _phone = with_a_paired_phone(&home);
    let _daemon = home.start();
    let doctor = || home.run(&["doctor"]).out;
    wait_for("the network to be missed", || doctor().contains("This computer isn’t connected to a network."));
    assert!(doctor().contains("Connect this computer to the same network as your phone."), "{}", doctor());
}

#[test]
#[ignore = "only in a network of its own"]
fn without_ports() {
    let taken: Vec<TcpListener> =
        (1716..=1764).map(|port| TcpListener::bind(("0.0.0.0", port)).unwrap()).collect();
    let home = Home::new();
    let _phone = with_a_paired_phone(&home);
    let daemon = home.start();
    let doctor = || home.run(&["doctor"]);
    wait_for("the ports to be missed", || {
        doctor().out.contains("Other programs use all ports from 1716 to 1764")
    });
    assert!(doctor().code == 1 && doctor().out.contains("Quit the program that uses them"), "{:?}", doctor());
    assert_eq!(open_to_others(&daemon), NOTHING);
    let pair = home.type_at("phones pair", "");
    assert!(pair.code == 1 && pair.out.contains("Other programs use all ports"), "{pair:?}");
    drop(taken);
}

fn links(handset: &Handset) -> usize {
    handset.events().iter().filter(|event| matches!(event, Event::Linked(_))).count()
}

/// A handset that is paired with the Kai of this home, and how it knows it.
async fn paired(home: &Home) -> (Handset, DeviceId) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let handset = Handset::start(HandsetSetup::local("Pixel", Arc::clone(&clock)).unwrap()).await.unwrap();
    let address = handset.address().unwrap().to_string();
    let id = pair_home(home, &handset, &address).await;
    (handset, id)
}

/// Pairs a handset with the Kai of this home, which will find it at that address. Returns how the handset knows it.
pub(crate) async fn pair_home(home: &Home, handset: &Handset, address: &str) -> DeviceId {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let id = DeviceId::from_random([7; 16]);
    let credentials = Credentials::make(&id, clock.now()).unwrap();
    let pin = pair(handset, &id, &credentials, &clock).await;
    let own = OwnIdentity {
        device: id.to_string(),
        certificate: credentials.certificate().to_vec(),
        key: credentials.key().to_vec(),
    };
    let new = NewPhone {
        device: handset.id().to_string(),
        name: "Pixel".to_owned(),
        certificate: pin,
        protocol: 8,
    };
    let folder = home::Home::at(home.path()).unwrap();
    let (_, key) = folder.unlock(&Unlock { keyring: None, passphrase: &|| Ok(None) }).unwrap();
    let (address, now) = (address.to_owned(), clock.now());
    let db = open_store(&folder, &key);
    db.write(move |tx| {
        store::keep_identity(tx, &own)?;
        let phone = store::pair(tx, &new, now)?;
        store::seen(tx, phone.source, now, Some(&address))
    })
    .await
    .unwrap();
    id
}

/// Opens the store of a home, also if the program was there before: it has migrations of its own, which these tests know
/// by name alone.
pub(crate) fn open_store(folder: &home::Home, key: &StoreKey) -> Db {
    let now = SystemClock.now();
    let unknown = match db::open(folder, key, kai_assistant::MIGRATIONS, now) {
        Ok(db) => return db,
        Err(OpenError::Newer { unknown, .. }) => unknown,
        Err(other) => panic!("{other}"),
    };
    let applied = unknown.split(", ").map(|name| Migration { name: name.to_owned().leak(), sql: "" });
    let known: Vec<Migration> = kai_assistant::MIGRATIONS.iter().copied().chain(applied).collect();
    db::open(folder, key, &known, now).unwrap()
}

/// Pairs as Kai with a handset, and returns its certificate.
async fn pair(
    handset: &Handset,
    id: &DeviceId,
    credentials: &Credentials,
    clock: &Arc<dyn Clock>,
) -> Vec<u8> {
    let capabilities = Capabilities::of_computer(&[]);
    let me = Identity {
        id: id.clone(),
        name: DeviceName::clean("Kai"),
        kind: DeviceKind::Desktop,
        protocol: Protocol::V8,
        incoming: capabilities.incoming,
        outgoing: capabilities.outgoing,
    };
    let (endpoint, mut events) = Endpoint::open(Setup {
        me,
        credentials: credentials.clone(),
        pins: vec![],
        strangers: Strangers::Welcome,
        reach: Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None },
        limits: Limits::default(),
        clock: Arc::clone(clock),
    })
    .await
    .unwrap();
    endpoint.connect(handset.address().unwrap()).await.unwrap();
    endpoint.request_pairing(handset.id()).unwrap();
    let certificate = loop {
        match events.recv().await.unwrap() {
            Event::Paired(pin) => break pin.certificate,
            Event::PairingFailed { why, .. } => panic!("{why:?}"),
            _ => {}
        }
    };
    endpoint.close().await;
    certificate
}
