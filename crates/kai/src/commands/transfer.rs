//! Exports and imports sections. A preview is an import that is rolled back.

use kai_assistant::db::DbError;
use kai_assistant::home::Passphrase;
use kai_assistant::settings;
use kai_assistant::transfer::{self, Export, Import, Outcome, Piece, Section, TransferError};
use kai_words::{Lang, said};

use crate::app::App;
use crate::call::{ExportCall, ImportCall};
use crate::failure::Failure;

/// The next piece of an export; the last one contains the secrets, if there is a passphrase for them.
pub(crate) async fn export(app: &App, call: ExportCall) -> Result<Piece, Failure> {
    let ExportCall { sections: names, passphrase, from } = call;
    let chosen = sections(&names)?;
    let chosen = if chosen.is_empty() { Section::ALL.to_vec() } else { chosen };
    let now = app.clock.now();
    let piece = app.db.read(move |tx| transfer::piece(tx, &chosen, from, now)).await;
    let mut piece = piece.map_err(|error: DbError| error)?;
    if piece.next.is_none() {
        piece.text.push_str(&ending(app, passphrase).await?);
    }
    Ok(piece)
}

async fn ending(app: &App, passphrase: Option<String>) -> Result<String, Failure> {
    let Some(passphrase) = passphrase.map(Passphrase::new) else { return Ok(transfer::end(None)?) };
    let secrets = app.db.read(transfer::secrets).await?;
    let sealed = slowly(move || secrets.sealed(&passphrase)).await?;
    Ok(transfer::end(Some(&sealed))?)
}

/// Runs the slow passphrase work on a blocking thread, so that nothing else waits for it.
async fn slowly<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TransferError> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::failed(said::transfer_stopping()))?.map_err(|e| failure(&e))
}

/// Imports a file, or only previews that. The outcomes are in this language.
pub(crate) async fn import(app: &App, call: ImportCall, lang: Lang) -> Result<Vec<Outcome>, Failure> {
    let chosen = sections(&call.sections)?;
    let (text, passphrase) = (call.text, call.passphrase.map(Passphrase::new));
    let read = move || {
        let export = Export::parse(&text)?;
        let secrets = export.opened(passphrase.as_ref())?;
        Ok((export, secrets))
    };
    let (export, secrets) = slowly(read).await?;
    let known = settings::catalogue(app.toolbox.settings());
    let (mode, preview) = (call.mode, call.preview);
    let (now, zone) = (app.clock.now(), app.clock.zone());
    let taken = app.db.write(move |tx| {
        let (export, secrets, settings, zone) = (&export, &secrets, &known, &zone);
        let all = Import { export, sections: &chosen, mode, secrets, settings, now, zone, lang };
        let outcomes = transfer::import(tx, &all)?;
        // An error rolls the transaction back, which is what a preview needs.
        if preview { Err(Ended::Previewed(outcomes)) } else { Ok(outcomes) }
    });
    match taken.await {
        Ok(outcomes) | Err(Ended::Previewed(outcomes)) => Ok(outcomes),
        Err(Ended::Failed(error)) => Err(error.into()),
    }
}

enum Ended {
    Previewed(Vec<Outcome>),
    Failed(DbError),
}

impl From<DbError> for Ended {
    fn from(error: DbError) -> Self {
        Self::Failed(error)
    }
}

pub(crate) fn failure(error: &TransferError) -> Failure {
    match error {
        TransferError::Unreadable(why) => Failure::failed(said::transfer_unreadable(why)),
        TransferError::Newer(format) => Failure::failed(said::transfer_newer(format)),
        TransferError::PassphraseNeeded => {
            Failure::failed(said::transfer_needs_passphrase()).try_instead("kai import --no-secrets FILE")
        }
        TransferError::WrongPassphrase => Failure::failed(said::transfer_wrong_passphrase()),
        TransferError::Store(error) => Failure::failed(error.said()),
    }
}

fn sections(names: &[String]) -> Result<Vec<Section>, Failure> {
    let known = || Section::all().map(Section::name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let unknown =
            || Failure::usage(format!("There is no section called {name}. Available: {}.", known()));
        Section::named(name).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}
