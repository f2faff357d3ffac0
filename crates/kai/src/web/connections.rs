//! Accepts connections, and closes those that stall.
//!
//! A request's head must arrive within seconds, and a client that stops reading its response is disconnected. A new
//! connection never waits: connections without a session have a limit of their own in [`Places`], and when it is
//! exceeded, the peer with the most of them loses its oldest. A connection that presented a session counts as known,
//! and connections without one never displace it. So neither idle clients nor a flood of connections can lock the user
//! out, whichever user of the machine opens them.

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

use super::peer::{self, Ends};
use super::write_timeout::WriteTimeout;
use crate::places::{Peer, Place, Places, Room};

/// How many connections may be open; in total well below the usual limit on open files per process.
const ROOM: Room = Room { strangers: 128, known: 384 };
/// With more connections without a session than this, local ones are counted per user instead of per address.
const CROWD: usize = ROOM.strangers / 4;
/// How many new connections are looked up in one batch: the kernel's socket table is long, and slow to read.
const AT_ONCE: usize = 64;
/// Timeout for the head of a request, and so also for an idle keep-alive connection.
const HEAD: Duration = Duration::from_secs(15);
/// Timeout for a client to read at least some of what we write.
const TAKING: Duration = Duration::from_secs(20);
/// Limit on the head of a request: no browser sends a longer one. Bodies are streamed, so they may be longer.
const BUFFER: usize = 64 * 1024;

/// Serves until `stop` is cancelled, then lets requests in progress finish.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
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
            let io = TokioIo::new(WriteTimeout::new(stream, TAKING));
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

/// Waits for the next connection; returns it and those that are already queued, at most [`AT_ONCE`].
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
                // Probably out of file descriptors. That passes, and retrying at once would only burn CPU.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Gives each new connection its place. When there are many, looks up which local user each one belongs to, so that one
/// user cannot displace another's connections.
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

/// An IPv4-mapped IPv6 address as IPv4, as the kernel's tables are read.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
