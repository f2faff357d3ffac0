//! How connections come about: opened by others, by us, or after an announcement.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::discovery;
use super::event::{Device, Event};
use super::handshake::{self, Established};
use super::identity::{Announced, Identity};
use super::limits::{Place, is_local};
use super::link::Link;
use super::refusal::{Refusal, Refused};
use super::registry::{Gone, NewLink, WAITING};
use super::shared::Shared;

/// How long to wait after the machine refused a connection, such as for want of file descriptors.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Takes connections until the endpoint closes.
pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) if is_local(from.ip()) => shared.spawn(admit(shared.clone(), stream, from)),
                Ok((_, from)) => shared.report(from.ip(), &Refusal::NotLocal.into()).await,
                Err(_) => sleep(AFTER_TROUBLE).await,
            }
        }
    }
}

/// Hears announcements until the endpoint closes.
pub(super) async fn hear(shared: Arc<Shared>) {
    let Some(udp) = &shared.udp else { return };
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            heard = discovery::hear(&udp.socket) => match heard {
                Ok((announced, from)) => answer(&shared, announced, from),
                Err(_) => sleep(AFTER_TROUBLE).await,
            }
        }
    }
}

/// Opens a connection to a device that announced itself, or to an address that was typed in. It is under way as soon as
/// this is called: many announcements can be heard before the future is polled for the first time.
pub(super) fn dial(
    shared: Arc<Shared>,
    address: SocketAddr,
    expected: Option<Identity>,
) -> impl Future<Output = Result<Device, Refused>> + Send {
    let (place, stop) = begin(&shared, address.ip());
    async move {
        let shaken = handshake::dial(&shared, address, expected.as_ref());
        let established = within(&shared, shaken, address.ip(), &stop).await;
        link(&shared, established, place, stop)
    }
}

/// Takes a connection that somebody opened.
async fn admit(shared: Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    let (place, stop) = begin(&shared, from.ip());
    let shaken = handshake::accept(&shared, stream, from);
    let established = within(&shared, shaken, from.ip(), &stop).await;
    if let Err(refused) = link(&shared, established, place, stop) {
        shared.report(from.ip(), &refused).await;
    }
}

/// Connects to a device that announced itself.
fn answer(shared: &Arc<Shared>, announced: Announced, from: SocketAddr) {
    let Announced { identity, port: Some(port), .. } = announced else { return };
    let ours = identity.id == shared.me.id;
    if ours || !shared.registry().answers(&identity.id, from.ip(), shared.clock.now()) {
        return;
    }
    let dialling = dial(shared.clone(), SocketAddr::new(from.ip(), port), Some(identity));
    let shared = shared.clone();
    shared.clone().spawn(async move {
        if let Err(refused) = dialling.await {
            shared.report(from.ip(), &refused).await;
        }
    });
}

/// Takes a place for a connection, and notes that its handshake is under way. [`within`] notes the end.
fn begin(shared: &Shared, address: IpAddr) -> (Place, CancellationToken) {
    let stop = shared.stop.child_token();
    let mut registry = shared.registry();
    registry.shakes(address);
    (registry.enter(address, stop.clone()), stop)
}

/// Gives a handshake its time.
async fn within(
    shared: &Shared,
    shaken: impl Future<Output = Result<Established, Refused>>,
    address: IpAddr,
    stop: &CancellationToken,
) -> Result<Established, Refused> {
    let established = tokio::select! {
        () = stop.cancelled() => Err(Refusal::TooOften.into()),
        shaken = timeout(shared.limits.handshake, shaken) => {
            shaken.unwrap_or_else(|_| Err(Refusal::TooSlow.into()))
        }
    };
    shared.registry().has_shaken(address);
    established
}

/// Starts the link of an established connection, or frees its place.
fn link(
    shared: &Arc<Shared>,
    established: Result<Established, Refused>,
    place: Place,
    stop: CancellationToken,
) -> Result<Device, Refused> {
    let established = established.inspect_err(|_| shared.registry().leave(Some(place)))?;
    keep_alive(established.stream.get_ref().0);
    let id = established.identity.id.clone();
    let (orders, ordered) = mpsc::channel(WAITING);
    let new = NewLink {
        identity: established.identity.clone(),
        address: established.address,
        certificate: established.certificate.clone(),
        dialled: established.dialled,
        orders,
        stop: stop.clone(),
        place,
    };
    let filed = shared.registry().link(new, shared.clock.now());
    let (serial, device) = filed.map_err(|why| Refused { device: Some(id.clone()), why })?;
    let link = Link::new(shared.clone(), established, device.paired, stop);
    let running = link.run(Event::Linked(device.clone()), ordered);
    let shared = shared.clone();
    shared.clone().spawn(async move {
        let why = running.await;
        let gone = shared.registry().forget(&id, serial);
        if let Some(gone) = gone {
            shared.tell(Event::Lost { device: id, why }).await;
            retry(&shared, gone).await;
        }
    });
    Ok(device)
}

/// Tries once more after a link that did not last: two devices that connect to each other at the same moment can each
/// give up the connection that the other one keeps.
async fn retry(shared: &Arc<Shared>, gone: Gone) {
    if !shared.registry().retries(&gone, shared.clock.now()) {
        return;
    }
    tokio::select! {
        () = shared.stop.cancelled() => return,
        () = sleep(shared.limits.between_connections) => {}
    }
    let Device { identity, address, dialled, .. } = gone.device;
    if !shared.registry().misses(&identity.id) {
        return;
    }
    // If that does not help either, the device is as gone as any other.
    if dialled {
        drop(Box::pin(dial(shared.clone(), address, Some(identity))).await);
    } else {
        drop(shared.announce_to(address.ip()).await);
    }
}

/// Makes the system notice within about a minute when the other side is gone without a word.
fn keep_alive(stream: &TcpStream) {
    // A link works without any of this; it is only noticed later that it broke.
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    drop(stream.set_nodelay(true));
}
