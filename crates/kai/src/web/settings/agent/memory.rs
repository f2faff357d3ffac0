//! The card for memory: what Kai remembers, what it proposes to always keep in mind, and the text that says who it is.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::agent::soul;
use kai_assistant::db::DbError;
use kai_assistant::hex;
use kai_assistant::legible::{folded_in, spelled_out};
use kai_assistant::memory::promotion::{self, Proposal};
use kai_assistant::memory::{Category, Memory, store};
use kai_assistant::settings::{MEMORY_ENABLED, SOUL_TEXT};
use kai_words::{Lang, said};
use maud::{Markup, html};

use crate::call::Call;
use crate::commands::memory;
use crate::failure::Failure;
use crate::web::bin::Kept;
use crate::web::icons;
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{
    Button, Editor, Region, Switch, button, editor, form, icon_button, link, naming, switch, told,
};
use crate::web::state::Web;

const CARD: &str = "memory";
/// How many memories are shown before the user asks for all.
const FEW: usize = 5;

pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Region, Failure> {
    let read = ctx.web.app.db.read(|tx| Ok::<_, DbError>((store::all(tx)?, promotion::proposals(tx)?)));
    let (memories, proposals) = read.await?;
    let (memories, waiting): (Vec<Memory>, Vec<Memory>) =
        memories.into_iter().partition(|memory| memory.confirmed);
    let enabled = Switch {
        setting: &MEMORY_ENABLED,
        label: ctx.lang.memory_enabled(),
        help: ctx.lang.memory_enabled_help(),
        testid: "memory-toggle",
    };
    let soul = Editor {
        setting: &SOUL_TEXT,
        label: ctx.lang.memory_soul(),
        help: ctx.lang.memory_soul_help(),
        own: soul::OWN,
        testid: "soul",
    };
    let content = html! {
        div class="part" {
            (switch(ctx, CARD, &enabled))
            @if memories.is_empty() && waiting.is_empty() { p class="quiet" { (ctx.lang.memory_none()) } }
            @if !waiting.is_empty() { (wait(ctx, &waiting)) }
            (list(ctx, &memories))
        }
        @if !proposals.is_empty() {
            div class="part" {
                p class="name" { (ctx.lang.memory_proposals()) }
                ul class="items" { @for proposal in &proposals { (proposed(ctx, proposal)) } }
            }
        }
        div class="part" { (editor(ctx, CARD, &soul)) }
    };
    Ok(Region::card(CARD, ctx.lang.memory_label(), content).testid("memory-card"))
}

/// All memories that wait for confirmation, so that none is overlooked.
fn wait(ctx: &PageContext<'_>, waiting: &[Memory]) -> Markup {
    html! {
        p class="name" data-testid="memories-waiting" { (ctx.lang.memory_waiting(waiting.len())) }
        ul class="items" { @for memory in waiting { (row(ctx, memory)) } }
    }
}

fn list(ctx: &PageContext<'_>, memories: &[Memory]) -> Markup {
    let whole = ctx.place.shows("memories");
    let shown = if whole { memories.len() } else { FEW };
    html! {
        ul class="items" data-testid="memories" { @for memory in memories.iter().take(shown) { (row(ctx, memory)) } }
        @if whole { (link(&ctx.place.turned("memories"), CARD, "memories-less", ctx.lang.memory_few())) }
        @else if memories.len() > FEW {
            (link(&ctx.place.turned("memories"), CARD, "memories-all", &ctx.lang.memory_all(memories.len())))
        }
    }
}

fn row(ctx: &PageContext<'_>, memory: &Memory) -> Markup {
    let key = memory.key.as_str();
    let edited = ctx.place.open("memory") == Some(key);
    let forget = html! {
        input type="hidden" name="key" value=(key);
        (icon_button("memory-delete", &ctx.lang.memory_forget(key), &icons::bin()))
    };
    html! {
        li class="entry" id=(format!("memory-{}", hex::encode(key.as_bytes()))) data-testid="memory" {
            div class="between" {
                span class="name" dir="auto" { (key) }
                span class="line" {
                    @if let Some(kind) = kind(memory.category, ctx.lang) { span class="tag" { (kind) } }
                    @if memory.hits > 0 { span class="quiet" { (ctx.lang.memory_useful(memory.hits)) } }
                    a class="round" href=(format!("{}#{CARD}", ctx.place.opening("memory", (!edited).then_some(key))))
                        data-show data-testid="memory-edit" aria-label=(ctx.lang.memory_edit_named(key)) title=(ctx.lang.memory_edit()) { (icons::pen()) }
                    @if memory.confirmed { (form(ctx, CARD, "/settings/agent/memory/delete", "", &forget)) }
                }
            }
            @if edited { (edit(ctx, memory)) }
            @else if memory.confirmed { p class="text" dir="auto" { (memory.content) } }
            @else { (unconfirmed(ctx, memory)) }
        }
    }
}

/// A memory that waits for confirmation. Its text is shown as in every approval, with padding as a count, and the
/// button confirms exactly this text.
fn unconfirmed(ctx: &PageContext<'_>, memory: &Memory) -> Markup {
    let (key, seen) = (memory.key.as_str(), memory.digest());
    let fields = [("key", key), ("seen", seen.as_str())];
    let (yes, no) = (ctx.lang.memory_confirm(), ctx.lang.memory_forget_it());
    let confirm = Button { label: yes, testid: "memory-confirm", class: "primary", fields: &fields };
    let forget = Button { label: no, testid: "memory-delete", class: "", fields: &fields[..1] };
    let (shown, whole) = (folded_in(&memory.content, ctx.lang), spelled_out(&memory.content));
    html! {
        p class="text" dir="auto" data-testid="memory-waits" { (shown) }
        @if shown != whole {
            details id=(format!("memory-{}-whole", hex::encode(key.as_bytes()))) {
                summary { (ctx.lang.memory_whole()) }
                pre dir="auto" { (whole) }
            }
        }
        p class="quiet" { (ctx.lang.memory_unconfirmed()) }
        div class="choices" {
            (button(ctx, CARD, "/settings/agent/memory/confirm", &confirm))
            (button(ctx, CARD, "/settings/agent/memory/delete", &forget))
        }
    }
}

/// The label of a category; none for general memories.
fn kind(category: Category, lang: Lang) -> Option<&'static str> {
    match category {
        Category::General => None,
        Category::Learning => Some(lang.memory_kind_learning()),
        Category::Error => Some(lang.memory_kind_error()),
        Category::Preference => Some(lang.memory_kind_preference()),
    }
}

fn edit(ctx: &PageContext<'_>, memory: &Memory) -> Markup {
    let key = memory.key.as_str();
    let typed = ctx.error.filter(|told| told.typed(CARD, "key") == Some(key));
    let content = html! {
        input type="hidden" name="key" value=(key);
        label class="seen-not" for="memory-text" { (ctx.lang.memory_text_of(key)) }
        textarea id="memory-text" name="content" rows="3" data-testid="memory-text" autocomplete="off" dir="auto" {
            "\n" (typed.and_then(|told| told.typed(CARD, "content")).unwrap_or(&memory.content))
        }
        div class="choices" { button type="submit" data-testid="memory-save" { (ctx.lang.settings_save()) } }
        (told())
    };
    form(ctx, CARD, "/settings/agent/memory/edit", "editor", &content)
}

fn proposed(ctx: &PageContext<'_>, proposal: &Proposal) -> Markup {
    let key = proposal.key.as_str();
    let answer = |action: &str, label: &str, testid: &str, class: &str| {
        button(ctx, CARD, action, &Button { label, testid, class, fields: &[("key", key)] })
    };
    html! {
        li class="entry" data-testid="proposal" {
            p class="text" dir="auto" { (folded_in(&proposal.text, ctx.lang)) }
            p class="quiet" { (naming(ctx, &said::memory_from(key, proposal.hits))) }
            div class="choices" {
                (answer("/settings/agent/memory/accept", ctx.lang.memory_accept(), "proposal-accept", "primary"))
                (answer("/settings/agent/memory/decline", ctx.lang.memory_decline(), "proposal-decline", ""))
            }
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/agent/memory/edit", post(rewrite))
        .route("/settings/agent/memory/delete", post(delete))
        .route("/settings/agent/memory/confirm", post(confirm))
        .route("/settings/agent/memory/accept", post(accept))
        .route("/settings/agent/memory/decline", post(decline))
}

async fn rewrite(form: Form) -> Response {
    let done = memory::rewrite(form.app(), form.field("key"), form.field("content")).await;
    form.answer_saying(done, said::settings_saved())
}

async fn delete(form: Form) -> Response {
    let taken = memory::take_away(form.app(), form.field("key")).await;
    let done = taken.map(|removed| form.web.bin.put(Kept::Memory(removed), form.app().clock.now()));
    form.answer(done)
}

async fn confirm(form: Form) -> Response {
    let (key, seen) = (form.field("key").to_owned(), Some(form.field("seen").to_owned()));
    let done = form.call(Call::MemoryConfirm { key, seen }).await;
    form.answer_saying(done, said::memory_confirmed())
}

async fn accept(form: Form) -> Response {
    let done = form.call(Call::MemoryAccept { key: form.field("key").to_owned() }).await;
    form.answer_saying(done, said::memory_promoted())
}

async fn decline(form: Form) -> Response {
    let done = form.call(Call::MemoryDecline { key: form.field("key").to_owned() }).await;
    form.answer(done)
}
