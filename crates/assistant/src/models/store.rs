//! The list of models as it is kept.

use kai_llm::Key;
use rusqlite::{Transaction, params};

use super::ConfiguredModel;
use crate::db::DbError;

pub fn all(tx: &Transaction<'_>) -> Result<Vec<ConfiguredModel>, DbError> {
    let sql = "SELECT name, preset, base_url, model, key FROM models ORDER BY position, name";
    let mut rows = tx.prepare_cached(sql)?;
    let models = rows.query_map([], |row| {
        Ok(ConfiguredModel {
            name: row.get(0)?,
            preset: row.get(1)?,
            base_url: row.get(2)?,
            model: row.get(3)?,
            key: row.get::<_, Option<String>>(4)?.map(Key::new),
        })
    })?;
    Ok(models.collect::<rusqlite::Result<_>>()?)
}

/// Adds a model at the end, or changes the one of that name where it stands. A key stays only where it was made
/// for: with another address it would go to somebody else.
pub fn keep(tx: &Transaction<'_>, model: &ConfiguredModel) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO models (name, position, preset, base_url, model, key)
         VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM models), ?2, ?3, ?4, ?5)
         ON CONFLICT (name) DO UPDATE SET preset = ?2, base_url = ?3, model = ?4,
             key = coalesce(?5, iif(preset = ?2 AND base_url = ?3, key, NULL))",
        params![model.name, model.preset, model.base_url, model.model, model.key.as_ref().map(Key::reveal)],
    )?;
    Ok(())
}

pub fn remove(tx: &Transaction<'_>, name: &str) -> Result<bool, DbError> {
    Ok(tx.execute("DELETE FROM models WHERE name = ?1", [name])? > 0)
}

/// Moves a model to the front.
pub fn first(tx: &Transaction<'_>, name: &str) -> Result<bool, DbError> {
    let sql = "UPDATE models SET position = (SELECT min(position) - 1 FROM models) WHERE name = ?1";
    Ok(tx.execute(sql, [name])? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[tokio::test]
    async fn order_is_kept_and_a_key_stays_when_none_is_given() {
        let db = Db::in_memory(&[super::super::MIGRATION]).unwrap();
        let model = |name: &str, key: Option<&str>| ConfiguredModel {
            name: name.into(),
            preset: "openai".into(),
            base_url: "u".into(),
            model: "m".into(),
            key: key.map(Key::new),
        };
        let checked = db.write(move |tx| {
            for name in ["a", "b", "c"] {
                keep(tx, &model(name, Some("secret")))?;
            }
            assert!(first(tx, "c")? && !first(tx, "x")?);
            assert!(remove(tx, "b")? && !remove(tx, "b")?);
            keep(tx, &model("a", None))?;
            let all = all(tx)?;
            assert_eq!(all.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["c", "a"]);
            assert_eq!(all[1].key, Some(Key::new("secret")));
            keep(tx, &ConfiguredModel { base_url: "elsewhere".into(), ..model("a", None) })?;
            assert_eq!(super::all(tx)?[1].key, None, "a key does not go to another server");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
