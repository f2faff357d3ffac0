//! The addresses of host names. Everything in Kai that connects to a name asks here.
//!
//! [`lookup`] asks the system's resolver. A static build on Android has none that works: the C library inside it reads
//! `/etc/resolv.conf`, which Android does not have, and then asks a server on this very machine. There Kai asks by
//! itself ([`Own`]): the servers that Termux's `resolv.conf` names, and nobody else. If it names none, the error says
//! so; a public server that nobody chose would learn every name.
//!
//! Not done: search domains, caching (connections are kept, so few names are asked for twice), DNSSEC, and encryption
//! on the way to the server.

mod ask;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod message;
mod own;
#[cfg(test)]
mod tests;
mod trouble;

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;

use reqwest::dns::{Name, Resolve, Resolving};

pub use own::Own;
pub use trouble::NameError;

/// Set once at the start, by a program whose C library may find no name server.
static OWN: OnceLock<Own> = OnceLock::new();

/// From now on names are looked up by `own` wherever the system names no server. Only the first call counts.
pub fn look_up_by(own: Own) {
    let _ = OWN.set(own);
}

/// The addresses of a host, for connections to this port. Addresses and `localhost` leave this machine in no case.
pub async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match OWN.get() {
        // It is large, and few systems need it.
        Some(own) => Box::pin(own.lookup(host, port)).await,
        None => own::system(host, port).await,
    }
}

/// [`lookup`] for our HTTP clients.
pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = lookup(name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}
