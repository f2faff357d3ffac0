//! Models that run inside Kai: what can be downloaded, downloading it, and adding any GGUF file.

use std::path::PathBuf;
use std::sync::Arc;

use kai_assistant::agent::{Event, Face};
use kai_assistant::db::{Db, DbError};
use kai_assistant::models::{BUILT_IN, ConfiguredModel, store};
use kai_local::catalogue::{self, Entry, Installed, Misfit, Strength};
use kai_local::fetch::{self, FetchError, Proxies, Wanted};
use kai_local::gguf::{self, GgufError, Header};
use kai_words::{Lang, Said, said};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{model_files, models, sizes};
use crate::app::App;
use crate::app::catalogue::installed;
use crate::app::downloads::Downloads;
use crate::call::local::{Catalogue, CatalogueRow, Download, MachineRow, NewFile, Phase, Progress};
use crate::call::models::ModelRow;
use crate::caller_env::CallerEnv;
use crate::failure::Failure;

/// Whether Kai can run models itself.
pub(crate) const HAS_ENGINE: bool = true;

/// The name under which the progress of a download is told.
const GETTING: &str = "models_get";

const MB: u64 = 1_000_000;

/// What can be downloaded, and what this machine can bear.
pub(crate) async fn catalogue(app: &App) -> Result<Catalogue, Failure> {
    let folder = app.home.models();
    let machine = (app.downloads.source.look)(&folder);
    let added = app.db.read(store::all).await?;
    let entries = &app.downloads.source.entries;
    let chosen = entries
        .first()
        .map(|entry| (entry.name, catalogue::fits(entry, &machine, installed(entry, &folder))));
    let recommended = chosen.and_then(|(name, fits)| fits.is_ok().then(|| name.to_owned()));
    let why_none = chosen.and_then(|(_, fits)| fits.err()).map(unfit);
    let row = |entry: &Entry| {
        let file = folder.join(entry.file);
        let here = installed(entry, &folder);
        CatalogueRow {
            name: entry.name.to_owned(),
            file: entry.file.to_owned(),
            bytes: entry.bytes,
            memory: entry.memory,
            good_for: good_for(entry.strength),
            licence: entry.licence.to_owned(),
            tried: entry.tried,
            recommended: recommended.as_deref() == Some(entry.name),
            downloaded: here == Installed::Yes,
            received: fetch::received(&file).unwrap_or_default(),
            used_by: model_files::users(&added, &file),
            why_not: catalogue::fits(entry, &machine, here).err().map(unfit),
            repository: entry.repository.to_owned(),
        }
    };
    let models = entries.iter().map(row).collect();
    let machine = MachineRow {
        memory: machine.memory,
        memory_available: machine.available,
        cores: machine.cores,
        disk_free: machine.disk,
    };
    Ok(Catalogue { machine, recommended, why_none, models })
}

fn good_for(strength: Strength) -> Said {
    match strength {
        Strength::Everyday => said::local_good_everyday(),
        Strength::Quick => said::local_good_quick(),
        Strength::Thorough => said::local_good_thorough(),
        Strength::Careful => said::local_good_careful(),
        Strength::Code => said::local_good_code(),
    }
}

fn unfit(misfit: Misfit) -> Said {
    match misfit {
        Misfit::Processor => said::local_misfit_processor(),
        Misfit::Memory { needs, has } => said::local_misfit_memory(needs / MB, has / MB),
        Misfit::Disk { needs, free } => said::local_misfit_disk(needs / MB, free / MB),
    }
}

/// Downloads a model, shows how far it is, and adds it. A download that runs already is joined. One that this call began
/// ends with it.
pub(crate) async fn get(
    app: &App,
    env: &CallerEnv,
    name: &str,
    face: &dyn Face,
) -> Result<ModelRow, Failure> {
    let mut changes = app.downloads.changes();
    let begun = begin(app, env, name).await?;
    let _ends_with_call = begun.map(CancellationToken::drop_guard);
    loop {
        let now = changes.borrow_and_update().clone();
        match now.filter(|download| download.name == name).map(|Download { phase, .. }| phase) {
            Some(Phase::Running(progress)) => face.shows(told(&progress)),
            Some(Phase::Failed(why)) => return Err(Failure::failed(why)),
            Some(Phase::Stopped) => return Err(Failure::failed(said::local_stopped())),
            Some(Phase::Done) | None => break,
        }
        if changes.changed().await.is_err() {
            break;
        }
    }
    let rows = models::rows(app, env).await?;
    rows.into_iter().find(|row| row.name == name).ok_or_else(|| unknown(name))
}

fn told(progress: &Progress) -> Event {
    let progress = sizes::progress(progress, Lang::ENGLISH);
    Event::ToolProgress { call: GETTING.to_owned(), tool: GETTING.to_owned(), progress }
}

/// Begins to download a model, which goes on until it is stopped or Kai ends. Returns what stops it; `None` if it is under
/// way already.
pub(crate) async fn begin(
    app: &App,
    env: &CallerEnv,
    name: &str,
) -> Result<Option<CancellationToken>, Failure> {
    models::no_demo(app)?;
    let entries = &app.downloads.source.entries;
    let entry = entries.iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))?;
    let folder = app.home.models();
    if !(app.downloads.source.look)(&folder).has_vectors {
        return Err(Failure::failed(said::local_misfit_processor()));
    }
    let wanted = Wanted::of(entry, &folder);
    let address = model_files::address(&wanted.to).ok_or_else(|| unknown(name))?;
    free_name(app, name, &address).await?;
    let stop = app.stop.child_token();
    if let Err(running) = app.downloads.begin(name, entry.bytes, stop.clone()) {
        return if running == name { Ok(None) } else { Err(Failure::failed(said::local_busy(running))) };
    }
    let proxies = Proxies { https: env.proxy.clone(), none_for: env.no_proxy.clone() };
    let (name, downloads, db) = (name.to_owned(), Arc::clone(&app.downloads), app.db.clone());
    let job = Job { name, address, wanted, proxies, downloads, db, stop: stop.clone() };
    tokio::spawn(job.run());
    Ok(Some(stop))
}

fn unknown(name: &str) -> Failure {
    Failure::usage(said::local_unknown(name)).try_instead("kai models get")
}

/// Refuses a name that belongs to another model.
async fn free_name(app: &App, name: &str, address: &str) -> Result<(), Failure> {
    let added = app.db.read(store::all).await?;
    if added.iter().any(|model| model.name == name && model.base_url != address) {
        return Err(
            Failure::failed(said::local_name_taken(name)).try_instead(format!("kai models remove {name}"))
        );
    }
    Ok(())
}

/// One download.
struct Job {
    name: String,
    /// Of the file, as the store keeps it.
    address: String,
    wanted: Wanted,
    proxies: Proxies,
    downloads: Arc<Downloads>,
    db: Db,
    stop: CancellationToken,
}

impl Job {
    async fn run(self) {
        let fetched = tokio::select! {
            fetched = self.fetch() => Some(fetched),
            () = self.stop.cancelled() => None,
        };
        let phase = match fetched {
            None => Phase::Stopped,
            Some(Err(error)) => Phase::Failed(trouble(&error)),
            Some(Ok(())) => match self.add().await {
                Ok(()) => Phase::Done,
                Err(error) => Phase::Failed(error.said()),
            },
        };
        tracing::info!(model = self.name, ?phase, "a download ended");
        self.downloads.tell(&self.name, phase);
    }

    async fn fetch(&self) -> Result<(), FetchError> {
        let began = Instant::now();
        let first = fetch::received(&self.wanted.to).unwrap_or_default();
        let tell = |received: u64, total: u64| {
            let passed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let since = received.saturating_sub(first);
            let per_second = since.saturating_mul(1000).checked_div(passed).unwrap_or_default();
            self.downloads.tell(&self.name, Phase::Running(Progress { received, total, per_second }));
        };
        fetch::fetch(&self.wanted, &self.downloads.source.hub, &self.proxies, &tell).await
    }

    async fn add(&self) -> Result<(), DbError> {
        let header = read(self.wanted.to.clone()).await.unwrap_or_default();
        let added = model(self.name.clone(), self.address.clone(), self.name.clone(), smaller(&header));
        self.db.write(move |tx| store::keep(tx, &added)).await
    }
}

fn model(name: String, base_url: String, model: String, context: Option<usize>) -> ConfiguredModel {
    ConfiguredModel { name, preset: BUILT_IN.to_owned(), base_url, model, key: None, context, sees: None }
}

/// The window that a model was trained with, if it is smaller than the one that Kai assumes anyway.
fn smaller(header: &Header) -> Option<usize> {
    let trained = header.context.and_then(|tokens| usize::try_from(tokens).ok());
    trained.filter(|tokens| *tokens < kai_llm::window::UNKNOWN)
}

async fn read(path: PathBuf) -> Result<Header, GgufError> {
    let read = tokio::task::spawn_blocking(move || gguf::read(&path)).await;
    read.unwrap_or_else(|error| Err(GgufError::Io(std::io::Error::other(error))))
}

/// What went wrong with a download, and what to do.
fn trouble(error: &FetchError) -> Said {
    match error {
        FetchError::NoNetwork(why) => said::local_fetch_no_network(why),
        FetchError::BadProxy(why) => said::local_fetch_bad_proxy(why),
        FetchError::Cut => said::local_fetch_cut(),
        FetchError::Stalled { after } => said::local_fetch_stalled(after.as_secs()),
        FetchError::NotFound => said::local_fetch_not_found(),
        FetchError::Refused(status) => said::local_fetch_refused(status),
        FetchError::Redirected => said::local_fetch_redirected(),
        FetchError::WrongLength => said::local_fetch_wrong_length(),
        FetchError::WrongHash => said::local_fetch_wrong_hash(),
        FetchError::NoSpace { needs, free } => said::local_misfit_disk(needs / MB, free / MB),
        FetchError::DiskFull => said::local_fetch_disk_full(),
        FetchError::Busy => said::local_fetch_busy(),
        FetchError::Disk(why) => said::local_fetch_disk(why),
    }
}

/// Adds a model that is a file on this machine.
pub(crate) async fn add(app: &App, env: &CallerEnv, new: NewFile) -> Result<ModelRow, Failure> {
    models::no_demo(app)?;
    let path = PathBuf::from(&new.file);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = models::name(new.name.as_deref().unwrap_or(&stem))?;
    let typed = new.context.as_deref().map(models::typed_window).transpose()?.flatten();
    let header = read(path.clone()).await.map_err(|error| Failure::failed(unusable(&new.file, &error)))?;
    let address = model_files::address(&path);
    let address = address.ok_or_else(|| Failure::usage(said::local_file_not_absolute(&new.file)))?;
    free_name(app, &name, &address).await?;
    let says = header.name.clone().filter(|says| models::name(says).is_ok()).unwrap_or(stem);
    let context = typed.or_else(|| smaller(&header));
    let added = model(name.clone(), address, says, context);
    let keep = move |tx: &rusqlite::Transaction<'_>| {
        store::keep(tx, &added)?;
        store::set_context(tx, &added.name, added.context).map(drop)
    };
    app.db.write(keep).await?;
    let rows = models::rows(app, env).await?;
    rows.into_iter().find(|row| row.name == name).ok_or_else(|| unknown(&name))
}

/// Why a file cannot be used as a model.
fn unusable(file: &str, error: &GgufError) -> Said {
    match error {
        GgufError::Io(why) => said::local_file_unreadable(file, why),
        GgufError::NotGguf => said::local_file_not_gguf(file),
        GgufError::Version(version) => said::local_file_version(file, version),
        GgufError::Truncated => said::local_file_truncated(file),
        GgufError::Damaged(_) => said::local_file_damaged(file),
        GgufError::NoArchitecture | GgufError::NoVocabulary => said::local_file_no_model(file),
    }
}
