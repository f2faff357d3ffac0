//! Calls about paired phones, and the rows they return.

use kai_assistant::phones::{SourceId, Switch};
use serde::{Deserialize, Serialize};

/// A call about paired phones. A phone is meant by its name or its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PhonesCall {
    List,
    Rename {
        phone: String,
        name: String,
    },
    Remove {
        phone: String,
        keep_messages: bool,
    },
    Default {
        phone: String,
    },
    Set {
        phone: String,
        switch: Switch,
        on: bool,
    },
    /// What goes on in the network of phones.
    Network,
    Search {
        on: bool,
    },
    Connect {
        address: String,
    },
    Pair {
        device: String,
    },
    /// The user saw this key on both devices.
    Accept {
        device: String,
        key: String,
    },
    Refuse {
        device: String,
    },
}

/// A row of `kai phones list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PhoneRow {
    pub(crate) id: SourceId,
    /// What the phone calls itself on the network.
    pub(crate) device: String,
    pub(crate) name: String,
    /// False for a phone that is no longer paired, but whose messages are kept.
    pub(crate) paired: bool,
    pub(crate) connected: bool,
    /// Epoch milliseconds.
    pub(crate) last_seen: Option<i64>,
    pub(crate) last_seen_local: Option<String>,
    pub(crate) paired_at: i64,
    pub(crate) paired_local: String,
    pub(crate) address: Option<String>,
    pub(crate) sends_by_default: bool,
    pub(crate) switches: SwitchesRow,
    pub(crate) archive: ArchiveRow,
    pub(crate) troubles: Vec<TroubleRow>,
}

/// A phone's switches, by their names in `kai phones set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are the phone's switches, one for one")]
pub(crate) struct SwitchesRow {
    pub(crate) read_sms: bool,
    pub(crate) send_sms: bool,
    pub(crate) notifications: bool,
    pub(crate) names: bool,
    pub(crate) composer: bool,
    pub(crate) tell: bool,
}

/// How much of a phone's messages is kept here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveRow {
    pub(crate) messages: u64,
    /// How far the archive is filled, in thousandths; `None` before the phone was asked.
    pub(crate) progress: Option<u16>,
    /// Epoch milliseconds.
    pub(crate) last_sync: Option<i64>,
}

/// Something that is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TroubleRow {
    pub(crate) what: String,
    pub(crate) says: String,
    pub(crate) next: String,
}

/// What goes on in the network of phones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NetworkRow {
    /// The open port; `None` while none is.
    pub(crate) port: Option<u16>,
    /// When the search ends, in epoch milliseconds; `None` if there is none.
    pub(crate) searching_until: Option<i64>,
    pub(crate) nearby: Vec<NearbyRow>,
    pub(crate) pairings: Vec<PairingRow>,
    pub(crate) last_pairing: Option<LastPairingRow>,
    pub(crate) troubles: Vec<TroubleRow>,
}

/// A phone in reach that is not paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NearbyRow {
    pub(crate) device: String,
    pub(crate) name: String,
    pub(crate) address: String,
}

/// A pairing that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PairingRow {
    pub(crate) device: String,
    pub(crate) name: String,
    /// The key that both devices show.
    pub(crate) key: String,
    /// Whether the phone asked; otherwise Kai did.
    pub(crate) by_phone: bool,
    /// Epoch milliseconds.
    pub(crate) until: i64,
}

/// How the last pairing ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastPairingRow {
    pub(crate) device: String,
    pub(crate) name: String,
    pub(crate) paired: bool,
    /// Epoch milliseconds.
    pub(crate) at: i64,
    pub(crate) says: String,
}

/// The object `phones` of `kai status --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PhonesStatus {
    pub(crate) paired: usize,
    pub(crate) connected: usize,
    /// The port that is open to the local network; `None` while none is.
    pub(crate) port: Option<u16>,
    /// When the search ends, in epoch milliseconds; `None` if there is none.
    pub(crate) searching_until: Option<i64>,
    /// What is open, to whom, and how to close it.
    pub(crate) says: String,
}
