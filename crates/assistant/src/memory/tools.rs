//! The tools with which a model stores, reinforces and deletes memories.

use std::sync::Arc;

use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, Standing, Stored};
use super::{Category, MemoryKey, content};
use crate::clock::Clock;
use crate::db::Db;
use crate::gate::Level;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

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

    async fn run(&self, input: MemoryStoreInput, run: &Run) -> Result<ToolOutput<MemoryStored>, ToolError> {
        let (category, standing) = (Category::General, standing(run));
        let fact = Fact { key: &input.key, text: &input.content, category, standing };
        keep(&self.db, self.clock.as_ref(), fact).await
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

    async fn run(&self, input: MemoryForgetInput, _: &Run) -> Result<ToolOutput<MemoryForgotten>, ToolError> {
        let key = MemoryKey::new(&input.key).map_err(ToolError::from)?;
        let row = key.clone();
        if !self.db.write(move |tx| store::forget(tx, &row)).await? {
            return Err(unknown(&key));
        }
        Ok(ToolOutput::own(MemoryForgotten { message: format!("Forgot \"{}\".", key.as_str()), key }))
    }
}

/// Store something learned: a lesson, a mistake to avoid, or a preference of the user.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MemoryLearnInput {
    /// Short descriptive name of the learning.
    pub key: String,
    /// What was learned, in one or a few sentences.
    pub content: String,
    pub category: Learned,
}

/// What kind of thing was learned.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Learned {
    Learning,
    Error,
    Preference,
}

impl From<Learned> for Category {
    fn from(learned: Learned) -> Self {
        match learned {
            Learned::Learning => Self::Learning,
            Learned::Error => Self::Error,
            Learned::Preference => Self::Preference,
        }
    }
}

pub struct MemoryLearn {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for MemoryLearn {
    const NAME: &'static str = "memory_learn";
    type Input = MemoryLearnInput;
    type Output = MemoryStored;

    async fn run(&self, input: MemoryLearnInput, run: &Run) -> Result<ToolOutput<MemoryStored>, ToolError> {
        let (category, standing) = (input.category.into(), standing(run));
        let fact = Fact { key: &input.key, text: &input.content, category, standing };
        keep(&self.db, self.clock.as_ref(), fact).await
    }
}

/// Count that a stored memory proved useful once more.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MemoryReinforceInput {
    /// The exact key under which the memory was stored.
    pub key: String,
}

#[derive(Debug, Serialize)]
pub struct MemoryReinforced {
    key: MemoryKey,
    hits: u32,
}

pub struct MemoryReinforce {
    pub db: Db,
}

impl Tool for MemoryReinforce {
    const NAME: &'static str = "memory_reinforce";
    type Input = MemoryReinforceInput;
    type Output = MemoryReinforced;

    async fn run(
        &self,
        input: MemoryReinforceInput,
        _: &Run,
    ) -> Result<ToolOutput<MemoryReinforced>, ToolError> {
        let key = MemoryKey::new(&input.key).map_err(ToolError::from)?;
        let row = key.clone();
        let hits = self.db.write(move |tx| store::reinforce(tx, &row)).await?;
        let hits = hits.ok_or_else(|| unknown(&key))?;
        Ok(ToolOutput::own(MemoryReinforced { key, hits }))
    }
}

fn unknown(key: &MemoryKey) -> ToolError {
    ToolError(format!("There is no memory with the key \"{}\".", key.as_str()))
}

/// A memory to store, as the model wrote it.
struct Fact<'a> {
    key: &'a str,
    text: &'a str,
    category: Category,
    standing: Standing,
}

/// Whether a memory from this run counts as confirmed. It does if the request contains no text by others, or if the
/// user approved the call on a card that showed its words.
fn standing(run: &Run) -> Standing {
    if run.level == Level::Nothing || run.confirmed { Standing::Confirmed } else { Standing::Unconfirmed }
}

async fn keep(db: &Db, clock: &dyn Clock, fact: Fact<'_>) -> Result<ToolOutput<MemoryStored>, ToolError> {
    let Fact { category, standing, .. } = fact;
    let key = MemoryKey::new(fact.key).map_err(ToolError::from)?;
    let text = content(fact.text).map_err(ToolError::from)?;
    let (now, row) = (clock.now(), key.clone());
    let keep = move |tx: &Transaction<'_>| store::keep(tx, &row, &text, category, standing, now);
    let updated = db.write(keep).await? == Stored::Updated;
    let verb = if updated { "Updated" } else { "Stored" };
    let waits = match standing {
        Standing::Confirmed => "",
        Standing::Unconfirmed => " You will not see it until the user confirms it in Settings.",
    };
    let message = format!("{verb} the memory \"{}\".{waits}", key.as_str());
    Ok(ToolOutput::own(MemoryStored { key, updated, message }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::settings::Values;
    use crate::tool::execute;

    #[tokio::test]
    async fn what_was_made_of_others_words_waits_until_the_person_said_yes_to_it() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let tool = MemoryStore { db: db.clone(), clock: Arc::new(SystemClock) };
        for (level, confirmed, kept) in [
            (Level::Nothing, false, true),
            (Level::Web, false, false),
            (Level::Web, true, true),
            (Level::People, false, false),
            (Level::People, true, true),
        ] {
            let run = Run { level, confirmed, ..Run::BY_HAND };
            let arguments = r#"{"key": "tea", "content": "Likes green tea."}"#;
            let result = execute(Ok(&tool), &Values::default(), arguments, &run).await;
            assert!(result.success, "{}", result.text);
            assert_eq!(result.text.contains("until the user confirms it"), !kept, "{}", result.text);
            assert_eq!(db.read(store::all).await.unwrap()[0].confirmed, kept, "{level:?}, {confirmed}");
        }
    }

    #[tokio::test]
    async fn a_category_may_be_written_in_lower_case() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let tool = MemoryLearn { db: db.clone(), clock: Arc::new(SystemClock) };
        for (category, taken) in
            [("PREFERENCE", true), ("preference", true), ("Learning", true), ("error", true), ("mood", false)]
        {
            let arguments =
                serde_json::json!({"key": category, "content": "tea", "category": category}).to_string();
            let result = execute(Ok(&tool), &Values::default(), &arguments, &Run::BY_HAND).await;
            assert_eq!(result.success, taken, "{category}: {}", result.text);
        }
        let all = db.read(store::all).await.unwrap_or_else(|e: crate::db::DbError| panic!("{e}"));
        let kept =
            |key: &str| all.iter().find(|memory| memory.key.as_str() == key).map(|memory| memory.category);
        assert_eq!(kept("preference"), Some(Category::Preference));
    }
}
