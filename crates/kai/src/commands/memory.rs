//! Kai's memories: deletes, confirms and rewrites them, and decides proposals.

use kai_assistant::agent::soul::SoulError;
use kai_assistant::memory::promotion::Proposal;
use kai_assistant::memory::store::{self, Confirming, Removed};
use kai_assistant::memory::{self, Memory, MemoryKey};
use kai_words::said;
use rusqlite::Transaction;

use crate::app::App;
use crate::failure::Failure;

pub(crate) async fn forget(app: &App, key: &str) -> Result<MemoryKey, Failure> {
    take_away(app, key).await.map(|removed| removed.memory.key)
}

/// Deletes a memory and returns it, so that it can be restored.
pub(crate) async fn take_away(app: &App, key: &str) -> Result<Removed, Failure> {
    let key = MemoryKey::new(key).map_err(Failure::usage)?;
    let gone = key.clone();
    app.db.write(move |tx| store::remove(tx, &gone)).await?.ok_or_else(|| unknown(&key))
}

/// Confirms a memory, so that Kai uses it. Refused if its text changed after the user saw it.
pub(crate) async fn confirm(app: &App, key: &str, seen: Option<String>) -> Result<Memory, Failure> {
    let key = MemoryKey::new(key).map_err(Failure::usage)?;
    let wanted = key.clone();
    match app.db.write(move |tx| store::confirm(tx, &wanted, seen.as_deref())).await? {
        Confirming::Done(memory) => Ok(memory),
        Confirming::Changed => Err(Failure::failed(said::memory_changed())),
        Confirming::Unknown => Err(unknown(&key)),
    }
}

/// Replaces a memory's text with the user's own words.
pub(crate) async fn rewrite(app: &App, key: &str, content: &str) -> Result<(), Failure> {
    if content.trim().is_empty() {
        return Err(Failure::usage(said::memory_empty()));
    }
    let key = MemoryKey::new(key).map_err(Failure::usage)?;
    let content =
        memory::content(content).map_err(|_| Failure::usage(said::memory_too_long(memory::CONTENT_LIMIT)))?;
    let (changed, now) = (key.clone(), app.clock.now());
    let known = app.db.write(move |tx| store::rewrite(tx, &changed, &content, now)).await?;
    if known { Ok(()) } else { Err(unknown(&key)) }
}

fn unknown(key: &MemoryKey) -> Failure {
    let key = key.as_str();
    Failure::failed(said::memory_unknown(key)).try_instead("kai memory list")
}

type Deciding = fn(&Transaction<'_>, &MemoryKey) -> Result<Proposal, SoulError>;

/// Accepts or declines a proposal.
pub(crate) async fn decide(app: &App, key: &str, word: Deciding) -> Result<Proposal, Failure> {
    let key = MemoryKey::new(key).map_err(Failure::usage)?;
    app.db.write(move |tx| word(tx, &key)).await.map_err(|error| match error {
        SoulError::Unknown(key) => {
            Failure::failed(said::soul_unknown(key.as_str())).try_instead("kai memory proposals")
        }
        SoulError::Full(_) => Failure::failed(said::soul_full()).try_instead("kai settings get soul_text"),
        SoulError::Store(error) => error.into(),
    })
}
