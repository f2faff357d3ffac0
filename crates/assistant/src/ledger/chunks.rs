//! Splits bytes into chunks at positions that depend on the content only, so that inserting or appending text does not
//! move the cuts elsewhere.

/// The bounds on the size of a chunk; only the last one may be smaller.
const SMALLEST: usize = 512;
const LARGEST: usize = 16 * 1024;
/// A position is a cut where these bits of the hash are zero: on average one in 2,048.
const MASK: u64 = 2048 - 1;
/// The multiplier that spreads a byte over the hash. Every byte shifts the hash by one bit, so that a byte no longer
/// counts after as many more as this.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const COUNTING: usize = 64;
/// What each byte adds to the hash.
const SPREADS: [u64; 256] = {
    let (mut spreads, mut byte) = ([0; 256], 0);
    while byte < spreads.len() {
        spreads[byte] = (byte as u64 + 1).wrapping_mul(SPREAD);
        byte += 1;
    }
    spreads
};

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
    let Some((small, rest)) = bytes[..bytes.len().min(LARGEST)].split_at_checked(SMALLEST) else {
        return bytes.len();
    };
    let rolled = |hash: u64, byte: u8| (hash << 1).wrapping_add(SPREADS[usize::from(byte)]);
    // What is too far from the first possible cut to count for it is left out.
    let mut hash = small[SMALLEST + 1 - COUNTING..].iter().fold(0, |hash, byte| rolled(hash, *byte));
    for (at, byte) in rest.iter().enumerate() {
        hash = rolled(hash, *byte);
        if (hash >> 40) & MASK == 0 {
            return SMALLEST + at + 1;
        }
    }
    SMALLEST + rest.len()
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

    /// Requests that were recorded earlier share their chunks only if the cuts stay where they are.
    #[test]
    fn cuts_stay_where_they_are() {
        let mut state: u64 = 7;
        let bytes: Vec<u8> = (0..50_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"abcdefgh {}:,\"xyz"[usize::try_from((state >> 33) % 17).unwrap()]
            })
            .collect();
        let lengths: Vec<usize> = cut(&bytes).take(12).map(<[u8]>::len).collect();
        assert_eq!(lengths, [2489, 652, 2536, 4694, 1855, 1283, 679, 3326, 1999, 5091, 3604, 981]);
    }
}
