//! Schema migrations, identified by name rather than number: editions have different tables, so "version 7" would be
//! ambiguous. The store records the set of applied names; an unknown name in it means that a newer version or another
//! edition wrote the store.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{DbError, OpenError};

/// One named schema change. It must never be edited once released.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub name: &'static str,
    pub sql: &'static str,
}

const APPLIED: &str = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID";

/// The migrations still to apply, or the applied names that this version does not know.
fn plan<'m>(applied: &BTreeSet<String>, known: &'m [Migration]) -> Result<Vec<&'m Migration>, String> {
    let unknown: Vec<&str> =
        applied.iter().map(String::as_str).filter(|name| known.iter().all(|m| m.name != *name)).collect();
    if unknown.is_empty() {
        Ok(known.iter().filter(|m| !applied.contains(m.name)).collect())
    } else {
        Err(unknown.join(", "))
    }
}

fn applied(conn: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    if !conn.table_exists(None, "migrations")? {
        return Ok(BTreeSet::new());
    }
    conn.prepare("SELECT name FROM migrations")?.query_map([], |row| row.get(0))?.collect()
}

/// Whether there are migrations to apply. Returns an error for a newer schema.
pub(super) fn pending(conn: &Connection, known: &[Migration]) -> Result<bool, OpenError> {
    Ok(!steps(conn, known)?.is_empty())
}

fn steps<'m>(conn: &Connection, known: &'m [Migration]) -> Result<Vec<&'m Migration>, OpenError> {
    let applied = applied(conn).map_err(unexpected)?;
    let path = conn.path().unwrap_or_default().into();
    plan(&applied, known).map_err(|unknown| OpenError::Newer { path, unknown })
}

/// Applies the missing migrations in one transaction. `keep_copy` runs while the write lock is held and before the
/// first change, so that it copies the store as it was.
pub(super) fn apply(
    conn: &mut Connection,
    known: &[Migration],
    keep_copy: impl FnOnce() -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unexpected)?;
    let steps = steps(&tx, known)?;
    if steps.is_empty() {
        return Ok(());
    }
    keep_copy()?;
    tx.execute_batch(APPLIED).map_err(unexpected)?;
    for step in steps {
        lay(&tx, step).map_err(|cause| OpenError::Migration { name: step.name, cause })?;
    }
    tx.commit().map_err(unexpected)
}

fn lay(tx: &Transaction<'_>, step: &Migration) -> rusqlite::Result<()> {
    tx.execute_batch(step.sql)?;
    tx.execute("INSERT INTO migrations (name) VALUES (?1)", [step.name]).map(|_| ())
}

fn unexpected(error: rusqlite::Error) -> OpenError {
    OpenError::Unexpected(DbError::from(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Migration = Migration { name: "a", sql: "CREATE TABLE a (x)" };
    const B: Migration = Migration { name: "b", sql: "CREATE TABLE b (x)" };
    const BROKEN: Migration = Migration { name: "broken", sql: "CREATE TABLE c (x); CREATE TABLE a (x)" };

    #[test]
    fn plan_is_what_is_missing_or_refuses_the_unknown() {
        for (name, applied, known, expected) in [
            ("fresh", vec![], vec![A, B], Ok(vec!["a", "b"])),
            ("one behind", vec!["a"], vec![A, B], Ok(vec!["b"])),
            ("a feature added between", vec!["b"], vec![A, B], Ok(vec!["a"])),
            ("up to date", vec!["a", "b"], vec![A, B], Ok(vec![])),
            ("newer", vec!["a", "z"], vec![A, B], Err("z".to_owned())),
        ] {
            let applied = applied.into_iter().map(str::to_owned).collect();
            let planned =
                plan(&applied, &known).map(|steps| steps.iter().map(|m| m.name).collect::<Vec<_>>());
            assert_eq!(planned, expected, "{name}");
        }
    }

    #[test]
    fn a_failing_step_leaves_nothing_of_the_others() {
        let mut conn = Connection::open_in_memory().unwrap();
        apply(&mut conn, &[A], || Ok(())).unwrap();
        let failed = apply(&mut conn, &[A, B, BROKEN], || Ok(())).unwrap_err();
        assert!(failed.to_string().contains("broken"), "{failed}");
        assert!(!conn.table_exists(None, "b").unwrap());
        assert!(!conn.table_exists(None, "c").unwrap());
        assert_eq!(applied(&conn).unwrap().len(), 1);
    }

    #[test]
    fn a_copy_is_kept_only_when_something_changes() {
        let mut conn = Connection::open_in_memory().unwrap();
        let mut copies = 0;
        for _ in 0..2 {
            apply(&mut conn, &[A], || {
                copies += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(copies, 1);
    }

    /// In an older store, tainted content came from people, so it gets the highest level, and tainted memories wait for
    /// the user's confirmation.
    #[test]
    fn what_older_stores_call_tainted_is_peoples() {
        let mut conn = Connection::open_in_memory().unwrap();
        let older = |migration: &Migration| {
            !["conversations/levels", "tasks/levels", "memory/confirmed"].contains(&migration.name)
        };
        let older: Vec<Migration> = crate::MIGRATIONS.iter().copied().filter(older).collect();
        apply(&mut conn, &older, || Ok(())).unwrap();
        conn.execute_batch(
            "INSERT INTO conversations (kind, title, created_at, updated_at, tainted)
                 VALUES ('chat', 'a', 0, 0, 0), ('chat', 'b', 0, 0, 1), ('heartbeat', 'c', 0, 0, 0);
             INSERT INTO tasks (description, prompt, kind, missed, tainted, status, created_at)
                 VALUES ('a', 'x', 'HEARTBEAT', 'SKIP', 0, 'PENDING', 0), ('b', 'x', 'HEARTBEAT', 'SKIP', 1, 'PENDING', 0);
             INSERT INTO memories (key, content, category, source, created_at, updated_at, tainted)
                 VALUES ('a', 'x', 'GENERAL', 'chat', 0, 0, 0), ('b', 'y', 'GENERAL', 'chat', 0, 0, 1);",
        )
        .unwrap();
        apply(&mut conn, crate::MIGRATIONS, || Ok(())).unwrap();
        for (sql, expected) in [
            ("SELECT title, level FROM conversations ORDER BY 1", vec![("a", 0), ("b", 2), ("c", 2)]),
            ("SELECT description, level FROM tasks ORDER BY 1", vec![("a", 0), ("b", 2)]),
            ("SELECT key, confirmed FROM memories ORDER BY 1", vec![("a", 1), ("b", 0)]),
        ] {
            let mut rows = conn.prepare(sql).unwrap();
            let rows =
                rows.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).unwrap();
            let rows: Vec<(String, i64)> = rows.collect::<rusqlite::Result<_>>().unwrap();
            let expected: Vec<(String, i64)> =
                expected.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
            assert_eq!(rows, expected, "{sql}");
        }
    }

    /// A home from before chats had names, pins and questions: they have none, and can get them.
    #[test]
    fn older_chats_have_no_name_and_can_get_one() {
        let mut conn = Connection::open_in_memory().unwrap();
        let is_older = |migration: &Migration| migration.name != "conversations/list";
        let older: Vec<Migration> = crate::MIGRATIONS.iter().copied().filter(is_older).collect();
        apply(&mut conn, &older, || Ok(())).unwrap();
        let chat =
            "INSERT INTO conversations (kind, title, created_at, updated_at) VALUES ('chat', 'a', 0, 0)";
        conn.execute_batch(chat).unwrap();
        apply(&mut conn, crate::MIGRATIONS, || Ok(())).unwrap();
        let plain = |conn: &Connection| {
            let sql = "SELECT name IS NULL AND pinned = 0 AND asked = 0 FROM conversations";
            conn.query_row(sql, [], |row| row.get::<_, bool>(0)).unwrap()
        };
        assert!(plain(&conn));
        conn.execute("UPDATE conversations SET name = 'tea'", []).unwrap();
        let found = "SELECT count(*) FROM conversation_names WHERE conversation_names MATCH 'tea'";
        assert_eq!(conn.query_row(found, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        assert!(!plain(&conn));
    }

    /// Drafts from before there were guests keep who staged them, and no number is used twice.
    #[test]
    fn older_drafts_keep_who_staged_them() {
        let mut conn = Connection::open_in_memory().unwrap();
        let is_older = |migration: &Migration| migration.name != "outbox/guests";
        let older: Vec<Migration> = crate::MIGRATIONS.iter().copied().filter(is_older).collect();
        apply(&mut conn, &older, || Ok(())).unwrap();
        let draft = |conn: &Connection, origin: &str| {
            let sql = "INSERT INTO drafts (channel, recipient, body, first_contact, origin, conversation, created_at, status)
                       VALUES ('sms', '+1', 'a', 0, ?1, 0, 0, 'PENDING')";
            conn.execute(sql, [origin]).map(|_| conn.last_insert_rowid())
        };
        for (number, origin) in [(1, "chat"), (2, "heartbeat"), (3, "task"), (4, "chat")] {
            assert_eq!(draft(&conn, origin).unwrap(), number);
        }
        assert!(draft(&conn, "guest").is_err());
        conn.execute("DELETE FROM drafts WHERE id = 4", []).unwrap();
        apply(&mut conn, crate::MIGRATIONS, || Ok(())).unwrap();
        let mut rows = conn.prepare("SELECT origin FROM drafts WHERE guest IS NULL ORDER BY id").unwrap();
        let rows: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, ["chat", "heartbeat", "task"]);
        assert_eq!(draft(&conn, "guest").unwrap(), 5);
        assert!(draft(&conn, "anybody").is_err());
    }
}
