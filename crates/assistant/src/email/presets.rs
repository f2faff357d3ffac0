//! The servers of large mail services, guesses for all others, and servers as people type them. Pure.

use std::net::IpAddr;

use super::account::{Security, Server};
use super::port::Which;

/// A mail service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    pub name: &'static str,
    /// The domains of its addresses.
    domains: &'static [&'static str],
    imap: Known,
    smtp: Known,
    pub sign_in: SignIn,
}

type Known = (&'static str, u16);

/// How a program signs in to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    /// With the password of the account.
    Password,
    /// With a password that the user makes for this program only, on this page.
    AppPassword { page: &'static str },
    /// With a token only, which a command prints.
    Token,
}

use SignIn::{AppPassword, Password, Token};

const fn service(
    name: &'static str,
    domains: &'static [&'static str],
    imap: Known,
    smtp: Known,
    sign_in: SignIn,
) -> Service {
    Service { name, domains, imap, smtp, sign_in }
}

const SERVICES: &[Service] = &[
    service(
        "Gmail",
        &["gmail.com", "googlemail.com"],
        ("imap.gmail.com", 993),
        ("smtp.gmail.com", 465),
        AppPassword { page: "https://myaccount.google.com/apppasswords" },
    ),
    service(
        "Outlook",
        &[
            "outlook.com",
            "outlook.de",
            "outlook.fr",
            "hotmail.com",
            "hotmail.co.uk",
            "hotmail.de",
            "hotmail.fr",
            "hotmail.it",
            "live.com",
            "live.co.uk",
            "live.de",
            "live.nl",
            "msn.com",
        ],
        ("outlook.office365.com", 993),
        ("smtp-mail.outlook.com", 587),
        Token,
    ),
    service(
        "Yahoo",
        &[
            "yahoo.com",
            "yahoo.co.uk",
            "yahoo.de",
            "yahoo.fr",
            "yahoo.es",
            "yahoo.it",
            "ymail.com",
            "rocketmail.com",
        ],
        ("imap.mail.yahoo.com", 993),
        ("smtp.mail.yahoo.com", 465),
        AppPassword { page: "https://login.yahoo.com/account/security" },
    ),
    service(
        "AOL",
        &["aol.com", "aim.com"],
        ("imap.aol.com", 993),
        ("smtp.aol.com", 465),
        AppPassword { page: "https://login.aol.com/account/security" },
    ),
    service(
        "iCloud",
        &["icloud.com", "me.com", "mac.com"],
        ("imap.mail.me.com", 993),
        ("smtp.mail.me.com", 587),
        AppPassword { page: "https://account.apple.com/" },
    ),
    service(
        "GMX",
        &["gmx.de", "gmx.net", "gmx.at", "gmx.ch", "gmx.org", "gmx.eu"],
        ("imap.gmx.net", 993),
        ("mail.gmx.net", 465),
        Password,
    ),
    service(
        "GMX",
        &["gmx.com", "gmx.us", "gmx.co.uk"],
        ("imap.gmx.com", 993),
        ("mail.gmx.com", 465),
        Password,
    ),
    service("WEB.DE", &["web.de"], ("imap.web.de", 993), ("smtp.web.de", 587), Password),
    service(
        "T-Online",
        &["t-online.de", "magenta.de"],
        ("secureimap.t-online.de", 993),
        ("securesmtp.t-online.de", 465),
        Password,
    ),
    service(
        "Fastmail",
        &["fastmail.com", "fastmail.fm"],
        ("imap.fastmail.com", 993),
        ("smtp.fastmail.com", 465),
        AppPassword { page: "https://app.fastmail.com/settings/security" },
    ),
    service(
        "Posteo",
        &["posteo.de", "posteo.net", "posteo.org", "posteo.eu"],
        ("posteo.de", 993),
        ("posteo.de", 465),
        Password,
    ),
    service("mailbox.org", &["mailbox.org"], ("imap.mailbox.org", 993), ("smtp.mailbox.org", 465), Password),
    service("Zoho", &["zoho.com", "zohomail.com"], ("imap.zoho.com", 993), ("smtp.zoho.com", 465), Password),
    service("Zoho", &["zoho.eu", "zohomail.eu"], ("imap.zoho.eu", 993), ("smtp.zoho.eu", 465), Password),
    service("mail.com", &["mail.com", "email.com"], ("imap.mail.com", 993), ("smtp.mail.com", 587), Password),
    service(
        "Yandex",
        &["yandex.com", "yandex.ru", "ya.ru"],
        ("imap.yandex.com", 993),
        ("smtp.yandex.com", 465),
        AppPassword { page: "https://id.yandex.com/security/app-passwords" },
    ),
    service("Free", &["free.fr"], ("imap.free.fr", 993), ("smtp.free.fr", 465), Password),
    service("La Poste", &["laposte.net"], ("imap.laposte.net", 993), ("smtp.laposte.net", 465), Password),
    service(
        "Orange",
        &["orange.fr", "wanadoo.fr"],
        ("imap.orange.fr", 993),
        ("smtp.orange.fr", 465),
        Password,
    ),
    service("Libero", &["libero.it"], ("imapmail.libero.it", 993), ("smtp.libero.it", 465), Password),
    service("Seznam", &["seznam.cz"], ("imap.seznam.cz", 993), ("smtp.seznam.cz", 465), Password),
    service("WP", &["wp.pl"], ("imap.wp.pl", 993), ("smtp.wp.pl", 465), Password),
    // Its program on this machine decrypts the mail, and shows the password to use.
    service(
        "Proton Mail",
        &["proton.me", "protonmail.com", "protonmail.ch", "pm.me"],
        ("127.0.0.1", 1143),
        ("127.0.0.1", 1025),
        AppPassword { page: "https://proton.me/mail/bridge" },
    ),
];

/// The service that an address belongs to, if it is a known one.
pub fn service_of(address: &str) -> Option<&'static Service> {
    let domain = domain_of(address)?;
    SERVICES.iter().find(|service| service.domains.contains(&domain.as_str()))
}

fn domain_of(address: &str) -> Option<String> {
    let (_, domain) = address.trim().rsplit_once('@')?;
    (!domain.is_empty()).then(|| domain.to_lowercase())
}

/// Servers to try for an address, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    pub imap: Vec<Server>,
    pub smtp: Vec<Server>,
}

/// The servers of an address: those of its service, or guesses by its domain.
pub fn candidates(address: &str) -> Candidates {
    if let Some(Service { imap, smtp, .. }) = service_of(address) {
        return Candidates { imap: known(*imap), smtp: known(*smtp) };
    }
    let Some(domain) = domain_of(address) else { return Candidates::default() };
    let guess = |first: &str, tls: u16, starttls: u16| {
        let names = [format!("{first}.{domain}"), format!("mail.{domain}")];
        let on = |port| names.clone().map(|host| Server { security: by_port(&host, port), host, port });
        [on(tls), on(starttls)].concat()
    };
    Candidates { imap: guess("imap", 993, 143), smtp: guess("smtp", 465, 587) }
}

/// A program on this machine may offer encryption with a certificate of its own, or none.
fn known((host, port): Known) -> Vec<Server> {
    let with = |security| Server { host: host.to_owned(), port, security };
    match by_port(host, port) {
        Security::Plain => vec![with(Security::StartTls), with(Security::Plain)],
        security => vec![with(security)],
    }
}

/// The ways to speak to a server that the user typed. What a port of their own choice means, only trying tells; without
/// encryption Kai speaks to this machine alone.
pub fn ways(typed: &Server) -> Vec<Server> {
    let with = |security| Server { security, ..typed.clone() };
    match typed.port {
        993 | 465 | 143 | 587 | 25 => vec![typed.clone()],
        _ if is_here(&typed.host) => [Security::Tls, Security::StartTls, Security::Plain].map(with).into(),
        _ => [Security::Tls, Security::StartTls].map(with).into(),
    }
}

/// How a connection to this port is encrypted.
fn by_port(host: &str, port: u16) -> Security {
    match port {
        993 | 465 => Security::Tls,
        143 | 587 | 25 => Security::StartTls,
        _ if is_here(host) => Security::Plain,
        _ => Security::Tls,
    }
}

/// Whether the name is this machine's.
fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The text is not a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", kai_words::said::email_no_server())]
pub struct NoServer;

/// The server that was typed as `HOST` or `HOST:PORT`. The port decides how the connection is encrypted.
pub fn server(typed: &str, which: Which) -> Result<Server, NoServer> {
    let typed = typed.trim();
    let default = match which {
        Which::Imap => 993,
        Which::Smtp => 465,
    };
    let (host, port) = match typed.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => (address, Some(rest.strip_prefix(':').ok_or(NoServer)?)),
        None if typed.parse::<IpAddr>().is_ok() => (typed, None),
        None => typed.split_once(':').map_or((typed, None), |(host, port)| (host, Some(port))),
    };
    let host = host_of(host)?;
    let port = port.map_or(Ok(default), |port| port.parse().map_err(|_| NoServer))?;
    if port == 0 { Err(NoServer) } else { Ok(Server { security: by_port(&host, port), host, port }) }
}

/// The name as servers spell it.
fn host_of(typed: &str) -> Result<String, NoServer> {
    if typed.parse::<IpAddr>().is_ok() {
        return Ok(typed.to_owned());
    }
    let ascii =
        idna::domain_to_ascii_cow(typed.as_bytes(), idna::AsciiDenyList::URL).map_err(|_| NoServer)?;
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let fits = (1..=253).contains(&ascii.len()) && ascii.trim_end_matches('.').split('.').all(is_label);
    if fits { Ok(ascii.to_lowercase()) } else { Err(NoServer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(servers: &[Server]) -> Vec<String> {
        servers
            .iter()
            .map(|server| format!("{}:{} {:?}", server.host, server.port, server.security))
            .collect()
    }

    #[test]
    fn large_services_are_known_and_others_are_guessed() {
        for (address, imap, smtp) in [
            ("a@GMAIL.com", "imap.gmail.com:993 Tls", "smtp.gmail.com:465 Tls"),
            ("a@gmx.at", "imap.gmx.net:993 Tls", "mail.gmx.net:465 Tls"),
            ("a@icloud.com", "imap.mail.me.com:993 Tls", "smtp.mail.me.com:587 StartTls"),
        ] {
            let Candidates { imap: reads, smtp: sends } = candidates(address);
            assert_eq!(
                (shown(&reads), shown(&sends)),
                (vec![imap.to_owned()], vec![smtp.to_owned()]),
                "{address}"
            );
        }
        let guessed = candidates("me@example.org");
        assert_eq!(
            shown(&guessed.imap),
            [
                "imap.example.org:993 Tls",
                "mail.example.org:993 Tls",
                "imap.example.org:143 StartTls",
                "mail.example.org:143 StartTls"
            ]
        );
        assert_eq!(shown(&guessed.smtp)[0], "smtp.example.org:465 Tls");
        assert_eq!(shown(&guessed.smtp)[3], "mail.example.org:587 StartTls");
        assert_eq!(
            shown(&candidates("a@proton.me").imap),
            ["127.0.0.1:1143 StartTls", "127.0.0.1:1143 Plain"]
        );
        assert_eq!(candidates("nobody"), Candidates::default());
        assert_eq!(service_of("a@hotmail.com").unwrap().sign_in, SignIn::Token);
        assert_eq!(service_of("a@example.org"), None);
    }

    #[test]
    fn a_port_of_ones_own_is_tried_with_encryption_first() {
        let ways = |typed: &str| shown(&ways(&server(typed, Which::Imap).unwrap()));
        assert_eq!(ways("mail.example.org:143"), ["mail.example.org:143 StartTls"]);
        assert_eq!(ways("box.lan:1993"), ["box.lan:1993 Tls", "box.lan:1993 StartTls"]);
        assert_eq!(ways("localhost:1143").last().unwrap(), "localhost:1143 Plain");
    }

    #[test]
    fn every_domain_stands_once() {
        let mut domains: Vec<&str> = SERVICES.iter().flat_map(|service| service.domains).copied().collect();
        let all = domains.len();
        domains.sort_unstable();
        domains.dedup();
        assert_eq!(domains.len(), all);
        assert!(domains.iter().all(|domain| *domain == domain.to_lowercase()));
        for service in SERVICES {
            for (host, port) in [service.imap, service.smtp] {
                assert_eq!(host_of(host).as_deref(), Ok(host));
                assert!([993, 465, 587, 1143, 1025].contains(&port));
            }
        }
    }

    #[test]
    fn a_server_is_typed_with_or_without_its_port() {
        for (typed, which, expected) in [
            ("imap.example.org", Which::Imap, Some("imap.example.org:993 Tls")),
            (" smtp.example.org ", Which::Smtp, Some("smtp.example.org:465 Tls")),
            ("Mail.Example.org:587", Which::Smtp, Some("mail.example.org:587 StartTls")),
            ("mail.example.org:25", Which::Smtp, Some("mail.example.org:25 StartTls")),
            ("mail.example.org:1993", Which::Imap, Some("mail.example.org:1993 Tls")),
            ("localhost:1143", Which::Imap, Some("localhost:1143 Plain")),
            ("localhost:143", Which::Imap, Some("localhost:143 StartTls")),
            ("127.0.0.1:1025", Which::Smtp, Some("127.0.0.1:1025 Plain")),
            ("192.168.1.2:1025", Which::Smtp, Some("192.168.1.2:1025 Tls")),
            ("[::1]:1143", Which::Imap, Some("::1:1143 Plain")),
            ("::1", Which::Imap, Some("::1:993 Tls")),
            ("bücher.example", Which::Imap, Some("xn--bcher-kva.example:993 Tls")),
            ("", Which::Imap, None),
            ("a b", Which::Imap, None),
            ("example.org:", Which::Imap, None),
            ("example.org:0", Which::Imap, None),
            ("example.org:99999", Which::Imap, None),
            ("example.org:993:1", Which::Imap, None),
            ("https://example.org", Which::Imap, None),
            ("me@example.org", Which::Imap, None),
            ("a\r\nb", Which::Imap, None),
            ("[::1", Which::Imap, None),
        ] {
            let parsed = server(typed, which).ok().map(|server| shown(&[server]).remove(0));
            assert_eq!(parsed.as_deref(), expected, "{typed:?}");
        }
    }
}
