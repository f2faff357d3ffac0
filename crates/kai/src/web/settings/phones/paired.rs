//! The card of paired phones: how each stands, what it may be used for, its name, and how to unpair it.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::phones::{Switch, Switches};
use kai_words::{Lang, said};
use maud::{Markup, html};

use crate::call::Call;
use crate::call::phones::{ArchiveRow, PhonesCall};
use crate::commands::phones::troubles::Trouble;
use crate::commands::phones::{self, PairedPhone};
use crate::failure::Failure;
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{Button, Region, TIME, button, form, link, naming, timed};
use crate::web::state::Web;

const CARD: &str = "paired";

/// The card. It is there before a phone is paired: live updates fill cards, and make none.
pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Region, Failure> {
    let paired = phones::paired(&ctx.web.app).await?;
    let content = html! {
        @if paired.is_empty() { p class="quiet" data-testid="paired-none" { (ctx.lang.paired_none()) } }
        @for phone in &paired { (one(ctx, phone)) }
    };
    Ok(Region::card(CARD, ctx.lang.paired_label(), content).testid("paired-card"))
}

fn one(ctx: &PageContext<'_>, paired: &PairedPhone) -> Markup {
    let phone = &paired.phone;
    let number = phone.source.0.to_string();
    if !phone.is_paired() {
        return former(ctx, paired, &number);
    }
    html! {
        section class="part" id=(format!("phone-{number}")) data-testid="paired-phone" data-phone=(number)
            aria-label=(phone.name) {
            div class="between" {
                h3 { bdi { (phone.name) } }
                @if phone.sends_by_default { span class="tag" data-testid="phone-default" { (ctx.lang.paired_default()) } }
            }
            p data-testid="phone-state" { (state(ctx, paired)) }
            (archive(ctx, paired.archive))
            (troubles(&paired.troubles, ctx.lang))
            @if phone.switches == Switches::default() {
                p class="remark" data-testid="phone-choose" { (naming(ctx, &said::paired_all_off(&phone.name))) }
            }
            @for switch in Switch::ALL { (toggle(ctx, &number, switch, phone.switches.is_on(switch))) }
            (changes(ctx, paired, &number))
        }
    }
}

/// A phone that is no longer paired, and whose messages are still here.
fn former(ctx: &PageContext<'_>, paired: &PairedPhone, number: &str) -> Markup {
    let name = &paired.phone.name;
    html! {
        section class="part" id=(format!("phone-{number}")) data-testid="former-phone" data-phone=(number) aria-label=(name) {
            h3 { bdi { (name) } }
            p { (ctx.lang.paired_former()) }
            (archive(ctx, paired.archive))
            @if ctx.place.open("unpair") == Some(number) {
                p class="quiet" { (ctx.lang.agent_erase_help()) }
                div class="choices" {
                    (unpair_button(ctx, number, ctx.lang.paired_former_erase(), "phone-unpair-erase", "danger", "no"))
                    (link(&ctx.place.opening("unpair", None), CARD, "phone-unpair-not", ctx.lang.agent_keep()))
                }
            } @else {
                (link(&ctx.place.opening("unpair", Some(number)), CARD, "phone-unpair-ask", ctx.lang.paired_former_ask()))
            }
        }
    }
}

fn state(ctx: &PageContext<'_>, paired: &PairedPhone) -> Markup {
    match paired.phone.last_seen {
        _ if paired.link.connected.is_some() => {
            html! { span class="tag good" { (ctx.lang.paired_connected()) } }
        }
        Some(seen) => timed(ctx, &said::paired_last_seen(TIME), seen.as_millisecond()),
        None => html! { (ctx.lang.paired_not_seen()) },
    }
}

/// How many messages are kept, with a bar while they are still being copied.
fn archive(ctx: &PageContext<'_>, archive: ArchiveRow) -> Markup {
    html! {
        @match archive.progress {
            None => {},
            Some(1000..) => p class="quiet" data-testid="phone-archive" { (ctx.lang.paired_archive_done(archive.messages)) },
            Some(filled) => div class="field" data-testid="phone-archive" {
                p class="quiet" { (ctx.lang.paired_archive_filling(archive.messages)) }
                progress max="1000" value=(filled) aria-label=(ctx.lang.paired_archive_progress()) {}
            },
        }
    }
}

/// What is wrong, each with its next step.
pub(super) fn troubles(troubles: &[Trouble], lang: Lang) -> Markup {
    html! {
        @for trouble in troubles {
            div data-testid="phone-trouble" data-trouble=(trouble.as_str()) {
                p class="trouble-text" { (trouble.says().to(lang)) }
                p class="quiet" { (trouble.next().to(lang)) }
            }
        }
    }
}

fn toggle(ctx: &PageContext<'_>, number: &str, switch: Switch, on: bool) -> Markup {
    let (label, help) = words(switch, ctx.lang);
    let about = format!("phone-{number}-{}-help", switch.as_str());
    let content = html! {
        input type="hidden" name="phone" value=(number);
        input type="hidden" name="switch" value=(switch.as_str());
        input type="hidden" name="value" value=(!on);
        button class="switch" type="submit" role="switch" aria-checked=(on) aria-describedby=(about)
            data-testid=(format!("phone-{}", switch.as_str())) { span { (label) } span class="track" {} }
        p class="quiet" id=(about) { (help) }
    };
    form(ctx, CARD, "/settings/phones/switch", "", &content)
}

fn words(switch: Switch, lang: Lang) -> (&'static str, &'static str) {
    match switch {
        Switch::ReadSms => (lang.paired_switch_read_sms(), lang.paired_switch_read_sms_help()),
        Switch::SendSms => (lang.paired_switch_send_sms(), lang.paired_switch_send_sms_help()),
        Switch::Notifications => {
            (lang.paired_switch_notifications(), lang.paired_switch_notifications_help())
        }
        Switch::Names => (lang.paired_switch_names(), lang.paired_switch_names_help()),
        Switch::Composer => (lang.paired_switch_composer(), lang.paired_switch_composer_help()),
        Switch::Tell => (lang.paired_switch_tell(), lang.paired_switch_tell_help()),
    }
}

/// Renaming, unpairing and sending by default. The first two have to be unfolded first.
fn changes(ctx: &PageContext<'_>, paired: &PairedPhone, number: &str) -> Markup {
    let open = |what: &str| ctx.place.open(what) == Some(number);
    if open("rename") {
        return renaming(ctx, paired, number);
    }
    if open("unpair") {
        return unpairing(ctx, paired, number);
    }
    html! {
        div class="choices" {
            @if !paired.phone.sends_by_default {
                (button(ctx, CARD, "/settings/phones/default", &Button {
                    label: ctx.lang.paired_make_default(), testid: "phone-make-default", class: "",
                    fields: &[("phone", number)],
                }))
            }
            (link(&ctx.place.opening("rename", Some(number)), CARD, "phone-rename-ask", ctx.lang.paired_rename_ask()))
            (link(&ctx.place.opening("unpair", Some(number)), CARD, "phone-unpair-ask", ctx.lang.paired_unpair()))
        }
    }
}

fn renaming(ctx: &PageContext<'_>, paired: &PairedPhone, number: &str) -> Markup {
    let id = format!("phone-{number}-name");
    let typed = ctx.error.and_then(|error| error.typed(CARD, "name"));
    let content = html! {
        input type="hidden" name="phone" value=(number);
        label for=(id) { (ctx.lang.paired_name()) }
        div class="line" {
            input type="text" id=(id) name="name" value=(typed.unwrap_or(&paired.phone.name)) maxlength="60" required
                autocomplete="off" dir="auto" data-testid="phone-name";
            button type="submit" data-testid="phone-rename" { (ctx.lang.paired_rename()) }
        }
    };
    html! {
        (form(ctx, CARD, "/settings/phones/rename", "field", &content))
        (link(&ctx.place.opening("rename", None), CARD, "phone-rename-not", ctx.lang.settings_dismiss()))
    }
}

/// Asks what happens to the phone's messages. Deleting them is the first choice.
fn unpairing(ctx: &PageContext<'_>, paired: &PairedPhone, number: &str) -> Markup {
    html! {
        p { (naming(ctx, &said::paired_unpair_help(&paired.phone.name))) }
        div class="choices" {
            (unpair_button(ctx, number, ctx.lang.paired_unpair_erase(), "phone-unpair-erase", "danger", "no"))
            (unpair_button(ctx, number, ctx.lang.paired_unpair_keep(), "phone-unpair-keep", "", "yes"))
            (link(&ctx.place.opening("unpair", None), CARD, "phone-unpair-not", ctx.lang.paired_unpair_not()))
        }
    }
}

fn unpair_button(
    ctx: &PageContext<'_>,
    number: &str,
    label: &str,
    testid: &str,
    class: &str,
    keep: &str,
) -> Markup {
    let fields = &[("phone", number), ("keep", keep)];
    button(ctx, CARD, "/settings/phones/unpair", &Button { label, testid, class, fields })
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/phones/switch", post(set))
        .route("/settings/phones/rename", post(rename))
        .route("/settings/phones/unpair", post(unpair))
        .route("/settings/phones/default", post(send_by_default))
}

async fn set(form: Form) -> Response {
    let done = match Switch::named(form.field("switch")) {
        Some(switch) => {
            let (phone, on) = (form.field("phone").to_owned(), form.field("value") == "true");
            form.call(Call::from(PhonesCall::Set { phone, switch, on })).await
        }
        None => Err(Failure::usage(said::frame_misfilled())),
    };
    form.answer(done)
}

async fn rename(form: Form) -> Response {
    let (phone, name) = (form.field("phone").to_owned(), form.field("name").to_owned());
    let done = form.call(Call::from(PhonesCall::Rename { phone, name })).await;
    form.answer_saying(done, said::settings_saved())
}

async fn unpair(form: Form) -> Response {
    let (phone, keep_messages) = (form.field("phone").to_owned(), form.field("keep") == "yes");
    let done = form.call(Call::from(PhonesCall::Remove { phone, keep_messages })).await;
    form.answer(done)
}

async fn send_by_default(form: Form) -> Response {
    let phone = form.field("phone").to_owned();
    let done = form.call(Call::from(PhonesCall::Default { phone })).await;
    form.answer(done)
}
