//! Checks that any bytes from a name server give addresses of the family that was asked for, or nothing. Every test run
//! does this with mutated answers; `fuzz/` searches for more cases.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use super::message::{Answer, Family, Name, Question, read};

/// Reads arbitrary bytes as an answer about two names. Its number is taken for that of the question, since an answer
/// with another one is not read at all.
pub fn answer(bytes: &[u8]) {
    let number = bytes.first_chunk().map_or(0, |number| u16::from_be_bytes(*number));
    for name in ["a.example.org", "b"] {
        let name = Name::parse(name).unwrap();
        for family in [Family::V4, Family::V6] {
            let question = Question { number, name: &name, family };
            check(&question, bytes);
            let other = Question { number: !number, ..question };
            assert_eq!(read(&other, bytes), None, "an answer to another question");
        }
    }
}

fn check(question: &Question<'_>, bytes: &[u8]) {
    let Some(answer) = read(question, bytes) else { return };
    let asked = &question.bytes()[12..];
    assert!(bytes.len() >= 12 + asked.len(), "it is shorter than the question that it repeats");
    if let Answer::Addresses(found) = answer {
        assert!(found.len() <= 32 && found.len() <= bytes.len() / 11);
        assert!(found.iter().all(|ip| ip.is_ipv4() == (question.family == Family::V4)), "{found:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::tests::{ASKED, BROKEN, CUT, GOOD, UNKNOWN, built};
    use super::*;

    /// Answers as real servers build them.
    fn answers() -> Vec<Vec<u8>> {
        let name = Name::parse("a.example.org").unwrap();
        let edge: &[u8] = &[4, b'e', b'd', b'g', b'e', 0xc0, 14];
        let of = |family, flags, records: &[(&[u8], u16, &[u8])]| {
            built(&Question { number: 0x1234, name: &name, family }.bytes(), flags, records)
        };
        vec![
            of(Family::V4, GOOD, &[(ASKED, 1, &[192, 0, 2, 1]), (ASKED, 1, &[192, 0, 2, 2])]),
            of(
                Family::V4,
                GOOD,
                &[(ASKED, 5, edge), (edge, 5, b"\x01b\0"), (b"\x01b\0", 1, &[192, 0, 2, 1])],
            ),
            of(Family::V6, GOOD, &[(ASKED, 5, edge), (&[0xc0, 43], 28, &[1; 16])]),
            of(Family::V4, CUT, &[]),
            of(Family::V6, UNKNOWN, &[]),
            of(Family::V4, BROKEN, &[]),
        ]
    }

    proptest! {
        #[test]
        fn whatever_a_name_server_sends_is_addresses_or_nothing(bytes in kai_mutate::bytes(answers())) {
            answer(&bytes);
        }
    }

    #[test]
    fn the_examples_are_read() {
        let name = Name::parse("a.example.org").unwrap();
        let read = |bytes: &Vec<u8>| {
            let families = [Family::V4, Family::V6];
            families
                .into_iter()
                .find_map(|family| read(&Question { number: 0x1234, name: &name, family }, bytes))
        };
        let counts = answers().into_iter().map(|bytes| match read(&bytes) {
            Some(Answer::Addresses(found)) => i32::try_from(found.len()).unwrap(),
            Some(Answer::Truncated) => -1,
            Some(Answer::Failed) => -2,
            None => -3,
        });
        assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 1, -1, 0, -2]);
    }
}
