//! The verification key: eight characters that both devices show, so that a person can see that nobody sits between
//! them. Pure.

use kai_assistant::hex;
use sha2::{Digest, Sha256};

use super::identity::Protocol;

/// The key for two public keys. Since version 8 the time of the request is part of it.
pub(super) fn verification_key(one: &[u8], other: &[u8], protocol: Protocol, timestamp: i64) -> String {
    let (larger, smaller) = if one > other { (one, other) } else { (other, one) };
    let mut hash = Sha256::new();
    hash.update(larger);
    hash.update(smaller);
    if protocol.is_8() {
        hash.update(timestamp.to_string());
    }
    hex::encode(&hash.finalize()[..4]).to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_get_the_same_key_and_everything_counts() {
        let key = |one: &[u8], other: &[u8], protocol| verification_key(one, other, protocol, 1_794_702_151);
        // The hash of `b` before `a`, by sha256sum.
        assert_eq!(key(b"a", b"b", Protocol::V7), "970F519C");
        assert_eq!(key(b"b", b"a", Protocol::V7), key(b"a", b"b", Protocol::V7));
        assert_eq!(key(b"b", b"a", Protocol::V8), key(b"a", b"b", Protocol::V8));
        assert_ne!(key(b"a", b"b", Protocol::V8), key(b"a", b"b", Protocol::V7));
        assert_ne!(key(b"a", b"b", Protocol::V8), verification_key(b"a", b"b", Protocol::V8, 1_794_702_152));
        // Bytes are compared as unsigned numbers.
        assert_eq!(
            key(&[0x80], &[0x7f], Protocol::V7),
            hex::encode(&Sha256::digest([0x80, 0x7f])[..4]).to_uppercase()
        );
    }
}
