//! Splits bytes into chunks at positions that depend on the content only, so that inserting or appending text does not
//! move the cuts elsewhere.

/// The bounds on the size of a chunk; only the last one may be smaller.
const SMALLEST: usize = 512;
const LARGEST: usize = 16 * 1024;
/// A position is a cut where these bits of the hash are zero: on average one in 2,048.
const MASK: u64 = 2048 - 1;
/// The multiplier that spreads a byte over the hash. Every byte shifts the hash by one bit, so that a byte no longer
/// counts after 64 more.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The chunks in order. Joined, they are `bytes`.
pub(super) fn cut(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (chunk, tail) = rest.split_at(next_cut(rest));
        rest = tail;
        Some(chunk)
    })
}

fn next_cut(bytes: &[u8]) -> usize {
    let mut hash: u64 = 0;
    for (at, byte) in bytes.iter().enumerate().take(LARGEST) {
        hash = (hash << 1).wrapping_add(u64::from(*byte).wrapping_add(1).wrapping_mul(SPREAD));
        if at >= SMALLEST && (hash >> 40) & MASK == 0 {
            return at + 1;
        }
    }
    bytes.len().min(LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_between_the_cuts(bytes in proptest::collection::vec(any::<u8>(), 0..100_000)) {
            let whole: Vec<u8> = cut(&bytes).flatten().copied().collect();
            prop_assert_eq!(&whole, &bytes);
            for chunk in cut(&bytes) {
                prop_assert!(!chunk.is_empty() && chunk.len() <= LARGEST);
            }
        }
    }
}
