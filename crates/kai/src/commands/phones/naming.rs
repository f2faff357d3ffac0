//! Which phone is meant by what somebody typed, and which names a phone may have. Pure.

use kai_assistant::legible::is_invisible;
use kai_assistant::phones::{Phone, SourceId};
use kai_words::said;

use crate::failure::Failure;

/// The characters of a name.
const LONGEST: usize = 60;

/// The phone with this name, in capitals or not, or with this number.
pub(super) fn meant<'a>(phones: &'a [Phone], typed: &str) -> Result<&'a Phone, Failure> {
    let typed = typed.trim();
    let named: Vec<&Phone> = phones.iter().filter(|phone| is_same(&phone.name, typed)).collect();
    match named.as_slice() {
        [only] => return Ok(only),
        [] => {}
        several => {
            let numbers: Vec<String> = several.iter().map(|phone| phone.source.0.to_string()).collect();
            let sentence = said::paired_ambiguous(typed, numbers.join(", "));
            return Err(Failure::usage(sentence).try_instead("kai phones list"));
        }
    }
    let number = typed.parse().ok().map(SourceId);
    phones
        .iter()
        .find(|phone| Some(phone.source) == number)
        .ok_or_else(|| Failure::failed(said::paired_unknown(typed)).try_instead("kai phones list"))
}

/// The name to give to a phone, without blanks around it.
pub(super) fn fit(phones: &[Phone], phone: SourceId, name: &str) -> Result<String, Failure> {
    let name = name.trim();
    let is_fit =
        (1..=LONGEST).contains(&name.chars().count()) && !name.chars().any(|c| c == '\n' || is_invisible(c));
    if !is_fit {
        return Err(Failure::usage(said::paired_bad_name(LONGEST)));
    }
    if phones.iter().any(|other| other.source != phone && is_same(&other.name, name)) {
        return Err(Failure::failed(said::paired_name_taken(name)));
    }
    Ok(name.to_owned())
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kai_assistant::phones::Switches;

    use super::*;

    fn phone(source: i64, name: &str) -> Phone {
        Phone {
            source: SourceId(source),
            device: name.to_owned(),
            name: name.to_owned(),
            certificate: vec![],
            protocol: 8,
            paired_at: Timestamp::default(),
            last_seen: None,
            address: None,
            sends_by_default: false,
            switches: Switches::default(),
            read_since: None,
        }
    }

    #[test]
    fn a_phone_is_meant_by_its_name_or_its_number() {
        let phones = [phone(2, "Pixel 8"), phone(3, "Fairphone"), phone(4, "fairphone"), phone(5, "3")];
        for (typed, expected) in [
            ("pixel 8", Ok(2)),
            (" 2 ", Ok(2)),
            ("4", Ok(4)),
            ("3", Ok(5)),
            ("FAIRPHONE", Err(2)),
            ("9", Err(1)),
            ("", Err(1)),
        ] {
            let found = meant(&phones, typed).map(|phone| phone.source.0).map_err(|failure| failure.code);
            assert_eq!(found, expected, "{typed}");
        }
    }

    #[test]
    fn a_name_can_be_read_and_belongs_to_one_phone() {
        let phones = [phone(2, "Pixel"), phone(3, "Work")];
        let long = "x".repeat(61);
        for (name, expected) in [
            ("Mine", Ok("Mine")),
            ("  Mine ", Ok("Mine")),
            ("PIXEL", Ok("PIXEL")),
            ("work", Err(1)),
            ("", Err(2)),
            ("a\nb", Err(2)),
            ("a\u{202e}b", Err(2)),
            (long.as_str(), Err(2)),
        ] {
            let fits = fit(&phones, SourceId(2), name);
            let fits = fits.as_deref().map_err(|failure| failure.code);
            assert_eq!(fits, expected, "{name:?}");
        }
    }
}
