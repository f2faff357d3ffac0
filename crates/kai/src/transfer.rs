//! Export and import as calls: names become sections, and a preview is an import that is rolled back.

use kai_assistant::home::Passphrase;
use kai_assistant::settings;
use kai_assistant::transfer::{self, Export, Import, Outcome, Section, TransferError};

use crate::call::ImportCall;
use crate::failure::Failure;
use crate::wire::App;

pub(crate) async fn export(
    app: &App,
    names: &[String],
    passphrase: Option<String>,
) -> Result<Export, Failure> {
    let chosen = sections(names)?;
    let chosen = if chosen.is_empty() { Section::ALL.to_vec() } else { chosen };
    let (now, passphrase) = (app.clock.now(), passphrase.map(Passphrase::new));
    let taken = app.db.read(move |tx| transfer::export(tx, &chosen, passphrase.as_ref(), now)).await;
    taken.map_err(|error| failure(&error))
}

pub(crate) async fn import(app: &App, call: ImportCall) -> Result<Vec<Outcome>, Failure> {
    let export = Export::parse(&call.text).map_err(|error| failure(&error))?;
    let chosen = sections(&call.sections)?;
    let known = settings::catalogue(app.toolbox.settings());
    let passphrase = call.passphrase.map(Passphrase::new);
    let (mode, preview) = (call.mode, call.preview);
    let (now, zone) = (app.clock.now(), app.clock.zone());
    let taken = app.db.write(move |tx| {
        let passphrase = passphrase.as_ref();
        let (settings, zone) = (&known, &zone);
        let all = Import { export: &export, sections: &chosen, mode, passphrase, settings, now, zone };
        let outcomes = transfer::import(tx, &all)?;
        // An error rolls everything back, which is what a preview wants.
        if preview { Err(Ended::Previewed(outcomes)) } else { Ok(outcomes) }
    });
    match taken.await {
        Ok(outcomes) | Err(Ended::Previewed(outcomes)) => Ok(outcomes),
        Err(Ended::Failed(error)) => Err(failure(&error)),
    }
}

enum Ended {
    Previewed(Vec<Outcome>),
    Failed(TransferError),
}

impl<E: Into<TransferError>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn failure(error: &TransferError) -> Failure {
    Failure::failed(error.to_string())
}

fn sections(names: &[String]) -> Result<Vec<Section>, Failure> {
    let known = || Section::ALL.map(Section::name).join(", ");
    let find = |name: &String| {
        let unknown =
            || Failure::usage(format!("There is no section called {name}. There are: {}.", known()));
        Section::named(name).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}
