//! Keeps what is known of received mails for some weeks: for the inbox page, and for searching while a server is away.
//! Texts stay on the servers.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Row, Transaction, params};

use super::EmailId;
use super::index::{self, Way};
use super::port::{Header, Mailbox};
use super::queue::PREVIEW;
use super::search::Wanted;
use crate::db::DbError;
use crate::outbox::address::spelling;
use crate::settings::{self, EMAIL_KEEP_DAYS};
use crate::source::SourceId;
use crate::untrusted::Untrusted;

/// The most mails that are kept, whatever the settings say. The newest are.
const MOST: u32 = 200_000;
/// How many mails are indexed at once that were kept before there was an index.
const AT_ONCE: i64 = 2_000;
/// How many characters of a name, an address and a subject are kept.
const NAME: usize = 200;
const ADDRESS: usize = 254;
const SUBJECT: usize = 500;

/// A mail as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub id: EmailId,
    pub from: Mailbox,
    pub subject: Untrusted,
    /// The beginning of its text with all codes, for the user's own eyes.
    pub beginning: Untrusted,
    pub received: Timestamp,
    /// The user had read it elsewhere when Kai saw it first.
    pub seen: bool,
    /// The user opened it in Kai.
    pub opened: bool,
    /// The user dismissed it.
    pub away: bool,
}

impl Kept {
    pub fn is_unread(&self) -> bool {
        !(self.seen || self.opened || self.away)
    }
}

/// Keeps a mail. Returns whether it is new here. Another mail that had its number makes room: a server whose backup was
/// restored gives numbers again.
pub(super) fn keep(
    tx: &Transaction<'_>,
    id: EmailId,
    header: &Header,
    now: Timestamp,
) -> Result<bool, DbError> {
    let name = Untrusted::new(header.from.name.line(NAME));
    let address = Untrusted::new(header.from.address.line(ADDRESS));
    let subject = Untrusted::new(header.subject.line(SUBJECT));
    let beginning = Untrusted::new(header.beginning.line(PREVIEW));
    // A date in the future would stand above everything that arrives later.
    let received = header.received.min(now).as_millisecond();
    tx.prepare_cached(
        "DELETE FROM email_kept WHERE account = ?1 AND validity = ?2 AND uid = ?3
             AND NOT (received = ?4 AND from_address = ?5 AND subject = ?6)",
    )?
    .execute(params![
        id.account,
        id.validity,
        id.uid,
        received,
        address.as_written(),
        subject.as_written()
    ])?;
    let mut insert = tx.prepare_cached(
        "INSERT OR IGNORE INTO email_kept (account, validity, uid, from_name, from_address, spelling, subject, beginning,
                                           received, kept_at, bulk, seen)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let added = insert.execute(params![
        id.account,
        id.validity,
        id.uid,
        name.as_written(),
        address.as_written(),
        spelling(address.as_written()),
        subject.as_written(),
        beginning.as_written(),
        received,
        now.as_millisecond(),
        header.bulk,
        header.seen,
    ])?;
    if added > 0 {
        index::add(tx, id, received, &[&name, &address, &subject, &beginning])?;
    }
    Ok(added > 0)
}

/// Indexes some of the mails that were kept before there was an index.
pub(super) fn index_some(tx: &Transaction<'_>) -> Result<(), DbError> {
    if index::is_complete(tx)? {
        return Ok(());
    }
    let some = unindexed(tx)?;
    for Kept { id, from, subject, beginning, received, .. } in &some {
        index::add(tx, *id, received.as_millisecond(), &[&from.name, &from.address, subject, beginning])?;
    }
    if some.is_empty() { index::set_complete(tx) } else { Ok(()) }
}

fn unindexed(tx: &Transaction<'_>) -> Result<Vec<Kept>, DbError> {
    let mut rows = tx.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM email_kept k WHERE NOT EXISTS (SELECT 1 FROM email_rows r
             WHERE r.account = k.account AND r.validity = k.validity AND r.uid = k.uid)
         LIMIT ?1"
    ))?;
    Ok(rows.query_map([AT_ONCE], row)?.collect::<rusqlite::Result<_>>()?)
}

const COLUMNS: &str =
    "k.account, k.validity, k.uid, k.from_name, k.from_address, k.subject, k.beginning, k.received,
                       k.seen, k.opened, k.away";

fn row(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let text = |column| row.get::<_, String>(column).map(Untrusted::new);
    Ok(Kept {
        id: EmailId { account: row.get(0)?, validity: row.get(1)?, uid: row.get(2)? },
        from: Mailbox { name: text(3)?, address: text(4)? },
        subject: text(5)?,
        beginning: text(6)?,
        received: Timestamp::from_millisecond(row.get(7)?).unwrap_or_default(),
        seen: row.get(8)?,
        opened: row.get(9)?,
        away: row.get(10)?,
    })
}

pub fn get(tx: &Transaction<'_>, id: EmailId) -> Result<Option<Kept>, DbError> {
    let sql = format!("SELECT {COLUMNS} FROM email_kept k WHERE account = ?1 AND validity = ?2 AND uid = ?3");
    let mut rows = tx.prepare_cached(&sql)?;
    let mut found = rows.query_map(params![id.account, id.validity, id.uid], row)?;
    Ok(found.next().transpose()?)
}

/// Which mails are looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Among<'a> {
    /// Only those of this account.
    pub account: Option<SourceId>,
    /// None that came after this millisecond.
    pub until: Option<i64>,
    /// Only those that may have all words of this search.
    pub(super) search: Option<&'a Wanted>,
}

impl Among<'_> {
    /// All mails of an account, or of every account.
    pub fn all(account: Option<SourceId>) -> Self {
        Self { account, ..Self::default() }
    }
}

/// The newest mails that `choose` takes, newest first, at most `most`.
pub fn newest(
    tx: &Transaction<'_>,
    among: Among<'_>,
    most: usize,
    mut choose: impl FnMut(&Kept) -> bool,
) -> Result<Vec<Kept>, DbError> {
    let Among { account, until, search } = among;
    let until = until.unwrap_or(i64::MAX);
    let query = match search.map_or(Ok(Way::Look), |search| index::way(tx, search))? {
        Way::Query(query) => Some(query),
        Way::Look => None,
        Way::None => return Ok(vec![]),
    };
    let sql = match &query {
        Some(_) => format!(
            "SELECT {COLUMNS} FROM email_words CROSS JOIN email_rows r ON r.row = email_words.rowid
                 CROSS JOIN email_kept k ON k.account = r.account AND k.validity = r.validity AND k.uid = r.uid
             WHERE email_words MATCH ?3 AND email_words.rowid <= ?4 AND k.received <= ?1 AND (?2 IS NULL OR k.account = ?2)
             ORDER BY email_words.rowid DESC"
        ),
        None => format!(
            "SELECT {COLUMNS} FROM email_kept k
             WHERE received <= ?1 AND (?2 IS NULL OR account = ?2) ORDER BY received DESC"
        ),
    };
    let mut rows = tx.prepare_cached(&sql)?;
    let looked_at = match &query {
        Some(query) => rows.query_map(params![until, account, query, index::last_row(until)], row)?,
        None => rows.query_map(params![until, account], row)?,
    };
    let mut found: Vec<Kept> = vec![];
    for kept in looked_at {
        let kept = kept?;
        // Those of one millisecond are only in order once all of them are there.
        if found.len() >= most && found.last().is_none_or(|last| last.received != kept.received) {
            break;
        }
        if choose(&kept) {
            found.push(kept);
        }
        // A mailbox that was moved may have thousands of one second.
        if found.len() > most.saturating_mul(2) {
            first_in_the_inbox(&mut found, most);
        }
    }
    first_in_the_inbox(&mut found, most);
    Ok(found)
}

fn first_in_the_inbox(found: &mut Vec<Kept>, most: usize) {
    found.sort_by_key(|kept| Reverse(in_the_inbox(kept)));
    found.truncate(most);
}

/// By what the inbox orders mails: those of one millisecond by their ids, the longest first.
fn in_the_inbox(kept: &Kept) -> (Timestamp, usize, String) {
    let id = kept.id.to_string();
    (kept.received, id.len(), id)
}

/// How many mails nobody has read. Counts no further than `most`.
pub fn unread(tx: &Transaction<'_>, most: usize) -> Result<usize, DbError> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM email_kept INDEXED BY email_kept_unread
               WHERE seen = 0 AND opened = 0 AND away = 0 LIMIT ?1)";
    let count: i64 =
        tx.prepare_cached(sql)?.query_row([i64::try_from(most).unwrap_or(i64::MAX)], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Notes that the user opened a mail in Kai.
pub fn open(tx: &Transaction<'_>, id: EmailId) -> Result<(), DbError> {
    let sql = "UPDATE email_kept SET opened = 1 WHERE account = ?1 AND validity = ?2 AND uid = ?3";
    tx.execute(sql, params![id.account, id.validity, id.uid])?;
    Ok(())
}

/// Notes that the user dismissed a mail, or wants it back.
pub fn put_away(tx: &Transaction<'_>, id: EmailId, away: bool) -> Result<(), DbError> {
    let sql = "UPDATE email_kept SET away = ?4, opened = 1 WHERE account = ?1 AND validity = ?2 AND uid = ?3";
    tx.execute(sql, params![id.account, id.validity, id.uid, away])?;
    Ok(())
}

/// Whether a mail from this address was received.
pub fn wrote_before(tx: &Transaction<'_>, address: &str) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT 1 FROM email_kept WHERE spelling = ?1")?;
    Ok(row.exists([spelling(address)])?)
}

/// Removes what is older than the user wants it kept.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let days = i64::from(settings::load(tx)?.number(&EMAIL_KEEP_DAYS));
    let oldest = now.saturating_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MIN);
    tx.execute("DELETE FROM email_kept WHERE kept_at < ?1", [oldest.as_millisecond()])?;
    tx.execute(
        "DELETE FROM email_kept
         WHERE received < (SELECT received FROM email_kept ORDER BY received DESC LIMIT 1 OFFSET ?1)",
        [MOST],
    )?;
    Ok(())
}

/// Removes what is kept of an account.
pub(super) fn forget(tx: &Transaction<'_>, account: SourceId) -> Result<(), DbError> {
    tx.execute("DELETE FROM email_kept WHERE account = ?1", [account])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::email::FIRST_ACCOUNT;

    const ACCOUNT: SourceId = SourceId(FIRST_ACCOUNT + 1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// Keeps a mail. Returns whether it is new.
    fn keeps(db: &Db, uid: u32, second: i64, subject: &str) -> bool {
        let header = Header {
            uid,
            from: Mailbox { name: Untrusted::new("Müller"), address: Untrusted::new("mueller@post.test") },
            subject: Untrusted::new(subject),
            received: at(second),
            beginning: Untrusted::new("Your code is 482913."),
            bulk: false,
            seen: false,
        };
        let id = EmailId { account: ACCOUNT, validity: 1, uid };
        db.write_now(|tx| keep(tx, id, &header, at(9_000))).unwrap()
    }

    /// The numbers of the mails that a search finds, newest first.
    fn found(db: &Db, words: &str, until: Option<i64>, most: usize) -> Vec<u32> {
        let wanted = Wanted::new(words).unwrap();
        let among = Among { account: None, until, search: Some(&wanted) };
        let is_found = |kept: &Kept| {
            wanted.is_in(&[&kept.from.name, &kept.from.address, &kept.subject, &kept.beginning])
        };
        let found = db.read_now(|tx| newest(tx, among, most, is_found)).unwrap();
        found.into_iter().map(|kept| kept.id.uid).collect()
    }

    fn home() -> Db {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        for (uid, second, subject) in [
            (1, 10, "Train to Kraków"),
            (2, 20, "東京へ行く"),
            (3, 20, "The training begins"),
            (4, 30, "100% off, \"today\""),
            (12, 20, "A train again"),
        ] {
            keeps(&db, uid, second, subject);
        }
        db
    }

    const SEARCHES: [(&str, &[u32]); 9] = [
        ("train", &[12, 3, 1]),
        ("TRAIN kra", &[1]),
        ("müller train", &[12, 3, 1]),
        ("mueller@post.test", &[4, 12, 3, 2, 1]),
        ("京", &[2]),
        ("東京へ", &[2]),
        ("\"today\"", &[4]),
        ("heron", &[]),
        ("482913", &[4, 12, 3, 2, 1]),
    ];

    #[test]
    fn mails_are_found_by_the_beginnings_of_their_words() {
        let db = home();
        for (words, expected) in SEARCHES {
            assert_eq!(found(&db, words, None, 9), expected, "{words}");
        }
        assert_eq!(found(&db, "%", None, 9), [4], "no word at all: everything is looked at");
        assert_eq!(found(&db, "train", Some(at(19).as_millisecond()), 9), [1], "not later");
    }

    /// A page ends within a millisecond, and the next one goes on there.
    #[test]
    fn mails_of_one_millisecond_are_in_the_order_of_the_inbox() {
        let db = home();
        for most in 1..=3 {
            assert_eq!(found(&db, "train", None, most), &[12, 3, 1][..most]);
        }
        let all = |most| db.read_now(|tx| newest(tx, Among::all(None), most, |_| true)).unwrap();
        let uids = |most| all(most).iter().map(|kept| kept.id.uid).collect::<Vec<_>>();
        assert_eq!((uids(9), uids(2), uids(3)), (vec![4, 12, 3, 2, 1], vec![4, 12], vec![4, 12, 3]));
        for uid in 100..200 {
            keeps(&db, uid, 40, "A train of one second");
        }
        assert_eq!((uids(3), found(&db, "train", None, 2)), (vec![199, 198, 197], vec![199, 198]));
    }

    #[test]
    fn what_is_not_kept_any_more_is_not_found() {
        let db = home();
        let words = || {
            let count = |table: &str| {
                let sql = format!("SELECT count(*) FROM {table}");
                db.read_now(|tx| Ok::<i64, DbError>(tx.query_row(&sql, [], |row| row.get(0))?)).unwrap()
            };
            (count("email_rows"), count("email_words"))
        };
        assert_eq!(words(), (5, 5));
        db.write_now(|tx| forget(tx, ACCOUNT)).unwrap();
        assert_eq!((words(), found(&db, "train", None, 9)), ((0, 0), vec![]));
        keeps(&db, 1, 10, "A train");
        assert_eq!(found(&db, "train", None, 9), [1], "its row is free again");
    }

    #[test]
    fn a_number_that_is_given_again_is_another_mail() {
        let db = home();
        assert!(!keeps(&db, 3, 20, "The training begins"), "the same mail");
        assert_eq!(found(&db, "training", None, 9), [3]);
        assert!(keeps(&db, 3, 20, "A heron"));
        assert_eq!((found(&db, "training", None, 9), found(&db, "heron", None, 9)), (vec![], vec![3]));
        assert!(keeps(&db, 3, 21, "A heron"), "another one of that subject");
        assert!(!keeps(&db, 3, 21, "A heron"));
        assert_eq!(found(&db, "mueller@post.test", None, 9), [4, 3, 12, 2, 1], "nothing else made room");
    }

    /// A store from before the index: everything is found before, while and after it is indexed.
    #[test]
    fn what_was_kept_before_there_was_an_index_is_found() {
        let db = home();
        db.write_now(|tx| {
            tx.execute_batch(
                "DELETE FROM email_words WHERE rowid IN (SELECT row FROM email_rows WHERE uid <> 12);
                 DELETE FROM email_rows WHERE uid <> 12;
                 UPDATE email_indexed SET complete = 0",
            )?;
            Ok::<_, DbError>(())
        })
        .unwrap();
        for step in 0..3 {
            for (words, expected) in SEARCHES {
                assert_eq!(found(&db, words, None, 9), expected, "{words}, {step}");
            }
            db.write_now(index_some).unwrap();
        }
        assert!(db.read_now(index::is_complete).unwrap());
        assert_eq!(found(&db, "train", None, 9), [12, 3, 1]);
    }
}
