//! Hides one-time codes in mails. Pure.

use crate::tool::Eyes;
use crate::untrusted::Untrusted;

/// Separates the parts: a line that no part contains.
const BETWEEN: &str = "\n\u{1f}\n";

/// How many characters of each part but the last are looked at. More than this of a name or a subject is never shown.
const LONGEST: usize = 2_000;

/// The parts of one mail as a reader may see them: short ones, and then its text. They are redacted together, because
/// the subject may say that the number in the text is a code.
pub(crate) fn seen<const N: usize>(eyes: Eyes, parts: [&Untrusted; N]) -> [Untrusted; N] {
    let mut place = 0;
    let parts = parts.map(|part| {
        place += 1;
        if place < N { beginning(part, LONGEST) } else { part.clone() }
    });
    if eyes == Eyes::All {
        return parts;
    }
    let parts = parts.map(|part| part.map(|text| text.replace('\u{1f}', " ")));
    let joined = parts.each_ref().map(Untrusted::as_written).join(BETWEEN);
    let redacted = eyes.see(&Untrusted::new(joined));
    let mut split = redacted.as_written().split(BETWEEN).map(Untrusted::new);
    // Each is redacted on its own as well, because what stands around a part may also make a code look harmless.
    parts.map(|part| eyes.see(&split.next().unwrap_or(part)))
}

/// The first characters of a text.
pub(super) fn beginning(text: &Untrusted, longest: usize) -> Untrusted {
    text.map(|text| text.chars().take(longest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_tells_that_the_number_in_the_text_is_a_code() {
        let subject = Untrusted::new("Your verification code");
        let text = Untrusted::new("482913\u{1f}");
        let [_, shown] = seen(Eyes::NoCodes, [&subject, &text]);
        assert!(!shown.as_written().contains("482913"), "{}", shown.as_written());
        let [_, shown] = seen(Eyes::All, [&subject, &text]);
        assert_eq!(shown, text);
        let forged = Untrusted::new("a\n\u{1f}\nb");
        let [first, second] = seen(Eyes::NoCodes, [&forged, &Untrusted::new("c")]);
        assert_eq!((first.as_written(), second.as_written()), ("a\n \nb", "c"));
    }
}
