//! Stores guests and what they did.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::rules::{MOST_ASKED, MOST_DEEDS, same_hash};
use super::{Deed, Did, Guest, GuestId, GuestState};
use crate::db::DbError;

const SELECT: &str = "SELECT id, name, state, first_seen, last_seen, token IS NOT NULL FROM guests";

/// All guests: those that wait for an answer first, then those that were here last.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Guest>, DbError> {
    let sql = format!("{SELECT} ORDER BY state <> 'asked', coalesce(last_seen, first_seen) DESC, id DESC");
    let mut rows = tx.prepare_cached(&sql)?;
    Ok(rows.query_map([], guest)?.collect::<rusqlite::Result<_>>()?)
}

pub fn get(tx: &Transaction<'_>, id: GuestId) -> Result<Option<Guest>, DbError> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], guest).optional()?)
}

/// The guest with exactly this name.
pub fn named(tx: &Transaction<'_>, name: &str) -> Result<Option<Guest>, DbError> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE name = ?1"))?.query_row([name], guest).optional()?)
}

/// The guest whose token has this hash. Compares with every one, whichever it is.
pub fn with_token(tx: &Transaction<'_>, hash: &[u8; 32]) -> Result<Option<Guest>, DbError> {
    let mut rows = tx.prepare_cached("SELECT id, token FROM guests WHERE token IS NOT NULL")?;
    let mut found = None;
    for row in rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))? {
        let (id, kept) = row?;
        if same_hash(&kept, hash) {
            found = Some(id);
        }
    }
    found.map_or(Ok(None), |id| get(tx, id))
}

/// The guest of this name; if it is new, it is stored as asked.
pub fn introduced(tx: &Transaction<'_>, name: &str, now: Timestamp) -> Result<Guest, DbError> {
    if let Some(known) = named(tx, name)? {
        return Ok(known);
    }
    let sql = "INSERT INTO guests (name, state, first_seen, last_seen) VALUES (?1, 'asked', ?2, ?2)";
    tx.prepare_cached(sql)?.execute(params![name, now.as_millisecond()])?;
    let id = GuestId(tx.last_insert_rowid());
    forget_oldest_asked(tx)?;
    get(tx, id)?.ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))
}

/// Whoever the user gave a token is expected, so it does not make room.
fn forget_oldest_asked(tx: &Transaction<'_>) -> Result<(), DbError> {
    let sql = "DELETE FROM guests WHERE id IN (SELECT id FROM guests WHERE state = 'asked' AND token IS NULL
                                               ORDER BY last_seen DESC, id DESC LIMIT -1 OFFSET ?1)";
    tx.execute(sql, [i64::try_from(MOST_ASKED).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Notes that a guest was here.
pub fn seen(tx: &Transaction<'_>, id: GuestId, now: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE guests SET last_seen = ?2 WHERE id = ?1";
    tx.prepare_cached(sql)?.execute(params![id, now.as_millisecond()])?;
    Ok(())
}

/// Stores what the user decided.
pub fn decide(tx: &Transaction<'_>, id: GuestId, state: GuestState) -> Result<(), DbError> {
    tx.execute("UPDATE guests SET state = ?2 WHERE id = ?1", params![id, state.as_str()])?;
    Ok(())
}

/// Gives the guest of this name a token, instead of the one that it had. A new one waits for the user's answer.
pub fn give_token(
    tx: &Transaction<'_>,
    name: &str,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Guest, DbError> {
    let sql = "INSERT INTO guests (name, state, first_seen, token) VALUES (?1, 'asked', ?2, ?3)
               ON CONFLICT (name) DO UPDATE SET token = ?3";
    tx.execute(sql, params![name, now.as_millisecond(), hash])?;
    named(tx, name)?.ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))
}

/// Deletes a guest and what it did. Its drafts stay.
pub fn forget(tx: &Transaction<'_>, id: GuestId) -> Result<(), DbError> {
    tx.execute("DELETE FROM guest_deeds WHERE guest = ?1", [id])?;
    tx.execute("DELETE FROM guests WHERE id = ?1", [id])?;
    Ok(())
}

/// Keeps what a guest did, and forgets the oldest of it.
pub fn note(tx: &Transaction<'_>, id: GuestId, tool: &str, what: Did, now: Timestamp) -> Result<(), DbError> {
    let (kind, number) = what.stored();
    let insert = "INSERT INTO guest_deeds (guest, at, tool, kind, number) VALUES (?1, ?2, ?3, ?4, ?5)";
    tx.prepare_cached(insert)?.execute(params![id, now.as_millisecond(), tool, kind, number])?;
    let sweep = "DELETE FROM guest_deeds WHERE id IN (SELECT id FROM guest_deeds WHERE guest = ?1
                                                      ORDER BY id DESC LIMIT -1 OFFSET ?2)";
    tx.prepare_cached(sweep)?.execute(params![id, i64::try_from(MOST_DEEDS).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// What a guest did, newest first, at most so many.
pub fn deeds(tx: &Transaction<'_>, id: GuestId, most: usize) -> Result<Vec<Deed>, DbError> {
    let sql = "SELECT at, tool, kind, number FROM guest_deeds WHERE guest = ?1 ORDER BY id DESC LIMIT ?2";
    let mut rows = tx.prepare_cached(sql)?;
    let deed = |row: &Row<'_>| {
        Ok(Deed {
            at: Timestamp::from_millisecond(row.get(0)?).unwrap_or_default(),
            tool: row.get(1)?,
            what: Did::of_stored(&row.get::<_, String>(2)?, row.get(3)?),
        })
    };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    Ok(rows.query_map(params![id, most], deed)?.collect::<rusqlite::Result<_>>()?)
}

fn guest(row: &Row<'_>) -> rusqlite::Result<Guest> {
    let time = |at: i64| Timestamp::from_millisecond(at).unwrap_or_default();
    Ok(Guest {
        id: row.get(0)?,
        name: row.get(1)?,
        state: GuestState::stored(&row.get::<_, String>(2)?),
        first_seen: time(row.get(3)?),
        last_seen: row.get::<_, Option<i64>>(4)?.map(time),
        has_token: row.get(5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::guests::MIGRATION;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn with_store(check: impl FnOnce(&Transaction<'_>) -> Result<(), DbError> + Send + 'static) {
        Db::in_memory(&[MIGRATION]).unwrap().write_now(check).unwrap();
    }

    #[test]
    fn a_new_name_waits_and_a_known_one_stays_what_it_is() {
        with_store(|tx| {
            let zed = introduced(tx, "Zed", at(1))?;
            assert_eq!((zed.state, zed.last_seen, zed.has_token), (GuestState::Asked, Some(at(1)), false));
            for state in [GuestState::Allowed, GuestState::Blocked] {
                decide(tx, zed.id, state)?;
                assert_eq!(introduced(tx, "Zed", at(2))?.state, state);
            }
            seen(tx, zed.id, at(3))?;
            assert_eq!(get(tx, zed.id)?.unwrap().last_seen, Some(at(3)));
            assert_eq!(introduced(tx, "zed", at(4))?.state, GuestState::Asked, "another name");
            forget(tx, zed.id)?;
            let again = introduced(tx, "Zed", at(5))?;
            assert_eq!(again.state, GuestState::Asked);
            assert!(again.id > zed.id, "no number is used twice");
            Ok(())
        });
    }

    #[test]
    fn a_flood_of_names_displaces_only_names_that_wait() {
        with_store(|tx| {
            let allowed = introduced(tx, "allowed", at(1))?.id;
            decide(tx, allowed, GuestState::Allowed)?;
            let blocked = introduced(tx, "blocked", at(1))?.id;
            decide(tx, blocked, GuestState::Blocked)?;
            give_token(tx, "expected", &[7; 32], at(1))?;
            for number in 0..200 {
                introduced(tx, &format!("x{number}"), at(2 + number))?;
            }
            let asked = all(tx)?.iter().filter(|guest| guest.state == GuestState::Asked).count();
            assert_eq!(asked, MOST_ASKED + 1);
            for name in ["allowed", "blocked", "expected", "x199", "x150"] {
                assert!(named(tx, name)?.is_some(), "{name}");
            }
            assert_eq!(named(tx, "x149")?, None);
            Ok(())
        });
    }

    #[test]
    fn a_token_finds_its_guest_until_there_is_another_one() {
        with_store(|tx| {
            let one = give_token(tx, "one", &[1; 32], at(1))?;
            assert_eq!((one.state, one.last_seen, one.has_token), (GuestState::Asked, None, true));
            give_token(tx, "two", &[2; 32], at(1))?;
            assert_eq!(with_token(tx, &[1; 32])?, Some(one.clone()));
            assert_eq!(with_token(tx, &[3; 32])?, None);
            decide(tx, one.id, GuestState::Allowed)?;
            let again = give_token(tx, "one", &[3; 32], at(2))?;
            assert_eq!((again.id, again.state), (one.id, GuestState::Allowed));
            assert_eq!(with_token(tx, &[1; 32])?, None, "the old one is void");
            forget(tx, one.id)?;
            assert_eq!(with_token(tx, &[3; 32])?, None);
            Ok(())
        });
    }

    #[test]
    fn only_the_newest_deeds_of_each_guest_are_kept() {
        with_store(|tx| {
            let (one, two) = (introduced(tx, "one", at(1))?.id, introduced(tx, "two", at(1))?.id);
            note(tx, two, "reply_sms", Did::Drafted(4), at(1))?;
            for number in 0..300 {
                note(tx, one, "check_sms", Did::Read(number), at(number))?;
            }
            let kept = deeds(tx, one, 1_000)?;
            assert_eq!(kept.len(), MOST_DEEDS);
            assert_eq!(kept[0], Deed { at: at(299), tool: "check_sms".to_owned(), what: Did::Read(299) });
            assert_eq!(deeds(tx, two, 1_000)?.len(), 1);
            assert_eq!(deeds(tx, two, 1)?[0].what, Did::Drafted(4));
            forget(tx, two)?;
            assert_eq!(deeds(tx, two, 1_000)?, []);
            Ok(())
        });
    }
}
