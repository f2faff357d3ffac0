//! Tests the parsing of `termux-contact-list` with mutated output.

use kai_assistant::sms::port::ReadError;

use super::{LONGEST_TEXT, MOST_CONTACTS, MOST_NUMBERS, read};

/// Checks that any output gives bounded contacts with a name and a number, or a one-line error that quotes nobody.
pub(in crate::termux) fn check(printed: &str) {
    match read(printed) {
        Ok(contacts) => {
            assert!(contacts.len() <= MOST_CONTACTS.min(printed.len()));
            assert!(printed.trim().starts_with('['), "an empty list must be one");
            for contact in contacts {
                assert!((1..=MOST_NUMBERS).contains(&contact.numbers.len()));
                for text in contact.numbers.iter().chain([&contact.name]) {
                    assert!((1..=LONGEST_TEXT).contains(&text.as_written().chars().count()));
                }
            }
        }
        Err(ReadError::Failed(said) | ReadError::NotPermitted(said)) => {
            assert!(
                said.to_string().chars().count() <= 420 && !said.to_string().chars().any(char::is_control),
                "{said:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRINTED: [&str; 4] = [
        r#"[{"name":"Lena","number":"+1 555 0142"},{"name":"Tom \"T\" 😀","number":"0171/5550100"}]"#,
        r#"[{"name":null,"number":"1"},{"number":"2"},{"name":"\u202e","number":" "}]"#,
        r#"{"error":"Please grant the following permission: android.permission.READ_CONTACTS"}"#,
        "[]",
    ];

    proptest! {
        #[test]
        fn whatever_is_printed_is_a_list_or_an_error(printed in kai_mutate::text(PRINTED.map(str::to_owned).to_vec())) {
            check(&printed);
        }
    }
}
