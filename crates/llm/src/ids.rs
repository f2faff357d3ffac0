//! Tool names and call ids in the form that providers accept. Pure.

use std::hash::{BuildHasher, RandomState};

use crate::CallId;

/// Prefix of an id that we generated. With six more characters the id has nine letters and digits, the only form
/// Mistral accepts.
const MARK: &str = "kai";

const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Generates ids for the calls of one reply whose server gave none.
pub(crate) struct IdGenerator {
    next: u64,
}

impl IdGenerator {
    /// Starts at a random number, so that ids rarely repeat in a conversation; `repair` renames those that do.
    pub(crate) fn random() -> Self {
        Self { next: RandomState::new().hash_one(0_u8) }
    }

    #[cfg(test)]
    pub(crate) fn from_zero() -> Self {
        Self { next: 0 }
    }

    pub(crate) fn id(&mut self) -> CallId {
        let id = format!("{MARK}{}", letters(self.next, 6));
        self.next = self.next.wrapping_add(1);
        CallId(id)
    }
}

/// Whether we generated this id.
pub(crate) fn is_generated(id: &CallId) -> bool {
    let tail = id.0.strip_prefix(MARK);
    tail.is_some_and(|tail| tail.len() == 6 && tail.bytes().all(|byte| LETTERS.contains(&byte)))
}

/// The id itself if the provider accepts it, otherwise a short replacement that is always the same for that id.
pub(crate) fn accepted(id: &CallId, takes: impl Fn(&str) -> bool) -> String {
    if takes(&id.0) { id.0.clone() } else { letters(fingerprint(&id.0), 9) }
}

pub(crate) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A tool name in the form every provider accepts. A model may have invented one that is not.
pub(crate) fn tool_name(name: &str) -> String {
    let plain = |c: char| if u8::try_from(c).is_ok_and(is_plain) { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    match name.as_bytes().first() {
        None => "unknown".to_owned(),
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => name,
        Some(_) => format!("_{}", &name[..name.len().min(63)]),
    }
}

fn letters(mut number: u64, count: usize) -> String {
    let mut text = vec![b'0'; count];
    for place in text.iter_mut().rev() {
        *place = LETTERS[usize::try_from(number % 36).unwrap_or(0)];
        number /= 36;
    }
    String::from_utf8(text).unwrap_or_default()
}

/// FNV-1a. It gives the same result on every run and machine, so a repeated request has identical bytes.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_ids_differ_and_are_known_again() {
        let mut ids = IdGenerator::from_zero();
        let (first, second) = (ids.id(), ids.id());
        assert_eq!((first.0.as_str(), second.0.as_str()), ("kai000000", "kai000001"));
        assert!(
            is_generated(&second)
                && !is_generated(&CallId("call_1".into()))
                && !is_generated(&CallId("kai".into()))
        );
    }

    #[test]
    fn tool_names_become_plain() {
        let long = "x".repeat(80);
        for (name, expected) in [
            ("get_time", "get_time"),
            ("a.b c", "a_b_c"),
            ("", "unknown"),
            ("1st", "_1st"),
            ("größe", "gr__e"),
            (long.as_str(), &long[..64]),
        ] {
            assert_eq!(tool_name(name), expected);
        }
        assert_eq!(tool_name(&"1".repeat(80)).len(), 64);
    }

    #[test]
    fn an_id_is_replaced_only_where_it_must_be() {
        let nine = |id: &str| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        assert_eq!(accepted(&CallId("abcdefgh9".into()), nine), "abcdefgh9");
        let other = accepted(&CallId("call_abc".into()), nine);
        assert!(nine(&other), "{other}");
        assert_eq!(other, accepted(&CallId("call_abc".into()), nine));
        assert_ne!(other, accepted(&CallId("call_abd".into()), nine));
    }
}
