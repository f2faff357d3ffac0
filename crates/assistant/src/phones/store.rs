//! Stores the paired phones and this machine's identity on the network.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Phone, SourceId, Switch, Switches};
use crate::db::DbError;

/// A phone that was just paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPhone {
    pub device: String,
    pub name: String,
    pub certificate: Vec<u8>,
    pub protocol: u8,
}

const COLUMNS: &str =
    "SELECT source, device, name, certificate, protocol, paired_at, last_seen, address, sends_by_default,
                       read_sms, send_sms, notifications, names, composer, tell, read_since FROM phones";

fn phone(row: &Row<'_>) -> rusqlite::Result<Phone> {
    let moment = |at: Option<i64>| at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    Ok(Phone {
        source: row.get(0)?,
        device: row.get(1)?,
        name: row.get(2)?,
        certificate: row.get(3)?,
        protocol: row.get(4)?,
        paired_at: moment(row.get(5)?).unwrap_or_default(),
        last_seen: moment(row.get(6)?),
        address: row.get(7)?,
        sends_by_default: row.get(8)?,
        switches: Switches {
            read_sms: row.get(9)?,
            send_sms: row.get(10)?,
            notifications: row.get(11)?,
            names: row.get(12)?,
            composer: row.get(13)?,
            tell: row.get(14)?,
        },
        read_since: moment(row.get(15)?),
    })
}

/// All paired phones, in the order in which they were paired.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Phone>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{COLUMNS} ORDER BY source"))?;
    Ok(rows.query_map([], phone)?.collect::<rusqlite::Result<_>>()?)
}

pub fn get(tx: &Transaction<'_>, source: SourceId) -> Result<Option<Phone>, DbError> {
    let mut row = tx.prepare_cached(&format!("{COLUMNS} WHERE source = ?1"))?;
    Ok(row.query_row([source], phone).optional()?)
}

/// These sources with the names of those that are paired phones.
pub fn named(
    tx: &Transaction<'_>,
    sources: impl IntoIterator<Item = SourceId>,
) -> Result<BTreeMap<SourceId, Option<String>>, DbError> {
    let named = |source| Ok((source, get(tx, source)?.map(|phone| phone.name)));
    sources.into_iter().map(named).collect()
}

pub fn of_device(tx: &Transaction<'_>, device: &str) -> Result<Option<Phone>, DbError> {
    let mut row = tx.prepare_cached(&format!("{COLUMNS} WHERE device = ?1"))?;
    Ok(row.query_row([device], phone).optional()?)
}

/// Keeps a phone that was paired. One that was paired before keeps its source, name and switches, and gets the new
/// certificate: the user compared the keys again.
pub fn pair(tx: &Transaction<'_>, new: &NewPhone, now: Timestamp) -> Result<Phone, DbError> {
    let at = now.as_millisecond();
    // Not in one statement: SQLite would use up a number even for a phone that has one.
    let known = tx.execute(
        "UPDATE phones SET certificate = ?2, protocol = ?3, paired_at = ?4, last_seen = ?4 WHERE device = ?1",
        params![new.device, new.certificate, new.protocol, at],
    )?;
    if known == 0 {
        tx.execute(
            "INSERT INTO phones (device, name, certificate, protocol, paired_at, last_seen)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
            params![new.device, new.name, new.certificate, new.protocol, at],
        )?;
    }
    of_device(tx, &new.device)?.ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))
}

/// Gives a phone another name. Returns whether there is such a phone.
pub fn rename(tx: &Transaction<'_>, source: SourceId, name: &str) -> Result<bool, DbError> {
    Ok(tx.execute("UPDATE phones SET name = ?2 WHERE source = ?1", params![source, name])? > 0)
}

/// Turns one of a phone's switches on or off. Returns whether there is such a phone.
pub fn set(tx: &Transaction<'_>, source: SourceId, switch: Switch, on: bool) -> Result<bool, DbError> {
    let sql = format!("UPDATE phones SET {} = ?2 WHERE source = ?1", switch.as_str());
    Ok(tx.execute(&sql, params![source, on])? > 0)
}

/// Notes that reading begins: messages from `since` on are news.
pub fn begin_reading(tx: &Transaction<'_>, source: SourceId, since: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE phones SET read_since = ?2 WHERE source = ?1 AND read_since IS NULL";
    tx.execute(sql, params![source, since.as_millisecond()])?;
    Ok(())
}

/// Notes when a phone was last connected, and where, if that is known.
pub fn seen(
    tx: &Transaction<'_>,
    source: SourceId,
    at: Timestamp,
    address: Option<&str>,
) -> Result<(), DbError> {
    let sql = "UPDATE phones SET last_seen = ?2, address = coalesce(?3, address) WHERE source = ?1";
    tx.execute(sql, params![source, at.as_millisecond(), address])?;
    Ok(())
}

/// Notes the version of the protocol that a phone spoke. From then on an older one is refused.
pub fn spoke(tx: &Transaction<'_>, source: SourceId, protocol: u8) -> Result<(), DbError> {
    let sql = "UPDATE phones SET protocol = ?2 WHERE source = ?1 AND protocol < ?2";
    tx.execute(sql, params![source, protocol])?;
    Ok(())
}

/// Ends a pairing. The phone stays known by its name and number, because its messages are still there.
pub fn end_pairing(tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
    tx.execute("UPDATE phones SET certificate = x'', sends_by_default = 0 WHERE source = ?1", [source])?;
    Ok(())
}

/// Lets new messages leave by this phone, or, given [`SourceId::HERE`], by the phone that Kai runs on.
pub fn send_by_default(tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
    tx.execute("UPDATE phones SET sends_by_default = (source = ?1)", [source])?;
    Ok(())
}

/// Forgets a phone. Its messages are the features' to forget.
pub fn remove(tx: &Transaction<'_>, source: SourceId) -> Result<bool, DbError> {
    Ok(tx.execute("DELETE FROM phones WHERE source = ?1", [source])? > 0)
}

/// This machine as phones know it.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnIdentity {
    pub device: String,
    pub certificate: Vec<u8>,
    /// The private key of the certificate.
    pub key: Vec<u8>,
}

pub fn identity(tx: &Transaction<'_>) -> Result<Option<OwnIdentity>, DbError> {
    let row =
        |row: &Row<'_>| Ok(OwnIdentity { device: row.get(0)?, certificate: row.get(1)?, key: row.get(2)? });
    let mut sql = tx.prepare_cached("SELECT device, certificate, key FROM phone_identity")?;
    Ok(sql.query_row([], row).optional()?)
}

/// Keeps the identity unless there is one, and returns the one that is kept.
pub fn keep_identity(tx: &Transaction<'_>, new: &OwnIdentity) -> Result<OwnIdentity, DbError> {
    tx.execute(
        "INSERT OR IGNORE INTO phone_identity (one, device, certificate, key) VALUES (1, ?1, ?2, ?3)",
        params![new.device, new.certificate, new.key],
    )?;
    identity(tx)?.ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::settings::{self, SMS_ENABLED};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    fn new(device: &str) -> NewPhone {
        NewPhone { device: device.to_owned(), name: "Pixel".to_owned(), certificate: vec![1], protocol: 8 }
    }

    #[tokio::test]
    async fn a_phone_keeps_its_number_and_nobody_gets_it_after() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let first = pair(tx, &new("a"), at(1))?;
            assert_eq!((first.source, first.switches), (SourceId(2), Switches::default()));
            set(tx, first.source, Switch::SendSms, true)?;
            rename(tx, first.source, "Mine")?;
            let again = pair(tx, &NewPhone { certificate: vec![2], ..new("a") }, at(2))?;
            assert_eq!(
                (again.source, again.name.as_str(), &*again.certificate),
                (SourceId(2), "Mine", &[2][..])
            );
            assert!(again.switches.send_sms);
            let second = pair(tx, &new("b"), at(3))?;
            send_by_default(tx, second.source)?;
            send_by_default(tx, first.source)?;
            assert_eq!(
                all(tx)?.iter().map(|phone| phone.sends_by_default).collect::<Vec<_>>(),
                [true, false]
            );
            assert!(remove(tx, second.source)? && !remove(tx, second.source)?);
            assert_eq!(
                pair(tx, &new("c"), at(4))?.source,
                SourceId(4),
                "not the number of the one that is gone"
            );
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn a_pairing_that_ended_can_be_taken_up_again() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let phone = pair(tx, &NewPhone { protocol: 7, ..new("a") }, at(1))?;
            send_by_default(tx, phone.source)?;
            for (spoken, expected) in [(8, 8), (7, 8)] {
                spoke(tx, phone.source, spoken)?;
                assert_eq!(get(tx, phone.source)?.map(|phone| phone.protocol), Some(expected));
            }
            end_pairing(tx, phone.source)?;
            let ended = get(tx, phone.source)?.map(|phone| (phone.is_paired(), phone.sends_by_default));
            assert_eq!(ended, Some((false, false)));
            let again = pair(tx, &new("a"), at(2))?;
            assert_eq!((again.source, again.is_paired()), (phone.source, true));
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_turns_reading_off_begins_anew() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let phone = pair(tx, &new("a"), at(1))?.source;
            let since = || Ok::<_, DbError>(get(tx, phone)?.and_then(|phone| phone.read_since));
            set(tx, phone, Switch::ReadSms, true)?;
            begin_reading(tx, phone, at(5))?;
            begin_reading(tx, phone, at(9))?;
            assert_eq!(since()?, Some(at(5)), "it began once");
            set(tx, phone, Switch::ReadSms, false)?;
            assert_eq!(since()?, None);
            set(tx, phone, Switch::ReadSms, true)?;
            begin_reading(tx, phone, at(9))?;
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            assert_eq!(since()?, Some(at(9)));
            settings::store(tx, &SMS_ENABLED.key, "false")?;
            assert_eq!(since()?, None, "the master switch counts as well");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn this_machine_has_one_identity() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let one = OwnIdentity { device: "d".to_owned(), certificate: vec![1], key: vec![2] };
            assert!(identity(tx)?.is_none());
            keep_identity(tx, &one)?;
            let kept = keep_identity(tx, &OwnIdentity { device: "e".to_owned(), ..one.clone() })?;
            assert!(kept == one, "the first one stays");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
