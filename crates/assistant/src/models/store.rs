//! Stores the models that the user added, in their order.

use kai_llm::{Key, Place};
use rusqlite::{Transaction, params};

use super::ConfiguredModel;
use crate::db::DbError;

pub fn all(tx: &Transaction<'_>) -> Result<Vec<ConfiguredModel>, DbError> {
    let sql = "SELECT name, preset, base_url, model, key, context, sees FROM models ORDER BY position, name";
    let mut rows = tx.prepare_cached(sql)?;
    let models = rows.query_map([], |row| {
        Ok(ConfiguredModel {
            name: row.get(0)?,
            preset: row.get(1)?,
            base_url: row.get(2)?,
            model: row.get(3)?,
            key: row.get::<_, Option<String>>(4)?.map(Key::new),
            context: row.get::<_, Option<i64>>(5)?.and_then(|tokens| usize::try_from(tokens).ok()),
            sees: row.get(6)?,
        })
    })?;
    Ok(models.collect::<rusqlite::Result<_>>()?)
}

/// Adds a model at the end, or updates the one with that name in its place. If no key is given, the stored one is kept
/// only for the same preset and address, because another server must not get it. If no window is given, or not whether
/// it can see, what is stored is kept only for the same preset, address and model.
pub fn keep(tx: &Transaction<'_>, model: &ConfiguredModel) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO models (name, position, preset, base_url, model, key, context, sees)
         VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM models), ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (name) DO UPDATE SET preset = ?2, base_url = ?3, model = ?4,
             key = coalesce(?5, iif(preset = ?2 AND base_url = ?3, key, NULL)),
             context = coalesce(?6, iif(preset = ?2 AND base_url = ?3 AND model = ?4, context, NULL)),
             sees = coalesce(?7, iif(preset = ?2 AND base_url = ?3 AND model = ?4, sees, NULL))",
        params![
            model.name,
            model.preset,
            model.base_url,
            model.model,
            model.key.as_ref().map(Key::reveal),
            model.context.and_then(|tokens| i64::try_from(tokens).ok()),
            model.sees,
        ],
    )?;
    Ok(())
}

/// Sets the context window of a model, or with `None` lets Kai find it out again. Also deletes what was learned from
/// refusals, because the user knows better. Returns false if there is no such model.
pub fn set_context(tx: &Transaction<'_>, name: &str, context: Option<usize>) -> Result<bool, DbError> {
    let tokens = context.and_then(|tokens| i64::try_from(tokens).ok());
    let changed = tx.execute("UPDATE models SET context = ?2 WHERE name = ?1", params![name, tokens])?;
    tx.execute(
        "UPDATE model_windows SET learned = NULL
         WHERE (base_url, model) IN (SELECT trim(base_url), trim(model) FROM models WHERE name = ?1)",
        [name],
    )?;
    Ok(changed > 0)
}

/// Sets whether a model can see pictures, or with `None` leaves that to Kai again. Also deletes what was learned from
/// refusals, because the user knows better. Returns false if there is no such model.
pub fn set_sees(tx: &Transaction<'_>, name: &str, sees: Option<bool>) -> Result<bool, DbError> {
    let changed = tx.execute("UPDATE models SET sees = ?2 WHERE name = ?1", params![name, sees])?;
    tx.execute(
        "DELETE FROM blind_models
         WHERE (base_url, model) IN (SELECT trim(base_url), trim(model) FROM models WHERE name = ?1)",
        [name],
    )?;
    Ok(changed > 0)
}

/// Notes that the server of this model refused a picture.
pub fn refused_picture(tx: &Transaction<'_>, place: &Place) -> Result<(), DbError> {
    let sql = "INSERT OR IGNORE INTO blind_models (base_url, model) VALUES (?1, ?2)";
    tx.execute(sql, params![place.base_url, place.model])?;
    Ok(())
}

/// The models whose servers refused a picture.
pub fn blind(tx: &Transaction<'_>) -> Result<Vec<Place>, DbError> {
    let mut rows = tx.prepare_cached("SELECT base_url, model FROM blind_models")?;
    let places = rows.query_map([], |row| Ok(Place { base_url: row.get(0)?, model: row.get(1)? }))?;
    Ok(places.collect::<rusqlite::Result<_>>()?)
}

pub fn remove(tx: &Transaction<'_>, name: &str) -> Result<bool, DbError> {
    Ok(tx.execute("DELETE FROM models WHERE name = ?1", [name])? > 0)
}

/// Moves a model to the front. Returns false if there is no such model.
pub fn first(tx: &Transaction<'_>, name: &str) -> Result<bool, DbError> {
    let sql = "UPDATE models SET position = (SELECT min(position) - 1 FROM models) WHERE name = ?1";
    Ok(tx.execute(sql, [name])? > 0)
}

/// The direction in which to move a model in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Up,
    Down,
}

/// Moves a model one place up or down. Does nothing at the end of the list. Returns false if there is no such model.
pub fn shift(tx: &Transaction<'_>, name: &str, way: Move) -> Result<bool, DbError> {
    let mut order: Vec<String> = all(tx)?.into_iter().map(|model| model.name).collect();
    let Some(at) = order.iter().position(|known| known == name) else { return Ok(false) };
    let to = match way {
        Move::Up => at.checked_sub(1),
        Move::Down => Some(at + 1).filter(|to| *to < order.len()),
    };
    if let Some(to) = to {
        order.swap(at, to);
        place(tx, &order)?;
    }
    Ok(true)
}

/// Numbers the positions of the models again, in this order.
fn place(tx: &Transaction<'_>, order: &[String]) -> Result<(), DbError> {
    for (position, name) in (1i64..).zip(order) {
        tx.execute("UPDATE models SET position = ?1 WHERE name = ?2", params![position, name])?;
    }
    Ok(())
}

/// Puts a removed model back in its place, with its key. Returns false, and changes nothing, if another one was added
/// under its name in the meantime.
pub fn restore(tx: &Transaction<'_>, model: &ConfiguredModel, at: usize) -> Result<bool, DbError> {
    let mut order: Vec<String> = all(tx)?.into_iter().map(|known| known.name).collect();
    if order.contains(&model.name) {
        return Ok(false);
    }
    keep(tx, model)?;
    order.insert(at.min(order.len()), model.name.clone());
    place(tx, &order)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[tokio::test]
    async fn order_is_kept_and_a_key_stays_when_none_is_given() {
        let db =
            Db::in_memory(&[super::super::MIGRATION, super::super::WINDOWS, super::super::VISION]).unwrap();
        let model = |name: &str, key: Option<&str>| ConfiguredModel {
            name: name.into(),
            preset: "openai".into(),
            base_url: "u".into(),
            model: "m".into(),
            key: key.map(Key::new),
            context: None,
            sees: None,
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
            assert!(set_context(tx, "c", Some(32_768))? && !set_context(tx, "x", None)?);
            keep(tx, &model("c", None))?;
            assert_eq!(super::all(tx)?[0].context, Some(32_768), "it stays with its model");
            keep(tx, &ConfiguredModel { model: "other".into(), ..model("c", None) })?;
            assert_eq!(super::all(tx)?[0].context, None, "another model has another window");
            assert!(set_sees(tx, "a", Some(false))? && !set_sees(tx, "x", None)?);
            let there = ConfiguredModel { base_url: "elsewhere".into(), ..model("a", None) };
            keep(tx, &there)?;
            assert_eq!(super::all(tx)?[1].sees, Some(false), "it stays with its model");
            keep(tx, &ConfiguredModel { model: "other".into(), ..there })?;
            assert_eq!(super::all(tx)?[1].sees, None, "another model has other eyes");
            let place = Place { base_url: "elsewhere".into(), model: "other".into() };
            refused_picture(tx, &place)?;
            refused_picture(tx, &place)?;
            assert_eq!(blind(tx)?, [place]);
            set_sees(tx, "a", None)?;
            assert_eq!(blind(tx)?, [], "the user knows better");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn places_are_changed_and_what_was_removed_comes_back_to_its_own() {
        let db =
            Db::in_memory(&[super::super::MIGRATION, super::super::WINDOWS, super::super::VISION]).unwrap();
        let model = |name: &str| ConfiguredModel {
            name: name.into(),
            preset: "openai".into(),
            base_url: "u".into(),
            model: "m".into(),
            key: Some(Key::new("secret")),
            context: None,
            sees: None,
        };
        let names = |tx: &Transaction<'_>| {
            let order = all(tx)?.into_iter().map(|model| model.name).collect::<String>();
            Ok::<_, DbError>(order)
        };
        let checked = db.write(move |tx| {
            for name in ["a", "b", "c"] {
                keep(tx, &model(name))?;
            }
            for (name, way, expected) in [
                ("c", Move::Up, "acb"),
                ("c", Move::Up, "cab"),
                ("c", Move::Up, "cab"),
                ("c", Move::Down, "acb"),
                ("b", Move::Down, "acb"),
            ] {
                assert!(shift(tx, name, way)?);
                assert_eq!(names(tx)?, expected, "{name} {way:?}");
            }
            assert!(!shift(tx, "x", Move::Up)?);
            remove(tx, "c")?;
            assert!(restore(tx, &model("c"), 1)?);
            assert_eq!((names(tx)?.as_str(), all(tx)?[1].key.clone()), ("acb", Some(Key::new("secret"))));
            assert!(!restore(tx, &ConfiguredModel { model: "other".into(), ..model("c") }, 0)?);
            assert_eq!(all(tx)?[1].model, "m", "the newer one stays");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
