//! What can be wrong with paired phones and their network, in words with the next step. Pure: `kai doctor`,
//! `kai phones list` and the page say the same.

use jiff::{SignedDuration, Timestamp};
use kai_assistant::phones::Phone;
use kai_bridges::kdeconnect::Failure;
use kai_words::{Said, said};

use crate::call::phones::TroubleRow;
use crate::phones::SEARCH;
use crate::phones::state::{LinkState, LinkTrouble, NetworkState, NetworkTrouble, Outcome};

/// How long a search may find nothing before a firewall is suspected.
const NOTHING_FOUND: SignedDuration = SignedDuration::from_mins(2);
/// How long a paired phone may be away before the page says what to check.
const SILENT: SignedDuration = SignedDuration::from_mins(15);

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    NoNetwork,
    PortsTaken,
    /// No port can be opened, for this reason.
    Closed(String),
    /// Another program hears the phones' announcements instead.
    Deaf,
    /// A search has found nothing for a while.
    NothingFound,
    /// The last pairing failed because the clocks differ.
    ClocksDiffer,
    CertificateChanged,
    OlderProtocol,
    /// The phone ended the pairing.
    Unpaired,
    /// The phone answers, but the connection fails.
    Refused,
    /// The phone is not connected.
    Silent,
    /// The phone is connected but does not answer when asked for its messages.
    Unanswered,
}

impl Trouble {
    /// The name in JSON.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::NoNetwork => "no_network",
            Self::PortsTaken => "ports_taken",
            Self::Closed(_) => "closed",
            Self::Deaf => "no_announcements",
            Self::NothingFound => "nothing_found",
            Self::ClocksDiffer => "clocks_differ",
            Self::CertificateChanged => "certificate_changed",
            Self::OlderProtocol => "older_protocol",
            Self::Unpaired => "unpaired",
            Self::Refused => "refused",
            Self::Silent => "silent",
            Self::Unanswered => "unanswered",
        }
    }

    pub(crate) fn says(&self) -> Said {
        match self {
            Self::NoNetwork => said::paired_trouble_no_network(),
            Self::PortsTaken => said::paired_trouble_ports(),
            Self::Closed(why) => said::paired_trouble_closed(why),
            Self::Deaf => said::paired_trouble_deaf(),
            Self::NothingFound => said::paired_trouble_nothing_found(),
            Self::ClocksDiffer => said::paired_trouble_clocks(),
            Self::CertificateChanged => said::paired_trouble_certificate(),
            Self::OlderProtocol => said::paired_trouble_protocol(),
            Self::Unpaired => said::paired_trouble_unpaired(),
            Self::Refused => said::paired_trouble_refused(),
            Self::Silent => said::paired_trouble_silent(),
            Self::Unanswered => said::paired_trouble_unanswered(),
        }
    }

    /// What to do about it.
    pub(crate) fn next(&self) -> Said {
        match self {
            Self::NoNetwork => said::paired_next_no_network(),
            Self::PortsTaken => said::paired_next_ports(),
            Self::Closed(_) => said::paired_next_closed(),
            Self::Deaf => said::paired_next_deaf(),
            Self::NothingFound => said::paired_next_nothing_found(),
            Self::ClocksDiffer => said::paired_next_clocks(),
            Self::CertificateChanged => said::paired_next_certificate(),
            Self::OlderProtocol => said::paired_next_protocol(),
            Self::Unpaired => said::paired_next_unpaired(),
            Self::Refused => said::paired_next_refused(),
            Self::Silent => said::paired_next_silent(),
            Self::Unanswered => said::paired_next_unanswered(),
        }
    }

    /// Whether nothing works until somebody deals with it.
    pub(crate) fn is_broken(&self) -> bool {
        match self {
            Self::NoNetwork
            | Self::PortsTaken
            | Self::Closed(_)
            | Self::CertificateChanged
            | Self::OlderProtocol
            | Self::Unpaired => true,
            Self::Deaf
            | Self::NothingFound
            | Self::ClocksDiffer
            | Self::Refused
            | Self::Silent
            | Self::Unanswered => false,
        }
    }

    /// For JSON and the terminal, which speak English.
    pub(crate) fn row(&self) -> TroubleRow {
        let (says, next) = (self.says().to_string(), self.next().to_string());
        TroubleRow { what: self.as_str().to_owned(), says, next }
    }
}

/// What is wrong with the network.
pub(crate) fn of_network(state: &NetworkState, now: Timestamp) -> Vec<Trouble> {
    let unreachable = state.trouble.as_ref().map(unreachable);
    let is_deaf = state.listening.is_some_and(|listening| !listening.hears_announcements);
    let found = !state.nearby.is_empty() || !state.pairings.is_empty();
    let searched = state.search.map(|until| SEARCH - until.duration_since(now));
    let in_vain = !found && searched.is_some_and(|searched| searched >= NOTHING_FOUND);
    let differ = Outcome::Failed(Failure::ClocksDiffer);
    let clocks = state.last_pairing.as_ref().is_some_and(|last| last.outcome == differ);
    [
        unreachable,
        is_deaf.then_some(Trouble::Deaf),
        in_vain.then_some(Trouble::NothingFound),
        clocks.then_some(Trouble::ClocksDiffer),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Why phones cannot be reached at all.
pub(crate) fn unreachable(trouble: &NetworkTrouble) -> Trouble {
    match trouble {
        NetworkTrouble::NoNetwork => Trouble::NoNetwork,
        NetworkTrouble::PortsTaken => Trouble::PortsTaken,
        NetworkTrouble::NotAllowed(why) | NetworkTrouble::Identity(why) => Trouble::Closed(why.clone()),
        NetworkTrouble::Store => Trouble::Closed("the store cannot be read".to_owned()),
    }
}

/// What is wrong with a paired phone. `unanswered` says that it was asked for its messages in vain.
pub(crate) fn of_phone(phone: &Phone, link: LinkState, unanswered: bool, now: Timestamp) -> Vec<Trouble> {
    let is_connected = link.connected.is_some();
    let refused = link.trouble.filter(|_| !is_connected).and_then(|trouble| match trouble {
        LinkTrouble::WrongCertificate => Some(Trouble::CertificateChanged),
        LinkTrouble::OlderProtocol => Some(Trouble::OlderProtocol),
        LinkTrouble::Unpaired => Some(Trouble::Unpaired),
        LinkTrouble::Refused => Some(Trouble::Refused),
        // It is away, or connects again by itself.
        LinkTrouble::Unreachable | LinkTrouble::TooMuch => None,
    });
    let seen = phone.last_seen.unwrap_or(phone.paired_at);
    let is_silent = !is_connected && refused.is_none() && now.duration_since(seen) >= SILENT;
    let unanswered = is_connected && unanswered;
    [refused, is_silent.then_some(Trouble::Silent), unanswered.then_some(Trouble::Unanswered)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use kai_assistant::phones::{SourceId, Switches};
    use kai_bridges::kdeconnect::{DeviceId, DeviceKind};

    use super::*;
    use crate::phones::state::{Listening, Nearby, PairingOutcome};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    fn names(troubles: &[Trouble]) -> Vec<&'static str> {
        troubles.iter().map(Trouble::as_str).collect()
    }

    #[test]
    fn what_is_wrong_with_the_network_is_named() {
        let hears = |hears_announcements| Some(Listening { port: 1716, hears_announcements });
        let (device, name) = (DeviceId::from_random([7; 16]), "Pixel".to_owned());
        let nearby = Nearby {
            device: device.clone(),
            name: name.clone(),
            kind: DeviceKind::Phone,
            address: "10.0.0.2:1716".parse().unwrap(),
        };
        let outcome = Outcome::Failed(Failure::ClocksDiffer);
        let last = PairingOutcome { device, name, at: at(0), outcome };
        let base = NetworkState { listening: hears(true), search: Some(at(5)), ..NetworkState::default() };
        for (name, state, minute, expected) in [
            ("nothing runs", NetworkState::default(), 9, &[][..]),
            ("a search begins", base.clone(), 0, &[]),
            ("not long yet", base.clone(), 1, &[]),
            ("two minutes in vain", base.clone(), 2, &["nothing_found"]),
            ("found", NetworkState { nearby: vec![nearby], ..base.clone() }, 4, &[]),
            ("deaf", NetworkState { listening: hears(false), ..base.clone() }, 0, &["no_announcements"]),
            (
                "no network",
                NetworkState { trouble: Some(NetworkTrouble::NoNetwork), ..NetworkState::default() },
                0,
                &["no_network"],
            ),
            (
                "ports taken",
                NetworkState { trouble: Some(NetworkTrouble::PortsTaken), ..NetworkState::default() },
                0,
                &["ports_taken"],
            ),
            ("clocks", NetworkState { last_pairing: Some(last), ..base }, 0, &["clocks_differ"]),
        ] {
            assert_eq!(names(&of_network(&state, at(minute))), expected, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_phone_is_named() {
        let phone = Phone {
            source: SourceId(2),
            device: "d".to_owned(),
            name: "Pixel".to_owned(),
            certificate: vec![],
            protocol: 8,
            paired_at: at(0),
            last_seen: Some(at(0)),
            address: None,
            sends_by_default: false,
            switches: Switches::default(),
            read_since: None,
        };
        let link = |connected: bool, trouble| LinkState { connected: connected.then_some(at(0)), trouble };
        for (name, link, unanswered, minute, expected) in [
            ("connected", link(true, None), false, 99, &[][..]),
            ("away for a moment", link(false, None), false, 14, &[]),
            ("away for long", link(false, None), false, 15, &["silent"]),
            ("does not answer", link(true, None), true, 0, &["unanswered"]),
            ("away, did not answer before", link(false, None), true, 1, &[]),
            (
                "another certificate",
                link(false, Some(LinkTrouble::WrongCertificate)),
                false,
                99,
                &["certificate_changed"],
            ),
            ("downgraded", link(false, Some(LinkTrouble::OlderProtocol)), false, 0, &["older_protocol"]),
            ("unpaired there", link(false, Some(LinkTrouble::Unpaired)), false, 0, &["unpaired"]),
            ("refused", link(false, Some(LinkTrouble::Refused)), false, 99, &["refused"]),
            ("does not answer the call", link(false, Some(LinkTrouble::Unreachable)), false, 1, &[]),
            ("refused before", link(true, Some(LinkTrouble::OlderProtocol)), false, 1, &[]),
        ] {
            assert_eq!(names(&of_phone(&phone, link, unanswered, at(minute))), expected, "{name}");
        }
    }
}
