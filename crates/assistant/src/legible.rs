//! Text as a person gets to see it: what cannot be seen, or would make text look like other text, is spelled out. Pure.

/// The text on one line, with everything that cannot be seen spelled out.
pub fn visible(text: &str) -> String {
    spelled_out(&text.replace(['\n', '\r', '\t'], " "))
}

/// The text with everything that cannot be seen spelled out; line ends stay.
pub fn spelled_out(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, hidden) in looked_at(text) {
        if hidden {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(feature = "sms")]
pub(crate) fn hides_something(text: &str) -> bool {
    looked_at(text).any(|(_, hidden)| hidden)
}

/// Every character, and whether it cannot be seen. Joiners and variation selectors beside a picture make another picture
/// of it, which can be seen; anywhere else they could spell out whole sentences that nobody reads.
fn looked_at(text: &str) -> impl Iterator<Item = (char, bool)> {
    let befores = std::iter::once(None).chain(text.chars().map(Some));
    text.chars().zip(befores).map(|(c, before)| {
        let of_picture = matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}') && before.is_some_and(is_picture);
        (c, is_invisible(c) && !of_picture)
    })
}

fn is_picture(c: char) -> bool {
    matches!(
        c,
        '\u{23}' | '\u{2a}' | '0'..='9' | '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
            | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}'
    )
}

/// Control, zero-width, direction-changing, tag and selector characters, with which text can be made to look like other
/// text or to say more than is seen.
pub fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_hidden() {
        assert_eq!(spelled_out("a\u{202e}b\u{200b}\nc\u{7}"), "a\\u{202e}b\\u{200b}\nc\\u{7}");
        assert_eq!(spelled_out("grün 😀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}"), "grün 😀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}");
        let smuggled = "Yes\u{e0150}\u{fe05}a\u{200d}b\u{2800}";
        assert_eq!(spelled_out(smuggled), "Yes\\u{e0150}\\u{fe05}a\\u{200d}b\\u{2800}");
    }

    #[test]
    fn one_line_steers_nothing() {
        for (text, expected) in [
            ("a\u{1b}[31mb\nc\u{202e}d", "a\\u{1b}[31mb c\\u{202e}d"),
            ("grün 😀 \u{9b}", "grün 😀 \\u{9b}"),
            ("hi\u{e0041}\u{2028}\r\tx", "hi\\u{e0041}\\u{2028}  x"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }
}
