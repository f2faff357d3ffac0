//! Decides which phone numbers may be passed to `termux-sms-send`. Pure.

/// The number without the separators that people write; `None` if anything remains that cannot be dialled. The script
/// does not quote its arguments, so a space would smuggle in options, a lone star would expand to our file names, and
/// a comma would add a second recipient.
pub(super) fn dialled(written: &str) -> Option<String> {
    // "+49 (0)30 …" is either +4930… or 030…; a wrong guess would send the message to someone else.
    if written.trim_start().starts_with('+') && written.contains("(0)") {
        return None;
    }
    let number: String = written.chars().filter(|c| !SEPARATORS.contains(c)).collect();
    let digits = number.strip_prefix('+').unwrap_or(&number);
    let plausible = (2..=20).contains(&digits.len())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '*' | '#'))
        && digits.contains(|c: char| c.is_ascii_digit());
    plausible.then_some(number)
}

const SEPARATORS: [char; 6] = [' ', '-', '.', '/', '(', ')'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_dialled() {
        for (written, expected) in [
            ("+15550100", Some("+15550100")),
            ("+1 (555) 01-00", Some("+15550100")),
            ("030/123.45", Some("03012345")),
            ("110", Some("110")),
            ("*100#", Some("*100#")),
            ("+12345678901234567890", Some("+12345678901234567890")),
            ("+123456789012345678901", None),
            ("1", None),
            ("", None),
            ("+", None),
            ("**", None),
            ("++15550100", None),
            ("1555+0100", None),
            ("+1 555 --es slot 9", None),
            ("-n 5550100", None),
            ("5550100,5550101", None),
            ("5550100\n5550101", None),
            ("5550100;id", None),
            ("$(id)", None),
            ("٥٥٥٠١٠٠", None),
            ("Mom", None),
            ("+49 (0)30 12345", None),
            ("(030) 12345", Some("03012345")),
        ] {
            assert_eq!(dialled(written).as_deref(), expected, "{written:?}");
        }
    }
}
