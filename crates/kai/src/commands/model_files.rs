//! The files of models that run inside Kai: which model uses which file, and deleting one that none uses.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kai_assistant::models::{BUILT_IN, ConfiguredModel, store};
use kai_words::said;
use rusqlite::Transaction;
use url::Url;

use crate::app::App;
use crate::call::local::{FileDeleted, ModelFile};
use crate::failure::Failure;

/// The address under which a model's file is kept in the store.
#[cfg_attr(not(feature = "local"), expect(dead_code, reason = "no file becomes a model"))]
pub(crate) fn address(path: &Path) -> Option<String> {
    Url::from_file_path(path).ok().map(String::from)
}

/// The file of a model that runs inside Kai.
fn path(model: &ConfiguredModel) -> Option<PathBuf> {
    Url::parse(&model.base_url).ok().filter(|_| model.preset == BUILT_IN)?.to_file_path().ok()
}

/// The names of the models that use this file.
pub(crate) fn users(models: &[ConfiguredModel], file: &Path) -> Vec<String> {
    let used = models.iter().filter(|model| path(model).is_some_and(|path| path == file));
    used.map(|model| model.name.clone()).collect()
}

/// The file that a removed model leaves behind. Files elsewhere are the user's own, and none of our business.
pub(crate) async fn left_behind(app: &App, removed: &ConfiguredModel) -> Result<Option<ModelFile>, Failure> {
    let Some(path) = path(removed).filter(|path| path.parent() == Some(&app.home.models())) else {
        return Ok(None);
    };
    let (Ok(file), Some(name)) = (std::fs::metadata(&path), path.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(None);
    };
    if !users(&app.db.read(store::all).await?, &path).is_empty() {
        return Ok(None);
    }
    Ok(Some(ModelFile { name: name.to_owned(), path: path.display().to_string(), bytes: file.len() }))
}

/// Deletes a file in the folder of models, and what an interrupted download left of it.
pub(crate) async fn delete(app: &App, name: &str) -> Result<FileDeleted, Failure> {
    let path = app.home.models().join(name);
    // A name with a folder in it would lead out of ours.
    if path.file_name().is_none_or(|plain| plain != name) {
        return Err(Failure::usage(said::local_no_file(name)));
    }
    delete_after(app, name, &path, app.engine.end_of(&path)).await
}

/// Deletes a file after the engine's process that has it loaded has ended: it would keep the space on the disk taken.
/// That may take minutes, in which the file may come into use again, so whether it is used is looked at twice.
async fn delete_after(
    app: &App,
    name: &str,
    path: &Path,
    ended: impl Future<Output = ()>,
) -> Result<FileDeleted, Failure> {
    while_unused(app, name, path, || ()).await?;
    ended.await;
    let file = path.to_owned();
    let removed = while_unused(app, name, path, move || remove(&file)).await?;
    removed.map_err(|error| Failure::failed(said::local_not_deleted(name, error)))?;
    Ok(FileDeleted { deleted: name.to_owned() })
}

/// Does something with a file of ours while no model uses it and none can come to use it: a model is added by another
/// transaction than this one, and a download adds its model before it is said to have ended.
async fn while_unused<T: Send + 'static>(
    app: &App,
    name: &str,
    path: &Path,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (name, path, downloads) = (name.to_owned(), path.to_owned(), Arc::clone(&app.downloads));
    let look_and_act = move |tx: &Transaction<'_>| -> Result<T, Failure> {
        if let Some(user) = users(&store::all(tx)?, &path).first() {
            return Err(Failure::failed(said::local_still_used(&name, user)));
        }
        downloads.between(act).map_err(|running| Failure::failed(said::local_busy(running)))
    };
    app.db.write(look_and_act).await
}

/// Removes a file and what an interrupted download left of it, as far as they are there.
fn remove(path: &Path) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    for gone in [std::fs::remove_file(path), std::fs::remove_file(part)] {
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "local"))]
mod tests {
    use kai_assistant::clock::ManualClock;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::call::local::Phase;

    const NAME: &str = "tiny.gguf";

    #[tokio::test]
    async fn a_file_that_comes_into_use_while_the_engine_ends_is_kept() {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let (app, _folder) = App::for_tests(Arc::new(ManualClock::at(now)));
        let path = app.home.models().join(NAME);
        std::fs::create_dir_all(app.home.models()).unwrap();
        std::fs::write(&path, "a model").unwrap();

        let model = ConfiguredModel {
            name: "tiny".to_owned(),
            preset: BUILT_IN.to_owned(),
            base_url: address(&path).unwrap(),
            model: "tiny".to_owned(),
            key: None,
            context: None,
            sees: None,
        };
        let added = async { app.db.write(move |tx| store::keep(tx, &model)).await.unwrap() };
        let done = delete_after(&app, NAME, &path, added).await;
        assert_eq!(done.unwrap_err().message, said::local_still_used(NAME, "tiny"));
        assert!(path.exists(), "a model uses it");

        app.db.write(|tx| store::remove(tx, "tiny")).await.unwrap();
        let begun = async { app.downloads.begin("tiny", 7, CancellationToken::new()).unwrap() };
        let done = delete_after(&app, NAME, &path, begun).await;
        assert_eq!(done.unwrap_err().message, said::local_busy("tiny"));
        assert!(path.exists(), "a download is about to use it");

        app.downloads.tell("tiny", Phase::Stopped);
        assert_eq!(delete_after(&app, NAME, &path, async {}).await.unwrap().deleted, NAME);
        assert!(!path.exists());
    }
}
