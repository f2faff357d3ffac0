//! Remembers one-time codes from earlier texts, and removes them from later ones however they are spelled there.
//!
//! A code is stored as its letters and digits alone. In a text its characters may be spaced out (`482 913`,
//! `4-8-2-9-1-3`, `4.8.2.9.1.3`), in another script (`４８２９１３`, `४८२९१३`, `①②③④`), escaped (`\u0034`, `%34`, `&#52;`),
//! or written as words ("four eight two …"). A code shorter than [`LONG`] is not searched for inside longer numbers,
//! where it would occur by chance.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::redact::{find, redact, replace};
use crate::spelled::digit_name;
use crate::tokens::digit_value;

/// Codes of at least this length are removed from longer numbers too, because they do not occur in them by chance.
const LONG: usize = 6;
/// Shorter codes are not remembered.
const SHORTEST: usize = 4;
/// How many signs may be between two characters of a code that is spelled out.
const MOST_BETWEEN: usize = 6;

/// A set of codes that were seen before, to be removed from other texts.
///
/// ```
/// let mut codes = kai_codes::KnownCodes::default();
/// codes.learn("482-913 is your Harbour login code");
/// assert_eq!(codes.redact("I typed 4 8 2 9 1 3 and it worked"), "I typed [code] and it worked");
/// assert_eq!(codes.redact("four eight two, nine one three"), "[code]");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownCodes(BTreeSet<String>);

impl KnownCodes {
    /// The set of codes that [`iter`](Self::iter) gave earlier, for example from a database.
    pub fn from_stored(codes: impl IntoIterator<Item = String>) -> Self {
        Self(codes.into_iter().filter(|code| code.chars().count() >= SHORTEST).collect())
    }

    /// Whether no code is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each code in the form to store: upper-case letters and ASCII digits, nothing else.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds the codes of another set.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Adds the codes that [`find`] sees in a text.
    pub fn learn(&mut self, text: &str) {
        for range in find(text) {
            let written = &text[range];
            self.add(plain(written));
            self.add(named(written).into_iter().map(|glyph| glyph.is).collect());
            // People and models also write only the digits of "G-482913".
            let (letters, digits) = written.split_once('-').unwrap_or_default();
            if letters.chars().all(char::is_alphabetic) && digits.chars().all(|c| digit_value(c).is_some()) {
                self.add(plain(digits));
            }
        }
    }

    /// Adds the codes in each string of a JSON text, each string on its own, and returns the JSON without them. Text
    /// that is not JSON counts as one string.
    pub fn learn_strings(&mut self, json: &str) -> String {
        let Ok(value) = serde_json::from_str::<Value>(json) else {
            self.learn(json);
            return redact(json);
        };
        let rest = map_strings(value, &mut |text| {
            self.learn(text);
            redact(text)
        });
        rest.to_string()
    }

    /// Adds the codes in a JSON text: first those in each string on its own, then those in the whole text, because one
    /// field may say what another one is.
    pub fn learn_json(&mut self, json: &str) {
        let rest = self.learn_strings(json);
        self.learn(&rest);
    }

    fn add(&mut self, code: String) {
        if code.chars().count() >= SHORTEST {
            self.0.insert(code);
        }
    }

    /// The text with each of these codes replaced by [`REDACTED`](crate::REDACTED).
    pub fn redact(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let mut places = self.places(&glyphs(text));
        places.extend(self.places(&named(text)));
        places.sort_by_key(|place| (place.start, place.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        replace(text, &apart)
    }

    /// The JSON text with each of these codes replaced, including in keys and numbers; the result is still JSON. Text
    /// that is not JSON, such as JSON that was cut off, is redacted as plain text.
    pub fn redact_json(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else { return self.redact(text) };
        map_strings(value, &mut |text| self.redact(text)).to_string()
    }

    /// The byte ranges where these codes occur among the glyphs.
    fn places(&self, glyphs: &[Glyph]) -> Vec<Range<usize>> {
        let lengths: BTreeSet<usize> = self.0.iter().map(|code| code.chars().count()).collect();
        let mut places = Vec::new();
        for length in lengths {
            for (at, window) in glyphs.windows(length).enumerate() {
                let together = window.iter().skip(1).all(|glyph| glyph.apart <= MOST_BETWEEN);
                if !together || !self.0.contains(&window.iter().map(|glyph| glyph.is).collect::<String>()) {
                    continue;
                }
                if length >= LONG || stands_alone(glyphs, at, length) {
                    places.push(window[0].start..window[length - 1].end);
                }
            }
        }
        places
    }
}

/// Whether the code is not part of something longer: no digit may be attached to it, and no letter either if the code
/// contains letters.
fn stands_alone(glyphs: &[Glyph], at: usize, length: usize) -> bool {
    let window = &glyphs[at..at + length];
    let has_letters = window.iter().any(|glyph| !glyph.is.is_ascii_digit());
    let joins = |neighbour: &Glyph| has_letters || neighbour.is.is_ascii_digit();
    let before = at > 0 && window[0].apart == 0 && joins(&glyphs[at - 1]);
    let after = glyphs.get(at + length).is_some_and(|next| next.apart == 0 && joins(next));
    !before && !after
}

/// The letters and digits of a code as it was written.
fn plain(written: &str) -> String {
    glyphs(written).into_iter().map(|glyph| glyph.is).collect()
}

/// The value with `change` applied to every string, key and number. A number that changes becomes a string.
fn map_strings(value: Value, change: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Array(items) => items.into_iter().map(|item| map_strings(item, change)).collect(),
        Value::Object(fields) => {
            let changed = fields.into_iter().map(|(key, value)| (change(&key), map_strings(value, change)));
            Value::Object(changed.collect::<Map<_, _>>())
        }
        Value::Number(number) => {
            let written = number.to_string();
            let changed = change(&written);
            if changed == written { Value::Number(number) } else { Value::String(changed) }
        }
        Value::Null | Value::Bool(_) => value,
    }
}

// ── A text as the letters and digits in it ───────────────────────────────────────────────────────────────────────

/// One letter or digit of a text, and its byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Glyph {
    /// An upper-case letter or an ASCII digit.
    is: char,
    start: usize,
    end: usize,
    /// How many signs and spaces are between it and the previous glyph.
    apart: usize,
}

/// The letters and digits of a text, in whatever script or escape they are written.
fn glyphs(text: &str) -> Vec<Glyph> {
    let mut glyphs = Vec::new();
    let (mut at, mut apart) = (0, 0);
    while let Some((c, length)) = next(&text[at..]) {
        let end = at + length;
        match simple(c) {
            Some(is) => {
                glyphs.push(Glyph { is, start: at, end, apart });
                apart = 0;
            }
            None => apart += usize::from(!is_unseen(c)),
        }
        at = end;
    }
    glyphs
}

/// The first character of the text, unescaped, and how many bytes it takes in the text.
fn next(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let escaped = match first {
        '\\' => escape(text),
        '%' => text.get(1..3).and_then(|hex| of_hex(hex, 3)),
        '&' => entity(text),
        _ => None,
    };
    Some(escaped.filter(|(c, _)| *c != '\0').unwrap_or((first, first.len_utf8())))
}

/// The character of an escape such as `\u0034`, after any number of backslashes. `\n`, `\r` and `\t` count as spaces.
fn escape(text: &str) -> Option<(char, usize)> {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    let rest = &text[slashes..];
    match rest.chars().next()? {
        'u' => of_hex(rest.get(1..5)?, slashes + 5),
        'n' | 'r' | 't' => Some((' ', slashes + 1)),
        _ => None,
    }
}

/// The character of an HTML entity: `&#52;`, `&#x34;`.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(10).position(|byte| byte == b';')?;
    let number = text.get(..end)?.strip_prefix("&#")?;
    match number.strip_prefix(['x', 'X']) {
        Some(hex) => of_hex(hex, end + 1),
        None => Some((char::from_u32(number.parse().ok()?)?, end + 1)),
    }
}

fn of_hex(hex: &str, length: usize) -> Option<(char, usize)> {
    Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, length))
}

/// The upper-case letter or ASCII digit that a character reads as.
fn simple(c: char) -> Option<char> {
    let value = digit_value(c).or_else(|| drawn(c));
    if let Some(value) = value {
        return char::from_digit(value, 10);
    }
    let narrow = if ('\u{ff01}'..='\u{ff5e}').contains(&c) {
        char::from_u32(c as u32 - 0xfee0).unwrap_or(c)
    } else {
        c
    };
    narrow.is_alphanumeric().then(|| narrow.to_uppercase().next().unwrap_or(narrow))
}

/// The value of a digit that Unicode classifies as a symbol, such as ④ and ⁴, or of a Chinese numeral.
fn drawn(c: char) -> Option<u32> {
    const FROM_ONE: [u32; 7] = [0x2460, 0x2474, 0x2488, 0x24f5, 0x2776, 0x2780, 0x278a];
    const WRITTEN: &str = "〇一二三四五六七八九";
    const RAISED: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let place = |digits: &str| digits.chars().position(|digit| digit == c).and_then(|at| at.try_into().ok());
    match c {
        '⓪' | '⓿' | '零' => Some(0),
        '₀'..='₉' => Some(c as u32 - '₀' as u32),
        _ => place(WRITTEN).or_else(|| place(RAISED)).or_else(|| {
            FROM_ONE.iter().map(|one| (c as u32).wrapping_sub(*one)).find(|at| *at < 9).map(|at| at + 1)
        }),
    }
}

/// Whether a character is an emoji mark or an accent or has no width, so that it does not separate two digits.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// The digits that are written as words in the text. Any other word separates the digits around it.
fn named(text: &str) -> Vec<Glyph> {
    let mut glyphs: Vec<Glyph> = Vec::new();
    let (mut at, mut apart) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        let word: usize =
            text[at..].chars().take_while(|c| c.is_alphabetic() || *c == '\'').map(char::len_utf8).sum();
        let end = at + word.max(c.len_utf8());
        match digit_name(&text[at..end]) {
            Some(is) => {
                glyphs.push(Glyph { is, start: at, end, apart });
                apart = 0;
            }
            None => apart += if word > 0 { MOST_BETWEEN + 1 } else { 1 },
        }
        at = end;
    }
    glyphs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::REDACTED;

    fn known(codes: &[&str]) -> KnownCodes {
        KnownCodes::from_stored(codes.iter().map(|code| (*code).to_owned()))
    }

    #[test]
    fn a_code_is_removed_however_it_is_spelled() {
        let codes = known(&["482913", "7052", "X4T9PL"]);
        for (text, expected) in [
            ("482913", "[code]"),
            ("it was 482 913, I think", "it was [code], I think"),
            ("4-8-2-9-1-3", "[code]"),
            ("4.8.2.9.1.3!", "[code]!"),
            ("4, 8, 2, 9, 1, 3", "[code]"),
            ("**482**·**913**", "**[code]**"),
            ("482\n913", "[code]"),
            ("４８２９１３", "[code]"),
            ("४८२९१३ ٤٨٢٩١٣", "[code] [code]"),
            ("④⑧②⑨①③", "[code]"),
            ("四八二九一三", "[code]"),
            ("4\u{fe0f}\u{20e3}8\u{fe0f}\u{20e3}2\u{200b}913", "[code]"),
            (r"\u0034\u0038\u00329\u00313", "[code]"),
            (r"\\u0034\\n82913", "[code]"),
            ("a.example/?c=%34%38%32913", "a.example/?c=[code]"),
            ("&#52;&#x38;2913", "[code]"),
            ("four eight two - nine one three", "[code]"),
            ("Vier, acht, zwei, neun, eins, drei.", "[code]."),
            ("ref 00482913x", "ref 00[code]x"),
            ("70-52, 7 0 5 2", "[code], [code]"),
            ("x4t-9pl, Ｘ４Ｔ９ＰＬ", "[code], [code]"),
            ("7052. 482913", "[code]. [code]"),
        ] {
            assert_eq!(codes.redact(text), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_stays() {
        let codes = known(&["482913", "7052", "X4T9PL"]);
        for text in [
            "17052, 70521, 482-91, 48 apples and 2913 pears",
            "70 pounds and 52 pence",
            "AX4T 9P",
            "seven zero five apples and two",
            "[code]",
            "",
            "%zz &#; \\u12",
            "100 % 4829",
        ] {
            assert_eq!(codes.redact(text), text);
        }
        assert_eq!(KnownCodes::default().redact("482913"), "482913");
    }

    #[test]
    fn json_stays_json() {
        let codes = known(&["482913"]);
        for (json, expected) in [
            (r#"{"body":"4\u00382 913","id":7}"#, r#"{"body":"[code]","id":7}"#),
            (r#"{"n":482913,"482913":[1,"482-913"]}"#, r#"{"[code]":[1,"[code]"],"n":"[code]"}"#),
            (r#"{"n":"{\"m\":\"\\u0034\\n82913\"}"}"#, r#"{"n":"{\"m\":\"[code]\"}"}"#),
            (r#"{"body":"4\u00382 913 [cut"#, r#"{"body":"[code] [cut"#),
        ] {
            assert_eq!(codes.redact_json(json), expected);
        }
    }

    #[test]
    fn codes_are_learned_as_their_letters_and_digits() {
        let mut codes = KnownCodes::default();
        codes.learn("Your code is 482-913. Do not share it.");
        codes.learn("G-604718 is your Google verification code");
        codes.learn("認証番号 ０６４８２９");
        codes.learn("See you at 12:30, order 55512");
        codes.learn_json(r#"{"title":"Login code","text":"Hi\n7052 is your PIN","id":4711}"#);
        let learned: Vec<&str> = codes.iter().collect();
        assert_eq!(learned, ["064829", "482913", "604718", "7052", "G604718"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_and_nothing_is_left(before in ".{0,8}", apart in "[ .,\n-]{0,3}", after in ".{0,8}") {
            let codes = known(&["482913"]);
            let spelled: Vec<&str> = "482913".split("").filter(|c| !c.is_empty()).collect();
            let text = format!("{before} {} {after}", spelled.join(&apart));
            let left = codes.redact(&text);
            proptest::prop_assert!(left.contains(REDACTED), "{left}");
            proptest::prop_assert!(!left.contains(&spelled.join(&apart)), "{left}");
        }
    }
}
