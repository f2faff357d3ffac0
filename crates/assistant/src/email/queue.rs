//! The mails that wait for the next heartbeat, whichever account received them.

use serde::{Deserialize, Serialize};

use super::EmailId;
use super::port::{Header, Mailbox};
use super::seen::seen;
use crate::pending::Queue;
use crate::settings::Values;
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

pub const QUEUE: Queue = Queue("email");
/// How many characters of a mail's text its queue entry holds, and lists show.
pub const PREVIEW: usize = 200;
/// How many characters of a name, an address and a subject are kept.
const NAME: usize = 100;
const ADDRESS: usize = 254;
const SUBJECT: usize = 300;

/// A mail that waits for the next heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub id: EmailId,
    pub name: Untrusted,
    pub address: Untrusted,
    pub subject: Untrusted,
    /// When the server received it, in epoch milliseconds.
    pub received: i64,
    pub preview: Untrusted,
    /// A program sent it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bulk: bool,
}

impl Queued {
    /// The entry for a mail. Codes are redacted before anything is cut, or half of one could remain.
    pub(super) fn of(id: EmailId, header: &Header, values: &Values) -> Self {
        let Mailbox { name, address } = &header.from;
        let [name, subject, text] = seen(Eyes::of_model(values), [name, &header.subject, &header.beginning]);
        Self {
            id,
            name: Untrusted::new(name.line(NAME)),
            address: Untrusted::new(address.line(ADDRESS)),
            subject: Untrusted::new(subject.line(SUBJECT)),
            received: header.received.as_millisecond(),
            preview: Untrusted::new(text.line(PREVIEW)),
            bulk: header.bulk,
        }
    }

    /// The name under which the ledger records it.
    pub fn identity(&self) -> String {
        self.id.identity()
    }

    /// The sender as one text, such as `Alice <alice@example.org>`.
    pub fn from(&self) -> Untrusted {
        Untrusted::new(shown(&self.name, &self.address, NAME + ADDRESS))
    }

    /// Guesses whether a person wrote it.
    pub fn is_personal(&self) -> bool {
        !self.bulk && !is_automatic(self.address.as_written())
    }
}

/// A sender as one line of at most `longest` characters. The address stays, however long the name is: the name is
/// chosen freely.
pub fn shown(name: &Untrusted, address: &Untrusted, longest: usize) -> String {
    let address = address.line(longest.saturating_sub(2).min(ADDRESS));
    let taken = address.chars().count() + 3;
    // Without brackets in the name, what stands in brackets is the address.
    let name = name.map(|name| name.replace(['<', '>'], " ")).line(longest.saturating_sub(taken));
    match (name.is_empty() || name == address, address.is_empty()) {
        (true, _) => address,
        (false, true) => name,
        (false, false) => format!("{name} <{address}>"),
    }
}

/// Whether an address names itself one that nobody reads.
fn is_automatic(address: &str) -> bool {
    let local = address.rsplit_once('@').map_or(address, |(local, _)| local).to_lowercase();
    let plain: String = local.chars().filter(|c| !"-_.".contains(*c)).collect();
    ["noreply", "donotreply", "mailerdaemon", "postmaster", "notification", "newsletter", "bounce"]
        .iter()
        .any(|word| plain.starts_with(word) || plain.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_stays_however_long_the_name_is() {
        for (name, address, longest, expected) in [
            ("Alice", "alice@x.test", 80, "Alice <alice@x.test>"),
            ("", "alice@x.test", 80, "alice@x.test"),
            ("alice@x.test", "alice@x.test", 80, "alice@x.test"),
            ("Alice", "", 80, "Alice"),
            ("", "", 80, ""),
            ("Boss <boss@work.test>", "evil@x.test", 80, "Boss boss@work.test <evil@x.test>"),
            ("aaaaaaaaaaaaaaaaaaaa", "b@x.test", 16, "aaaaa <b@x.test>"),
            ("a\r\nb\u{202e}c", "b@x\n.test", 80, "a b c <b@x .test>"),
        ] {
            let (name, address) = (Untrusted::new(name), Untrusted::new(address));
            assert_eq!(shown(&name, &address, longest), expected);
        }
    }

    #[test]
    fn programs_have_addresses_that_nobody_reads() {
        for (address, expected) in [
            ("alice@example.org", false),
            ("noreply@shop.test", true),
            ("No-Reply@shop.test", true),
            ("do_not_reply@shop.test", true),
            ("shop-noreply@x.test", true),
            ("MAILER-DAEMON@x.test", true),
            ("", false),
        ] {
            assert_eq!(is_automatic(address), expected, "{address}");
        }
    }
}
