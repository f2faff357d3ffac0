//! Keeps a note of the ledger's end beside the key, and detects when the ledger does not continue from it: then the
//! store is an older copy, or records were cut off.

use std::sync::atomic::Ordering;

use kai_assistant::db::DbError;
use kai_assistant::home::{Home, KeyError, KeyFile, Keyring, LedgerEnd};
use kai_assistant::ledger::{self, Record, Standing};
use kai_words::{Said, said};
use rusqlite::Transaction;

use crate::app::App;
use crate::call::ledger::Accepted;
use crate::failure::Failure;
use crate::home::keyring;

/// Why the ledger may not be the newest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoteProblem {
    /// The ledger does not continue from the note.
    RolledBack { what: Said, last: i64, noted: i64 },
    /// The note could not be read now.
    Unknown(Said),
}

/// Updates the note to the ledger's current end. Never overwrites a note that the ledger does not continue from: that
/// finding stands until the user accepts it.
pub(crate) async fn note(app: &App) -> Result<(), Failure> {
    let Some(end) = app.db.read(ledger::end).await? else { return Ok(()) };
    if app.last_noted.seq.load(Ordering::Relaxed) == end.seq {
        return Ok(());
    }
    let before = read(app).await?;
    let noted = before.clone();
    let look = move |tx: &Transaction<'_>| {
        Ok::<_, DbError>((ledger::standing(tx, noted.as_ref())?, ledger::was_noted(tx)?))
    };
    let (standing, was_noted) = app.db.read(look).await?;
    if standing != Standing::Continues {
        return Ok(());
    }
    let seq = end.seq;
    if before.is_none_or(|before| before.seq < seq) {
        write(app, end).await?;
    }
    if !was_noted {
        app.db.write(ledger::set_noted).await?;
    }
    app.last_noted.seq.store(seq, Ordering::Relaxed);
    Ok(())
}

/// [`note`] for callers that cannot report an error: logs the first failure. The next attempt follows in a minute, or
/// with the next command.
pub(crate) async fn note_quietly(app: &App) {
    let outcome = note(app).await;
    let is_new = !app.last_noted.failing.swap(outcome.is_err(), Ordering::Relaxed);
    if let (Err(failure), true) = (outcome, is_new) {
        tracing::warn!(error = %failure.message, "the end of the ledger could not be noted beside the key");
    }
}

/// Whether there is reason to doubt that this is the newest store of this home.
pub(crate) async fn doubt(app: &App) -> Result<Option<NoteProblem>, DbError> {
    let noted = match read(app).await {
        Ok(noted) => noted,
        Err(KeyError::NoteSpoiled) => {
            let last = app.db.read(ledger::end).await?.map_or(0, |end| end.seq);
            let what = said::noted_spoiled();
            return Ok(Some(NoteProblem::RolledBack { what, last, noted: 0 }));
        }
        Err(error) => return Ok(Some(NoteProblem::Unknown(error.said()))),
    };
    let look = move |tx: &Transaction<'_>| {
        let last = ledger::end(tx)?.map_or(0, |end| end.seq);
        Ok::<_, DbError>((ledger::standing(tx, noted.as_ref())?, last))
    };
    let (standing, last) = app.db.read(look).await?;
    Ok(doubtful(&standing, last))
}

fn doubtful(standing: &Standing, last: i64) -> Option<NoteProblem> {
    let (what, noted) = match *standing {
        Standing::Continues => return None,
        Standing::Behind { last, noted } => (said::noted_behind(last, noted), noted),
        Standing::Differs { noted } => (said::noted_differs(noted), noted),
        Standing::NoteGone => (said::noted_gone(), 0),
    };
    Some(NoteProblem::RolledBack { what, last, noted })
}

/// What to do about a store that was rolled back.
pub(crate) const NEXT: &str = "If you restored a backup on purpose, accept it: kai ledger accept. Otherwise keep a copy of \
                               the home and find out who changed it.";

/// Prints a warning when the daemon starts with a ledger that was rolled back.
pub(crate) async fn say(app: &App) -> Result<(), Failure> {
    if let Some(NoteProblem::RolledBack { what, .. }) = doubt(app).await? {
        crate::terminal::out::note(&format!("The ledger is incomplete: {what}. {NEXT}"));
    }
    Ok(())
}

/// Accepts an older copy that the user restored: records that, and starts the note again from here.
pub(crate) async fn accept(app: &App) -> Result<Accepted, Failure> {
    let (last, noted) = match doubt(app).await? {
        None => {
            let last = app.db.read(ledger::end).await?.map_or(0, |end| end.seq);
            return Ok(Accepted { accepted: false, last });
        }
        Some(NoteProblem::Unknown(why)) => return Err(Failure::failed(why)),
        Some(NoteProblem::RolledBack { last, noted, .. }) => (last, noted),
    };
    let now = app.clock.now();
    let recorded = app.db.write(move |tx| {
        ledger::append(tx, &Record::Restored { last, noted }, now)?;
        ledger::end(tx)
    });
    let end = recorded.await?.ok_or_else(|| Failure::failed("The ledger could not be read."))?;
    let seq = end.seq;
    write(app, end).await?;
    app.db.write(ledger::set_noted).await?;
    app.last_noted.seq.store(seq, Ordering::Relaxed);
    Ok(Accepted { accepted: true, last })
}

async fn read(app: &App) -> Result<Option<LedgerEnd>, KeyError> {
    beside_the_key(app, |home, key, keyring| home.read_note(key, keyring)).await
}

async fn write(app: &App, end: LedgerEnd) -> Result<(), KeyError> {
    beside_the_key(app, move |home, key, keyring| home.write_note(key, keyring, &end)).await
}

/// Runs `work` with the current key file, which is read each time because the key may have been moved since this
/// process opened the home.
async fn beside_the_key<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&Home, &KeyFile, Option<&dyn Keyring>) -> Result<T, KeyError> + Send + 'static,
) -> Result<T, KeyError> {
    let home = app.home.clone();
    let done = tokio::task::spawn_blocking(move || {
        let key = home.read_key_file()?.ok_or_else(|| KeyError::Missing(home.dir.clone()))?;
        work(&home, &key, keyring().as_deref())
    });
    done.await.unwrap_or_else(|_| Err(KeyError::Note(said::key_stopping())))
}
