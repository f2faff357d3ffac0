//! What a model may do with memories.

use std::sync::Arc;

use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, Stored};
use super::{Category, MemoryKey, content};
use crate::clock::Clock;
use crate::db::Db;
use crate::tool::{Tool, ToolError};

/// Store a fact to remember in later conversations, or update the one stored under the same key.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MemoryStoreInput {
    /// Short descriptive name of the memory, for example "favourite colour".
    pub key: String,
    /// What to remember, in one or a few sentences.
    pub content: String,
}

#[derive(Debug, Serialize)]
pub struct MemoryStored {
    key: MemoryKey,
    updated: bool,
    message: String,
}

pub struct MemoryStore {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for MemoryStore {
    const NAME: &'static str = "memory_store";
    type Input = MemoryStoreInput;
    type Output = MemoryStored;

    async fn run(&self, input: MemoryStoreInput) -> Result<MemoryStored, ToolError> {
        let key = MemoryKey::new(&input.key).map_err(ToolError)?;
        let text = content(&input.content).map_err(ToolError)?;
        let (now, row) = (self.clock.now(), key.clone());
        let keep = move |tx: &Transaction<'_>| store::keep(tx, &row, &text, Category::General, now);
        let updated = self.db.write(keep).await? == Stored::Updated;
        let verb = if updated { "Updated" } else { "Stored" };
        Ok(MemoryStored { message: format!("{verb} the memory \"{}\".", key.as_str()), key, updated })
    }
}

/// Delete a stored memory.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MemoryForgetInput {
    /// The exact key under which the memory was stored.
    pub key: String,
}

#[derive(Debug, Serialize)]
pub struct MemoryForgotten {
    key: MemoryKey,
    message: String,
}

pub struct MemoryForget {
    pub db: Db,
}

impl Tool for MemoryForget {
    const NAME: &'static str = "memory_forget";
    type Input = MemoryForgetInput;
    type Output = MemoryForgotten;

    async fn run(&self, input: MemoryForgetInput) -> Result<MemoryForgotten, ToolError> {
        let key = MemoryKey::new(&input.key).map_err(ToolError)?;
        let row = key.clone();
        if !self.db.write(move |tx| store::forget(tx, &row)).await? {
            return Err(ToolError(format!("There is no memory under the key \"{}\".", key.as_str())));
        }
        Ok(MemoryForgotten { message: format!("Forgot \"{}\".", key.as_str()), key })
    }
}
