//! `kai models`: which models there are, whether they work, and in which order they are asked.

use kai_assistant::agent::Ready;
use kai_assistant::db::DbError;
use kai_assistant::ledger;
use kai_assistant::models::store::Move;
use kai_assistant::models::{self, Candidate, ConfiguredModel, Origin, Surroundings, store};
use kai_assistant::settings::{self, HEARTBEAT_MODEL};
use kai_llm::{Key, Message, Preset, Request, connect, local, presets};

use crate::call::{Around, ModelRemoved, ModelRow, ModelTest, NewModel};
#[cfg(feature = "sms")]
use crate::demo;
use crate::failure::Failure;
use crate::wire::App;

/// What the models are called that are known without looking for servers.
pub(crate) async fn names(app: &App) -> Result<Vec<String>, DbError> {
    #[cfg(feature = "sms")]
    if app.home.is_demo() {
        return Ok(vec![demo::MODEL.to_owned()]);
    }
    let (added, around) = (app.db.read(store::all).await?, surroundings(&app.around));
    Ok(models::candidates(&added, &around).into_iter().map(|candidate| candidate.name).collect())
}

fn surroundings(around: &Around) -> Surroundings {
    let keys = around.keys.iter().map(|(name, key)| (name.clone(), Key::new(key.as_str()))).collect();
    Surroundings { keys, ollama: None }
}

/// The demo asks nobody outside, whatever keys lie around.
fn no_demo(app: &App) -> Result<(), Failure> {
    if app.home.is_demo() {
        return Err(Failure::failed("This is the demo: its model plays a script, and no other can be used."));
    }
    Ok(())
}

/// All models that could be asked, in order.
pub(crate) async fn candidates(app: &App, around: &Around) -> Result<Vec<Candidate>, DbError> {
    let added = app.db.read(store::all).await?;
    let mut around = surroundings(around);
    let known = models::candidates(&added, &around);
    if known.iter().any(|candidate| candidate.why_not.is_none()) {
        return Ok(known);
    }
    // Only somebody who has nothing else waits for this.
    around.ollama = local::ollama().await.and_then(|models| models.into_iter().next());
    Ok(models::candidates(&added, &around))
}

/// Those that can be asked now, connected. Nothing is sent yet.
pub(crate) async fn ready(app: &App, around: &Around) -> Result<Vec<Ready>, Failure> {
    #[cfg(feature = "sms")]
    if app.home.is_demo() {
        return Ok(vec![Ready { label: demo::MODEL.to_owned(), local: true, model: Box::new(demo::Script) }]);
    }
    let mut ready = Vec::new();
    let mut why_not = None;
    for candidate in candidates(app, around).await? {
        let label = candidate.name.clone();
        match (candidate.why_not, connect(&candidate.config, &app.http)) {
            (None, Ok(model)) => ready.push(Ready { label, local: candidate.local, model }),
            (Some(reason), _) => why_not = why_not.or(Some(format!("{label} cannot be used: {reason}"))),
            (None, Err(error)) => why_not = why_not.or(Some(format!("{label} cannot be used: {error}"))),
        }
    }
    if ready.is_empty() {
        let nothing = "No model is set up. Add one on the page under Settings, Models, or: kai models add ollama --model qwen3, kai models add openai (all presets: kai models add --help)";
        return Err(Failure::failed(why_not.unwrap_or_else(|| nothing.to_owned())));
    }
    Ok(ready)
}

pub(crate) async fn rows(app: &App, around: &Around) -> Result<Vec<ModelRow>, DbError> {
    #[cfg(feature = "sms")]
    if app.home.is_demo() {
        return Ok(vec![demo::row()]);
    }
    Ok(candidates(app, around).await?.into_iter().map(row).collect())
}

fn row(candidate: Candidate) -> ModelRow {
    ModelRow {
        name: candidate.name,
        preset: candidate.preset,
        base_url: candidate.config.base_url,
        model: candidate.config.model,
        ready: candidate.why_not.is_none(),
        why_not: candidate.why_not,
        origin: match candidate.origin {
            Origin::Added => "added",
            Origin::Environment => "environment",
            Origin::Found => "found",
        }
        .to_owned(),
        local: candidate.local,
        has_key: candidate.config.key.is_some(),
    }
}

pub(crate) async fn add(app: &App, around: &Around, new: NewModel) -> Result<ModelRow, Failure> {
    no_demo(app)?;
    let preset = models::preset(&new.preset).ok_or_else(|| unknown_preset(&new.preset))?;
    let key = new.key.as_deref().map(Key::new);
    let added = ConfiguredModel {
        name: name(new.name.as_deref().unwrap_or(&preset.id))?,
        preset: preset.id.clone(),
        base_url: address(preset, &new)?,
        model: model(preset, &new).await?,
        key,
    };
    let trial = models::candidates(std::slice::from_ref(&added), &Surroundings::default());
    let trial = trial.into_iter().next().ok_or_else(|| unknown_preset(&new.preset))?;
    // What cannot work is refused now, not at the first question.
    connect(&trial.config, &app.http).map_err(|error| Failure::usage(error.to_string()))?;
    let name = added.name.clone();
    app.db.write(move |tx| store::keep(tx, &added)).await?;
    let rows = rows(app, around).await?;
    rows.into_iter().find(|row| row.name == name).ok_or_else(|| unknown_preset(&new.preset))
}

/// A name is one short line: it is shown in lists and told to the model.
fn name(typed: &str) -> Result<String, Failure> {
    let name = typed.trim();
    if name.is_empty() || name.chars().count() > 60 || name.chars().any(char::is_control) {
        return Err(Failure::usage("The name of a model must be one line of 1 to 60 characters."));
    }
    Ok(name.to_owned())
}

fn unknown_preset(typed: &str) -> Failure {
    let known: Vec<&str> = presets().iter().map(|preset| preset.id.as_str()).collect();
    Failure::usage(format!("There is no preset called {typed}. There are: {}.", known.join(", ")))
}

fn address(preset: &Preset, new: &NewModel) -> Result<String, Failure> {
    new.base_url.clone().or_else(|| preset.base_url.clone()).ok_or_else(|| {
        Failure::usage(format!("{} needs its address: --base-url http://host:port/v1", preset.id))
    })
}

async fn model(preset: &Preset, new: &NewModel) -> Result<String, Failure> {
    if let Some(named) = new.model.clone().or_else(|| preset.model.clone()) {
        return Ok(named);
    }
    let found = if preset.id == "ollama" { local::ollama().await } else { None };
    found
        .and_then(|models| models.into_iter().next())
        .ok_or_else(|| Failure::usage(format!("{} needs to know which model: --model NAME", preset.id)))
}

pub(crate) async fn remove(app: &App, name: String) -> Result<String, Failure> {
    let gone = name.clone();
    if app.db.write(move |tx| store::remove(tx, &gone)).await? { Ok(name) } else { Err(not_added(&name)) }
}

/// Removes a model for good. Heartbeats that were to ask it ask the others again, unless one of that name is still
/// there, from the environment.
pub(crate) async fn let_go(app: &App, name: String) -> Result<ModelRemoved, Failure> {
    let (gone, around) = (name.clone(), surroundings(&app.around));
    let reset = app.db.write(move |tx| {
        if !store::remove(tx, &gone)? {
            return Ok(None);
        }
        let left = models::candidates(&store::all(tx)?, &around);
        let reset =
            settings::load(tx)?.of(&HEARTBEAT_MODEL) == gone && left.iter().all(|model| model.name != gone);
        if reset {
            settings::store(tx, &HEARTBEAT_MODEL.key, "")?;
        }
        Ok::<_, DbError>(Some(reset))
    });
    let heartbeat_reset = reset.await?.ok_or_else(|| not_added(&name))?;
    Ok(ModelRemoved { removed: name, heartbeat_reset })
}

/// A model that heartbeats are to ask: one that there is, or none for the usual order.
pub(crate) async fn can_be_chosen(app: &App, around: &Around, name: &str) -> Result<(), Failure> {
    if name.is_empty() {
        return Ok(());
    }
    let rows = rows(app, around).await?;
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    match names.as_slice() {
        names if names.contains(&name) => Ok(()),
        [] => Err(Failure::usage(format!(
            "There is no model called {name}, nor any other. Add one: kai models add --help"
        ))),
        names => Err(Failure::usage(format!(
            "There is no model called {name}. There are: {}. An empty one (\"\") means the usual order.",
            names.join(", ")
        ))),
    }
}

pub(crate) async fn first(app: &App, name: String) -> Result<String, Failure> {
    let chosen = name.clone();
    if app.db.write(move |tx| store::first(tx, &chosen)).await? { Ok(name) } else { Err(not_added(&name)) }
}

/// One place up or down among those that were added.
pub(crate) async fn shift(app: &App, name: String, way: Move) -> Result<String, Failure> {
    let moved = name.clone();
    if app.db.write(move |tx| store::shift(tx, &moved, way)).await? {
        Ok(name)
    } else {
        Err(not_added(&name))
    }
}

fn not_added(name: &str) -> Failure {
    Failure::failed(format!("No model called {name} was added. See: kai models list"))
}

/// Asks each model (or the named one) for a word and says in words what is wrong.
pub(crate) async fn test(app: &App, around: &Around, name: Option<&str>) -> Result<Vec<ModelTest>, Failure> {
    no_demo(app)?;
    let mut candidates = candidates(app, around).await?;
    candidates.retain(|candidate| name.is_none_or(|name| candidate.name == name));
    if candidates.is_empty() {
        return Err(match name {
            Some(name) => Failure::failed(format!("There is no model called {name}. See: kai models list")),
            None => ready(app, around).await.err().unwrap_or_else(|| Failure::failed("No model is set up.")),
        });
    }
    let mut tests = Vec::new();
    for candidate in candidates {
        tests.push(try_one(app, candidate).await?);
    }
    Ok(tests)
}

async fn try_one(app: &App, candidate: Candidate) -> Result<ModelTest, DbError> {
    let began = app.clock.now();
    let request = Request {
        system: "You are being tested. Answer with one word.".to_owned(),
        messages: vec![Message::User { text: "Say OK.".to_owned() }],
        tools: vec![],
    };
    let outcome = match candidate.why_not {
        Some(reason) => Err(reason),
        None => match connect(&candidate.config, &app.http) {
            Ok(model) => {
                let (label, body) = (candidate.name.clone(), model.body(&request));
                app.db.write(move |tx| ledger::request(tx, 0, &label, &body, &[], began)).await?;
                model.reply(&request, &|_| ()).await.map(|reply| reply.text).map_err(|e| e.to_string())
            }
            Err(error) => Err(error.to_string()),
        },
    };
    let works = outcome.is_ok();
    let says: String = outcome.unwrap_or_else(|error| error).trim().chars().take(400).collect();
    let ms = app.clock.now().duration_since(began).as_millis();
    let ms = u64::try_from(ms).unwrap_or_default();
    Ok(ModelTest { name: candidate.name, model: candidate.config.model, works, says, ms })
}
