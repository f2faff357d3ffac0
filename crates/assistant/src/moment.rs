//! Parses times as a model writes them, and formats times for people and scripts. Pure.

use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kai_words::{Said, said};

/// The years that are accepted as plausible.
const YEARS: std::ops::RangeInclusive<i16> = 1970..=2199;

/// Formats a time as local time with its offset, such as `2026-03-09T15:00:00+01:00`.
pub fn local(at: Timestamp, zone: &TimeZone) -> String {
    stamp(&at.to_zoned(zone.clone()))
}

/// Like [`local`], for a time that has its zone.
pub fn stamp(at: &Zoned) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Parses a time. One without an offset or a time zone is local time in `zone`. `name` is the field's name in error
/// messages.
pub fn moment(name: &str, typed: &str, zone: &TimeZone) -> Result<Timestamp, Said> {
    let pieces = pieces(name, typed)?;
    let Some(time) = pieces.time() else {
        return Err(said::moment_no_time(name));
    };
    let local = pieces.date().to_datetime(time);
    let named = pieces.to_time_zone().map_err(|_| said::moment_no_zone(name))?;
    let found = match (pieces.to_numeric_offset(), named) {
        (Some(offset), _) => offset.to_timestamp(local),
        // A time that a clock change skips is moved forward by the length of the change; of a time that occurs twice,
        // the first is used.
        (None, Some(named)) => named.to_timestamp(local),
        (None, None) => zone.to_timestamp(local),
    };
    found.map_err(|_| too_far(name))
}

/// Parses a date, with or without a time, in a plausible year.
pub fn pieces<'a>(name: &str, typed: &'a str) -> Result<Pieces<'a>, Said> {
    let pieces = Pieces::parse(typed.trim()).map_err(|_| said::moment_unclear(name))?;
    if YEARS.contains(&pieces.date().year()) { Ok(pieces) } else { Err(too_far(name)) }
}

pub fn too_far(name: &str) -> Said {
    said::moment_too_far(name, YEARS.start(), YEARS.end())
}
