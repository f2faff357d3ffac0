//! Kai's own resolver, for a system whose own cannot find a name server: a static build on Android.

use std::fs::File;
use std::io::{self, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::ask;
use super::files::{Servers, hosts};
use super::message::Name;
use super::trouble::NameError;

const PORT: u16 = 53;

/// Where the resolver finds its servers and the names that it need not ask for. The files are read for each name, so a
/// change counts at once.
#[derive(Debug, Clone)]
pub struct Own(Arc<Files>);

#[derive(Debug)]
struct Files {
    /// The `resolv.conf` of the system's own resolver. If it names a server, that resolver is used.
    of_system: PathBuf,
    resolv: PathBuf,
    hosts: Vec<PathBuf>,
    port: u16,
}

/// Where the addresses of a name come from.
pub(super) enum Source {
    System,
    Hosts(Vec<IpAddr>),
    Servers(Servers),
}

impl Own {
    /// The resolver in Termux, whose files are below `prefix`.
    pub fn below(prefix: &Path) -> Self {
        let hosts = vec![prefix.join("etc/hosts"), "/etc/hosts".into(), "/system/etc/hosts".into()];
        let (of_system, resolv) = ("/etc/resolv.conf".into(), prefix.join("etc/resolv.conf"));
        Self(Arc::new(Files { of_system, resolv, hosts, port: PORT }))
    }

    #[cfg(test)]
    pub(super) fn of_files(of_system: PathBuf, resolv: PathBuf, hosts: Vec<PathBuf>, port: u16) -> Self {
        Self(Arc::new(Files { of_system, resolv, hosts, port }))
    }

    /// The addresses of a host, for connections to this port. Those of a family that leads somewhere come first.
    pub(super) async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let found = match near(host) {
            Some(Near::Addresses(found)) => found,
            Some(Near::Scoped) => return system(host, port).await,
            None => {
                let name = Name::parse(host).ok_or(NameError::NotAName)?;
                match self.source(host).await? {
                    Source::System => return system(host, port).await,
                    Source::Hosts(found) => found,
                    Source::Servers(servers) => self.ask(&servers, &name).await?,
                }
            }
        };
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    async fn ask(&self, servers: &Servers, name: &Name) -> Result<Vec<IpAddr>, NameError> {
        let file = || self.0.resolv.clone();
        if servers.addresses.is_empty() {
            return Err(NameError::NoServer { file: file() });
        }
        let found = ask::addresses(servers, name).await;
        let found = found.map_err(|ask::NoAnswer| NameError::NoAnswer { file: file() })?;
        if found.is_empty() { Err(NameError::Unknown) } else { Ok(found) }
    }

    pub(super) async fn source(&self, host: &str) -> io::Result<Source> {
        let (files, host) = (Arc::clone(&self.0), host.to_owned());
        spawn_blocking(move || files.source(&host)).await.map_err(io::Error::other)
    }
}

impl Files {
    fn source(&self, host: &str) -> Source {
        if !self.servers(&self.of_system).addresses.is_empty() {
            return Source::System;
        }
        let known =
            self.hosts.iter().map(|file| opened(file).map(|file| hosts(file, host)).unwrap_or_default());
        match known.into_iter().find(|found| !found.is_empty()) {
            Some(found) => Source::Hosts(found),
            None => Source::Servers(self.servers(&self.resolv)),
        }
    }

    fn servers(&self, file: &Path) -> Servers {
        let none: &[u8] = b"";
        opened(file).map_or_else(|| Servers::read(none, self.port), |file| Servers::read(file, self.port))
    }
}

fn opened(file: &Path) -> Option<BufReader<File>> {
    File::open(file).ok().map(BufReader::new)
}

/// What needs no files and no servers.
enum Near {
    Addresses(Vec<IpAddr>),
    /// An address with the network interface that it is reached by, such as `fe80::1%wlan0`. The system knows those, and
    /// asks nobody.
    Scoped,
}

fn near(host: &str) -> Option<Near> {
    if let Ok(address) = host.parse() {
        return Some(Near::Addresses(vec![address]));
    }
    if host.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok()) {
        return Some(Near::Scoped);
    }
    let top = host.rsplit('.').next().unwrap_or_default();
    let here = || Near::Addresses(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    top.eq_ignore_ascii_case("localhost").then(here)
}

/// Asks the system's own resolver.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks")]
pub(super) async fn system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}
