//! Compares the ledger with the note about its end that is kept outside the store.

use rusqlite::{OptionalExtension, Transaction};

use super::read::edge;
use crate::db::DbError;
use crate::hex;
use crate::home::LedgerEnd;

/// How the ledger compares with the note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The ledger contains the noted record or has since pruned it, or nothing was noted yet.
    Continues,
    /// The ledger ends before the noted record.
    Behind { last: i64, noted: i64 },
    /// The ledger has a different record with the noted number, or none.
    Differs { noted: i64 },
    /// There was a note about this ledger before, and it is gone.
    NoteGone,
}

/// The last record of the ledger; `None` if nothing was ever recorded.
pub fn end(tx: &Transaction<'_>) -> Result<Option<LedgerEnd>, DbError> {
    Ok(edge(tx, "ledger_head")?.map(|(seq, hash)| LedgerEnd { seq, hash: hex::encode(&hash) }))
}

/// Compares the ledger with the note. The caller must read the note before the transaction begins: the note follows the
/// ledger, so a note read later could be ahead of what the transaction sees.
pub fn standing(tx: &Transaction<'_>, noted: Option<&LedgerEnd>) -> Result<Standing, DbError> {
    let Some(noted) = noted else {
        return Ok(if was_noted(tx)? { Standing::NoteGone } else { Standing::Continues });
    };
    let last = end(tx)?.map_or(0, |end| end.seq);
    if last < noted.seq {
        return Ok(Standing::Behind { last, noted: noted.seq });
    }
    let let_go = edge(tx, "ledger_checkpoint")?;
    let there: Option<Vec<u8>> =
        tx.query_row("SELECT hash FROM ledger WHERE seq = ?1", [noted.seq], |row| row.get(0)).optional()?;
    let same = match (there, let_go) {
        (Some(hash), _) => hex::encode(&hash) == noted.hash,
        (None, Some((seq, hash))) if seq == noted.seq => hex::encode(&hash) == noted.hash,
        // The noted record was pruned by age, so there is nothing left to compare.
        (None, Some((seq, _))) => seq > noted.seq,
        (None, None) => false,
    };
    Ok(if same { Standing::Continues } else { Standing::Differs { noted: noted.seq } })
}

/// Whether the end of this ledger was ever noted.
pub fn was_noted(tx: &Transaction<'_>) -> Result<bool, DbError> {
    Ok(tx.query_row("SELECT EXISTS (SELECT 1 FROM ledger_noted)", [], |row| row.get(0))?)
}

/// Records that a note exists. Call it after the note is written: then a crash in between cannot make Kai miss a note
/// that never existed.
pub fn set_noted(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("INSERT OR IGNORE INTO ledger_noted (one) VALUES (1)", [])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::db::Db;
    use crate::ledger::{Record, append, prune};

    fn shown(n: i64) -> Record {
        Record::Codes { conversation: n, shown: true }
    }

    fn day(n: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * n)
    }

    fn filled(tx: &Transaction<'_>, records: std::ops::Range<i64>) -> Result<(), DbError> {
        records.into_iter().try_for_each(|n| append(tx, &shown(n), day(n)))
    }

    /// Notes the end after five records, changes the store, and compares it with the note.
    fn after(change: impl Fn(&Transaction<'_>) -> Result<(), DbError>) -> Standing {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        db.write_now(|tx| {
            filled(tx, 0..5)?;
            let noted = end(tx)?;
            change(tx)?;
            standing(tx, noted.as_ref())
        })
        .map_err(|e: DbError| e)
        .unwrap()
    }

    const CUT: &str = "DELETE FROM ledger WHERE seq > 3;
        UPDATE ledger_head SET seq = 3, hash = (SELECT hash FROM ledger WHERE seq = 3);";

    #[test]
    fn a_ledger_goes_on_from_its_note_or_is_found_out() {
        let cut = |tx: &Transaction<'_>| Ok(tx.execute_batch(CUT)?);
        assert_eq!(after(|_| Ok(())), Standing::Continues);
        assert_eq!(after(|tx| filled(tx, 5..9)), Standing::Continues);
        assert_eq!(after(cut), Standing::Behind { last: 3, noted: 5 });
        let emptied = "DELETE FROM ledger; DELETE FROM ledger_head;";
        assert_eq!(after(|tx| Ok(tx.execute_batch(emptied)?)), Standing::Behind { last: 0, noted: 5 });
        // It must be found even if the sequence was reset, so that new records get the old numbers.
        let over = "DELETE FROM sqlite_sequence WHERE name = 'ledger'";
        let other = after(|tx| {
            tx.execute_batch(CUT)?;
            tx.execute_batch(over)?;
            filled(tx, 20..29)
        });
        assert_eq!(other, Standing::Differs { noted: 5 });
    }

    #[test]
    fn what_was_let_go_by_its_age_is_not_missed() {
        for (name, now, more) in [
            ("everything but the last", 14, 0..0),
            ("exactly up to the note", 15, 5..6),
            ("past the note", 40, 5..9),
            ("everything", 400, 0..0),
        ] {
            let pruned = after(|tx| {
                filled(tx, more.clone())?;
                prune(tx, 10, day(now)).map(drop)
            });
            assert_eq!(pruned, Standing::Continues, "{name}");
        }
    }

    #[test]
    fn a_note_that_was_there_is_missed() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let stands = |tx: &Transaction<'_>| standing(tx, None);
        assert_eq!(db.read_now(stands).unwrap(), Standing::Continues);
        db.write_now(set_noted).unwrap();
        assert_eq!(db.read_now(stands).unwrap(), Standing::NoteGone);
    }
}
