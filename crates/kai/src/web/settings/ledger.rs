//! The Ledger page: the record of what was sent, which tools ran, and what the user tapped and clicked.

use std::ops::Range;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use kai_assistant::ledger::{self, Extent, GuestEvent, Kept, PhoneEvent, Piece, Reach, Record, Wanted};
use kai_assistant::legible::visible;
use kai_assistant::settings::LEDGER_RETENTION_DAYS;
use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::context::{PageContext, Place};
use super::ephemeral::Checked;
use super::fields::{Field, field};
use super::form::Form;
use super::parts::{Button, Region, TIME, button, dated, fact, naming};
use crate::call::ledger::LedgerCheck;
use crate::commands::ledger as kept_ledger;
use crate::failure::Failure;
use crate::web::messages::{LEDGER_KINDS, Label};
use crate::web::rich::rich;
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

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let app = &ctx.web.app;
    let opened = ctx.place.open("record").and_then(|seq| seq.parse().ok());
    let mut regions = vec![];
    if let Some(seq) = opened {
        regions.push(
            Region::card("record", ctx.lang.ledger_record_label(), one(ctx, seq).await?)
                .testid("ledger-record"),
        );
    }
    let (wanted, wrong) = wanted(ctx.place, &app.clock.zone());
    let before = ctx.place.says("before").parse().ok();
    let reach = Reach { found: PAGE, looked: kept_ledger::LOOK };
    let read = app
        .db
        .read(move |tx| Ok::<_, Failure>((ledger::piece(tx, &wanted, before, reach)?, ledger::extent(tx)?)));
    let (piece, extent) = read.await?;
    regions.push(
        Region::card("records", ctx.lang.ledger_records(), records(ctx, &piece, wrong))
            .testid("ledger-records"),
    );
    regions
        .push(Region::card("ledger", ctx.lang.ledger_intact(), whole(ctx, &extent)).testid("ledger-whole"));
    Ok(regions)
}

/// The kinds of records that both editions write, with their labels.
const KINDS: &[(&str, Label)] = &[
    ("request", Lang::ledger_kind_request),
    ("codes", Lang::ledger_kind_codes),
    ("draft", Lang::ledger_kind_draft),
    ("tap", Lang::ledger_kind_tap),
    ("sent", Lang::ledger_kind_sent),
    ("edited", Lang::ledger_kind_edited),
    ("discarded", Lang::ledger_kind_discarded),
    ("undiscarded", Lang::ledger_kind_undiscarded),
    ("tool_call", Lang::ledger_kind_tool_call),
    ("tool_result", Lang::ledger_kind_tool_result),
    ("click", Lang::ledger_kind_click),
    ("guest_call", Lang::ledger_kind_guest_call),
    ("guest", Lang::ledger_kind_guest),
];
const RESTORED: (&str, Label) = ("restored", Lang::ledger_kind_restored);

/// All kinds of records with their labels, in the order in which the filter lists them.
fn kinds() -> impl Iterator<Item = (&'static str, Label)> {
    KINDS.iter().chain(LEDGER_KINDS).copied().chain([RESTORED])
}

/// The filter in the URL, and an error message if part of it is invalid.
fn wanted(place: &Place, zone: &TimeZone) -> (Wanted, Option<Said>) {
    let said = |name: &str| place.says(name).trim().to_owned();
    let (chat, day) = (said("conversation"), said("day"));
    let within = if day.is_empty() { None } else { day_in(&day, zone) };
    let conversation = chat.parse().ok();
    let wrong = match () {
        () if !day.is_empty() && within.is_none() => Some(said::ledger_day_wrong()),
        () if !chat.is_empty() && conversation.is_none() => Some(said::ledger_not_a_chat()),
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

fn records(ctx: &PageContext<'_>, piece: &Piece, wrong: Option<Said>) -> Markup {
    let filtered = FILTERS.iter().any(|name| !ctx.place.says(name).is_empty());
    let paged = !ctx.place.says("before").is_empty();
    html! {
        details open[filtered] {
            summary data-testid="ledger-filters" { (ctx.lang.ledger_filter_or_ask()) }
            (filters(ctx, filtered))
        }
        @if let Some(wrong) = wrong { p class="remark" { (wrong.to(ctx.lang)) } }
        @if piece.kept.is_empty() {
            p class="quiet" data-testid="ledger-none" {
                @if piece.further.is_some() { (ctx.lang.ledger_none_found_yet()) }
                @else if !ctx.place.says("who").is_empty() { (ctx.lang.ledger_none_saw()) }
                @else if filtered || paged { (ctx.lang.ledger_none_found()) }
                @else { (ctx.lang.ledger_none()) }
            }
        }
        ol class="records" {
            @for kept in &piece.kept { (line(ctx, kept)) }
        }
        div class="choices" {
            @if paged { (to(&ctx.place.with("before", ""), "records", "ledger-newest", ctx.lang.ledger_newest())) }
            @if let Some(before) = piece.further {
                (to(&ctx.place.with("before", &before.to_string()), "records", "ledger-older", ctx.lang.ledger_older()))
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
fn filters(ctx: &PageContext<'_>, filtered: bool) -> Markup {
    let lang = ctx.lang;
    let said = |name: &str| ctx.place.says(name);
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
        form class="filters" method="get" action="/ledger" role="search" aria-label=(lang.ledger_filter_label()) {
            div {
                label for="ledger-kind" { (lang.ledger_kind()) }
                select id="ledger-kind" data-testid="ledger-kind" name="kind" {
                    option value="" selected[said("kind").is_empty()] { (lang.ledger_everything()) }
                    @for (kind, label) in kinds() { option value=(kind) selected[said("kind") == kind] { (label(lang)) } }
                }
            }
            (input("name", lang.ledger_filter_name(), "text"))
            (input("conversation", lang.ledger_filter_chat(), "text"))
            (input("day", lang.ledger_day(), "date"))
            (input("text", lang.ledger_filter_text(), "text"))
            (input("who", lang.ledger_who_saw(), "text"))
            div class="choices" {
                button type="submit" data-testid="ledger-filter" { (lang.ledger_show()) }
                @if filtered { a class="more" href="/ledger" data-testid="ledger-all" { (lang.ledger_show_all()) } }
            }
        }
    }
}

/// One record in the list; its number links to the whole record.
fn line(ctx: &PageContext<'_>, kept: &Kept) -> Markup {
    let seq = kept.seq.to_string();
    let (icon, said, more) = words(&kept.record, ctx.lang);
    let open = ctx.place.opening("record", Some(&seq));
    html! {
        li class="record" data-testid="ledger-line" data-kind=(kept.record.kind()) {
            (icon)
            div {
                p { (naming(ctx, &said)) }
                @if let Some(more) = more { p class="quiet brief" dir="auto" { (visible(&brief(more))) } }
                p class="quiet" {
                    (ctx.times.moment(kept.at.as_millisecond()))
                    @if let Some(chat) = kept.record.conversation() { " · " a href=(format!("/c/{chat}")) { (ctx.lang.ledger_chat(chat)) } }
                    " · " a href=(format!("{open}#record")) data-testid="ledger-open" { (ctx.lang.ledger_record(&seq)) }
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

/// What a request sent.
fn sent(model: &str, bytes: usize, messages: usize, files: usize) -> Said {
    let sent = match messages {
        0 => said::ledger_sent(bytes, model),
        held => said::ledger_sent_with(bytes, model, held),
    };
    if files == 0 { sent } else { said::ledger_sent_files(sent, files) }
}

/// A record's icon, what happened in words, and the arguments if there are any.
fn words(record: &Record, lang: Lang) -> (Markup, Said, Option<&str>) {
    match record {
        Record::Request { model, bytes, seen, files, here, .. } => {
            let sent = sent(model, *bytes, seen.len(), files.len());
            if *here {
                (icons::shield(), said::ledger_stayed_here(sent), None)
            } else {
                (icons::outward(), sent, None)
            }
        }
        Record::ToolCall { tool, arguments, by_hand, .. } => {
            let tool = lang.tool_name(tool);
            let called = if *by_hand { said::ledger_called_by_you(tool) } else { said::ledger_called(tool) };
            (icons::build(), called, Some(arguments))
        }
        Record::ToolResult { tool, success: true, result_chars, .. } => {
            (icons::build(), said::ledger_returned(lang.tool_name(tool), *result_chars), None)
        }
        Record::ToolResult { tool, result_chars, .. } => {
            (icons::build(), said::ledger_failed(lang.tool_name(tool), *result_chars), None)
        }
        Record::McpCall { server, tool, bytes, by_hand, .. } => {
            (icons::outward(), called_at_server(foreign_name(tool), server, *bytes, *by_hand), None)
        }
        Record::McpResult { server, tool, success, bytes, .. } => {
            (icons::build(), ended_at_server(foreign_name(tool), server, *bytes, *success), None)
        }
        Record::Click { tool, arguments, allowed, unanswered, .. } => {
            (icons::tap(), clicked(lang.tool_name(tool), *allowed, *unanswered), Some(arguments))
        }
        Record::Codes { shown: true, .. } => (icons::shield(), said::ledger_codes_shown(), None),
        Record::Codes { .. } => (icons::shield(), said::ledger_codes_hidden(), None),
        Record::Draft { draft, to, app: None, guest: Some(guest), .. } => {
            (icons::copy(), said::ledger_drafted_guest(guest, draft, to), None)
        }
        Record::Draft { draft, to, app: Some(app), guest: Some(guest), .. } => {
            (icons::copy(), said::ledger_drafted_guest_reply(guest, draft, to, app), None)
        }
        Record::Draft { draft, to, app: None, .. } => (icons::copy(), said::ledger_drafted(draft, to), None),
        Record::Draft { draft, to, app: Some(app), .. } => {
            (icons::copy(), said::ledger_drafted_reply(draft, to, app), None)
        }
        Record::Tap { draft, on_phone: false, .. } => (icons::tap(), said::ledger_tapped(draft), None),
        Record::Tap { draft, .. } => (icons::tap(), said::ledger_opened(draft), None),
        Record::Sent { draft, outcome } => (icons::send(), became(*draft, outcome), None),
        Record::Edited { draft, to, .. } => (icons::pen(), said::ledger_edited(draft, to), None),
        Record::Discarded { draft, .. } => (icons::bin(), said::ledger_discarded(draft), None),
        Record::Undiscarded { draft } => (icons::bin(), said::ledger_undiscarded(draft), None),
        Record::Restored { last, .. } => (icons::shield(), said::ledger_restored(last), None),
        Record::Phone { name, event, .. } => (icons::shield(), with_phone(name, *event), None),
        Record::GuestCall { guest, tool, success: true, result_chars, .. } => {
            (icons::outward(), said::ledger_guest_called(guest, lang.tool_name(tool), *result_chars), None)
        }
        Record::GuestCall { guest, tool, .. } => {
            (icons::outward(), said::ledger_guest_failed(guest, lang.tool_name(tool)), None)
        }
        Record::Guest { guest, event } => (icons::shield(), about_guest(guest, *event), None),
    }
}

/// The name that an MCP server uses for its tool.
fn foreign_name(tool: &str) -> &str {
    kai_words::foreign(tool).map_or(tool, |(_, name)| name)
}

/// A call of a tool of an MCP server.
fn called_at_server(tool: &str, server: &str, bytes: usize, by_hand: bool) -> Said {
    if by_hand {
        said::ledger_mcp_called_by_you(tool, server, bytes)
    } else {
        said::ledger_mcp_called(tool, server, bytes)
    }
}

/// What came of such a call.
fn ended_at_server(tool: &str, server: &str, bytes: usize, success: bool) -> Said {
    if success {
        said::ledger_mcp_returned(tool, server, bytes)
    } else {
        said::ledger_mcp_failed(tool, server, bytes)
    }
}

/// What the user answered when Kai asked about a call.
fn clicked(tool: String, allowed: bool, unanswered: bool) -> Said {
    match (allowed, unanswered) {
        (true, _) => said::ledger_allowed(tool),
        (false, true) => said::ledger_unanswered(tool),
        (false, false) => said::ledger_denied(tool),
    }
}

/// What the user decided about a program that asks Kai.
fn about_guest(guest: &str, event: GuestEvent) -> Said {
    match event {
        GuestEvent::Allowed => said::ledger_guest_allowed(guest),
        GuestEvent::Blocked => said::ledger_guest_blocked(guest),
        GuestEvent::Forgotten => said::ledger_guest_forgotten(guest),
        GuestEvent::Token => said::ledger_guest_token(guest),
    }
}

/// What happened with a paired phone.
fn with_phone(name: &str, event: PhoneEvent) -> Said {
    match event {
        PhoneEvent::Paired => said::ledger_phone_paired(name),
        PhoneEvent::Unpaired => said::ledger_phone_unpaired(name),
        PhoneEvent::UnpairedByPhone => said::ledger_phone_left(name),
        PhoneEvent::WrongCertificate => said::ledger_phone_certificate(name),
        PhoneEvent::OlderProtocol => said::ledger_phone_older(name),
    }
}

/// What became of a draft after a tap.
fn became(draft: i64, outcome: &str) -> Said {
    match outcome {
        "SENT" => said::ledger_sent_draft(draft),
        "FAILED" => said::ledger_sent_failed(draft),
        _ => said::ledger_sent_unknown(draft),
    }
}

/// One record with all its fields; for a request also the bytes that were sent.
async fn one(ctx: &PageContext<'_>, seq: i64) -> Result<Markup, Failure> {
    let app = &ctx.web.app;
    let close = to(&ctx.place.opening("record", None), "records", "ledger-close", ctx.lang.ledger_close());
    let Some(kept) = app.db.read(move |tx| ledger::one(tx, seq)).await? else {
        return Ok(html! { p { (ctx.lang.ledger_no_record(seq)) } (close) });
    };
    let sent = match &kept.record {
        Record::Request { .. } => Some(kept_ledger::bytes(app, seq).await?),
        _ => None,
    };
    let at = kept.at.to_zoned(app.clock.zone()).strftime("%Y-%m-%d %H:%M:%S%:z").to_string();
    Ok(html! {
        p { (naming(ctx, &words(&kept.record, ctx.lang).1)) "." }
        dl class="facts" {
            (fact(ctx.lang.ledger_record_label(), &seq.to_string()))
            (fact(ctx.lang.ledger_when(), &at))
            @for (name, value) in facts(&kept.record, ctx.lang) { (fact(&name, &visible(&value))) }
        }
        @if let Some(sent) = &sent { (as_it_left(ctx.lang, seq, sent)) }
        (close)
    })
}

/// A record's fields. Leaves out chunk names, which mean nothing to people, and the conversation if
/// there is none.
fn facts(record: &Record, lang: Lang) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(record) else { return vec![] };
    let plain = |name: &str, value: serde_json::Value| match value {
        serde_json::Value::String(kind) if name == "what" => {
            kinds().find(|(known, _)| *known == kind).map_or(kind, |(_, label)| label(lang).to_owned())
        }
        serde_json::Value::String(status) if matches!(name, "status" | "outcome") => became_of(&status, lang),
        serde_json::Value::String(text) => text,
        serde_json::Value::Number(count) if matches!(name, "bytes" | "result_chars" | "argument_chars") => {
            lang.number(count.as_u64().unwrap_or_default())
        }
        serde_json::Value::Bool(true) => lang.ledger_yes().to_owned(),
        serde_json::Value::Bool(false) => lang.ledger_no().to_owned(),
        serde_json::Value::Array(items) => {
            let text = |item: serde_json::Value| match (item.as_str(), &item["hash"], &item["bytes"]) {
                (None, serde_json::Value::String(hash), bytes) => {
                    format!("{hash} ({})", lang.attach_size_bytes(bytes.as_u64().unwrap_or_default()))
                }
                (text, ..) => text.unwrap_or_default().to_owned(),
            };
            items.into_iter().map(text).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    };
    let nowhere = record.conversation().is_none();
    let told =
        fields.into_iter().filter(|(name, _)| name != "chunks" && !(nowhere && name == "conversation"));
    told.map(|(name, value)| (named(&name, lang), plain(&name, value))).collect()
}

/// A draft's status as people read it.
fn became_of(status: &str, lang: Lang) -> String {
    let known = match status {
        "PENDING" => lang.ledger_status_pending(),
        "SENDING" => lang.ledger_status_sending(),
        "SENT" => lang.ledger_status_sent(),
        "FAILED" => lang.ledger_status_failed(),
        "UNKNOWN" => lang.ledger_status_unknown(),
        other => other,
    };
    known.to_owned()
}

/// A field's name as people read it.
fn named(field: &str, lang: Lang) -> String {
    lang.find(&format!("ledger_field_{field}")).unwrap_or(field).to_owned()
}

/// The bytes of a request, shortened, with a link to download all of them.
fn as_it_left(lang: Lang, seq: i64, sent: &str) -> Markup {
    let shown: String = sent.chars().take(LONG).collect();
    html! {
        h3 { (lang.ledger_bytes()) }
        pre data-testid="ledger-bytes" tabindex="0" dir="auto" aria-label=(lang.ledger_bytes()) { (visible(&shown)) }
        @if shown.len() < sent.len() { p class="quiet" { (lang.ledger_bytes_cut(sent.len())) } }
        a class="more" href=(format!("/ledger/{seq}/bytes")) data-testid="ledger-whole-bytes" { (lang.ledger_bytes_all()) }
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
fn whole(ctx: &PageContext<'_>, extent: &Extent) -> Markup {
    let lang = ctx.lang;
    html! {
        p {
            @match extent.since {
                Some(since) => (dated(ctx, &said::ledger_count_since(extent.records, TIME), since)),
                None => (lang.ledger_count(extent.records)),
            }
        }
        p class="quiet" { (lang.ledger_intact_help()) }
        @if let Some(last) = extent.checkpoint {
            p class="quiet" data-testid="ledger-checkpoint" { (lang.ledger_checkpoint(last)) }
        }
        @if let Some(checked) = ctx.web.ephemeral.checked() { (found(ctx, &checked)) }
        (button(ctx, "ledger", "/ledger/verify", &Button {
            label: lang.ledger_verify(), testid: "ledger-verify", class: "", fields: &[],
        }))
        (field(ctx, "ledger", &Field {
            setting: &LEDGER_RETENTION_DAYS,
            label: lang.ledger_retention(),
            help: lang.ledger_retention_help(),
            testid: "ledger-retention",
        }))
    }
}

/// What a check found.
fn found(ctx: &PageContext<'_>, checked: &Checked) -> Markup {
    let lang = ctx.lang;
    let what = |check: &LedgerCheck| check.what.clone().unwrap_or_default();
    let class = match checked {
        Checked::Checking => None,
        Checked::At(_, check) if check.whole => None,
        Checked::At(..) | Checked::Failed(_) => Some("error"),
    };
    html! {
        p class=[class] data-testid="ledger-checked" {
            @match checked {
                Checked::Checking => { span class="pulse" {} " " (lang.ledger_checking()) }
                Checked::Failed(why) => (why.to(lang)),
                Checked::At(at, check) if check.whole => {
                    (lang.ledger_verified(check.records))
                    span class="quiet" { " (" (ctx.times.moment(at.as_millisecond())) ")" }
                    @if let Some(why) = &check.note_unread { " " (lang.ledger_note_unread(why)) }
                }
                Checked::At(_, check) if check.rolled_back => {
                    (lang.ledger_incomplete(what(check))) " "
                    (rich(&said::ledger_incomplete_next("kai ledger accept"), lang, |command| html! { code { (command) } }))
                }
                Checked::At(_, check) => (lang.ledger_broken(check.broken_at.unwrap_or_default(), what(check))),
            }
        }
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
            Err(error) => Checked::Failed(error.said()),
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
        let request = Record::Request {
            conversation: 3,
            model: "mine".to_owned(),
            bytes: 9,
            chunks,
            seen,
            files: vec![],
            here: true,
        };
        let told: Vec<String> = facts(&request, Lang::ENGLISH)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            told,
            [
                "Bytes=9",
                "Chat=3",
                "Stayed here=Yes",
                "Model=mine",
                "Messages included=sms 4; n",
                "Kind=Requests to models"
            ]
        );
    }
}
