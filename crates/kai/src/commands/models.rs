//! `kai models`: lists, adds, removes, orders and tests models.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use jiff::Timestamp;
use kai_assistant::agent::Ready;
use kai_assistant::db::DbError;
use kai_assistant::ledger;
use kai_assistant::models::store::{self, Move};
use kai_assistant::models::trouble::Fault;
use kai_assistant::models::vision::Vision;
use kai_assistant::models::{self, BUILT_IN, Candidate, ConfiguredModel, Surroundings, trouble, window};
use kai_assistant::settings::{self, HEARTBEAT_MODEL, LOCAL_IDLE_MINUTES};
use kai_llm::{
    Config, Key, Message, Model, ModelError, Offered, Preset, Request, connect, context, local, offered,
    presets,
};
use kai_words::{Lang, Said, said};
use rusqlite::Transaction;

use super::{messages, model_files, sizes};
use crate::app::{App, facts};
use crate::call::models::{ModelOrigin, ModelRemoved, ModelRow, ModelTest, NewModel};
use crate::caller_env::CallerEnv;
use crate::failure::{Failure, set_up_a_model};

/// The names of the models that are known without searching for local servers.
pub(crate) async fn names(app: &App) -> Result<Vec<String>, DbError> {
    if let Some(scripts) = messages::demo_models(app) {
        return Ok(scripts.into_iter().map(|(script, _)| script.label).collect());
    }
    let (added, env) = (app.db.read(store::all).await?, surroundings(&app.env));
    Ok(models::candidates(&added, &env).into_iter().map(|candidate| candidate.name).collect())
}

fn surroundings(env: &CallerEnv) -> Surroundings {
    let keys = env.keys.iter().map(|(name, key)| (name.clone(), Key::new(key.as_str()))).collect();
    Surroundings { keys, ollama: vec![] }
}

/// Refuses in the demo, which contacts no model outside, whatever keys are set.
pub(super) fn no_demo(app: &App) -> Result<(), Failure> {
    if app.home.is_demo() {
        return Err(Failure::failed(said::models_only_script()));
    }
    Ok(())
}

/// All models in order, each with the context window that is known for it.
pub(crate) async fn candidates(app: &App, env: &CallerEnv) -> Result<Vec<Candidate>, DbError> {
    let read = app.db.read(|tx| Ok::<_, DbError>((store::all(tx)?, window::all(tx)?, store::blind(tx)?)));
    let (added, windows, blind) = read.await?;
    let mut env = surroundings(env);
    let mut candidates = models::candidates(&added, &env);
    if candidates.iter().all(|candidate| candidate.why_not.is_some()) {
        // Searching takes time, so only look for Ollama if there is no other usable model.
        env.ollama = local::ollama().await.unwrap_or_default();
        candidates = models::candidates(&added, &env);
    }
    window::settle(&mut candidates, &windows);
    for candidate in &mut candidates {
        let refused = blind.contains(&candidate.config.place());
        candidate.vision = Vision::known(&candidate.preset, candidate.sees, refused, &candidate.config.model);
    }
    Ok(candidates)
}

/// How to ask this model's server for its context window, if the server can report it.
fn asking(candidate: &Candidate) -> Option<(Config, context::Tells)> {
    let preset = models::preset(&candidate.preset)?;
    let usual = Config { window: preset.window, ..candidate.config.clone() };
    Some((usual, preset.tells_window?))
}

/// Asks servers for their context windows if that was last done long ago. Runs in the background: the answers apply
/// from the next turn.
pub(crate) async fn ask_for_windows(app: &App, env: &CallerEnv) -> Result<(), DbError> {
    if app.home.is_demo() {
        return Ok(());
    }
    let (known, now) = (app.db.read(window::all).await?, app.clock.now());
    let candidates = candidates(app, env).await?;
    for candidate in candidates.iter().filter(|candidate| candidate.why_not.is_none()) {
        let place = candidate.config.place();
        let known = known.iter().find(|known| known.place == place);
        if !window::is_due(known, candidate.local, now) {
            continue;
        }
        let Some((config, tells)) = asking(candidate) else { continue };
        // Recorded before asking, so that no other turn asks at the same time.
        let asked = place.clone();
        app.db.write(move |tx| window::asked(tx, &asked, None, now)).await?;
        let (db, http) = (app.db.clone(), app.http.clone());
        tokio::spawn(async move {
            let Some(told) = context::ask_window(&config, tells, &http).await else { return };
            let kept = db.write(move |tx| window::asked(tx, &place, Some(told), now));
            if let Err(error) = kept.await.map_err(|error: DbError| error) {
                tracing::warn!(%error, "a model's window could not be kept");
            }
        });
    }
    Ok(())
}

/// Asks a model's server for its context window and waits for the answer, which takes a few seconds at most.
async fn ask_now(app: &App, candidate: &Candidate) -> Result<(), DbError> {
    let Some((config, tells)) = asking(candidate) else { return Ok(()) };
    let told = context::ask_window(&config, tells, &app.http).await;
    let (place, now) = (candidate.config.place(), app.clock.now());
    app.db.write(move |tx| window::asked(tx, &place, told, now)).await
}

/// The usable models, ready to be asked. Also starts asking servers for their context windows if that is due.
pub(crate) async fn ready(app: &App, env: &CallerEnv) -> Result<Vec<Ready>, Unready> {
    ask_for_windows(app, env).await?;
    connected(app, env, None).await
}

/// A model that the user can choose for a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) name: String,
    /// It runs on this computer.
    pub(crate) local: bool,
}

/// The models that can be chosen for a chat, in their order. Does not search for servers on this computer.
pub(crate) fn choices(tx: &Transaction<'_>, app: &App) -> Result<Vec<Choice>, DbError> {
    if let Some(scripts) = messages::demo_models(app) {
        let choice = |(Ready { label: name, local, .. }, _)| Choice { name, local };
        return Ok(scripts.into_iter().map(choice).collect());
    }
    let ready = models::candidates(&store::all(tx)?, &surroundings(&app.env)).into_iter();
    let ready = ready.filter(|candidate| candidate.why_not.is_none());
    Ok(ready.map(|Candidate { name, local, .. }| Choice { name, local }).collect())
}

/// The usable models with the chosen one first. The others follow it as usual, except that a request that is meant for
/// a model on this computer never goes to another.
pub(crate) async fn ready_for(
    app: &App,
    env: &CallerEnv,
    chosen: Option<String>,
) -> Result<Vec<Ready>, Unready> {
    ask_for_windows(app, env).await?;
    connected_for(app, env, chosen).await
}

/// The same, without asking servers for anything.
pub(crate) async fn connected_for(
    app: &App,
    env: &CallerEnv,
    chosen: Option<String>,
) -> Result<Vec<Ready>, Unready> {
    chosen_first(connected(app, env, chosen.as_deref()).await?, chosen)
}

fn chosen_first(mut ready: Vec<Ready>, chosen: Option<String>) -> Result<Vec<Ready>, Unready> {
    let Some(model) = chosen else { return Ok(ready) };
    let Some(at) = ready.iter().position(|ready| ready.label == model) else {
        return Err(Unready::Chosen { model });
    };
    ready[..=at].rotate_right(1);
    Ok(ready)
}

/// Why no model can be asked.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub(crate) enum Unready {
    /// No model is set up. `here` is the command for one that runs on this computer, if it can run one.
    NoModel {
        here: Option<String>,
    },
    /// It lacks something, such as its API key. `helps` is the command for that.
    Unusable {
        model: String,
        why: Said,
        helps: String,
    },
    /// The user chose it for the chat, and it is gone or lacks something.
    Chosen {
        model: String,
    },
    /// It is set up in a way that cannot work.
    Misconfigured {
        model: String,
        error: ModelError,
    },
    Store(#[from] DbError),
}

impl Unready {
    /// The reason in the user's language. It names no command, because the page shows it too.
    pub(crate) fn said(&self) -> Said {
        match self {
            Self::NoModel { .. } => said::turn_no_model(),
            Self::Unusable { why, .. } => why.clone(),
            Self::Chosen { model } => said::unready_chosen(model),
            Self::Misconfigured { model, error } => trouble::said(model, error),
            Self::Store(error) => error.said(),
        }
    }
}

impl From<Unready> for Failure {
    fn from(why: Unready) -> Self {
        let failure = Self::failed(why.said());
        match why {
            Unready::NoModel { here } => failure.try_instead(set_up_a_model(here.as_deref())),
            Unready::Unusable { helps, .. } => failure.try_instead(helps),
            Unready::Chosen { .. } | Unready::Misconfigured { .. } | Unready::Store(_) => failure,
        }
    }
}

fn no_model(app: &App) -> Unready {
    let here = app.downloads.source.recommended(&app.home.models());
    Unready::NoModel { here: here.map(|(name, bytes)| on_this_computer(name, bytes)) }
}

/// The command for a model that Kai runs itself, and what speaks for it.
fn on_this_computer(name: &str, bytes: u64) -> String {
    let size = sizes::size(bytes, Lang::ENGLISH);
    format!("kai models get {name} ({size}; runs on this computer: private, no account)")
}

/// The command that makes an unusable model usable.
pub(crate) fn repair(name: &str, preset: &str) -> String {
    match models::preset(preset).map(|preset| (&preset.id, preset.key_env.first())) {
        Some((id, Some(variable))) => format!("kai models add {id}, or set {variable}"),
        Some((id, None)) => format!("kai models add {id}"),
        None if preset == models::BUILT_IN => format!("kai models get {name}"),
        None => format!("kai models remove {name}"),
    }
}

/// A candidate as a model that can be asked. Sends nothing yet.
async fn connect_to(app: &App, candidate: &Candidate) -> Result<Result<Box<dyn Model>, ModelError>, DbError> {
    if candidate.preset != BUILT_IN {
        return Ok(connect(&candidate.config, &app.http));
    }
    let read = app.db.write(|tx| Ok::<_, DbError>((facts::states_key(tx)?, settings::load(tx)?)));
    let (key, values) = read.await?;
    let idle = Duration::from_secs(60 * u64::from(values.number(&LOCAL_IDLE_MINUTES)));
    Ok(app.engine.model(&app.home, &key, candidate, idle))
}

/// The usable models, ready to be asked. Sends nothing yet. Unless one was chosen, what is meant for a model on this
/// machine goes to no other, even if that model cannot be asked at all.
pub(crate) async fn connected(
    app: &App,
    env: &CallerEnv,
    chosen: Option<&str>,
) -> Result<Vec<Ready>, Unready> {
    if let Some(scripts) = messages::demo_models(app) {
        return Ok(scripts.into_iter().map(|(script, _)| script).collect());
    }
    let mut ready = Vec::new();
    let mut unready = None;
    let mut stays = false;
    for candidate in candidates(app, env).await? {
        if stays && !candidate.local {
            continue;
        }
        let (label, is_local) = (candidate.name.clone(), candidate.local);
        let connected = connect_to(app, &candidate).await?;
        let why = match (candidate.why_not, connected) {
            (None, Ok(model)) => {
                let Candidate { local, vision, .. } = candidate;
                ready.push(Ready { label, local, vision, model });
                continue;
            }
            (Some(why), _) => {
                let helps = repair(&label, &candidate.preset);
                Unready::Unusable { model: label, why, helps }
            }
            (None, Err(error)) => Unready::Misconfigured { model: label, error },
        };
        stays |= ready.is_empty() && is_local && chosen.is_none();
        unready = unready.or(Some(why));
    }
    if ready.is_empty() { Err(unready.unwrap_or_else(|| no_model(app))) } else { Ok(ready) }
}

pub(crate) async fn rows(app: &App, env: &CallerEnv) -> Result<Vec<ModelRow>, DbError> {
    if let Some(scripts) = messages::demo_models(app) {
        return Ok(scripts.into_iter().map(|(script, preset)| demo_row(script.label, preset)).collect());
    }
    Ok(candidates(app, env).await?.into_iter().map(row).collect())
}

/// A row of the demo's `kai models list`.
fn demo_row(name: String, preset: &str) -> ModelRow {
    ModelRow {
        name,
        preset: preset.to_owned(),
        base_url: "none: nothing leaves".to_owned(),
        model: "script".to_owned(),
        ready: true,
        why_not: None,
        origin: ModelOrigin::Demo,
        local: true,
        has_key: false,
        context: kai_llm::window::UNKNOWN,
        context_from: window::WindowSource::Preset,
        pictures: Vision::Unknown,
        pictures_set: None,
    }
}

fn row(candidate: Candidate) -> ModelRow {
    ModelRow {
        name: candidate.name,
        preset: candidate.preset,
        base_url: candidate.config.base_url,
        model: candidate.config.model,
        ready: candidate.why_not.is_none(),
        why_not: candidate.why_not,
        origin: candidate.origin.into(),
        local: candidate.local,
        has_key: candidate.config.key.is_some(),
        context: candidate.config.window,
        context_from: candidate.window_source,
        pictures: candidate.vision,
        pictures_set: candidate.sees,
    }
}

pub(crate) async fn add(app: &App, env: &CallerEnv, new: NewModel) -> Result<ModelRow, Failure> {
    no_demo(app)?;
    let preset = models::preset(&new.preset).ok_or_else(|| unknown_preset(&new.preset))?;
    let key = new.key.as_deref().map(Key::new);
    let context = new.context.as_deref().map(typed_window).transpose()?;
    let pictures = new.pictures.as_deref().map(typed_pictures).transpose()?;
    let added = ConfiguredModel {
        name: name(new.name.as_deref().unwrap_or(&preset.id))?,
        preset: preset.id.clone(),
        base_url: address(preset, &new)?,
        model: model(preset, &new).await?,
        key,
        context: context.flatten(),
        sees: pictures.flatten(),
    };
    let trial = models::candidates(std::slice::from_ref(&added), &Surroundings::default());
    let trial = trial.into_iter().next().ok_or_else(|| unknown_preset(&new.preset))?;
    // Refuse a configuration that cannot work now, not at the first question.
    let name = added.name.clone();
    connect(&trial.config, &app.http).map_err(|error| Failure::usage(trouble::said(&name, &error)))?;
    // Later only its name can tell that it leaves this computer.
    if trial.local && local::passes_on(preset, &added.base_url, &added.model).await {
        return Err(Failure::usage(said::models_passed_on(&added.model)));
    }
    let typed = Typed { context_auto: matches!(context, Some(None)), pictures: pictures.is_some() };
    app.db.write(move |tx| keep(tx, &added, typed)).await?;
    let candidates = candidates(app, env).await?;
    if let Some(candidate) = candidates.iter().find(|candidate| candidate.name == name) {
        ask_now(app, candidate).await?;
    }
    named_row(app, env, &name).await?.ok_or_else(|| unknown_preset(&new.preset))
}

/// What a service or server offers, or why it did not say.
pub(crate) type Offers = Result<Vec<Offered>, ModelError>;

/// Asks the service or server that the user is about to add for its models. Nothing but the API key is sent.
pub(crate) async fn offers(app: &App, new: &NewModel) -> Result<Offers, Failure> {
    no_demo(app)?;
    let preset = models::preset(&new.preset).ok_or_else(|| unknown_preset(&new.preset))?;
    let base_url = address(preset, new)?;
    let added = app.db.read(store::all).await?;
    let key = new.key.as_deref().map(Key::new);
    let kept = || {
        // Another server must not get the stored key.
        let is_meant = |model: &&ConfiguredModel| {
            Some(&model.name) == new.name.as_ref() && model.preset == preset.id && model.base_url == base_url
        };
        added.iter().find(is_meant).and_then(|model| model.key.clone())
    };
    let from_env = || models::key_for(preset, &surroundings(&app.env)).filter(|_| is_own(preset, &base_url));
    let config = Config {
        format: preset.format,
        base_url: base_url.clone(),
        model: String::new(),
        key: key.or_else(kept).or_else(from_env),
        window: preset.window,
        stream: false,
    };
    Ok(offered(&config, &app.http).await)
}

/// Whether the address is the service's own, so that a key from the environment may go there.
fn is_own(preset: &Preset, base_url: &str) -> bool {
    preset.base_url.as_deref() == Some(base_url)
}

/// The model servers that run on this machine. The demo looks for none.
pub(crate) async fn servers(app: &App) -> Vec<local::Server> {
    if app.home.is_demo() {
        return vec![];
    }
    local::servers(&app.http).await
}

/// What the user typed about a model besides where it is.
#[derive(Clone, Copy)]
struct Typed {
    /// Kai is to find out the context window.
    context_auto: bool,
    /// Whether it can see pictures, or that Kai is to decide.
    pictures: bool,
}

/// Stores a model that the user added or changed. Limits learned from earlier refusals are forgotten.
fn keep(tx: &Transaction<'_>, added: &ConfiguredModel, typed: Typed) -> Result<(), DbError> {
    store::keep(tx, added)?;
    if typed.pictures {
        store::set_sees(tx, &added.name, added.sees)?;
    }
    let kept = store::all(tx)?.into_iter().find(|model| model.name == added.name);
    let set = kept.and_then(|model| model.context).filter(|_| !typed.context_auto);
    store::set_context(tx, &added.name, set).map(drop)
}

async fn named_row(app: &App, env: &CallerEnv, name: &str) -> Result<Option<ModelRow>, DbError> {
    Ok(rows(app, env).await?.into_iter().find(|row| row.name == name))
}

/// Sets the context window of an added model, or leaves it to Kai again, which then asks the server.
pub(crate) async fn set_context(
    app: &App,
    env: &CallerEnv,
    name: String,
    typed: &str,
) -> Result<ModelRow, Failure> {
    let context = typed_window(typed)?;
    let changed = name.clone();
    if !app.db.write(move |tx| store::set_context(tx, &changed, context)).await? {
        return Err(not_added(&name));
    }
    let candidates = candidates(app, env).await?;
    if let Some(candidate) = candidates.iter().find(|candidate| candidate.name == name)
        && context.is_none()
    {
        ask_now(app, candidate).await?;
    }
    named_row(app, env, &name).await?.ok_or_else(|| not_added(&name))
}

/// Sets whether an added model can see pictures, or leaves that to Kai again.
pub(crate) async fn set_pictures(
    app: &App,
    env: &CallerEnv,
    name: String,
    typed: &str,
) -> Result<ModelRow, Failure> {
    let (sees, changed) = (typed_pictures(typed)?, name.clone());
    let set = move |tx: &Transaction<'_>| -> Result<bool, Failure> {
        let runs_here = |model: &ConfiguredModel| model.name == changed && model.preset == BUILT_IN;
        if sees == Some(true) && store::all(tx)?.iter().any(runs_here) {
            return Err(Failure::failed(said::models_pictures_never(&changed)));
        }
        Ok(store::set_sees(tx, &changed, sees)?)
    };
    if !app.db.write(set).await? {
        return Err(not_added(&name));
    }
    named_row(app, env, &name).await?.ok_or_else(|| not_added(&name))
}

/// Whether a model can see, as typed; `None` leaves it to Kai.
fn typed_pictures(typed: &str) -> Result<Option<bool>, Failure> {
    match typed {
        "yes" => Ok(Some(true)),
        "no" => Ok(Some(false)),
        "auto" => Ok(None),
        _ => Err(Failure::usage(said::models_pictures_wrong())),
    }
}

/// The context window that was typed; `None` lets Kai find it out.
pub(super) fn typed_window(typed: &str) -> Result<Option<usize>, Failure> {
    window::typed(typed).map_err(|_| {
        let wrong = said::models_context_wrong(window::SMALLEST, window::LARGEST);
        Failure::usage(wrong).try_instead("auto, to let Kai detect it")
    })
}

/// Checks a model's name. It must be one short line, because it is shown in lists and told to the model.
pub(super) fn name(typed: &str) -> Result<String, Failure> {
    let name = typed.trim();
    if name.is_empty() || name.chars().count() > 60 || name.chars().any(char::is_control) {
        return Err(Failure::usage(said::models_name_wrong()));
    }
    Ok(name.to_owned())
}

fn unknown_preset(typed: &str) -> Failure {
    let known: Vec<&str> = presets().iter().map(|preset| preset.id.as_str()).collect();
    Failure::usage(said::models_preset_unknown(typed, known.join(", ")))
}

fn address(preset: &Preset, new: &NewModel) -> Result<String, Failure> {
    new.base_url.clone().or_else(|| preset.base_url.clone()).ok_or_else(|| {
        Failure::usage(said::models_address_needed())
            .try_instead(format!("kai models add {} --base-url http://host:port/v1", preset.id))
    })
}

async fn model(preset: &Preset, new: &NewModel) -> Result<String, Failure> {
    if let Some(named) = new.model.clone().or_else(|| preset.model.clone()) {
        return Ok(named);
    }
    let found = if preset.id == "ollama" { local::ollama().await } else { None };
    let at = preset.base_url.as_deref().unwrap_or_default();
    // The user has to name one that leaves this computer.
    let mut own = found.into_iter().flatten().filter(|model| models::stays_here(at, model));
    own.next().ok_or_else(|| {
        Failure::usage(said::models_model_needed())
            .try_instead(format!("kai models add {} --model NAME", preset.id))
    })
}

/// A removed model and everything needed to restore it.
pub(crate) struct Removed {
    pub(crate) model: ConfiguredModel,
    /// Its position among the added models.
    pub(crate) at: usize,
    /// Heartbeats were set to use it.
    pub(crate) heartbeat_reset: bool,
}

/// [`remove_undoable`] for commands, which have no undo.
pub(crate) async fn remove(app: &App, name: String) -> Result<ModelRemoved, Failure> {
    let Removed { model, heartbeat_reset, .. } = remove_undoable(app, name).await?;
    let file = model_files::left_behind(app, &model).await?;
    Ok(ModelRemoved { removed: model.name, heartbeat_reset, file, file_deleted: false })
}

/// Removes a model. If heartbeats were set to use it, they use the others again, unless the environment still provides
/// a model of that name.
pub(crate) async fn remove_undoable(app: &App, name: String) -> Result<Removed, Failure> {
    let (gone, env) = (name.clone(), surroundings(&app.env));
    let removed = app.db.write(move |tx| {
        let found = store::all(tx)?.into_iter().enumerate().find(|(_, model)| model.name == gone);
        let Some((at, model)) = found else { return Ok(None) };
        store::remove(tx, &gone)?;
        let left = models::candidates(&store::all(tx)?, &env);
        let heartbeat_reset =
            settings::load(tx)?.of(&HEARTBEAT_MODEL) == gone && left.iter().all(|model| model.name != gone);
        if heartbeat_reset {
            settings::store(tx, &HEARTBEAT_MODEL.key, "")?;
        }
        Ok::<_, DbError>(Some(Removed { model, at, heartbeat_reset }))
    });
    removed.await?.ok_or_else(|| not_added(&name))
}

/// Restores a removed model. Heartbeats use it again unless another was chosen meanwhile. False if its name is in use
/// by now.
pub(crate) async fn put_back(app: &App, removed: Removed) -> Result<bool, DbError> {
    let back = move |tx: &Transaction<'_>| {
        let Removed { model, at, heartbeat_reset } = &removed;
        if !store::restore(tx, model, *at)? {
            return Ok(false);
        }
        if *heartbeat_reset && settings::load(tx)?.of(&HEARTBEAT_MODEL).is_empty() {
            settings::store(tx, &HEARTBEAT_MODEL.key, &model.name)?;
        }
        Ok(true)
    };
    app.db.write(back).await
}

/// Checks that heartbeats can be set to this model: it must exist, or be empty for the usual order.
pub(crate) async fn can_be_chosen(app: &App, env: &CallerEnv, name: &str) -> Result<(), Failure> {
    if name.is_empty() {
        return Ok(());
    }
    let rows = rows(app, env).await?;
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    match names.as_slice() {
        names if names.contains(&name) => Ok(()),
        [] => Err(Failure::usage(said::models_unknown(name)).try_instead("kai models add --help")),
        names => Err(Failure::usage(said::models_unknown_of(name, names.join(", ")))),
    }
}

pub(crate) async fn first(app: &App, name: String) -> Result<String, Failure> {
    let chosen = name.clone();
    if app.db.write(move |tx| store::first(tx, &chosen)).await? { Ok(name) } else { Err(not_added(&name)) }
}

/// Moves a model up or down by one among the added models.
pub(crate) async fn shift(app: &App, name: String, way: Move) -> Result<String, Failure> {
    let moved = name.clone();
    if app.db.write(move |tx| store::shift(tx, &moved, way)).await? {
        Ok(name)
    } else {
        Err(not_added(&name))
    }
}

fn not_added(name: &str) -> Failure {
    Failure::failed(said::models_not_added(name)).try_instead("kai models list")
}

/// Asks each model, or the named one, for one word and reports in words what is wrong.
pub(crate) async fn test(app: &App, env: &CallerEnv, name: Option<&str>) -> Result<Vec<ModelTest>, Failure> {
    no_demo(app)?;
    let mut candidates = candidates(app, env).await?;
    candidates.retain(|candidate| name.is_none_or(|name| candidate.name == name));
    if candidates.is_empty() {
        return Err(match name {
            Some(name) => Failure::failed(said::models_unknown(name)).try_instead("kai models list"),
            None => ready(app, env).await.err().unwrap_or_else(|| no_model(app)).into(),
        });
    }
    // All at the same time, so that slow models neither delay the others nor add up past the caller's timeout.
    let tests = try_join_all(candidates.iter().cloned().map(|candidate| try_one(app, candidate))).await?;
    // A model that just answered is loaded, so its server knows its context window.
    let worked = candidates.iter().zip(&tests).filter(|(_, test)| test.works);
    join_all(worked.map(|(candidate, _)| ask_now(app, candidate)))
        .await
        .into_iter()
        .collect::<Result<(), _>>()?;
    Ok(tests)
}

/// How long a model may take to answer a test. A local server may have to load the model first.
pub(crate) const LONGEST_TRIAL: Duration = Duration::from_mins(4);

/// How many characters of an answer or an error the result of a test shows.
const LONGEST_SAYING: usize = 400;

fn shortened(text: &str) -> String {
    text.trim().chars().take(LONGEST_SAYING).collect()
}

async fn try_one(app: &App, candidate: Candidate) -> Result<ModelTest, DbError> {
    let began = app.clock.now();
    let answered = match candidate.why_not.clone() {
        // What a model lacks before it can be asked is its API key.
        Some(why) => Err((why, Some(Fault::Key))),
        None => try_ready(app, &candidate, began).await?,
    };
    let works = answered.is_ok();
    let (says, fault) = match answered {
        Ok(answer) => (shortened(&answer).into(), None),
        Err((why, fault)) if why.to_string().chars().count() > LONGEST_SAYING => {
            (shortened(&why.to_string()).into(), fault)
        }
        Err(failed) => failed,
    };
    let ms = app.clock.now().duration_since(began).as_millis();
    let ms = u64::try_from(ms).unwrap_or_default();
    Ok(ModelTest { name: candidate.name, model: candidate.config.model, works, says, fault, ms })
}

/// Asks a model that is set up for one word, and records the request in the ledger.
async fn try_ready(
    app: &App,
    candidate: &Candidate,
    began: Timestamp,
) -> Result<Result<String, (Said, Option<Fault>)>, DbError> {
    let failed = |error: ModelError| (trouble::said(&candidate.name, &error), trouble::fault(&error));
    let model = match connect_to(app, candidate).await? {
        Ok(model) => model,
        Err(error) => return Ok(Err(failed(error))),
    };
    let request = Request {
        system: "You are being tested. Answer with one word.".to_owned(),
        messages: vec![Message::user("Say OK.".to_owned())],
        tools: vec![],
    };
    let (label, body) = (candidate.name.clone(), model.body(&request));
    let held = ledger::Held { here: candidate.local, ..ledger::Held::default() };
    app.db.write(move |tx| ledger::request(tx, 0, &label, &body, held, began)).await?;
    Ok(match tokio::time::timeout(LONGEST_TRIAL, model.reply(&request, &|_| ())).await {
        Ok(reply) => reply.map(|reply| reply.text).map_err(failed),
        Err(_elapsed) => Err((said::model_timed_out(&candidate.name, LONGEST_TRIAL.as_secs()), None)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kai_assistant::clock::ManualClock;
    use tokio::net::TcpListener;

    use super::*;

    fn app() -> (App, tempfile::TempDir) {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        App::for_tests(Arc::new(ManualClock::at(now)))
    }

    /// A model at this address, called the same by its server.
    fn at(base_url: &str, name: &str) -> ConfiguredModel {
        ConfiguredModel {
            name: name.to_owned(),
            preset: "openai-compatible".to_owned(),
            base_url: base_url.to_owned(),
            model: name.to_owned(),
            key: None,
            context: None,
            sees: None,
        }
    }

    async fn put(app: &App, added: ConfiguredModel) {
        app.db.write(move |tx| store::keep(tx, &added)).await.unwrap();
    }

    /// The caller at the other end of the socket waits five minutes before it assumes that the daemon is stuck.
    #[tokio::test(start_paused = true)]
    async fn two_silent_models_are_said_to_be_silent_before_anybody_takes_us_for_stuck() {
        let (app, _folder) = app();
        let mut silent = vec![];
        for name in ["one", "two"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            put(&app, at(&format!("http://{}/v1", listener.local_addr().unwrap()), name)).await;
            silent.push(listener);
        }
        let began = tokio::time::Instant::now();
        let tests = test(&app, &app.env, None).await.unwrap();
        assert!(began.elapsed() <= LONGEST_TRIAL, "{:?}", began.elapsed());
        assert_eq!(tests.len(), 2);
        for test in tests {
            assert!(!test.works && test.says.to_string().contains("didn’t answer within"), "{}", test.says);
        }
    }

    /// A server on this computer may pass requests on.
    #[tokio::test]
    async fn a_request_for_a_model_of_ollamas_cloud_is_not_said_to_have_stayed_here() {
        let (app, _folder) = app();
        for name in ["qwen3:8b", "gpt-oss:120b-cloud"] {
            put(&app, at("http://127.0.0.1:9/v1", name)).await;
        }
        test(&app, &app.env, None).await.unwrap();
        let records = app.db.read(ledger::all).await.unwrap();
        let mut sent: Vec<(String, bool)> = records
            .into_iter()
            .filter_map(|record| match record {
                ledger::Record::Request { model, here, .. } => Some((model, here)),
                _ => None,
            })
            .collect();
        sent.sort();
        assert_eq!(sent, [("gpt-oss:120b-cloud".to_owned(), false), ("qwen3:8b".to_owned(), true)]);
        let rows = rows(&app, &app.env).await.unwrap();
        let local: Vec<bool> = rows.iter().map(|row| row.local).collect();
        assert_eq!(local, [true, false], "the heartbeat and the page go by that");
    }

    #[tokio::test]
    async fn a_model_that_kai_runs_itself_sees_no_pictures_whatever_is_set() {
        let (app, _folder) = app();
        let file = at("file:///nowhere/gemma-3-4b.gguf", "gemma-3-4b");
        put(&app, ConfiguredModel { preset: BUILT_IN.to_owned(), ..file.clone() }).await;
        put(&app, ConfiguredModel { name: "server".to_owned(), ..at("http://127.0.0.1:9/v1", "gemma-3-4b") })
            .await;
        let seen = |rows: Vec<ModelRow>| rows.into_iter().map(|row| row.pictures).collect::<Vec<_>>();
        assert_eq!(seen(rows(&app, &app.env).await.unwrap()), [Vision::No, Vision::Yes]);
        let set = set_pictures(&app, &app.env, file.name.clone(), "yes").await;
        assert_eq!(set.unwrap_err().message, said::models_pictures_never("gemma-3-4b"));
        assert!(set_pictures(&app, &app.env, file.name, "auto").await.is_ok());
    }

    /// The terminal names the recommended model and its size, if this computer can run it.
    #[cfg(feature = "local")]
    #[tokio::test]
    async fn somebody_without_a_model_is_told_of_one_for_this_computer() {
        use crate::app::catalogue::Source;
        use crate::app::downloads::Downloads;
        use kai_local::machine::Machine;

        let roomy = |_: &std::path::Path| Machine {
            memory: 16_000_000_000,
            available: 9_000_000_000,
            cores: 8,
            disk: Some(100_000_000_000),
            has_vectors: true,
        };
        let small = |_: &std::path::Path| Machine {
            memory: 1_000_000_000,
            available: 500_000_000,
            cores: 2,
            disk: None,
            has_vectors: true,
        };
        let told = |look: fn(&std::path::Path) -> Machine| {
            let (mut app, _folder) = app();
            app.downloads = Downloads::of(Source { look, ..Source::public() });
            Failure::from(no_model(&app)).to_string()
        };
        let first = "No model is set up. Set one up first. Try: ";
        let own = "kai models get qwen2.5-1.5b (1.1 GB; runs on this computer: private, no account), or ";
        let others = "kai models add openai (with an API key";
        assert!(told(roomy).starts_with(&format!("{first}{own}{others}")), "{}", told(roomy));
        assert!(told(small).starts_with(&format!("{first}{others}")), "{}", told(small));
    }
}
