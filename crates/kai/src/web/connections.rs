//! Takes connections and gives up on those that waste our time: so many at once, and a request's head in so many
//! seconds. Whoever opens sockets and says nothing does not keep others out.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::peer::Ends;

/// Well under the files that a process may have open.
const CONNECTIONS: usize = 512;
/// For the head of a request; a kept connection may be silent for so long too.
const HEAD: Duration = Duration::from_secs(15);

/// Serves until told to stop, then lets requests under way finish.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    loop {
        let (stream, place) = tokio::select! {
            taken = take(&listener, &room) => taken,
            () = stop.cancelled() => break,
        };
        let (ends, router) = (ends(&stream), TowerToHyperService::new(router.clone()));
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ends);
            router.call(request)
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

fn ends(stream: &TcpStream) -> Option<Ends> {
    Some(Ends { theirs: stream.peer_addr().ok()?, ours: stream.local_addr().ok()? })
}

/// The next connection, as soon as there is room for it.
async fn take(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    let place = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                // Out of files, perhaps; it passes, and asking at once would only burn the processor.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}
