//! Text fields and button groups for settings; [`super::parts`] has the switches, sliders and editors.

use kai_assistant::settings::{Kind, Setting};
use maud::{Markup, html};

use super::context::PageContext;
use super::parts::{form, plain};

/// A group of buttons that sets a setting to one of a few values.
pub(super) struct Choice<'a> {
    pub(super) setting: &'a Setting,
    pub(super) label: &'a str,
    /// Each value and its label.
    pub(super) options: &'a [(&'a str, &'a str)],
    pub(super) testid: &'a str,
}

pub(super) fn choice(ctx: &PageContext<'_>, card: &str, choice: &Choice<'_>) -> Markup {
    form(ctx, card, "/settings/set", "field", &buttons(ctx, choice))
}

/// A choice that changes more than its card, so the whole page is loaded again.
pub(super) fn choice_on_page(ctx: &PageContext<'_>, card: &str, choice: &Choice<'_>) -> Markup {
    plain(ctx, card, "/settings/set", "field", &buttons(ctx, choice))
}

fn buttons(ctx: &PageContext<'_>, choice: &Choice<'_>) -> Markup {
    let now = ctx.values.of(choice.setting);
    html! {
        input type="hidden" name="key" value=(choice.setting.key);
        span class="label" id=(choice.testid) { (choice.label) }
        div class="choices" role="group" aria-labelledby=(choice.testid) {
            @for (value, label) in choice.options {
                button type="submit" name="value" value=(value) aria-pressed=(now == *value)
                    data-testid=(format!("{}-{value}", choice.testid)) { (label) }
            }
        }
    }
}

/// A one-line field. A secret is never shown, not even its length: only whether one is stored.
pub(super) struct Field<'a> {
    pub(super) setting: &'a Setting,
    pub(super) label: &'a str,
    pub(super) help: &'a str,
    pub(super) testid: &'a str,
}

pub(super) fn field(ctx: &PageContext<'_>, card: &str, field: &Field<'_>) -> Markup {
    let Field { setting, label, help: about, testid } = field;
    let (kind, help) = (setting.kind, format!("{testid}-help"));
    let stored = ctx.values.of(setting);
    let typed = ctx.error.filter(|told| told.typed(card, "key") == Some(&setting.key));
    let value = match kind {
        Kind::Secret => "",
        _ => typed.and_then(|told| told.typed(card, "value")).unwrap_or(&stored),
    };
    let content = html! {
        input type="hidden" name="key" value=(setting.key);
        label for=(testid) { (label) }
        div class="line" {
            (input(kind, testid, &help, value))
            button type="submit" data-testid=(format!("{testid}-save")) { (ctx.lang.settings_save()) }
        }
        p class="quiet" id=(help) {
            (about)
            @if kind == Kind::Secret && stored == "set" { " " (ctx.lang.settings_stored_key()) }
        }
    };
    form(ctx, card, "/settings/text", "field", &content)
}

fn input(kind: Kind, id: &str, help: &str, value: &str) -> Markup {
    let (type_, (from, to)) = match kind {
        Kind::Whole { from, to } => ("number", (Some(from), Some(to))),
        Kind::Secret => ("password", (None, None)),
        _ => ("text", (None, None)),
    };
    let autocomplete = if kind == Kind::Secret { "new-password" } else { "off" };
    html! {
        input type=(type_) id=(id) data-testid=(id) name="value" value=(value) min=[from] max=[to]
            aria-describedby=(help) autocomplete=(autocomplete) spellcheck="false";
    }
}
