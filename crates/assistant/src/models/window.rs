//! Determines how large a model's context window is. The size comes from the user, the model's server, an earlier
//! refusal or the preset.

use jiff::{SignedDuration, Timestamp};
use kai_llm::Place;
use rusqlite::{Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::Candidate;
use crate::db::DbError;

/// The size of a context window, and where the size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub tokens: usize,
    pub source: WindowSource,
}

/// Where the size of a window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The user set it.
    Set,
    /// The server reported it.
    Server,
    /// A server refused a longer request.
    #[serde(rename = "refusal")]
    Learned,
    #[default]
    Preset,
}

impl WindowSource {
    /// The source in words, as it is shown to the user.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Set => "set by you",
            Self::Server => "reported by the server",
            Self::Learned => "because the server refused a longer request",
            Self::Preset => "assumed",
        }
    }
}

/// The smallest window that the user can set, in tokens.
pub const SMALLEST: usize = 1_024;
/// The largest window that the user can set, in tokens.
pub const LARGEST: usize = 10_000_000;

/// Parses a window size such as `32768` or `32,768`. Returns `None` for `auto`, which lets Kai find it out.
pub fn typed(text: &str) -> Result<Option<usize>, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("auto") {
        return Ok(None);
    }
    let digits = text.replace([',', '_', ' '], "");
    match digits.parse() {
        Ok(tokens) if (SMALLEST..=LARGEST).contains(&tokens) => Ok(Some(tokens)),
        Ok(_) | Err(_) => Err(format!(
            "The context window must be a number of tokens from {SMALLEST} to {LARGEST}, for example 32768, or auto to let Kai detect it."
        )),
    }
}

/// What is known about the window of one model at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub place: Place,
    /// The size that the server last reported.
    pub told: Option<usize>,
    pub asked_at: Option<Timestamp>,
    /// The size that a refusal showed.
    pub learned: Option<usize>,
}

impl Window {
    /// The size to use: what the user set, otherwise what the server reported, otherwise the preset's. If a refusal
    /// showed that the window is smaller, that counts.
    pub fn assumed(set: Option<usize>, preset: usize, known: Option<&Known>) -> Self {
        let told = known.and_then(|known| known.told);
        let window = match (set, told) {
            (Some(tokens), _) => Self { tokens, source: WindowSource::Set },
            (None, Some(tokens)) => Self { tokens, source: WindowSource::Server },
            (None, None) => Self { tokens: preset, source: WindowSource::Preset },
        };
        match known.and_then(|known| known.learned) {
            Some(tokens) if tokens < window.tokens => Self { tokens, source: WindowSource::Learned },
            _ => window,
        }
    }
}

/// Updates the window of each candidate with what is known about it.
pub fn settle(candidates: &mut [Candidate], known: &[Known]) {
    for candidate in candidates {
        let place = candidate.config.place();
        let known = known.iter().find(|known| known.place == place);
        let tokens = candidate.config.window;
        let set = (candidate.window_source == WindowSource::Set).then_some(tokens);
        let window = Window::assumed(set, tokens, known);
        candidate.config.window = window.tokens;
        candidate.window_source = window.source;
    }
}

/// How soon to ask a local server again. It may be restarted with another window at any time.
const LOCAL_AGAIN: SignedDuration = SignedDuration::from_mins(10);
/// How soon to ask a remote service again. Its windows rarely change.
const REMOTE_AGAIN: SignedDuration = SignedDuration::from_hours(24);
/// How soon to ask a local server again that reported nothing. Ollama and LM Studio report the window once the model is
/// loaded, and the first question loads it.
const UNTOLD_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Whether it is time to ask the server for its window, or to ask it again.
pub fn is_due(known: Option<&Known>, local: bool, now: Timestamp) -> bool {
    let Some(asked) = known.and_then(|known| known.asked_at) else { return true };
    let told = known.is_some_and(|known| known.told.is_some());
    let again = match (local, told) {
        (true, true) => LOCAL_AGAIN,
        (true, false) => UNTOLD_AGAIN,
        (false, _) => REMOTE_AGAIN,
    };
    // A time in the future means that the clock went back.
    asked > now || now.duration_since(asked) >= again
}

/// Everything that is known about windows.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Known>, DbError> {
    let sql = "SELECT base_url, model, told, asked_at, learned FROM model_windows";
    let mut rows = tx.prepare_cached(sql)?;
    let row = |row: &Row<'_>| {
        let tokens = |column| {
            let stored: Option<i64> = row.get(column)?;
            Ok::<_, rusqlite::Error>(stored.and_then(|tokens| usize::try_from(tokens).ok()))
        };
        let asked: Option<i64> = row.get(3)?;
        Ok(Known {
            place: Place { base_url: row.get(0)?, model: row.get(1)? },
            told: tokens(2)?,
            asked_at: asked.and_then(|at| Timestamp::from_millisecond(at).ok()),
            learned: tokens(4)?,
        })
    };
    Ok(rows.query_map([], row)?.collect::<rusqlite::Result<_>>()?)
}

/// Records that the server was asked. If it reported nothing, the size it reported before stays. If it reported another
/// size, it was restarted, so what was learned from refusals is deleted.
pub fn asked(
    tx: &Transaction<'_>,
    place: &Place,
    told: Option<usize>,
    now: Timestamp,
) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO model_windows (base_url, model, told, asked_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET told = coalesce(?3, told), asked_at = ?4,
             learned = iif(?3 IS NULL OR ?3 IS told, learned, NULL)",
        params![place.base_url, place.model, number(told), now.as_millisecond()],
    )?;
    Ok(())
}

/// Records that a refusal showed the window to be no larger than this.
pub fn learned(tx: &Transaction<'_>, place: &Place, tokens: usize) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO model_windows (base_url, model, learned) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET learned = ?3",
        params![place.base_url, place.model, number(Some(tokens))],
    )?;
    Ok(())
}

fn number(tokens: Option<usize>) -> Option<i64> {
    tokens.and_then(|tokens| i64::try_from(tokens).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    fn place() -> Place {
        Place { base_url: "http://h/v1".to_owned(), model: "m".to_owned() }
    }

    #[test]
    fn the_person_then_the_server_then_the_preset_but_a_refusal_is_true() {
        use WindowSource::{Learned, Preset, Server, Set};
        for (set, told, learned, expected) in [
            (None, None, None, (8_192, Preset)),
            (None, Some(4_096), None, (4_096, Server)),
            (None, Some(131_072), None, (131_072, Server)),
            (Some(32_768), Some(4_096), None, (32_768, Set)),
            (Some(32_768), None, Some(16_384), (16_384, Learned)),
            (None, Some(4_096), Some(6_000), (4_096, Server)),
            (None, None, Some(6_000), (6_000, Learned)),
        ] {
            let known = Known { place: place(), told, asked_at: None, learned };
            let Window { tokens, source } = Window::assumed(set, 8_192, Some(&known));
            assert_eq!((tokens, source), expected, "{set:?} {told:?} {learned:?}");
        }
    }

    #[test]
    fn a_window_as_people_write_it() {
        for (text, expected) in
            [("32768", Some(32_768)), (" 32,768 ", Some(32_768)), ("auto", None), ("AUTO", None)]
        {
            assert_eq!(typed(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "-1", "1023", "32k", "10000001", "99999999999999999999999"] {
            assert!(typed(text).unwrap_err().contains("1024"), "{text}");
        }
    }

    #[test]
    fn what_is_learned_is_kept_until_the_server_tells_something_else() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let checked = db.write_now(|tx| {
            let known = |tx: &Transaction<'_>| {
                let known = all(tx)?.remove(0);
                Ok::<_, DbError>((known.told, known.learned))
            };
            learned(tx, &place(), 6_000)?;
            asked(tx, &place(), None, at)?;
            assert_eq!(known(tx)?, (None, Some(6_000)));
            asked(tx, &place(), Some(8_192), at)?;
            assert_eq!(known(tx)?, (Some(8_192), None), "started anew");
            learned(tx, &place(), 6_000)?;
            asked(tx, &place(), Some(8_192), at)?;
            assert_eq!(known(tx)?, (Some(8_192), Some(6_000)), "the same as before");
            asked(tx, &place(), None, at)?;
            assert_eq!(known(tx)?, (Some(8_192), Some(6_000)), "silence takes nothing back");
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    #[test]
    fn a_server_is_asked_again_but_not_for_each_turn() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let known = |asked, told| Known { place: place(), told, asked_at: Some(asked), learned: None };
        assert!(is_due(None, false, at(0)));
        for (after, expected) in [(59, false), (60, true)] {
            assert_eq!(
                is_due(Some(&known(at(1_000), None)), true, at(1_000 + after)),
                expected,
                "untold, {after}"
            );
        }
        for (local, after, expected) in [
            (true, 599, false),
            (true, 600, true),
            (false, 600, false),
            (false, 86_400, true),
            (false, -1, true),
        ] {
            assert_eq!(
                is_due(Some(&known(at(1_000), Some(8_192))), local, at(1_000 + after)),
                expected,
                "{local} {after}"
            );
        }
    }
}
