//! Promotion: a model proposes to add a memory that proved useful often to the soul text, and the user decides.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Memory, MemoryKey, store};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::Level;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// How many hits a memory needs to be proposed, and how many more after the user declined it.
pub const ENOUGH: u32 = 5;
const LONGEST: usize = 500;

/// A proposed addition to the soul text, which the user can accept or decline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    pub key: MemoryKey,
    /// The sentence that would be added.
    pub text: String,
    pub hits: u32,
    /// Epoch milliseconds.
    pub at: i64,
}

/// Memories that could be proposed now. An unconfirmed one never is, because its text would become permanent.
pub fn candidates(tx: &Transaction<'_>) -> Result<Vec<Memory>, DbError> {
    let mut found = vec![];
    for memory in store::confirmed(tx)? {
        if memory.hits >= ENOUGH && !answered(tx, &memory)? {
            found.push(memory);
        }
    }
    Ok(found)
}

/// Whether a memory was already proposed or accepted, or was declined and has too few new hits since.
fn answered(tx: &Transaction<'_>, memory: &Memory) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT state, hits FROM promotions WHERE key = ?1")?;
    let said: Option<(String, u32)> =
        row.query_row([memory.key.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(said.is_some_and(|(state, hits)| state != "declined" || memory.hits < hits + ENOUGH))
}

/// The open proposals, oldest first.
pub fn proposals(tx: &Transaction<'_>) -> Result<Vec<Proposal>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT key, text, hits, at FROM promotions WHERE state = 'proposed' ORDER BY at, key",
    )?;
    let row = |row: &Row<'_>| {
        Ok(Proposal { key: MemoryKey(row.get(0)?), text: row.get(1)?, hits: row.get(2)?, at: row.get(3)? })
    };
    Ok(rows.query_map([], row)?.collect::<rusqlite::Result<_>>()?)
}

/// Stores the user's decision on a proposal. Returns `None` if there is no open proposal under that key.
pub fn settle(tx: &Transaction<'_>, key: &MemoryKey, said: Verdict) -> Result<Option<Proposal>, DbError> {
    let Some(proposal) = proposals(tx)?.into_iter().find(|proposal| proposal.key == *key) else {
        return Ok(None);
    };
    let state = match said {
        Verdict::Accepted => "accepted",
        Verdict::Declined => "declined",
    };
    tx.execute("UPDATE promotions SET state = ?2 WHERE key = ?1", [key.as_str(), state])?;
    Ok(Some(proposal))
}

/// The user's decision on a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Declined,
}

/// Propose that a memory which proved useful at least five times becomes a permanent part of your instructions. The user
/// decides.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PromoteLearningInput {
    /// The exact key of the memory.
    pub key: String,
    /// The sentence to add, as an instruction to yourself.
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct Proposed {
    key: MemoryKey,
    message: &'static str,
}

pub struct PromoteLearning {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for PromoteLearning {
    const NAME: &'static str = "promote_learning";
    type Input = PromoteLearningInput;
    type Output = Proposed;

    async fn run(&self, input: PromoteLearningInput, run: &Run) -> Result<ToolOutput<Proposed>, ToolError> {
        let key = MemoryKey::new(&input.key).map_err(ToolError::from)?;
        let text = input.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() || text.chars().count() > LONGEST {
            return Err(ToolError(format!("\"text\" must be a sentence of at most {LONGEST} characters.")));
        }
        let (now, row, level) = (self.clock.now(), key.clone(), run.level);
        self.db.write(move |tx| propose(tx, &row, &text, level, now)).await?;
        Ok(ToolOutput::own(Proposed {
            key,
            message: "Suggested. Nothing changes until the user accepts it.",
        }))
    }
}

fn propose(
    tx: &Transaction<'_>,
    key: &MemoryKey,
    text: &str,
    level: Level,
    now: Timestamp,
) -> Result<(), ToolError> {
    let memory = store::all(tx)?.into_iter().find(|memory| memory.key == *key);
    let memory =
        memory.ok_or_else(|| ToolError(format!("There is no memory with the key \"{}\".", key.as_str())))?;
    if !memory.confirmed {
        return Err(ToolError(
            "The user has not confirmed this memory yet, so it cannot be suggested.".to_owned(),
        ));
    }
    if memory.hits < ENOUGH {
        let hits = memory.hits;
        return Err(ToolError(format!("This memory was useful {hits} times; {ENOUGH} are needed.")));
    }
    let own = memory.content.split_whitespace().collect::<Vec<_>>().join(" ");
    if level > Level::Nothing && text != own {
        // Otherwise a stranger's message could dictate text that Kai would be told permanently.
        return Err(ToolError(format!("In this run \"text\" must be exactly what the memory says: {own}")));
    }
    if answered(tx, &memory)? {
        return Err(ToolError("This was already suggested; the user decides.".to_owned()));
    }
    let sql = "INSERT INTO promotions (key, text, state, hits, at) VALUES (?1, ?2, 'proposed', ?3, ?4)
               ON CONFLICT (key) DO UPDATE SET text = ?2, state = 'proposed', hits = ?3, at = ?4";
    tx.execute(sql, params![key.as_str(), text, memory.hits, now.as_millisecond()]).map_err(DbError::from)?;
    Ok(())
}
