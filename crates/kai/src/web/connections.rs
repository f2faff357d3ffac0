//! Takes connections and gives up on those that waste our time.
//!
//! A request's head must come within seconds, and whoever does not read what it asked for is given up. A newcomer never
//! waits: strangers have [`Places`] of their own and push out the oldest of whoever holds the most, and a connection
//! that has shown a session is one we know, which no stranger pushes out. So neither silence nor a flood keeps the page
//! from its person, whichever user of the machine it comes from.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::patient::Patient;
use super::peer::{self, Ends};
use crate::places::{Peer, Place, Places, Room};

/// Together well under the files that a process may have open.
const ROOM: Room = Room { strangers: 128, known: 384 };
/// With more strangers than this, local connections are counted by their users.
const CROWD: usize = ROOM.strangers / 4;
/// So many newcomers are looked up at once: the kernel's list is long, and reading it takes a while.
const AT_ONCE: usize = 64;
/// For the head of a request; a kept connection may be silent for so long too.
const HEAD: Duration = Duration::from_secs(15);
/// For the other side to take some of what we write.
const TAKING: Duration = Duration::from_secs(20);
/// Longer heads are nobody's; a body passes through in pieces.
const BUFFER: usize = 64 * 1024;

/// Serves until told to stop, then lets requests under way finish.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Places::new(ROOM);
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER);
    loop {
        let newcomers = tokio::select! {
            newcomers = take(&listener) => newcomers,
            () = stop.cancelled() => break,
        };
        for (stream, place) in seated(newcomers, &places).await {
            let (ends, badge) = (ends(&stream), place.badge.clone());
            let router = TowerToHyperService::new(router.clone());
            let service = service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(badge.clone());
                request.extensions_mut().insert(ends);
                router.call(request)
            });
            let io = TokioIo::new(Patient::new(stream, TAKING));
            let connection = graceful.watch(http.serve_connection(io, service));
            tokio::spawn(async move {
                tokio::select! {
                    ended = connection => {
                        if let Err(error) = ended {
                            tracing::debug!(%error, "a connection ended early");
                        }
                    }
                    () = place.leave.cancelled() => tracing::debug!("a connection made room for another"),
                }
            });
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

fn ends(stream: &TcpStream) -> Option<Ends> {
    Some(Ends { theirs: stream.peer_addr().ok()?, ours: stream.local_addr().ok()? })
}

/// The next connection, and with it those that wait already.
async fn take(listener: &TcpListener) -> Vec<TcpStream> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let mut newcomers = vec![stream];
                while newcomers.len() < AT_ONCE
                    && let Some(Ok((stream, _))) = listener.accept().now_or_never()
                {
                    newcomers.push(stream);
                }
                return newcomers;
            }
            Err(error) => {
                // Out of files, perhaps; it passes, and asking at once would only burn the processor.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Gives each newcomer its place. Where there is a crowd, it matters which user of this machine somebody is.
async fn seated(newcomers: Vec<TcpStream>, places: &Arc<Places>) -> Vec<(TcpStream, Place)> {
    let port = newcomers.first().and_then(|stream| stream.local_addr().ok()).map(|local| local.port());
    let mut users = std::collections::BTreeMap::new();
    if let Some(port) = port.filter(|_| places.strangers() + newcomers.len() > CROWD) {
        let looking = tokio::task::spawn_blocking(move || peer::uids_at(port));
        users = looking.await.unwrap_or_default();
        places.identify(&users);
    }
    let seat = |stream: TcpStream| {
        let from = canonical(stream.peer_addr().ok()?);
        let user = users.get(&from).map(|uid| Peer::User(*uid));
        Some((stream, user.map_or_else(|| places.enter_from(from), |user| places.enter(user))))
    };
    newcomers.into_iter().filter_map(seat).collect()
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
