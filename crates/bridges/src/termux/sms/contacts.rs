//! Parses the output of `termux-contact-list`: one row per number, with the name of whose it is. Pure.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use std::collections::BTreeMap;

use kai_assistant::phones::port::Contact;
use kai_assistant::sms::port::ReadError;
use kai_assistant::untrusted::Untrusted;
use kai_words::said;
use serde::Deserialize;

use crate::termux::refusal;

/// Most contacts that are read, most numbers of one, and the longest name or number in characters.
const MOST_CONTACTS: usize = 20_000;
const MOST_NUMBERS: usize = 30;
const LONGEST_TEXT: usize = 200;

/// A row as printed. Android has contacts without a name, and old apps leave out what is missing.
#[derive(Deserialize)]
struct Printed {
    name: Option<String>,
    number: Option<String>,
}

impl Printed {
    /// The name and the number, if there are both.
    fn whole(self) -> Option<(String, String)> {
        let said = |text: Option<String>| Some(cut(text?.trim())).filter(|text| !text.is_empty());
        Some((said(self.name)?, said(self.number)?))
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// Parses the program's output. Anything but a complete list is an error, because an empty list must mean that there are
/// no contacts. The phone prints no ids, so all numbers under one name count as one contact.
pub(super) fn read(printed: &str) -> Result<Vec<Contact>, ReadError> {
    let printed = printed.trim();
    if printed.is_empty() {
        return Err(ReadError::Failed(said::access_contacts_no_answer()));
    }
    if printed.starts_with('{') {
        return Err(refused(printed));
    }
    let rows: Vec<Printed> = serde_json::from_str(printed).map_err(|error| garbled(&error))?;
    let mut by_name: BTreeMap<String, Vec<Untrusted>> = BTreeMap::new();
    for (name, number) in rows.into_iter().filter_map(Printed::whole) {
        let room = by_name.len() < MOST_CONTACTS || by_name.contains_key(&name);
        if !room {
            continue;
        }
        let numbers = by_name.entry(name).or_default();
        if numbers.len() < MOST_NUMBERS {
            numbers.push(Untrusted::new(number));
        }
    }
    let contact =
        |(name, numbers): (String, _)| Contact { uid: name.clone(), name: Untrusted::new(name), numbers };
    Ok(by_name.into_iter().map(contact).collect())
}

/// The error when the app printed an object instead of a list, as it does when it may not read contacts.
fn refused(printed: &str) -> ReadError {
    match refusal(printed) {
        Some(why) => ReadError::NotPermitted(said::access_termux_contacts(why)),
        None => ReadError::Failed(said::access_contacts_no_list()),
    }
}

/// Reports where the parse error is, not what it says, because that would quote somebody's name.
fn garbled(error: &serde_json::Error) -> ReadError {
    ReadError::Failed(said::access_contacts_garbled_at(error.line(), error.column()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contacts(printed: &str) -> Vec<(String, Vec<String>)> {
        let written = |text: &Untrusted| text.as_written().to_owned();
        let of = |contact: &Contact| (written(&contact.name), contact.numbers.iter().map(written).collect());
        read(printed).unwrap().iter().map(of).collect()
    }

    #[test]
    fn rows_of_one_name_become_one_contact() {
        let printed = r#"[
          {"name": "Tom", "number": "+1 555 0103"},
          {"name": "Lena", "number": "0171/5550100"},
          {"name": " Tom ", "number": "+1 555 0104", "label": "work"},
          {"name": "Nobody", "number": ""}, {"name": null, "number": "+1 555 0105"}, {"number": "+1 555 0106"}, {}
        ]"#;
        let one = |name: &str, numbers: &[&str]| {
            (name.to_owned(), numbers.iter().map(|number| (*number).to_owned()).collect::<Vec<_>>())
        };
        let expected = [one("Lena", &["0171/5550100"]), one("Tom", &["+1 555 0103", "+1 555 0104"])];
        assert_eq!(contacts(printed), expected);
        assert_eq!(contacts(" [] \n"), []);
    }

    #[test]
    fn names_are_strangers_text_and_bounded() {
        let name = "\u{202e}$(id) \"'; \n".repeat(1_000);
        let row = serde_json::json!({"name": name, "number": "1".repeat(1_000)});
        let many = serde_json::Value::from(vec![row; 50]).to_string();
        let read = contacts(&many);
        assert_eq!((read.len(), read[0].0.chars().count(), read[0].1.len()), (1, 200, 30));
        assert_eq!(read[0].1[0].len(), 200);
        let named = |n: usize| serde_json::json!({"name": n.to_string(), "number": "+15550100"});
        let crowd = serde_json::Value::from((0..20_100).map(named).collect::<Vec<_>>()).to_string();
        assert_eq!(contacts(&crowd).len(), MOST_CONTACTS);
    }

    #[test]
    fn anything_but_a_list_of_contacts_is_an_error() {
        for (printed, words) in [
            ("", "without an answer"),
            (" \n", "without an answer"),
            ("garbage", "line 1"),
            ("null", "line 1"),
            ("[] []", "line 1"),
            ("{}", "something else than a list"),
            (r#"[{"name": "secret", "number": "+1555"}, {"na"#, "line 1"),
            (r#"[{"name": ["secret"], "number": "+1555"}]"#, "line 1"),
        ] {
            match read(printed) {
                Err(ReadError::Failed(why)) => {
                    assert!(why.to_string().contains(words), "{printed}: {why}");
                    assert!(!why.to_string().contains("secret"), "{why}");
                }
                other => panic!("{printed}: {other:?}"),
            }
        }
        let refused = r#"{"error":"Please grant the following permission: X"}"#;
        match read(refused) {
            Err(ReadError::NotPermitted(what)) => {
                assert!(what.to_string().contains("Contacts") && what.to_string().ends_with('X'), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}
