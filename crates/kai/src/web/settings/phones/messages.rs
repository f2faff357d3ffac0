//! Paired phones, and what Kai can read and send through the phone that it runs on and the desktop.

use axum::Router;
use kai_assistant::access::Access;
use kai_assistant::settings::{self, Setting};
use kai_assistant::source::SourceId;
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::{Ability, Stands, paired as list, pairing};
use crate::app::App;
use crate::commands::phones;
use crate::failure::Failure;
use crate::web::remedy::{Remedy, Trouble};
use crate::web::rich::rich;
use crate::web::settings::context::PageContext;
use crate::web::settings::parts::Region;
use crate::web::state::Web;

/// The cards of paired phones. The demo has one that is simulated, and pairs no other: it does not touch the network.
pub(super) async fn paired(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let pairing = if ctx.web.app.home.is_demo() { pairing::not_in_demo(ctx) } else { pairing::card(ctx) };
    Ok(vec![list::card(ctx).await?, pairing])
}

pub(super) fn routes() -> Router<Web> {
    list::routes().merge(pairing::routes())
}

/// Whether the page changes by itself, because Kai searches or a pairing waits.
pub(super) fn moves(app: &App) -> bool {
    let state = phones::state(app);
    state.search.is_some() || !state.pairings.is_empty()
}

/// Asks the platform whether it gives access to the features that are on. It is not bothered with those that are off.
pub(super) async fn ask(app: &App, ctx: &PageContext<'_>) {
    if let Some(inbox) = &app.messages.phone.inbox
        && ctx.values.on(&settings::SMS_ENABLED)
    {
        inbox.probe_access().await;
    }
    if let Some(source) = app.messages.notifications.here()
        && ctx.values.on(&settings::NOTIFICATIONS_ENABLED)
    {
        source.access(app.clock.now()).await;
    }
}

/// The names of the bridges that bring messages and notifications.
pub(super) fn bridges(app: &App) -> Vec<&str> {
    let listener = app.messages.notifications.here().map(|source| source.listener.name());
    app.messages.phone.bridge.into_iter().chain(listener).collect()
}

pub(super) fn abilities(app: &App, ctx: &PageContext<'_>) -> Vec<Ability> {
    let lang = ctx.lang;
    let found = [
        (lang.phones_read_sms(), reading(app, ctx)),
        (lang.phones_send_sms(), sending(app, ctx)),
        (lang.phones_read_notifications(), notifications(app, ctx)),
    ];
    found.into_iter().filter_map(|(what, stands)| stands.map(|stands| Ability { what, stands })).collect()
}

/// The state of a feature from the platform's last answer. If it was never asked, access counts as granted.
fn stands(ctx: &PageContext<'_>, switch: &Setting, access: Option<Access>, remedy: Remedy) -> Stands {
    match access {
        _ if !ctx.values.on(switch) => Stands::Off,
        None | Some(Access::Granted) => Stands::On,
        Some(Access::Denied(why) | Access::Silent(why)) => Stands::Lacks(Trouble::new(why, remedy)),
    }
}

/// Reading SMS on this device; none if it is no phone.
fn reading(app: &App, ctx: &PageContext<'_>) -> Option<Stands> {
    let inbox = app.messages.phone.inbox.as_ref()?;
    Some(stands(ctx, &settings::SMS_ENABLED, inbox.lacks().map(Access::Denied), Remedy::sms()))
}

fn sending(app: &App, ctx: &PageContext<'_>) -> Option<Stands> {
    let known = app.door.senders.access(SourceId::HERE)?;
    Some(stands(ctx, &settings::SMS_SEND_ENABLED, known.last(), Remedy::sms()))
}

fn notifications(app: &App, ctx: &PageContext<'_>) -> Option<Stands> {
    let source = app.messages.notifications.here()?;
    Some(stands(ctx, &settings::NOTIFICATIONS_ENABLED, source.known(), Remedy::notifications()))
}

/// The last step of connecting a phone.
pub(super) fn last_step(lang: Lang) -> Markup {
    let sentence = said::phones_step_permit(lang.settings_agent());
    html! { li { (rich(&sentence, lang, |page| html! { a href="/settings/agent" { (page) } })) } }
}

/// How to connect a desktop.
pub(super) fn on_desktop(lang: Lang) -> &'static str {
    lang.phones_desktop_how_foss()
}

pub(super) fn remark(_: Lang) -> Markup {
    html! {}
}
