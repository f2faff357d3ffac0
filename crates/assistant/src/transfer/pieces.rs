//! Writes an export piece by piece: the messages of many years are more than an export should hold in memory.
//!
//! A section with few items is one piece. The others are read item by item, oldest first, and a [`Bookmark`] says where the
//! next piece begins. Each piece is read on its own, so the store is not held up in between, and whoever writes slowly only
//! asks later.

use jiff::Timestamp;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::share::{Share, pretty};
use super::{Section, VERSION, store};
use crate::db::DbError;
use crate::home::Sealed;

/// A piece has at least so many bytes, unless the sections end.
const ENOUGH: usize = 256 * 1024;

/// Where an export continues. Whoever exports hands it back as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The place of the section among those that are exported.
    section: usize,
    /// The last item of it that was written. `None` if it was not begun.
    after: Option<i64>,
}

/// A piece of an exported file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub text: String,
    /// `None` after the last section: then [`end`] follows.
    pub next: Option<Bookmark>,
}

/// The piece of an export that begins here, or its first one.
pub fn piece(
    tx: &Transaction<'_>,
    sections: &[Section],
    from: Option<Bookmark>,
    now: Timestamp,
) -> Result<Piece, DbError> {
    let sections = in_order(sections);
    let mut text = if from.is_none() { beginning(now) } else { String::new() };
    let mut place = from.unwrap_or(Bookmark { section: 0, after: None });
    while text.len() < ENOUGH {
        let Some(section) = sections.get(place.section) else { break };
        place = write(tx, *section, place, &mut text)?;
    }
    let next = (place.section < sections.len()).then_some(place);
    Ok(Piece { text, next })
}

/// The sections by their names, each once.
fn in_order(sections: &[Section]) -> Vec<Section> {
    let mut sections = sections.to_vec();
    sections.sort_by_key(|section| section.name());
    sections.dedup();
    sections
}

fn beginning(now: Timestamp) -> String {
    let at = now.as_millisecond();
    format!("{{\n  \"kai_export\": {VERSION},\n  \"exported_at\": {at},\n  \"sections\": {{\n")
}

/// Writes the next share of a section. Returns where the next one begins.
fn write(
    tx: &Transaction<'_>,
    section: Section,
    place: Bookmark,
    text: &mut String,
) -> Result<Bookmark, DbError> {
    let begins = place.after.is_none();
    if begins {
        let comma = if place.section > 0 { ",\n" } else { "" };
        text.extend([comma, "    \"", section.name(), "\": "]);
    }
    let next_section = Bookmark { section: place.section + 1, after: None };
    let items = match store::share(tx, section, place.after)? {
        Share::Whole(json) => {
            text.push_str(&indented(&json, "    "));
            return Ok(next_section);
        }
        Share::Items(items) => items,
    };
    let Some((last, _)) = items.last() else {
        text.push_str(if begins { "[]" } else { "\n    ]" });
        return Ok(next_section);
    };
    let next = Bookmark { after: Some(*last), ..place };
    for (at, (_, json)) in items.iter().enumerate() {
        text.push_str(if begins && at == 0 { "[\n      " } else { ",\n      " });
        text.push_str(&indented(json, "      "));
    }
    Ok(next)
}

/// JSON whose further lines begin with these blanks. A line break inside of JSON is never part of a text.
fn indented(json: &str, blanks: &str) -> String {
    json.replace('\n', &format!("\n{blanks}"))
}

/// The end of an export, with the secrets if the user wants them in it.
pub fn end(secrets: Option<&Sealed>) -> Result<String, DbError> {
    let secrets = match secrets {
        Some(sealed) => format!(",\n  \"secrets\": {}", indented(&pretty(sealed)?, "  ")),
        None => String::new(),
    };
    Ok(format!("\n  }}{secrets}\n}}\n"))
}
