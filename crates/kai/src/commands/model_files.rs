//! The files of models that run inside Kai: which model uses which file, and deleting one that none uses.

use std::io;
use std::path::{Path, PathBuf};

use kai_assistant::models::{BUILT_IN, ConfiguredModel, store};
use kai_words::said;
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
    if let Some(running) = app.downloads.running() {
        return Err(Failure::failed(said::local_busy(running)));
    }
    if let Some(user) = users(&app.db.read(store::all).await?, &path).first() {
        return Err(Failure::failed(said::local_still_used(name, user)));
    }
    // What is still in the engine's memory would keep the space on the disk taken.
    app.engine.end().await;
    let mut part = path.clone().into_os_string();
    part.push(".part");
    let gone = [remove(&path), remove(Path::new(&part))];
    for gone in gone {
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::failed(said::local_not_deleted(name, error)));
            }
            _ => {}
        }
    }
    Ok(FileDeleted { deleted: name.to_owned() })
}

fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}
