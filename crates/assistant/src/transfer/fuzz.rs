//! Fuzzes the import with malformed files. A file is refused, or what was imported survives another export and import
//! unchanged.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use super::*;
use crate::db::Db;
use crate::settings;

/// Takes any bytes as a file to import.
pub fn file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    check(&text, Mode::Merge);
    check(&text, Mode::Replace);
}

fn check(text: &str, mode: Mode) {
    let Ok(export) = Export::parse(text) else { return };
    let first = home();
    let outcomes = put(&first, &export, mode, None).unwrap();
    assert!(outcomes.len() <= Section::ALL.len());
    let taken = take(&first, None);
    let second = home();
    let again = put(&second, &taken, mode, None).unwrap();
    assert!(again.iter().all(|o| o.problem.is_none() && o.skipped.is_empty()), "{again:?}");
    assert_eq!(take(&second, None).sections, taken.sections);
}

pub(super) fn home() -> Db {
    Db::in_memory(crate::MIGRATIONS).unwrap()
}

pub(super) fn take(db: &Db, passphrase: Option<&Passphrase>) -> Export {
    let secrets = db.read_now(secrets).unwrap();
    let sealed = passphrase.map(|words| secrets.sealed(words).unwrap());
    let (text, _) = written(db, &Section::ALL, sealed.as_ref());
    Export::parse(&text).unwrap()
}

/// The text of the exported file, and of how many pieces it is.
pub(super) fn written(db: &Db, sections: &[Section], sealed: Option<&Sealed>) -> (String, usize) {
    let (mut text, mut pieces, mut from) = (String::new(), 0, None);
    loop {
        let next = db.read_now(|tx| piece(tx, sections, from, Timestamp::UNIX_EPOCH)).unwrap();
        text.push_str(&next.text);
        (from, pieces) = (next.next, pieces + 1);
        if from.is_none() {
            return (text + &end(sealed).unwrap(), pieces);
        }
    }
}

pub(super) fn put(
    db: &Db,
    export: &Export,
    mode: Mode,
    passphrase: Option<&Passphrase>,
) -> Result<Vec<Outcome>, TransferError> {
    let settings = settings::catalogue([]);
    let (now, zone) = (Timestamp::UNIX_EPOCH, &TimeZone::UTC);
    let secrets = &export.opened(passphrase)?;
    let all =
        Import { export, sections: &[], mode, secrets, settings: &settings, now, zone, lang: Lang::ENGLISH };
    Ok(db.write_now(|tx| import(tx, &all))?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transfer::tests::filled;

    const SHORT: &str = r#"{"kai_export":1,"sections":{"settings":{"theme":"dark"}}}"#;

    fn example() -> String {
        let memory = |key: &str, hits| (key.to_owned(), "Likes tea".to_owned(), hits);
        let full =
            filled(&[memory("tea", 3), memory("coffee", 7)], &["hello".to_owned(), "again".to_owned()]);
        serde_json::to_string(&take(&full, None)).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_taken_in_goes_out_and_comes_in_again(
            text in kai_mutate::text(vec![example(), SHORT.to_owned()]),
            replace in any::<bool>(),
        ) {
            check(&text, if replace { Mode::Replace } else { Mode::Merge });
        }
    }
}
