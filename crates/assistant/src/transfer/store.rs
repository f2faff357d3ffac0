//! Reads the sections from the store for an export, and writes them for an import.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kai_llm::Key;
use rusqlite::Transaction;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::share::{Share, pretty};
use super::{Import, Mode, Outcome, PlainModel, Secrets, Section, tasks};
use crate::agent::Veil;
use crate::agent::conversation::{self, Codes, ConversationId, Entry, FileContent, Whole};
use crate::db::DbError;
use crate::memory::{self, Memory};
use crate::models::{self, ConfiguredModel};
use crate::settings::{self, Values};

/// What an export writes next of a section: everything, or some items after this one.
pub(super) fn share(tx: &Transaction<'_>, section: Section, after: Option<i64>) -> Result<Share, DbError> {
    Ok(match section {
        Section::Settings => Share::Whole(pretty(&settings::load(tx)?.plain())?),
        Section::Memory => Share::Whole(pretty(&memory::store::all(tx)?)?),
        Section::Models => {
            Share::Whole(pretty(&models::store::all(tx)?.iter().map(plain).collect::<Vec<_>>())?)
        }
        Section::Tasks => Share::Whole(pretty(&tasks::read(tx)?)?),
        Section::Conversations => Share::Items(next_conversation(tx, after)?.into_iter().collect()),
        Section::OnRequest(extra) => Share::Items(extra.next(tx, after)?),
    })
}

/// The conversation after this one, as it is exported. One at a time: it may contain pictures.
fn next_conversation(tx: &Transaction<'_>, after: Option<i64>) -> Result<Option<(i64, String)>, DbError> {
    let Some(id) = conversation::after(tx, after)? else { return Ok(None) };
    let Some(whole) = conversation::whole(tx, id)? else { return Ok(None) };
    let whole = without_codes(conversation::with_contents(tx, whole)?, &settings::load(tx)?);
    Ok(Some((id.0, pretty(&whole)?)))
}

/// One conversation as it may be exported; `None` if it does not exist.
pub(super) fn one(tx: &Transaction<'_>, id: ConversationId) -> Result<Option<Whole>, DbError> {
    let values = settings::load(tx)?;
    Ok(conversation::whole(tx, id)?.map(|whole| without_codes(whole, &values)))
}

/// Every conversation as it may be exported: codes that the model was shown are redacted.
fn conversations(tx: &Transaction<'_>) -> Result<Vec<Whole>, DbError> {
    let values = settings::load(tx)?;
    let whole = |whole| conversation::with_contents(tx, whole).map(|whole| without_codes(whole, &values));
    conversation::load_all(tx)?.into_iter().map(whole).collect()
}

fn without_codes(mut whole: Whole, values: &Values) -> Whole {
    let kept = whole.kept(values).for_file();
    let shown = std::mem::take(&mut whole.shown);
    whole.codes = Codes::default();
    let veil = kept.map(|codes| Veil::new(codes, shown, whole.entries.iter().map(Entry::with_meaning)));
    // Meanings are never exported. Clear them here too, so that a conversation equals its imported copy.
    whole.entries.iter_mut().for_each(|entry| entry.meaning = None);
    let Some(veil) = veil else { return whole };
    whole.title = veil.over_text(&whole.title);
    whole.name = whole.name.map(|name| veil.over_text(&name));
    for entry in &mut whole.entries {
        entry.message = veil.over(entry.message.clone());
    }
    hide_in_files(&mut whole, &veil);
    whole
}

/// Hides codes in attached text, which then is another text with another hash.
fn hide_in_files(whole: &mut Whole, veil: &Veil) {
    let mut contents = BTreeMap::new();
    for file in whole.entries.iter_mut().flat_map(|entry| &mut entry.files) {
        file.name = veil.over_text(&file.name);
        let Some(content) = whole.contents.get(&file.hash) else { continue };
        let content = match content {
            FileContent::Text(text) => FileContent::Text(veil.over_text(text)),
            FileContent::Base64(_) => content.clone(),
        };
        *file = file.with_bytes(content.as_bytes());
        contents.insert(file.hash.clone(), content);
    }
    whole.contents = contents;
}

fn plain(model: &ConfiguredModel) -> PlainModel {
    let ConfiguredModel { name, preset, base_url, model, context, sees, .. } = model.clone();
    PlainModel { name, preset, base_url, model, context, sees }
}

pub(super) fn secrets(tx: &Transaction<'_>) -> Result<Secrets, DbError> {
    let keyed = |model: ConfiguredModel| Some((model.name, model.key?.reveal().to_owned()));
    let model_keys = models::store::all(tx)?.into_iter().filter_map(keyed).collect();
    Ok(Secrets { model_keys, settings: settings::load(tx)?.secrets() })
}

/// Writes one section of the file, or reports why it cannot be parsed.
pub(super) fn write(
    tx: &Transaction<'_>,
    section: Section,
    value: &Value,
    import: &Import<'_>,
) -> Result<Outcome, DbError> {
    match section {
        Section::Settings => read_as(section, value, |out, items| write_settings(tx, out, &items, import)),
        Section::Memory => {
            read_as(section, value, |out, items: Vec<_>| write_memories(tx, out, &items, import))
        }
        Section::Models => {
            read_as(section, value, |out, items: Vec<_>| write_models(tx, out, &items, import))
        }
        Section::Tasks => read_as(section, value, |out, items: Vec<_>| tasks::write(tx, out, &items, import)),
        Section::Conversations => {
            read_as(section, value, |out, items: Vec<_>| write_conversations(tx, out, &items, import.mode))
        }
        Section::OnRequest(_) => Ok(Outcome::of(section)),
    }
}

fn read_as<T: DeserializeOwned>(
    section: Section,
    value: &Value,
    write: impl FnOnce(&mut Outcome, T) -> Result<(), DbError>,
) -> Result<Outcome, DbError> {
    let mut outcome = Outcome::of(section);
    match serde_json::from_value(value.clone()) {
        Ok(items) => write(&mut outcome, items)?,
        Err(error) => outcome.problem = Some(error.to_string()),
    }
    Ok(outcome)
}

fn write_settings(
    tx: &Transaction<'_>,
    outcome: &mut Outcome,
    items: &BTreeMap<String, String>,
    import: &Import<'_>,
) -> Result<(), DbError> {
    let before = settings::load(tx)?.plain();
    if import.mode == Mode::Replace {
        outcome.removed = before.keys().filter(|key| !items.contains_key(*key)).count();
        settings::clear(tx)?;
    }
    // Kai never exports a secret unencrypted, so one that is in the file is not imported.
    let open = items.iter().filter(|(key, _)| !settings::is_secret(key));
    for (key, value) in open.chain(&import.secrets.settings) {
        let Some(setting) = import.settings.iter().find(|setting| setting.key == *key) else {
            outcome.skipped.push(import.lang.transfer_detail_unknown(key));
            continue;
        };
        match setting.accept(value) {
            Ok(value) => {
                let default = setting.default.as_ref();
                let told = || {
                    if settings::is_secret(key) {
                        return import.lang.transfer_detail_key(key);
                    }
                    let was = before.get(key).map_or(default, String::as_str);
                    format!("{key}: {was} → {value}")
                };
                // A setting that was never set has its default, so importing the default changes nothing.
                let was = before.get(key).map(String::as_str).or((value == default).then_some(default));
                outcome.count(was, value.as_str(), told);
                settings::store(tx, key, &value)?;
            }
            Err(refused) => outcome.skipped.push(refused.said().to(import.lang)),
        }
    }
    Ok(())
}

fn write_memories(
    tx: &Transaction<'_>,
    outcome: &mut Outcome,
    items: &[Memory],
    import: &Import<'_>,
) -> Result<(), DbError> {
    let before: BTreeMap<_, _> = memory::store::all(tx)?.into_iter().map(|m| (m.key.clone(), m)).collect();
    if import.mode == Mode::Replace {
        outcome.removed = before.keys().filter(|key| items.iter().all(|item| item.key != **key)).count();
        memory::store::clear(tx)?;
    }
    let now = Timestamp::from_millisecond(import.export.exported_at).unwrap_or_default();
    // The newest memory is first in the file and is stored last, so that the order stays the same.
    for item in items.iter().rev() {
        match item.checked() {
            Ok(()) => {
                outcome.count(before.get(&item.key), item, || item.key.as_str().to_owned());
                memory::store::restore(tx, item, now)?;
            }
            Err(sentence) => outcome.skipped.push(sentence.to(import.lang)),
        }
    }
    Ok(())
}

fn write_models(
    tx: &Transaction<'_>,
    outcome: &mut Outcome,
    items: &[PlainModel],
    import: &Import<'_>,
) -> Result<(), DbError> {
    let before: BTreeMap<_, _> = models::store::all(tx)?.into_iter().map(|m| (m.name.clone(), m)).collect();
    if import.mode == Mode::Replace {
        outcome.removed = before.keys().filter(|name| items.iter().all(|item| item.name != **name)).count();
        for name in before.keys() {
            models::store::remove(tx, name)?;
        }
    }
    for item in items {
        let told = || import.lang.transfer_detail_model(&item.name, &item.model, &item.base_url);
        outcome.count(before.get(&item.name).map(plain).as_ref(), item, told);
        let PlainModel { name, preset, base_url, model, context, sees } = item.clone();
        let possible = models::window::SMALLEST..=models::window::LARGEST;
        let context = context.filter(|tokens| possible.contains(tokens));
        let brought = import.secrets.model_keys.get(&name).map(|key| Key::new(key.as_str()));
        // A file without keys does not take away those that are here. Another server gets none, as in `keep`.
        let known = before.get(&name).filter(|known| known.preset == preset && known.base_url == base_url);
        let key = brought.or_else(|| known.and_then(|known| known.key.clone()));
        models::store::keep(tx, &ConfiguredModel { name, preset, base_url, model, key, context, sees })?;
    }
    Ok(())
}

fn write_conversations(
    tx: &Transaction<'_>,
    outcome: &mut Outcome,
    items: &[Whole],
    mode: Mode,
) -> Result<(), DbError> {
    // Compare with the exported form, or a conversation with a code in its title would not be recognised.
    let before: BTreeMap<_, _> =
        conversations(tx)?.into_iter().map(|whole| (whole.identity(), whole)).collect();
    if mode == Mode::Replace {
        outcome.removed =
            before.keys().filter(|known| items.iter().all(|item| item.identity() != **known)).count();
        conversation::delete_all(tx)?;
    }
    for item in items {
        let there = before.get(&item.identity());
        // A merge never overwrites a conversation that exists.
        if mode == Mode::Merge && there.is_some() {
            outcome.same += 1;
            continue;
        }
        outcome.count(there, item, || item.title.clone());
        conversation::restore(tx, item)?;
    }
    Ok(())
}
