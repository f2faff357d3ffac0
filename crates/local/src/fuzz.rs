//! Checks that any bytes give a header or a one-sentence error. Every test run does this with mutated headers; `fuzz/`
//! searches for more cases.

use crate::gguf;

/// The longest error in characters.
const LONGEST_SENTENCE: usize = 200;

/// Reads arbitrary bytes as the header of a model.
pub fn header(bytes: &[u8]) {
    match gguf::parse(bytes) {
        Ok(header) => {
            let texts = [Some(&header.architecture), header.name.as_ref(), header.size.as_ref()];
            let held: usize = texts.into_iter().flatten().map(String::len).sum();
            // A byte that is no text becomes a character of three.
            assert!(held <= 3 * bytes.len(), "more was read than came in");
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.chars().count() <= LONGEST_SENTENCE, "{said}");
            assert!(!said.chars().any(char::is_control), "{said:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gguf::made;

    proptest! {
        #[test]
        fn whatever_a_file_says_is_a_header_or_a_sentence(
            bytes in kai_mutate::bytes(vec![made::qwen().done(), made::Made::new(2).done()]),
        ) {
            header(&bytes);
        }
    }
}
