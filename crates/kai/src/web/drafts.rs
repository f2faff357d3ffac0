//! The review banner: every draft with its full text and the buttons for its state. A tap sends the digest of what was
//! shown, so that it can only approve that text. All but the first are folded to one line.

mod edit;
mod mail;
mod undo;

use std::sync::LazyLock;
use std::time::Duration;

use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Form, Router};
use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::legible::{self, visible};
use kai_assistant::outbox::discarded::Discarded;
use kai_assistant::outbox::door::Refused;
use kai_assistant::outbox::{DraftId, DraftOrigin, DraftState, ReplyTo};
use kai_assistant::untrusted::Untrusted;
use kai_words::{Lang, Part, Said, said};
use maud::{Markup, html};
use serde::Deserialize;

use super::remedy::{Remedy, Trouble};
use super::rich::rich;
use super::state::Web;
use super::times::Times;
use super::{assets, icons, reply};
use crate::app::App;
use crate::call::drafts::{Button, DraftPhone, DraftRow, TapCall};
use crate::commands::drafts as kept;

const SCRIPT: &str = include_str!("assets/drafts.js");
/// The URL path of the script for drafts; only pages that can show drafts load it.
static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| assets::named("drafts", SCRIPT, "js"));

/// The drafts that a page shows.
pub(super) struct Drafts {
    rows: Vec<DraftRow>,
    /// What was discarded a moment ago.
    discarded: Vec<Discarded>,
    /// Has the phone denied Kai the permission to send?
    denied: bool,
}

/// How long they can be shown like this although nothing changes.
pub(super) fn stale_in(drafts: &Drafts, now: Timestamp) -> Option<Duration> {
    undo::stale_in(&drafts.discarded, now)
}

pub(super) async fn stored(app: &App) -> Result<Drafts, DbError> {
    let (rows, discarded) = (kept::list(app).await?, kept::recent(app).await?);
    Ok(Drafts { rows, discarded, denied: kept::phones::sending_denied(app) })
}

/// Which drafts the address of the page asks to see in another way.
pub(super) struct Asked {
    /// The long one to show unfolded, for browsers without a script.
    whole: Option<i64>,
    /// The one to edit.
    edit: Option<i64>,
}

impl Asked {
    pub(super) fn new(whole: Option<i64>, edit: Option<i64>) -> Self {
        Self { whole, edit }
    }
}

pub(super) fn routes() -> Router<Web> {
    let script = get(async || assets::cached(SCRIPT, "text/javascript; charset=utf-8"));
    Router::new()
        .route("/drafts/{id}/tap", post(tap))
        .route("/drafts/{id}/edit", post(edit::save))
        .route("/drafts/{id}/discard", post(discard))
        .route("/drafts/discard", post(undo::discard))
        .route("/drafts/restore", post(undo::restore))
        .route(&SCRIPT_PATH, script)
}

/// The script tag for `drafts.js`.
pub(super) fn script() -> Markup {
    html! { script src=(*SCRIPT_PATH) defer {} }
}

/// Renders all drafts: the first one that was not sent whole, then one line for the others, then those.
pub(super) fn banner(drafts: &Drafts, csrf: &str, times: &Times, asked: &Asked) -> Markup {
    let lang = times.lang;
    let unsent: Vec<DraftId> = drafts.rows.iter().filter(|row| !is_sent(row)).map(|row| row.id).collect();
    let first = unsent.first().copied();
    html! {
        @if !drafts.rows.is_empty() || !drafts.discarded.is_empty() {
            section class="drafts" aria-label=(lang.drafts_label()) data-unread=(lang.drafts_read_first()) {
                @for discarded in &drafts.discarded { (undo::bar(discarded, csrf, lang)) }
                @for draft in &drafts.rows {
                    (card(draft, csrf, times, drafts.denied, &Shape::of(draft, first, asked)))
                    @if first == Some(draft.id) && unsent.len() > 1 { (stack(drafts, unsent.len() - 1, csrf, lang)) }
                }
            }
        }
    }
}

/// Whether this draft is among them and was not sent.
pub(super) fn has_waiting(drafts: &Drafts, id: i64) -> bool {
    drafts.rows.iter().any(|row| row.id.0 == id && !is_sent(row))
}

fn is_sent(draft: &DraftRow) -> bool {
    draft.status == DraftState::Sent
}

/// The line that stands for all drafts but the first. The script folds them, and remembers it.
fn stack(drafts: &Drafts, more: usize, csrf: &str, lang: Lang) -> Markup {
    let ids: Vec<DraftId> = drafts.rows.iter().filter(|row| row.is_discardable()).map(|row| row.id).collect();
    html! {
        div class="stack" id="drafts-stack" {
            button type="button" class="small js-only" id="drafts-more" aria-expanded="false" data-testid="draft-count" {
                (lang.drafts_more(more))
            }
            @if ids.len() > 1 { (undo::discard_all(&ids, csrf, lang)) }
        }
    }
}

/// How one draft is shown.
struct Shape {
    /// It is folded away with others.
    later: bool,
    /// A long text is shown whole.
    unfolded: bool,
    edited: bool,
}

impl Shape {
    fn of(draft: &DraftRow, first: Option<DraftId>, asked: &Asked) -> Self {
        Self {
            later: !is_sent(draft) && first != Some(draft.id),
            unfolded: asked.whole == Some(draft.id.0),
            edited: asked.edit == Some(draft.id.0) && draft.is_editable(),
        }
    }
}

fn card(draft: &DraftRow, csrf: &str, times: &Times, denied: bool, shape: &Shape) -> Markup {
    let (id, lang) = (draft.id.0, times.lang);
    html! {
        article.card.draft.later[shape.later] id=(format!("draft-{id}")) data-testid="draft-card" data-draft=(id)
            data-status=(draft.status.as_str()) aria-label=(to(draft).to(lang)) {
            @if is_sent(draft) {
                header class="draft-head" { (who(draft, times)) (dismiss(draft, csrf, lang)) }
                (sent(draft, times))
            } @else {
                // Open by default for browsers without a script; on small screens the script folds all but the first.
                details class="fold" id=(format!("draft-{id}-fold")) open {
                    summary class="draft-head" data-testid="draft-fold" { (who(draft, times)) }
                    @for warning in &draft.remarks { (remark(draft, warning, lang)) }
                    @if let Some(quoted) = draft.quoted.as_ref().filter(|_| draft.mail.is_none()) { (quote(quoted, id, lang)) }
                    @if shape.edited { (edit::form(draft, csrf, lang)) }
                    @else { (waiting(draft, csrf, times, denied, shape)) }
                }
            }
        }
    }
}

/// The text, and the buttons below it.
fn waiting(draft: &DraftRow, csrf: &str, times: &Times, denied: bool, shape: &Shape) -> Markup {
    let lang = times.lang;
    let folded = is_long(&legible::folded_in(&draft.body, lang)) && !shape.unfolded;
    html! {
        @if let Some(mail) = &draft.mail { (mail::headers(draft, mail, lang)) }
        (body(draft, folded, lang))
        (mail::quote(draft, lang))
        (about(draft, times))
        @if denied && draft.status == DraftState::Failed && draft.mail.is_none() { p { (Remedy::sms().link(lang)) } }
        (buttons(draft, csrf, folded, lang))
    }
}

fn remark(draft: &DraftRow, warning: &Said, lang: Lang) -> Markup {
    let stranger = draft.unknown_recipient
        && [said::drafts_remark_first_contact(), said::drafts_remark_first_mail()].contains(warning);
    html! { p class="remark" data-testid=[stranger.then_some("draft-unknown-recipient")] { (warning.to(lang)) } }
}

/// What was sent: its first words, which unfold to all of it.
fn sent(draft: &DraftRow, times: &Times) -> Markup {
    html! {
        details class="sent" id=(format!("draft-{}-sent", draft.id.0)) {
            summary dir="auto" { (first_words(draft, times.lang)) }
            @if let Some(mail) = &draft.mail { (mail::headers(draft, mail, times.lang)) }
            p class="draft-body" data-testid="draft-body" dir="auto" { (legible::folded_in(&draft.body, times.lang)) }
            (mail::quote(draft, times.lang))
            (about(draft, times))
        }
    }
}

/// How many characters of a draft its line shows.
const FIRST_WORDS: usize = 80;

/// The beginning of the text, for the line of a folded draft.
fn first_words(draft: &DraftRow, lang: Lang) -> String {
    let text = legible::folded_in(&draft.body, lang);
    let text = match &draft.mail {
        Some(mail) if !mail.subject.is_empty() => format!("{}: {text}", visible(&mail.subject)),
        _ => text,
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = line.chars().take(FIRST_WORDS).collect();
    if words.len() < line.len() { words + "…" } else { words }
}

/// Who receives the draft, as its heading says.
fn to(draft: &DraftRow) -> Said {
    if is_sent(draft) {
        said::drafts_sent_to(recipient(draft))
    } else {
        said::drafts_draft_to(recipient(draft))
    }
}

/// The recipient. Others chose the names of a contact, of a conversation and of its app, so nothing in them stays
/// invisible.
fn recipient(draft: &DraftRow) -> String {
    match (&draft.name, &draft.app) {
        (Some(name), _) => format!("{} · {}", visible(name), visible(&draft.to)),
        (None, Some(app)) if *app != draft.to => format!("{} · {}", visible(&draft.to), visible(app)),
        (None, _) => visible(&draft.to),
    }
}

/// The recipient, with a contact's name apart from the number: whatever script a name is in, it moves none of its digits.
fn addressee(draft: &DraftRow) -> Markup {
    html! {
        @match &draft.name {
            Some(name) => { bdi class="draft-name" { (visible(name)) } " · " bdi { (visible(&draft.to)) } },
            None => (recipient(draft)),
        }
    }
}

/// The recipient and the state: the only line that shows while a draft is folded.
fn who(draft: &DraftRow, times: &Times) -> Markup {
    let lang = times.lang;
    let waits = draft.status == DraftState::Pending && draft.on_phone.opened_at.is_none();
    html! {
        div class="draft-who" {
            @for part in to(draft).parts(lang) {
                @match part {
                    Part::Words(words) if is_sent(draft) => span { (words) },
                    Part::Words(words) => span class="if-folded" { (words) },
                    Part::Value(_) => strong class="draft-to" data-testid="draft-to" dir="auto" { (addressee(draft)) },
                }
            }
            " "
            // That it waits is what the line of a folded one goes without; its first words take the room.
            span.quiet.if-open[waits] data-testid="draft-state" {
                (rich(&state(draft, times), lang, |why| html! { bdi { (why) } }))
            }
            @if !is_sent(draft) {
                " " span class="if-folded first-words" dir="auto" data-testid="draft-words" { (first_words(draft, lang)) }
            }
        }
    }
}

/// How the draft is sent, by which phone, and where it came from.
fn about(draft: &DraftRow, times: &Times) -> Markup {
    let lang = times.lang;
    html! {
        p class="quiet" {
            @match (draft.segments, &draft.app) {
                _ if draft.mail.is_some() => (lang.drafts_mail()),
                (Some(count), _) => (lang.drafts_size(count)),
                (None, Some(app)) => (rich(&said::drafts_reply_in(app), lang, |app| html! { bdi { (app) } })),
                (None, None) => (lang.drafts_reply()),
            }
            @if let Some(phone) = &draft.phone {
                " · " span data-testid="draft-phone" { (rich(&by(phone), lang, |name| html! { bdi { (name) } })) }
            }
            " · " (origin(draft, lang)) @if draft.edited { ", " (lang.drafts_edited()) } " · " (times.moment(draft.created_at))
            @if let Some(ReplyTo::Sms(answered)) = draft.in_reply_to {
                span class="roomy" { " · " (lang.drafts_reply_to(answered)) }
            }
        }
    }
}

fn by(phone: &DraftPhone) -> Said {
    match &phone.name {
        Some(name) => said::drafts_by_phone(name),
        None if phone.source.is_here() => said::drafts_by_here(),
        None => said::drafts_by_unpaired(),
    }
}

/// A text with more characters than this, or more lines than [`GLANCE_LINES`], is folded, and cannot be sent until the
/// user has unfolded it.
const GLANCE: usize = 400;
const GLANCE_LINES: usize = 8;

fn is_long(text: &str) -> bool {
    text.chars().count() > GLANCE || text.lines().count() > GLANCE_LINES
}

fn body(draft: &DraftRow, folded: bool, lang: Lang) -> Markup {
    let text = &legible::folded_in(&draft.body, lang);
    if !folded {
        return html! {
            p class="draft-body" data-testid="draft-body" dir="auto" { (text) }
            (every_blank(draft, text, lang))
        };
    }
    let beginning = text.lines().next().unwrap_or_default().chars().take(120).collect::<String>();
    html! {
        details class="long" id=(format!("draft-{}-whole", draft.id.0)) data-testid="draft-whole" {
            summary {
                span class="beginning" dir="auto" { (beginning) "…" } " " span class="more" data-less=(lang.drafts_show_less()) { (lang.drafts_show_whole()) }
            }
            p class="draft-body" data-testid="draft-body" dir="auto" { (text) }
            (every_blank(draft, text, lang))
        }
        noscript { p { a href=(format!("?whole={}", draft.id.0)) { (lang.drafts_show_whole_to_send()) } } }
    }
}

/// Unfolds to the exact text that will be sent. The card shows long runs of padding as a count, so that padding cannot
/// push the rest of the text out of view.
fn every_blank(draft: &DraftRow, shown: &str, lang: Lang) -> Markup {
    html! {
        @if shown != draft.body_shown {
            details class="exact" id=(format!("draft-{}-exact", draft.id.0)) data-testid="draft-exact" {
                summary { (lang.drafts_show_exact()) }
                p class="draft-body" data-testid="draft-body-exact" dir="auto" { (draft.body_shown) }
            }
        }
    }
}

/// How many characters of the quoted message are shown; the rest can be unfolded. Send does not require that, because
/// the tap approves the draft and not the quotation.
const QUOTED: usize = 160;
const QUOTED_LINES: usize = 3;

/// The message that the draft replies to, shown above the reply. It has a frame of its own, so that whatever it says
/// cannot pass for part of the draft.
fn quote(quoted: &Untrusted, id: i64, lang: Lang) -> Markup {
    let text = legible::folded_in(quoted.as_written(), lang);
    let shown: String =
        text.lines().take(QUOTED_LINES).collect::<Vec<_>>().join("\n").chars().take(QUOTED).collect();
    let whole = html! {
        blockquote class="quoted" data-testid="draft-quoted" aria-label=(lang.drafts_they_wrote()) dir="auto" { (text) }
    };
    html! {
        p class="quiet roomy" { (lang.drafts_they_wrote()) }
        @if shown.len() == text.len() {
            (whole)
        } @else {
            details class="quotes" id=(format!("draft-{id}-quoted")) data-testid="draft-quoted-whole" {
                summary {
                    span class="quoted beginning" dir="auto" { (shown) "…" }
                    span class="more" data-less=(lang.drafts_show_less()) { (lang.drafts_show_more()) }
                }
                (whole)
            }
        }
    }
}

/// Where the draft came from.
fn origin(draft: &DraftRow, lang: Lang) -> Markup {
    if let Some(name) = &draft.guest {
        return rich(&said::drafts_from_guest_named(name), lang, |name| html! { bdi { (visible(name)) } });
    }
    let origin = match draft.origin {
        DraftOrigin::User => lang.drafts_from_user(),
        DraftOrigin::Command => lang.drafts_from_command(),
        DraftOrigin::Chat => lang.drafts_from_chat(),
        DraftOrigin::Heartbeat => lang.drafts_from_heartbeat(),
        DraftOrigin::Task => lang.drafts_from_task(),
        DraftOrigin::Guest => lang.drafts_from_guest(),
    };
    html! { (origin) }
}

fn state(draft: &DraftRow, times: &Times) -> Said {
    let why = draft.reason.clone().unwrap_or_default();
    match draft.status {
        DraftState::Pending => match draft.on_phone.opened_at {
            Some(at) => said::drafts_state_opened(opened(at, times)),
            None => said::drafts_state_pending(),
        },
        DraftState::Sending => said::drafts_state_sending(),
        DraftState::Sent if draft.mail.is_some() => said::drafts_state_mailed(),
        DraftState::Sent if why.is_empty() => said::drafts_state_sent(),
        DraftState::Sent => said::drafts_state_sent_more(why),
        DraftState::Failed => said::drafts_state_failed(why),
        DraftState::Unknown => said::drafts_state_unknown(why),
    }
}

/// The time at which a draft was opened, without the day if that was today.
fn opened(at: i64, times: &Times) -> String {
    let at = Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(times.zone.clone());
    let today = at.date() == times.now.to_zoned(times.zone.clone()).date();
    if today { at.strftime("%H:%M").to_string() } else { times.written(&at) }
}

/// The button that dismisses a sent draft. It is not where the next draft has its Send button, so that a user who
/// dismisses sent drafts click by click does not send one by accident.
fn dismiss(draft: &DraftRow, csrf: &str, lang: Lang) -> Markup {
    html! {
        form class="away" method="post" action=(format!("/drafts/{}/discard", draft.id.0)) data-live {
            input type="hidden" name="csrf" value=(csrf);
            button class="round" type="submit" data-testid="draft-discard"
                aria-label=(lang.drafts_dismiss()) title=(lang.drafts_dismiss()) {
                (icons::close())
            }
        }
    }
}

/// The button that opens the draft in the phone's own app. Where the phone may not send by itself, it is the main one.
fn on_phone(draft: &DraftRow, folded: bool, lang: Lang) -> Markup {
    let only = draft.on_phone.only_open;
    let label = if only { lang.drafts_open_on_phone() } else { lang.drafts_on_phone_instead() };
    html! {
        @if draft.on_phone.can_open {
            button.tap.primary[only] type="submit" name="button" value="on_phone" data-testid="draft-on-phone"
                disabled[folded] { (label) }
        }
    }
}

fn buttons(draft: &DraftRow, csrf: &str, folded: bool, lang: Lang) -> Markup {
    let ((button, label, testid), away) = match draft.status {
        DraftState::Pending => (("send", lang.drafts_send(), "draft-send"), lang.drafts_discard()),
        DraftState::Failed => (("retry", lang.drafts_retry(), "draft-retry"), lang.drafts_discard()),
        DraftState::Unknown => {
            (("send_again", lang.drafts_send_again(), "draft-retry"), lang.drafts_dismiss())
        }
        DraftState::Sending | DraftState::Sent => return html! {},
    };
    let id = draft.id.0;
    // Whoever is not sure that it was sent should look on the phone first.
    let main = draft.status != DraftState::Unknown;
    html! {
        div class="choices" {
            form class="choices" method="post" action=(format!("/drafts/{id}/tap")) data-live {
                input type="hidden" name="csrf" value=(csrf);
                input type="hidden" name="shown" value=(draft.digest);
                input type="hidden" name="attempts" value=(draft.attempts);
                @if !draft.on_phone.only_open {
                    button.tap.primary[main] type="submit" name="button" value=(button) data-testid=(testid)
                        disabled[folded] { (label) }
                }
                (on_phone(draft, folded, lang))
            }
            @if draft.is_editable() { (edit::link(draft, &said::drafts_edit_label(recipient(draft)).to(lang), lang)) }
            form method="post" action=(format!("/drafts/{id}/discard")) data-live {
                input type="hidden" name="csrf" value=(csrf);
                button type="submit" data-testid="draft-discard" { (away) }
            }
            // The script shows this while the recipient or part of the text is out of view.
            span class="why" id=(format!("draft-{id}-why")) data-testid="draft-why" { (lang.drafts_scroll()) }
            noscript { span class="quiet" { (rich(&said::drafts_to(recipient(draft)), lang, |_| html! { bdi { (addressee(draft)) } })) } }
        }
    }
}

#[derive(Deserialize)]
struct TapForm {
    button: Button,
    shown: String,
    attempts: u32,
}

/// The user tapped Send, Retry or Send again, or had the draft opened on the phone.
async fn tap(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<TapForm>, FormRejection>,
) -> Response {
    let Ok(Form(TapForm { button, shown, attempts })) = form else { return reply::misfilled(&headers) };
    let call = TapCall { id: DraftId(id), button, shown, attempts };
    back(&headers, kept::tapped(&web.app, call).await)
}

async fn discard(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    back(&headers, kept::discarded(&web.app, DraftId(id)).await)
}

fn back(headers: &HeaderMap, done: Result<DraftRow, Refused>) -> Response {
    match done {
        Ok(_) => reply::done_here(headers),
        Err(refused) => reply::not_done(headers, why(&refused)),
    }
}

/// Why a tap did nothing, as the page says it.
fn why(refused: &Refused) -> Trouble {
    let why = match refused {
        Refused::NoPhone => return Trouble::new(said::drafts_refused_no_phone(), Remedy::phones()),
        Refused::NotConnected(phone) => said::drafts_refused_not_connected(phone),
        Refused::Unpaired => said::drafts_refused_unpaired(),
        Refused::SwitchedOff(why) => why.clone(),
        Refused::NotOpened(why) => said::drafts_refused_not_opened(why),
        Refused::Unknown(_) => said::drafts_refused_gone(),
        Refused::Changed => said::drafts_refused_changed(),
        Refused::Sending => said::drafts_refused_sending(),
        Refused::Sent => said::drafts_refused_sent(),
        Refused::OutcomeNotStored => said::drafts_refused_unwritten(),
        Refused::NotNow(_) | Refused::NothingToOpen | Refused::NoMail => said::drafts_refused_not_now(),
        Refused::Store(error) => error.said(),
    };
    why.into()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn today_needs_no_day() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let times = Times { lang: Lang::ENGLISH, zone: TimeZone::UTC, now };
        for (at, expected) in [("2026-11-16T00:03:00Z", "00:03"), ("2026-11-15T23:59:00Z", "Nov 15, 23:59")] {
            let at: Timestamp = at.parse().unwrap();
            assert_eq!(opened(at.as_millisecond(), &times), expected);
        }
    }
}
