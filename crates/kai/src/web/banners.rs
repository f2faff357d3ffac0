//! The banners at the top of every chat, each shown until the user deals with it: a phone that asks to be paired, tool
//! calls that need approval, drafts that wait for a tap, a heartbeat's report, a deletion that can be undone.

use kai_assistant::agent::conversation::ConversationId;
use kai_assistant::legible::{spelled_out, visible};
use kai_words::said;
use maud::{Markup, html};

use super::bin::Deleted;
use super::rich::rich;
use super::turns::PendingApproval;
use super::view::View;
use super::{drafts, icons, pairing};
use crate::asking::ApprovalCall;

pub(super) fn all(view: &View<'_>) -> Markup {
    let asked = drafts::Asked::new(view.place.whole, view.place.edit);
    html! {
        // First, because it ends: nothing that waits longer may push it out of view.
        @if let Some(deleted) = &view.deleted { (undo(deleted, view)) }
        (pairing::banner(&view.pairings, view.csrf, view.lang))
        @if let Some(report) = view.stored.heartbeat { (heartbeat(report, view)) }
        @for (chat, question) in &view.questions { (click_card(*chat, question, view)) }
        (drafts::banner(&view.stored.drafts, view.csrf, &view.times, &asked))
    }
}

/// The banner for a heartbeat's report. Where the report's conversation is open (`data-here`), the script dismisses the
/// banner once the report is in view; loading the page alone does not, since a GET changes nothing.
fn heartbeat(report: ConversationId, view: &View<'_>) -> Markup {
    let here = view.place.chat == Some(report);
    html! {
        section class="card bar" data-testid="heartbeat-banner" aria-label=(view.lang.banners_heartbeat()) {
            a href=(format!("/c/{}", report.0)) {
                (icons::heart())
                @match &view.stored.headline {
                    // A model wrote it, and it may repeat what others wrote.
                    Some(headline) => span class="headline" dir="auto" data-testid="heartbeat-headline" { (visible(headline)) },
                    None => (view.lang.banners_heartbeat_reports()),
                }
            }
            form method="post" action="/heartbeat/seen" data-live data-here[here] {
                input type="hidden" name="csrf" value=(view.csrf);
                button class="round" type="submit" data-testid="heartbeat-dismiss"
                    aria-label=(view.lang.banners_dismiss()) title=(view.lang.banners_dismiss()) {
                    (icons::close())
                }
            }
        }
    }
}

/// The card that asks the user to approve a tool call. It says in words what will happen, and unfolds to show the exact
/// call, because that is what the click allows.
fn click_card(chat: ConversationId, question: &PendingApproval, view: &View<'_>) -> Markup {
    let lang = view.lang;
    let title = lang.tool_name(&question.tool);
    let elsewhere = view.place.chat != Some(chat);
    let PendingApproval { hash, tool, arguments, about } = question;
    let card = ApprovalCall { tool, title: &title, arguments, about: about.as_deref() }.card(lang);
    html! {
        article class="card ask" data-testid="click-card" id=(format!("click-{}", &hash[..16]))
            aria-label=(lang.banners_allow(&title)) {
            h2 { (lang.banners_allow(&title)) }
            p class="words" data-testid="click-words" dir="auto" { (card.says) }
            @for quote in &card.quotes {
                @if card.quotes.len() > 1 && !quote.label.is_empty() { p class="quiet" dir="auto" { (quote.label) } }
                pre class="words" data-testid="click-quote" dir="auto" { (quote.text) }
            }
            p class="quiet" {
                (card.why)
                @if elsewhere { " " a href=(format!("/c/{}", chat.0)) { (lang.banners_see_chat()) } }
            }
            details id=(format!("click-{}-call", &hash[..16])) data-testid="click-exact" {
                summary { (lang.banners_exact_call()) }
                p { code { (spelled_out(tool)) } }
                pre data-testid="click-call" dir="auto" { (visible(arguments)) }
            }
            form class="choices" method="post" action="/click" data-live {
                input type="hidden" name="csrf" value=(view.csrf);
                input type="hidden" name="question" value=(hash);
                button class="primary" type="submit" name="answer" value="allow" data-testid="click-allow" { (card.yes) }
                button type="submit" name="answer" value="deny" data-testid="click-deny" { (card.no) }
            }
        }
    }
}

fn undo(deleted: &Deleted, view: &View<'_>) -> Markup {
    let lang = view.lang;
    let gone = said::banners_deleted(deleted.title.to(lang));
    html! {
        section class="card bar" data-testid="undo-bar" aria-label=(lang.banners_deletion()) {
            span { (rich(&gone, lang, |title| html! { bdi { (title) } })) }
            form class="choices" method="post" action="/undo" data-live {
                input type="hidden" name="csrf" value=(view.csrf);
                input type="hidden" name="number" value=(deleted.number);
                button type="submit" name="act" value="restore" data-testid="undo" { (lang.banners_undo()) }
                button class="round" type="submit" name="act" value="forget"
                    aria-label=(lang.banners_dismiss()) title=(lang.banners_dismiss()) {
                    (icons::close())
                }
            }
        }
    }
}
