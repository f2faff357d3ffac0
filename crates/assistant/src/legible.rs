//! Makes text safe to show to the user: invisible characters, and those that make text look like other text, are
//! escaped. Pure.

use kai_words::{Lang, Said, said};

/// The text on one line, with invisible characters escaped.
pub fn visible(text: &str) -> String {
    spelled_out(&text.replace(['\n', '\r', '\t'], " "))
}

/// The text with invisible characters escaped; line breaks stay.
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

/// From this many blanks in a row, or repetitions of one character, a run is collapsed: no sentence has that many.
/// [`EMPTY_LINES`] is the same for line breaks, of which a paragraph needs fewer.
const RUN: usize = 20;
const EMPTY_LINES: usize = 4;

/// The text as it is shown where the user is asked for approval: invisible characters are escaped, and long runs of
/// blanks or of one character are replaced by their count (`[2,000 spaces]`), so that nobody can push the question, or
/// the rest of the text, off the screen.
pub fn folded(text: &str) -> String {
    folded_in(text, Lang::ENGLISH)
}

/// [`folded`] with the counts in this language.
pub fn folded_in(text: &str, lang: Lang) -> String {
    let mut shown = String::with_capacity(text.len().min(4_096));
    let (mut plain, mut rest) = (0, 0);
    while let Some((length, label)) = run(&text[rest..]) {
        if let Some(label) = label {
            let label = label.to(lang);
            shown.push_str(&spelled_out(&text[plain..rest]));
            shown.push_str(&label);
            plain = rest + length;
        }
        rest += length;
    }
    shown.push_str(&spelled_out(&text[plain..]));
    shown
}

/// Like [`folded`], but on one line.
pub fn folded_line(text: &str) -> String {
    folded_line_in(text, Lang::ENGLISH)
}

/// Like [`folded_in`], but on one line.
pub fn folded_line_in(text: &str, lang: Lang) -> String {
    folded_in(text, lang).replace('\n', " ")
}

/// The length in bytes of the run that a text begins with, and the label that replaces it if it is long.
fn run(text: &str) -> Option<(usize, Option<Said>)> {
    let first = text.chars().next()?;
    let same = |c: char| c == first;
    let end = |goes_on: &dyn Fn(char) -> bool| text.find(|c| !goes_on(c)).unwrap_or(text.len());
    if !is_blank(first) {
        let run = &text[..end(&same)];
        let count = run.chars().count();
        return Some((run.len(), (count >= RUN).then(|| said::legible_times(count, first))));
    }
    let run = &text[..end(&is_blank)];
    let (count, lines) = (run.chars().count(), run.matches('\n').count());
    let label = || match first {
        ' ' if run.chars().all(same) => said::legible_spaces(count),
        '\n' if run.chars().all(same) => said::legible_breaks(count),
        _ => said::legible_blanks(count),
    };
    Some((run.len(), (count >= RUN || lines >= EMPTY_LINES).then(label)))
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_invisible(c)
}

/// A number with thousands separators: `2,000`.
pub fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Whether the text contains invisible characters.
pub fn hides_something(text: &str) -> bool {
    looked_at(text).any(|(_, hidden)| hidden)
}

/// Every character, and whether it is invisible. Joiners and variation selectors within an emoji sequence count as
/// visible, because they change how it looks; anywhere else they could encode whole sentences that nobody sees.
fn looked_at(text: &str) -> impl Iterator<Item = (char, bool)> {
    let afters = text.chars().skip(1).map(Some).chain([None]);
    let mut before = Before::Other;
    text.chars().zip(afters).map(move |(c, after)| {
        let shows = match c {
            '\u{fe0e}' => before == Before::Picture,
            '\u{fe0f}' => before == Before::Picture || (before == Before::Key && after == Some('\u{20e3}')),
            '\u{200d}' => before != Before::Key && before != Before::Other && after.is_some_and(is_picture),
            _ => !is_invisible(c),
        };
        before = match c {
            '\u{fe0e}' | '\u{fe0f}' if shows => Before::Styled,
            '0'..='9' | '#' | '*' => Before::Key,
            c if is_picture(c) => Before::Picture,
            _ => Before::Other,
        };
        (c, !shows)
    })
}

/// What kind of character came before, as far as it decides whether the next one is visible.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Picture,
    /// A picture or a key with a variation selector.
    Styled,
    /// A digit, `#` or `*`, which can become a keycap emoji.
    Key,
    Other,
}

fn is_picture(c: char) -> bool {
    matches!(
        c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}'
            | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

/// Whether this is a control, zero-width, direction-changing, tag or selector character. With these, text can be made
/// to look like other text, or to contain more than is visible.
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

/// Escapes the characters for which `which` is true in JSON; it means the same and stays on one line.
pub fn escape_json(json: &str, which: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if which(c) {
            let mut units = [0; 2];
            escaped.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_hidden() {
        assert_eq!(spelled_out("a\u{202e}b\u{200b}\nc\u{7}"), "a\\u{202e}b\\u{200b}\nc\\u{7}");
        assert_eq!(spelled_out("grün 😀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}"), "grün 😀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}");
        assert_eq!(
            spelled_out("❤\u{fe0f}\u{200d}🔥 👩🏽\u{200d}🚀 ☎\u{fe0e}"),
            "❤\u{fe0f}\u{200d}🔥 👩🏽\u{200d}🚀 ☎\u{fe0e}"
        );
        let in_a_number = "5\u{200d}5\u{fe0f}0\u{fe0e} ❤\u{fe0f}\u{fe0f} 🔥\u{200d}x";
        assert_eq!(
            spelled_out(in_a_number),
            "5\\u{200d}5\\u{fe0f}0\\u{fe0e} ❤\u{fe0f}\\u{fe0f} 🔥\\u{200d}x"
        );
        let smuggled = "Yes\u{e0150}\u{fe05}a\u{200d}b\u{2800}";
        assert_eq!(spelled_out(smuggled), "Yes\\u{e0150}\\u{fe05}a\\u{200d}b\\u{2800}");
    }

    #[test]
    fn padding_is_told_by_its_number_and_everything_else_stays() {
        let pad = |with: &str, times: usize| format!("Yes{}and more", with.repeat(times));
        for (text, expected) in [
            (pad(" ", 2_000), "Yes[2,000 spaces]and more".to_owned()),
            (pad(" ", 19), pad(" ", 19)),
            (pad(" ", 20), "Yes[20 spaces]and more".to_owned()),
            (pad("\n", 1_500), "Yes[1,500 line breaks]and more".to_owned()),
            (pad("\n", 3), pad("\n", 3)),
            (pad(" \n\t", 4), "Yes[12 blanks]and more".to_owned()),
            (pad("\u{200b}", 40), "Yes[40 blanks]and more".to_owned()),
            (pad(" \u{2800}", 500), "Yes[1,000 blanks]and more".to_owned()),
            (pad("\u{200b}", 1), "Yes\\u{200b}and more".to_owned()),
            (pad("=", 1_234_567), "Yes[1,234,567 × =]and more".to_owned()),
            (pad("😀", 30), "Yes[30 × 😀]and more".to_owned()),
            (" ".repeat(30), "[30 spaces]".to_owned()),
            (format!("{}x{}", "a".repeat(20), "b".repeat(25)), "[20 × a]x[25 × b]".to_owned()),
            (String::new(), String::new()),
            ("Dinner at 8?\n\nSee you ❤\u{fe0f}".to_owned(), "Dinner at 8?\n\nSee you ❤\u{fe0f}".to_owned()),
        ] {
            assert_eq!(folded(&text), expected);
        }
        assert_eq!([7, 999, 1_000, 12_345].map(thousands), ["7", "999", "1,000", "12,345"]);
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

    #[test]
    fn padding_is_counted_in_the_language_of_the_page() {
        let text = format!("Ja{}und{}mehr{}", " ".repeat(2_000), "\n".repeat(30), "=".repeat(25));
        let expected = "Ja[2.000 Leerzeichen]und[30 Zeilenumbrüche]mehr[25 × =]";
        assert_eq!(folded_in(&text, Lang::of("de")), expected);
        assert_eq!(folded_line_in(&text, Lang::of("de")), expected);
    }

    #[test]
    fn thousands_are_grouped() {
        let all = [0, 999, 1_000, 8_192, 131_072, 1_048_576].map(thousands);
        assert_eq!(all, ["0", "999", "1,000", "8,192", "131,072", "1,048,576"]);
    }
}
