//! Encodes bytes as hexadecimal text and decodes them.

use std::fmt::Write;

pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes pairs of hexadecimal digits; `None` for anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let nibble = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(nibble(*pair.first()?)? << 4 | nibble(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_and_forth_and_nothing_else() {
        assert_eq!(decode(&encode(&[0, 9, 0xab, 255])), Some(vec![0, 9, 0xab, 255]));
        for bad in ["0", "abc", "zz", "é0"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
