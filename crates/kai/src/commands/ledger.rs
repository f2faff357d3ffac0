//! `kai ledger`: shows what was sent, run and approved, verifies the records, and finds who received a message.

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::ledger::{self, Check, Kept, Piece, Reach, Reached, Record, Verified, Wanted};
use kai_assistant::settings::{self, LEDGER_RETENTION_DAYS};
use kai_words::said;
use rusqlite::Transaction;
use serde_json::Value;

use crate::app::App;
use crate::call::json;
use crate::call::ledger::{LedgerCall, LedgerCheck, LedgerRow};
use crate::commands::noted::{self, NoteProblem};
use crate::failure::Failure;

pub(crate) async fn answer(app: &App, call: LedgerCall) -> Result<Value, Failure> {
    match call {
        LedgerCall::Show { limit } => json(show(app, limit).await?),
        LedgerCall::Verify => json(check(app).await?),
        LedgerCall::Accept => json(noted::accept(app).await?),
        LedgerCall::Who { id } => json(who(app, &id).await?),
        LedgerCall::Bytes { seq } => json(bytes(app, seq).await?),
    }
}

fn row(app: &App, kept: Kept) -> LedgerRow {
    let local = app.local(kept.at);
    LedgerRow { seq: kept.seq, at: kept.at.as_millisecond(), at_local: local, record: kept.record }
}

async fn show(app: &App, limit: usize) -> Result<Vec<LedgerRow>, DbError> {
    let reach = Reach { found: limit, looked: limit };
    let found: Piece = app.db.read(move |tx| ledger::piece(tx, &Wanted::default(), None, reach)).await?;
    Ok(found.kept.into_iter().map(|kept| row(app, kept)).collect())
}

pub(crate) async fn check(app: &App) -> Result<LedgerCheck, DbError> {
    let (records, let_go) = match verified(app).await? {
        Verified::Whole { records, let_go } => (records, let_go),
        Verified::Broken { seq, what } => {
            return Ok(LedgerCheck { broken_at: Some(seq), what: Some(what), ..LedgerCheck::default() });
        }
    };
    let check = LedgerCheck { whole: true, records, let_go, ..LedgerCheck::default() };
    Ok(match noted::doubt(app).await? {
        None => check,
        Some(NoteProblem::Unknown(why)) => LedgerCheck { note_unread: Some(why), ..check },
        Some(NoteProblem::RolledBack { what, last, .. }) => LedgerCheck {
            whole: false,
            broken_at: Some(last + 1),
            what: Some(what),
            rolled_back: true,
            ..check
        },
    })
}

/// Records per transaction. Small, because verifying reads all bytes of each request.
const CHECKED_AT_ONCE: usize = 500;

async fn verified(app: &App) -> Result<Verified, DbError> {
    let mut reached = Reached::default();
    loop {
        match app.db.read(move |tx| ledger::verify(tx, reached, CHECKED_AT_ONCE)).await? {
            Check::On(further) => reached = further,
            Check::Over(verified) => return Ok(verified),
        }
    }
}

/// How many records are searched before other users of the store get their turn.
pub(crate) const LOOK: usize = 20_000;

/// The requests that contained the message, oldest first.
async fn who(app: &App, id: &str) -> Result<Vec<LedgerRow>, DbError> {
    let wanted = Wanted { seen: id.to_owned(), ..Wanted::default() };
    let reach = Reach { found: LOOK, looked: LOOK };
    let (mut rows, mut before) = (vec![], None);
    loop {
        let wanted = wanted.clone();
        let found: Piece = app.db.read(move |tx| ledger::piece(tx, &wanted, before, reach)).await?;
        rows.extend(found.kept.into_iter().map(|kept| row(app, kept)));
        before = found.further;
        if before.is_none() {
            rows.reverse();
            return Ok(rows);
        }
    }
}

pub(crate) async fn bytes(app: &App, seq: i64) -> Result<String, Failure> {
    let found = app.db.read(move |tx| match ledger::one(tx, seq)?.map(|kept| kept.record) {
        Some(Record::Request { chunks, .. }) => ledger::bytes_of(tx, &chunks).map(Some),
        _ => Ok::<_, DbError>(None),
    });
    let none = || Failure::failed(said::ledger_not_a_request(seq)).try_instead("kai ledger show");
    let bytes = found.await?.ok_or_else(none)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Deletes records that are older than the retention setting.
pub(crate) fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let days = settings::load(tx)?.number(&LEDGER_RETENTION_DAYS);
    if days > 0 {
        ledger::prune(tx, days, now)?;
    }
    Ok(())
}
