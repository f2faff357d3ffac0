//! The catalogue of models as text.

use kai_words::Lang;

use super::columns;
use crate::call::local::{Catalogue, CatalogueRow};
use crate::commands::sizes::size;
use crate::terminal::out::visible;

/// What this machine can bear, and a line per model.
pub(in crate::cli) fn catalogue(all: &Catalogue) -> String {
    let english = Lang::ENGLISH;
    let machine = &all.machine;
    let disk = machine.disk_free.map(|free| format!(", {} free", size(free, english))).unwrap_or_default();
    let cores = super::count(machine.cores, "core");
    let here = format!("This computer: {} memory, {cores}{disk}.", size(machine.memory, english));
    let advice = match (&all.recommended, &all.why_none) {
        (Some(name), _) => format!("Recommended: kai models get {name}"),
        (None, Some(why)) => visible(&why.to_string()),
        (None, None) => String::new(),
    };
    let rows: Vec<_> = all.models.iter().map(|row| (visible(&row.name), about(row))).collect();
    format!("{here} {}\n\n{}", advice.trim_end(), columns(&rows))
}

fn about(row: &CatalogueRow) -> String {
    let english = Lang::ENGLISH;
    let mut said = vec![
        size(row.bytes, english),
        format!("needs {} memory", size(row.memory, english)),
        row.good_for.to_string(),
        row.licence.clone(),
    ];
    if !row.tried {
        said.push("not tried with Kai yet".to_owned());
    }
    if row.recommended {
        said.push("recommended".to_owned());
    }
    match (row.downloaded, row.received) {
        (true, _) if row.used_by.is_empty() => said.push("downloaded, not in use".to_owned()),
        (true, _) => said.push(format!("in use as {}", visible(&row.used_by.join(", ")))),
        (false, 0) => {}
        (false, received) => said.push(format!("{} downloaded so far", size(received, english))),
    }
    if let Some(why) = row.why_not.as_ref().filter(|_| !row.downloaded) {
        said.push(format!("does not fit: {}", visible(&why.to_string())));
    }
    said.join("; ")
}
