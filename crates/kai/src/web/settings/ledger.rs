//! The Ledger page: the record of what was sent, which tools ran, and what the user tapped and clicked.

use std::ops::Range;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use kai_assistant::ledger::{self, Extent, Kept, Piece, Reach, Record, Wanted};
use kai_assistant::legible::visible;
use kai_assistant::settings::LEDGER_RETENTION_DAYS;
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::ephemeral::Checked;
use super::fields::{Field, field};
use super::form::Form;
use super::look::{Look, Place};
use super::parts::{Button, Region, button, fact};
use crate::commands::ledger as kept_ledger;
use crate::failure::Failure;
use crate::web::messages::{LEDGER_FILTERS, LEDGER_KINDS, WHO_SAW};
use crate::web::state::Web;
use crate::web::{icons, page};

/// Records per page.
const PAGE: usize = 25;
/// How many characters of a record's text the list shows.
const BRIEF: usize = 160;
/// How many characters of a request are shown with its record; all of it can be downloaded.
const LONG: usize = 20_000;

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/ledger/verify", post(verify)).route("/ledger/{seq}/bytes", get(bytes))
}

pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let app = &look.web.app;
    let opened = look.place.open("record").and_then(|seq| seq.parse().ok());
    let mut regions = vec![];
    if let Some(seq) = opened {
        regions.push(Region::card("record", "One record", one(look, seq).await?).testid("ledger-record"));
    }
    let (wanted, wrong) = wanted(look.place, &app.clock.zone());
    let before = look.place.says("before").parse().ok();
    let reach = Reach { found: PAGE, looked: kept_ledger::LOOK };
    let read = app
        .db
        .read(move |tx| Ok::<_, Failure>((ledger::piece(tx, &wanted, before, reach)?, ledger::extent(tx)?)));
    let (piece, extent) = read.await?;
    regions.push(Region::card("records", "Records", records(look, &piece, wrong)).testid("ledger-records"));
    regions.push(Region::card("ledger", "Is it whole?", whole(look, &extent)).testid("ledger-whole"));
    Ok(regions)
}

/// The kinds of records that both editions write, with their labels.
const KINDS: &[(&str, &str)] = &[
    ("request", "Requests to models"),
    ("tool_call", "Tool calls"),
    ("tool_result", "Results of tools"),
    ("click", "Clicks"),
];
const RESTORED: (&str, &str) = ("restored", "Restored copies you accepted");

/// The filter in the URL, and an error message if part of it is invalid.
fn wanted(place: &Place, zone: &TimeZone) -> (Wanted, Option<&'static str>) {
    let said = |name: &str| place.says(name).trim().to_owned();
    let (chat, day) = (said("conversation"), said("day"));
    let within = if day.is_empty() { None } else { day_in(&day, zone) };
    let conversation = chat.parse().ok();
    let wrong = match () {
        () if !day.is_empty() && within.is_none() => Some("A day looks like 2026-11-15."),
        () if !chat.is_empty() && conversation.is_none() => Some("A conversation has a number."),
        () => None,
    };
    let wanted = Wanted {
        kind: said("kind"),
        name: said("name"),
        conversation,
        within,
        text: said("text"),
        seen: said("who"),
    };
    (wanted, wrong)
}

/// A day from midnight to midnight in the user's time zone, in epoch milliseconds.
fn day_in(day: &str, zone: &TimeZone) -> Option<Range<i64>> {
    let day: Date = day.parse().ok()?;
    let begin = |day: Date| Some(day.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond());
    Some(begin(day)?..begin(day.tomorrow().ok()?)?)
}

fn records(look: &Look<'_>, piece: &Piece, wrong: Option<&str>) -> Markup {
    let filtered = FILTERS.iter().any(|name| !look.place.says(name).is_empty());
    let paged = !look.place.says("before").is_empty();
    html! {
        details open[filtered] {
            summary data-testid="ledger-filters" { (LEDGER_FILTERS) }
            (filters(look, filtered))
        }
        @if let Some(wrong) = wrong { p class="remark" { (wrong) } }
        @if piece.kept.is_empty() {
            p class="quiet" data-testid="ledger-none" {
                @if piece.further.is_some() { "Nothing was found so far." }
                @else if !look.place.says("who").is_empty() { "No request held it." }
                @else if filtered || paged { "Nothing was found." }
                @else { "Nothing has left, run or been clicked yet." }
            }
        }
        ol class="records" {
            @for kept in &piece.kept { (line(look, kept)) }
        }
        div class="choices" {
            @if paged { (to(&look.place.with("before", ""), "records", "ledger-newest", "To the newest")) }
            @if let Some(before) = piece.further {
                (to(&look.place.with("before", &before.to_string()), "records", "ledger-older", "Older ones"))
            }
        }
    }
}

/// A link that loads another page of the ledger. Reloading is fine here, as there is no typed text to lose.
fn to(href: &str, card: &str, testid: &str, label: &str) -> Markup {
    html! { a class="more" href=(format!("{href}#{card}")) data-testid=(testid) { (label) } }
}

/// The query parameters that filter the records.
const FILTERS: [&str; 6] = ["kind", "name", "conversation", "day", "text", "who"];

/// The filter form. It is submitted with GET and changes nothing, so it needs no CSRF token.
fn filters(look: &Look<'_>, filtered: bool) -> Markup {
    let said = |name: &str| look.place.says(name);
    let input = |name: &str, label: &str, kind: &str| {
        let id = format!("ledger-{name}");
        html! {
            div {
                label for=(id) { (label) }
                input type=(kind) id=(id) data-testid=(id) name=(name) value=(said(name)) autocomplete="off";
            }
        }
    };
    html! {
        form class="filters" method="get" action="/ledger" role="search" aria-label="Filter the ledger" {
            div {
                label for="ledger-kind" { "What" }
                select id="ledger-kind" data-testid="ledger-kind" name="kind" {
                    option value="" selected[said("kind").is_empty()] { "Everything" }
                    @for (kind, label) in KINDS.iter().chain(LEDGER_KINDS).chain([&RESTORED]) { option value=(kind) selected[said("kind") == *kind] { (label) } }
                }
            }
            (input("name", "Tool or model", "text"))
            (input("conversation", "Conversation", "text"))
            (input("day", "Day", "date"))
            (input("text", "Words in it", "text"))
            @if let Some(label) = WHO_SAW { (input("who", label, "text")) }
            div class="choices" {
                button type="submit" data-testid="ledger-filter" { "Show" }
                @if filtered { a class="more" href="/ledger" data-testid="ledger-all" { "Show everything" } }
            }
        }
    }
}

/// One record in the list; its number links to the whole record.
fn line(look: &Look<'_>, kept: &Kept) -> Markup {
    let seq = kept.seq.to_string();
    let (icon, said, more) = words(&kept.record, look.lang);
    let open = look.place.opening("record", Some(&seq));
    html! {
        li class="record" data-testid="ledger-line" data-kind=(kept.record.kind()) {
            (icon)
            div {
                p { (visible(&said)) }
                @if let Some(more) = more { p class="quiet brief" { (visible(&brief(&more))) } }
                p class="quiet" {
                    (look.times.moment(kept.at.as_millisecond()))
                    @if let Some(chat) = kept.record.conversation() { " · " a href=(format!("/c/{chat}")) { "conversation " (chat) } }
                    " · " a href=(format!("{open}#record")) data-testid="ledger-open" { "record " (seq) }
                }
            }
        }
    }
}

fn brief(text: &str) -> String {
    let mut shown: String = text.chars().take(BRIEF).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A record's icon, what happened in words, and the arguments if there are any.
fn words(record: &Record, lang: Lang) -> (Markup, String, Option<String>) {
    let tool = |name: &str| lang.tool_name(name);
    match record {
        Record::Request { model, bytes, seen, .. } => {
            let held = match seen.len() {
                0 => String::new(),
                1 => ", with 1 message in it".to_owned(),
                n => format!(", with {n} messages in it"),
            };
            (icons::outward(), format!("{bytes} bytes went to {model}{held}"), None)
        }
        Record::ToolCall { tool: name, arguments, by_hand, .. } => {
            let who = if *by_hand { "You" } else { "The model" };
            (icons::build(), format!("{who} called {}", tool(name)), Some(arguments.clone()))
        }
        Record::ToolResult { tool: name, success, result_chars, .. } => {
            let came = if *success { "brought" } else { "failed with" };
            (icons::build(), format!("{} {came} {result_chars} characters", tool(name)), None)
        }
        Record::Click { tool: name, arguments, allowed, unanswered, .. } => {
            let said = match (allowed, unanswered) {
                (true, _) => "You allowed",
                (false, true) => "Nobody was there to allow",
                (false, false) => "You did not allow",
            };
            (icons::tap(), format!("{said} {}", tool(name)), Some(arguments.clone()))
        }
        Record::Codes { shown, .. } => {
            let what = if *shown { "showed" } else { "hid" };
            (icons::shield(), format!("You {what} one-time codes"), None)
        }
        Record::Draft { draft, channel, to, .. } => {
            (icons::copy(), format!("Draft {draft} was made for {to} ({channel})"), None)
        }
        Record::Tap { draft, .. } => (icons::tap(), format!("You tapped Send on draft {draft}"), None),
        Record::Sent { draft, outcome } => (icons::send(), format!("Draft {draft}: {outcome}"), None),
        Record::Discarded { draft, status } => {
            (icons::bin(), format!("You took draft {draft} away ({status})"), None)
        }
        Record::Restored { last, .. } => {
            (icons::shield(), format!("You accepted a restored copy that ended at record {last}"), None)
        }
    }
}

/// One record with all its fields; for a request also the bytes that were sent.
async fn one(look: &Look<'_>, seq: i64) -> Result<Markup, Failure> {
    let app = &look.web.app;
    let close = to(&look.place.opening("record", None), "records", "ledger-close", "Close");
    let Some(kept) = app.db.read(move |tx| ledger::one(tx, seq)).await? else {
        return Ok(html! { p { "There is no record " (seq) ". It may have been let go." } (close) });
    };
    let sent = match &kept.record {
        Record::Request { .. } => Some(kept_ledger::bytes(app, seq).await?),
        _ => None,
    };
    let at = kept.at.to_zoned(app.clock.zone()).strftime("%Y-%m-%d %H:%M:%S%:z").to_string();
    Ok(html! {
        p { (visible(&words(&kept.record, look.lang).1)) "." }
        dl class="facts" {
            (fact("Record", &seq.to_string()))
            (fact("When", &at))
            @for (name, value) in facts(&kept.record) { (fact(&name, &visible(&value))) }
        }
        @if let Some(sent) = &sent { (as_it_left(seq, sent)) }
        (close)
    })
}

/// A record's fields as they are stored. Leaves out chunk names, which mean nothing to people, and the conversation if
/// there is none.
fn facts(record: &Record) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(record) else { return vec![] };
    let plain = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        serde_json::Value::Array(items) => {
            let text = |item: serde_json::Value| item.as_str().map(str::to_owned).unwrap_or_default();
            items.into_iter().map(text).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    };
    let nowhere = record.conversation().is_none();
    let told =
        fields.into_iter().filter(|(name, _)| name != "chunks" && !(nowhere && name == "conversation"));
    told.map(|(name, value)| (named(&name), plain(value))).collect()
}

/// A field's name as people read it: `result_chars` becomes "Result chars".
fn named(field: &str) -> String {
    let mut letters = field.chars().map(|c| if c == '_' { ' ' } else { c });
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The bytes of a request, shortened, with a link to download all of them.
fn as_it_left(seq: i64, sent: &str) -> Markup {
    let shown: String = sent.chars().take(LONG).collect();
    html! {
        h3 { "Exactly what left" }
        pre data-testid="ledger-bytes" tabindex="0" aria-label="Exactly what left" { (visible(&shown)) }
        @if shown.len() < sent.len() { p class="quiet" { "This is the beginning of " (sent.len()) " bytes." } }
        a class="more" href=(format!("/ledger/{seq}/bytes")) data-testid="ledger-whole-bytes" { "All of it, as a file" }
    }
}

async fn bytes(State(web): State<Web>, Path(seq): Path<i64>) -> Response {
    match kept_ledger::bytes(&web.app, seq).await {
        Ok(text) => {
            let kind = (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned());
            let name =
                (header::CONTENT_DISPOSITION, format!("attachment; filename=\"kai-request-{seq}.txt\""));
            ([kind, name], text).into_response()
        }
        Err(failure) => {
            page::notice_back(StatusCode::NOT_FOUND, said::frame_not_found(), failure.message, "/ledger")
        }
    }
}

/// How many records there are, and whether the chain of hashes is intact.
fn whole(look: &Look<'_>, extent: &Extent) -> Markup {
    let checked = look.web.ephemeral.checked();
    html! {
        p {
            (extent.records) @if extent.records == 1 { " record" } @else { " records" }
            @if let Some(since) = extent.since { ", since " (look.times.moment(since)) } ". "
            "Each is sealed by a hash over all before it."
        }
        @if let Some(last) = extent.checkpoint {
            p class="quiet" data-testid="ledger-checkpoint" {
                "Records up to " (last) " were let go because of their age; the chain begins at a checkpoint after them."
            }
        }
        @match &checked {
            Some(Checked::Checking) => p data-testid="ledger-checked" { span class="pulse" {} " Reading every record …" },
            Some(Checked::Failed(why)) => p class="error" data-testid="ledger-checked" { (why.to(look.lang)) },
            Some(Checked::At(at, check)) if check.whole => p data-testid="ledger-checked" {
                "All " (check.records) " records were what they were, " (look.times.moment(at.as_millisecond())) "."
                @if let Some(why) = &check.note_unread { " " (why) }
            },
            Some(Checked::At(_, check)) if check.rolled_back => p class="error" data-testid="ledger-checked" {
                "The ledger is not complete: " (check.what.as_deref().unwrap_or_default()) ". "
                (crate::commands::noted::NEXT)
            },
            Some(Checked::At(_, check)) => p class="error" data-testid="ledger-checked" {
                "It is not what it was. At record " (check.broken_at.unwrap_or_default()) ": "
                (check.what.as_deref().unwrap_or_default()) "."
            },
            None => {}
        }
        (button(look, "ledger", "/ledger/verify", &Button {
            label: "Check every record", testid: "ledger-verify", class: "", fields: &[],
        }))
        (field(look, "ledger", &Field {
            setting: &LEDGER_RETENTION_DAYS, label: "Days that records are kept", testid: "ledger-retention",
        }))
    }
}

/// Starts a check of every record, unless one is running already.
async fn verify(form: Form) -> Response {
    let web = form.web.clone();
    let checking = async move {
        if !web.ephemeral.begin_check() {
            return Ok(());
        }
        web.turns.move_on();
        let done = match kept_ledger::check(&web.app).await {
            Ok(check) => Checked::At(web.app.clock.now(), check),
            Err(error) => Checked::Failed(error.to_string().into()),
        };
        web.ephemeral.end_check(done);
        web.turns.move_on();
        Ok(())
    };
    let begun = form.start(checking).await;
    form.answer(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_from_midnight_to_midnight_there() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let hours = |day: &str| day_in(day, &berlin).map(|span| (span.end - span.start) / 3_600_000);
        for (day, expected) in [
            ("2026-11-15", Some(24)),
            ("2026-10-25", Some(25)),
            ("2026-03-29", Some(23)),
            ("2026-02-30", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(hours(day), expected, "{day}");
        }
    }

    #[test]
    fn a_record_tells_its_fields_but_no_names_of_chunks() {
        let (chunks, seen) = (vec!["abc".to_owned()], vec!["sms 4".to_owned(), "n".to_owned()]);
        let request = Record::Request { conversation: 3, model: "mine".to_owned(), bytes: 9, chunks, seen };
        let told: Vec<String> =
            facts(&request).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["Bytes=9", "Conversation=3", "Model=mine", "Seen=sms 4; n", "What=request"]);
    }
}
