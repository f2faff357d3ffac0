//! Parses and compares phone numbers as people and models write them. Pure.

use std::borrow::Cow;

/// Characters that people put between digits.
const SEPARATORS: &str = " -./()\u{a0}";
const FEWEST: usize = 3;
/// The most digits of an international number.
const MOST: usize = 15;

/// Country codes where the leading zero is dialled from abroad too: Italy, San Marino, the Vatican.
const KEEP_ZERO: [&str; 3] = ["39", "378", "379"];

/// The number to send to, without separators, or a sentence that says why it is not a phone number.
pub(crate) fn recipient(typed: &str) -> Result<String, String> {
    let typed = without_trunk_zero(typed.trim());
    let (plus, rest) = typed.strip_prefix('+').map_or(("", typed.as_ref()), |rest| ("+", rest));
    let digits: String = rest.chars().filter(|c| !SEPARATORS.contains(*c)).collect();
    let plausible = digits.bytes().all(|b| b.is_ascii_digit()) && (FEWEST..=MOST).contains(&digits.len());
    if plausible {
        Ok(format!("{plus}{digits}"))
    } else {
        Err("\"to\" must be a phone number such as +15550100 or 0171 5550100. Names are not looked up: ask the user for \
             the number."
            .to_owned())
    }
}

/// Removes the zero in brackets from a number such as `+49 (0) 171 5550100`: it is only dialled inside the country.
fn without_trunk_zero(typed: &str) -> Cow<'_, str> {
    let Some(rest) = typed.strip_prefix('+') else { return Cow::Borrowed(typed) };
    let Some((country, after)) = rest.split_once('(') else { return Cow::Borrowed(typed) };
    let Some((zero, number)) = after.split_once(')') else { return Cow::Borrowed(typed) };
    let country: String = country.chars().filter(|c| !SEPARATORS.contains(*c)).collect();
    let is_country = (1..=3).contains(&country.len()) && country.bytes().all(|b| b.is_ascii_digit());
    if !is_country || zero.trim() != "0" {
        return Cow::Borrowed(typed);
    }
    let zero = if KEEP_ZERO.contains(&country.as_str()) { "0" } else { "" };
    Cow::Owned(format!("+{country}{zero}{number}"))
}

/// Whether two numbers probably reach the same phone, such as `0171 5550100` and `+49 171 5550100`.
pub fn same(one: &str, other: &str) -> bool {
    let (one, other) = (digits(one), digits(other));
    // Short numbers must be equal. Longer ones may differ in how the country code is written.
    let tail = one.len().min(other.len());
    if tail < 8 { !one.is_empty() && one == other } else { one.ends_with(&other) || other.ends_with(&one) }
}

/// The digits of a number without separators and leading zeros, which stand for "abroad" or "this country".
pub(crate) fn digits(number: &str) -> String {
    let digits: String = without_trunk_zero(number.trim()).chars().filter(char::is_ascii_digit).collect();
    digits.trim_start_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plausible_numbers_only() {
        for (typed, expected) in [
            ("+15550100", Some("+15550100")),
            (" +49 (171) 555-01.00 ", Some("+491715550100")),
            ("0171/5550100", Some("01715550100")),
            ("+49 (0) 171 5550100", Some("+491715550100")),
            ("+44(0)7700 900123", Some("+447700900123")),
            ("+49 ( 0 )30/5550100", Some("+49305550100")),
            ("+39 (0)6 5550100", Some("+39065550100")),
            ("+1 (0171) 5550100", Some("+101715550100")),
            ("(0) 171 5550100", Some("01715550100")),
            ("+49 171 (0) 5550100", Some("+4917105550100")),
            ("12345", Some("12345")),
            ("110", Some("110")),
            ("12", None),
            ("", None),
            ("Mom", None),
            ("null", None),
            ("+", None),
            ("++15550100", None),
            ("15550100+", None),
            ("+1 555 --es slot 9", None),
            ("+15550100,+15550101", None),
            ("+15550100;x", None),
            ("*100#", None),
            ("٠١٢٣٤٥٦", None),
            ("1234567890123456", None),
            ("555\n0100", None),
        ] {
            assert_eq!(recipient(typed).ok().as_deref(), expected, "{typed:?}");
        }
    }

    #[test]
    fn the_same_phone_in_two_spellings() {
        for (one, other, expected) in [
            ("+49 171 5550100", "0171 5550100", true),
            ("+491715550100", "00491715550100", true),
            ("+49 (0) 171 5550100", "0171 5550100", true),
            ("+49 (0) 171 5550100", "+491715550100", true),
            ("+15550100123", "+15550100123", true),
            ("+15550100123", "+15550100124", false),
            ("+4915155501001", "+4917155501001", false),
            ("12345", "12345", true),
            ("12345", "912345", false),
            ("", "", false),
            ("Bank", "Bank", false),
        ] {
            assert_eq!(same(one, other), expected, "{one} and {other}");
            assert_eq!(same(other, one), expected, "{other} and {one}");
        }
    }
}
