//! Counts how many SMS parts a text needs. Pure.
//!
//! A message in the GSM alphabet holds 160 characters, or 153 in each part of a longer one. Any other text is counted
//! in UTF-16 units: 70, or 67 per part. A part never ends inside a character that takes two places.

/// How a text is split into SMS parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    pub count: usize,
    /// Whether the text has a character outside the GSM alphabet, so that each part holds less than half as much.
    pub unicode: bool,
}

const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿\
                     abcdefghijklmnopqrstuvwxyzäöñüà";
/// Characters of the GSM alphabet that take two places each.
const EXTENSION: &str = "\u{c}^{}\\[~]|€";

pub fn segments(text: &str) -> Segments {
    let gsm: Option<Vec<usize>> = text.chars().map(places).collect();
    if let Some(places) = gsm {
        return Segments { count: parts(&places, 160, 153), unicode: false };
    }
    let units: Vec<usize> = text.chars().map(char::len_utf16).collect();
    Segments { count: parts(&units, 70, 67), unicode: true }
}

/// How many places a character takes in the GSM alphabet, or `None` if it is not in the alphabet.
fn places(c: char) -> Option<usize> {
    if BASIC.contains(c) { Some(1) } else { EXTENSION.contains(c).then_some(2) }
}

fn parts(characters: &[usize], alone: usize, each: usize) -> usize {
    if characters.iter().sum::<usize>() <= alone {
        return 1;
    }
    let (mut count, mut room) = (1, each);
    for places in characters {
        if *places > room {
            (count, room) = (count + 1, each);
        }
        room -= places;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_as_phones_cut_it() {
        for (name, text, count, unicode) in [
            ("nothing", String::new(), 1, false),
            ("one full", "x".repeat(160), 1, false),
            ("one too many", "x".repeat(161), 2, false),
            ("two full", "x".repeat(306), 2, false),
            ("three", "x".repeat(307), 3, false),
            ("euro signs take two places", "€".repeat(80), 1, false),
            ("and are not cut in half", "€".repeat(81), 2, false),
            ("76 to a part, not 76 and a half", "€".repeat(153), 3, false),
            ("umlauts are in the alphabet", "äöüßÄÖÜ".to_owned(), 1, false),
            ("a backtick is not", "`".repeat(71), 2, true),
            ("unicode, one full", "ж".repeat(70), 1, true),
            ("unicode, two", "ж".repeat(134), 2, true),
            ("unicode, three", "ж".repeat(135), 3, true),
            ("an emoji takes two", "😀".repeat(35), 1, true),
            ("and is not cut in half", "😀".repeat(67), 3, true),
        ] {
            assert_eq!(segments(&text), Segments { count, unicode }, "{name}");
        }
    }
}
