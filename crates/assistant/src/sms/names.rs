//! The names of a phone's contacts. A name is shown beside a number, never instead of it: anybody can send a contact,
//! and a contact can have any name.
//!
//! Names are here only while the setting and the phone's own switch are on; turning either off deletes them.

use jiff::Timestamp;
use kai_words::Said;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::search::is_like_a_number;
use crate::db::DbError;
use crate::legible;
use crate::outbox::number::{digits, recipient, same};
use crate::phones;
use crate::phones::port::{Contact, ContactStamp};
use crate::settings::{self, CONTACT_NAMES_ENABLED};
use crate::source::SourceId;
use crate::untrusted::{Untrusted, folded};

/// How many of the last digits of a number are the same however its country is written.
const TAIL: usize = 8;
/// The most characters of a name that are shown, and the most names beside one number.
const LONGEST: usize = 60;
const MOST_BESIDE: usize = 3;
/// The most numbers that a search by name returns.
const MOST_NUMBERS: usize = 50;

fn tail(number: &str) -> String {
    let digits = digits(number);
    digits[digits.len().saturating_sub(TAIL)..].to_owned()
}

/// Whether names of this phone are wanted: by the setting for all, and by the switch that each paired phone has besides.
pub(super) fn is_on(tx: &Transaction<'_>, source: SourceId) -> Result<bool, DbError> {
    if !settings::load(tx)?.on(&CONTACT_NAMES_ENABLED) {
        return Ok(false);
    }
    Ok(source.is_here() || phones::store::get(tx, source)?.is_some_and(|phone| phone.switches.names))
}

/// How the last request for a phone's contacts went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRead {
    pub at: Timestamp,
    pub error: Option<Said>,
}

/// The last request for a phone's contacts since names were turned on.
pub fn last_read(tx: &Transaction<'_>, source: SourceId) -> Result<Option<LastRead>, DbError> {
    let mut row = tx.prepare_cached("SELECT at, error FROM contact_reads WHERE source = ?1")?;
    let read = |row: &Row<'_>| {
        let error: Option<String> = row.get(1)?;
        Ok(LastRead {
            at: Timestamp::from_millisecond(row.get(0)?).unwrap_or_default(),
            error: error.map(|kept| Said::from_stored(&kept)),
        })
    };
    Ok(row.query_row([source], read).optional()?)
}

/// Notes that a phone was asked for its contacts.
pub(super) fn note_read(
    tx: &Transaction<'_>,
    source: SourceId,
    at: Timestamp,
    error: Option<&Said>,
) -> Result<(), DbError> {
    let error = error.map(Said::stored);
    tx.execute(
        "INSERT OR REPLACE INTO contact_reads (source, at, error) VALUES (?1, ?2, ?3)",
        params![source, at.as_millisecond(), error],
    )?;
    Ok(())
}

/// Lets every phone be asked for its contacts as soon as possible, whenever it was asked before.
pub fn ask_anew(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("DELETE FROM contact_reads", [])?;
    Ok(())
}

/// The contacts of a phone that are missing here or were changed since, of all that it has. Those that it no longer has
/// are deleted.
pub(super) fn outdated(
    tx: &Transaction<'_>,
    source: SourceId,
    all: &[ContactStamp],
) -> Result<Vec<ContactStamp>, DbError> {
    let mut known = tx.prepare("SELECT uid, changed FROM contacts WHERE source = ?1")?;
    let known = known.query_map([source], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let known: std::collections::BTreeMap<String, i64> = known.collect::<rusqlite::Result<_>>()?;
    let there: std::collections::BTreeSet<&str> = all.iter().map(|stamp| stamp.uid.as_str()).collect();
    for uid in known.keys().filter(|uid| !there.contains(uid.as_str())) {
        delete(tx, source, uid)?;
    }
    let is_old = |stamp: &&ContactStamp| known.get(&stamp.uid) != Some(&stamp.changed);
    Ok(all.iter().filter(is_old).cloned().collect())
}

fn delete(tx: &Transaction<'_>, source: SourceId, uid: &str) -> Result<(), DbError> {
    for table in ["contacts", "contact_numbers"] {
        tx.prepare_cached(&format!("DELETE FROM {table} WHERE source = ?1 AND uid = ?2"))?
            .execute(params![source, uid])?;
    }
    Ok(())
}

/// Keeps the answer to a request for these contacts. One that has no name or no number is noted as well, or it would be
/// asked for again and again.
pub(super) fn keep(
    tx: &Transaction<'_>,
    source: SourceId,
    asked: &[ContactStamp],
    answer: &[Contact],
) -> Result<(), DbError> {
    for stamp in asked {
        let contact = answer.iter().find(|contact| contact.uid == stamp.uid);
        let name = contact.map(|contact| contact.name.as_written()).unwrap_or_default();
        delete(tx, source, &stamp.uid)?;
        tx.prepare_cached(
            "INSERT INTO contacts (source, uid, changed, name, folded) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![source, stamp.uid, stamp.changed, name, folded(name)])?;
        for number in contact.into_iter().flat_map(|contact| &contact.numbers) {
            keep_number(tx, source, &stamp.uid, number.as_written())?;
        }
    }
    Ok(())
}

fn keep_number(tx: &Transaction<'_>, source: SourceId, uid: &str, number: &str) -> Result<(), DbError> {
    // What cannot be dialled belongs to no message.
    let Ok(number) = recipient(number) else { return Ok(()) };
    let sql = "INSERT OR IGNORE INTO contact_numbers (source, uid, number, tail) VALUES (?1, ?2, ?3, ?4)";
    tx.prepare_cached(sql)?.execute(params![source, uid, number, tail(&number)])?;
    Ok(())
}

/// Replaces the contacts of a phone that lists them all at once.
pub fn replace(tx: &Transaction<'_>, source: SourceId, contacts: &[Contact]) -> Result<(), DbError> {
    let stamp = |contact: &Contact| ContactStamp { uid: contact.uid.clone(), changed: 0 };
    let all: Vec<ContactStamp> = contacts.iter().map(stamp).collect();
    outdated(tx, source, &all)?;
    keep(tx, source, &all, contacts)
}

/// Whether there are names at all.
pub fn are_on(tx: &Transaction<'_>) -> Result<bool, DbError> {
    Ok(tx.query_row("SELECT EXISTS (SELECT 1 FROM contacts)", [], |row| row.get(0))?)
}

/// The names of everybody who has this number, as they are shown.
pub fn beside(tx: &Transaction<'_>, address: &str) -> Result<Option<Untrusted>, DbError> {
    if !is_like_a_number(address) {
        return Ok(None);
    }
    let mut rows = tx.prepare_cached(
        "SELECT DISTINCT c.name, n.number FROM contact_numbers n JOIN contacts c ON c.source = n.source AND c.uid = n.uid
         WHERE n.tail = ?1 AND c.name <> '' ORDER BY c.name",
    )?;
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let rows: Vec<(String, String)> =
        rows.query_map([tail(address)], pair)?.collect::<rusqlite::Result<_>>()?;
    let mut names: Vec<String> =
        rows.iter().filter(|(_, number)| same(number, address)).map(|(name, _)| shown(name)).collect();
    names.dedup();
    Ok(joined(&names).map(Untrusted::new))
}

fn joined(names: &[String]) -> Option<String> {
    let more = names.len().saturating_sub(MOST_BESIDE);
    let first = names.iter().take(MOST_BESIDE).cloned().collect::<Vec<_>>().join(" / ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(first),
        (false, more) => Some(format!("{first} and {more} more")),
    }
}

/// A name as it is shown: invisible characters are spelled out, and a name that could be taken for a number is said to
/// be a name.
fn shown(name: &str) -> String {
    let name: String = legible::visible(name.trim()).chars().take(LONGEST).collect();
    let digits = name.chars().filter(|c| c.is_numeric()).count();
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    let imitates = name.contains('·') || (digits >= 3 && digits > letters);
    if imitates { format!("contact named \"{name}\"") } else { name }
}

/// A number with the names of those who have it: "Lena · +15550142".
pub fn with_number(name: Option<&Untrusted>, address: &Untrusted) -> Untrusted {
    match name {
        Some(name) => address.map(|address| format!("{} · {address}", name.as_written())),
        None => address.clone(),
    }
}

/// The numbers of contacts in whose names a word begins with the text.
pub fn numbers_of(tx: &Transaction<'_>, text: &str) -> Result<Vec<String>, DbError> {
    let candidates = candidates(tx, text, MOST_NUMBERS)?;
    Ok(candidates.into_iter().map(|candidate| candidate.number).collect())
}

/// A contact's name with one of its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// As it is written in the phone.
    pub name: Untrusted,
    pub number: String,
}

impl Candidate {
    /// The name beside the number, as it is shown.
    pub fn shown(&self) -> String {
        format!("{} · {}", shown(self.name.as_written()), self.number)
    }
}

/// Contacts in whose names a word begins with the text, those who are called exactly so first.
pub fn candidates(tx: &Transaction<'_>, text: &str, most: usize) -> Result<Vec<Candidate>, DbError> {
    let wanted = folded(text.trim());
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    let mut rows = tx.prepare_cached(
        "SELECT DISTINCT c.name, n.number FROM contacts c JOIN contact_numbers n ON n.source = c.source AND n.uid = c.uid
         WHERE instr(' ' || c.folded, ' ' || ?1) > 0 ORDER BY c.folded <> ?1, c.folded, n.number LIMIT ?2",
    )?;
    let candidate =
        |row: &Row<'_>| Ok(Candidate { name: Untrusted::new(row.get::<_, String>(0)?), number: row.get(1)? });
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    Ok(rows.query_map(params![wanted, most], candidate)?.collect::<rusqlite::Result<_>>()?)
}

/// The one number that somebody with exactly this name has, or those who may be meant, at most five.
pub fn number_named(tx: &Transaction<'_>, name: &str) -> Result<Result<String, Vec<Candidate>>, DbError> {
    let found = candidates(tx, name, MOST_NUMBERS)?;
    let wanted = folded(name.trim());
    let exact: Vec<&Candidate> =
        found.iter().filter(|one| folded(one.name.as_written().trim()) == wanted).collect();
    match exact.split_first() {
        Some((first, rest)) if rest.iter().all(|other| same(&first.number, &other.number)) => {
            Ok(Ok(first.number.clone()))
        }
        _ => Ok(Err(found.into_iter().take(MOST_CANDIDATES).collect())),
    }
}

const MOST_CANDIDATES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::phones::Switch;
    use crate::phones::store::{NewPhone, pair, set};
    use jiff::Timestamp;

    const PHONE: SourceId = SourceId(2);

    fn contact(uid: &str, name: &str, numbers: &[&str]) -> Contact {
        let numbers = numbers.iter().map(|number| Untrusted::new(*number)).collect();
        Contact { uid: uid.to_owned(), name: Untrusted::new(name), numbers }
    }

    fn stamp(uid: &str, changed: i64) -> ContactStamp {
        ContactStamp { uid: uid.to_owned(), changed }
    }

    fn with_contacts(contacts: &[Contact]) -> Db {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        db.write_now(|tx| replace(tx, PHONE, contacts)).unwrap();
        db
    }

    #[test]
    fn a_name_stands_beside_its_number_and_says_what_it_is() {
        let db = with_contacts(&[
            contact("1", "Lena", &["+1 555 010 0142", "0171/5550100"]),
            contact("2", "Lena's office", &["+15550100142"]),
            contact("3", "+1 555 0199", &["+15550103333"]),
            contact("4", "Mum\u{202e}", &["+15550104444"]),
            contact("5", "Bank · +15550100142", &["+15550105555"]),
            contact("6", "Short", &["12345"]),
            contact("7", "No number", &["sip:x"]),
        ]);
        let checked = db.write_now(|tx| {
            for (address, expected) in [
                ("+15550100142", Some("Lena / Lena's office")),
                ("+49 171 5550100", Some("Lena")),
                ("+15550103333", Some("contact named \"+1 555 0199\"")),
                ("+15550104444", Some("Mum\\u{202e}")),
                ("+15550105555", Some("contact named \"Bank · +15550100142\"")),
                ("12345", Some("Short")),
                ("912345", None),
                ("Lena", None),
                ("", None),
            ] {
                let name = beside(tx, address)?;
                assert_eq!(name.as_ref().map(Untrusted::as_written), expected, "{address}");
            }
            Ok::<_, DbError>(())
        });
        checked.unwrap();
        let shown = with_number(Some(&Untrusted::new("Lena")), &Untrusted::new("+15550142"));
        assert_eq!(shown.as_written(), "Lena · +15550142");
        assert_eq!(with_number(None, &Untrusted::new("DHL")).as_written(), "DHL");
    }

    #[test]
    fn a_name_means_a_number_only_if_it_is_the_only_one() {
        let db = with_contacts(&[
            contact("1", "Lena", &["+4915550100142"]),
            contact("2", "LENA ", &["0155 50100142"]),
            contact("3", "Lena Work", &["+15550102222"]),
            contact("4", "Tom", &["+15550103333", "+15550104444"]),
            contact("5", "Alenar", &["+15550106666"]),
        ]);
        let named = |name: &str| {
            let found = db.read_now(|tx| number_named(tx, name)).unwrap();
            found.map_err(|some| some.iter().map(Candidate::shown).collect::<Vec<_>>())
        };
        assert_eq!(named(" lena"), Ok("+4915550100142".to_owned()), "both spellings reach one phone");
        assert_eq!(named("Tom"), Err(vec!["Tom · +15550103333".to_owned(), "Tom · +15550104444".to_owned()]));
        assert_eq!(named("len").unwrap_err().len(), 3, "nobody is called that, but some may be meant");
        assert_eq!((named("Nobody"), named("%"), named("")), (Err(vec![]), Err(vec![]), Err(vec![])));
    }

    #[test]
    fn only_what_changed_is_asked_for_and_what_is_gone_goes() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            let all = [stamp("a", 1), stamp("b", 1), stamp("c", 1)];
            let missing = outdated(tx, PHONE, &all)?;
            assert_eq!(missing, all);
            keep(
                tx,
                PHONE,
                &missing,
                &[contact("a", "A", &["+15550100001"]), contact("b", "B", &["+15550100002"])],
            )?;
            assert_eq!(outdated(tx, PHONE, &all)?, [], "one without a name is not asked for again");
            assert_eq!(outdated(tx, PHONE, &[stamp("b", 2), stamp("c", 1)])?, [stamp("b", 2)]);
            assert_eq!(beside(tx, "+15550100001")?, None, "the phone no longer has it");
            keep(tx, PHONE, &[stamp("b", 2)], &[contact("b", "Bea", &["+15550100003"])])?;
            assert_eq!(beside(tx, "+15550100002")?, None);
            assert_eq!(beside(tx, "+15550100003")?, Some(Untrusted::new("Bea")));
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    /// Page, command and import write the setting in different ways.
    #[test]
    fn turning_all_names_off_deletes_them_at_once() {
        let left = |tx: &Transaction<'_>| {
            let tables = ["contacts", "contact_numbers", "contact_reads"];
            let count = |table| {
                tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0))
                    .unwrap()
            };
            tables.map(count)
        };
        let store = |tx: &Transaction<'_>, value| settings::store(tx, &CONTACT_NAMES_ENABLED.key, value);
        for off in ["written", "changed", "cleared"] {
            let db = Db::in_memory(crate::MIGRATIONS).unwrap();
            let checked = db.write_now(|tx| {
                if off != "written" {
                    store(tx, "true")?;
                }
                for source in [SourceId::HERE, PHONE] {
                    replace(tx, source, &[contact("1", "Lena", &["+15550100142"])])?;
                    note_read(tx, source, Timestamp::UNIX_EPOCH, None)?;
                }
                assert_eq!(left(tx), [2, 2, 2]);
                match off {
                    "cleared" => settings::clear(tx)?,
                    _ => store(tx, "false")?,
                }
                assert_eq!(left(tx), [0, 0, 0], "{off}");
                Ok::<_, DbError>(())
            });
            checked.unwrap();
        }
    }

    #[test]
    fn names_need_the_setting_and_the_phones_own_switch() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            let new =
                NewPhone { device: "d".to_owned(), name: "P".to_owned(), certificate: vec![], protocol: 8 };
            let phone = pair(tx, &new, Timestamp::UNIX_EPOCH)?.source;
            for (setting, switch, here, paired) in [
                ("false", false, false, false),
                ("false", true, false, false),
                ("true", false, true, false),
                ("true", true, true, true),
            ] {
                settings::store(tx, &CONTACT_NAMES_ENABLED.key, setting)?;
                set(tx, phone, Switch::Names, switch)?;
                let on = (is_on(tx, SourceId::HERE)?, is_on(tx, phone)?);
                assert_eq!(on, (here, paired), "{setting} {switch}");
            }
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    #[test]
    fn turning_names_off_deletes_them() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            let new =
                NewPhone { device: "d".to_owned(), name: "P".to_owned(), certificate: vec![], protocol: 8 };
            let phone = pair(tx, &new, Timestamp::UNIX_EPOCH)?.source;
            let fill = || replace(tx, phone, &[contact("1", "Lena", &["+15550100142"])]);
            fill()?;
            set(tx, phone, Switch::Names, true)?;
            assert!(are_on(tx)?);
            set(tx, phone, Switch::Names, false)?;
            assert!(!are_on(tx)?);
            fill()?;
            crate::phones::store::remove(tx, phone)?;
            let left = "SELECT (SELECT count(*) FROM contacts) + (SELECT count(*) FROM contact_numbers)";
            assert_eq!(tx.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}
