//! The building blocks of cards: forms, buttons, switches, sliders, editors. All of them work without a script; the
//! script only makes them faster.

use kai_assistant::settings::{Kind, Setting};
use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::context::PageContext;
use super::form::hidden;
use crate::web::bin::UndoPlace;
use crate::web::icons;
use crate::web::rich::rich;

/// A part of a page that live updates replace as a whole.
pub(super) struct Region {
    /// The id of its element.
    pub(super) id: &'static str,
    pub(super) content: Markup,
    title: Option<&'static str>,
    testid: Option<&'static str>,
}

impl Region {
    pub(super) fn card(id: &'static str, title: &'static str, content: Markup) -> Self {
        Self { id, content, title: Some(title), testid: None }
    }

    /// A region without a card around it.
    pub(super) fn bare(id: &'static str, content: Markup) -> Self {
        Self { id, content, title: None, testid: None }
    }

    pub(super) fn testid(self, testid: &'static str) -> Self {
        Self { testid: Some(testid), ..self }
    }

    /// The region in its element. The message about a form of the card is below the region, so that live updates do not
    /// remove it.
    pub(super) fn whole(self, ctx: &PageContext<'_>) -> Markup {
        let Self { id, content, title, testid } = self;
        let Some(title) = title else { return html! { div id=(id) { (content) } } };
        html! {
            section class="card" aria-label=(title) data-testid=[testid] {
                h2 { (title) }
                div class="parts" id=(id) { (content) }
                p class="told" role="status" { @if let Some(told) = ctx.error.and_then(|told| told.to(id)) { (told.to(ctx.lang)) } }
            }
        }
    }
}

/// A form in a card; the script submits it without leaving the page.
pub(super) fn form(ctx: &PageContext<'_>, card: &str, action: &str, class: &str, content: &Markup) -> Markup {
    html! {
        form class=(class) method="post" action=(action) data-live {
            (hidden(ctx.csrf, ctx.place.page, card))
            (content)
        }
    }
}

/// A form whose response is a page, with or without a script.
pub(super) fn plain(
    ctx: &PageContext<'_>,
    card: &str,
    action: &str,
    class: &str,
    content: &Markup,
) -> Markup {
    html! {
        form class=(class) method="post" action=(action) { (hidden(ctx.csrf, ctx.place.page, card)) (content) }
    }
}

/// A button in a form of its own.
pub(super) struct Button<'a> {
    pub(super) label: &'a str,
    pub(super) testid: &'a str,
    pub(super) class: &'a str,
    /// Hidden fields to send, as names and values.
    pub(super) fields: &'a [(&'a str, &'a str)],
}

pub(super) fn button(ctx: &PageContext<'_>, card: &str, action: &str, button: &Button<'_>) -> Markup {
    let content = html! {
        @for (name, value) in button.fields { input type="hidden" name=(name) value=(value); }
        button type="submit" class=(button.class) data-testid=(button.testid) { (button.label) }
    };
    form(ctx, card, action, "", &content)
}

/// A switch for a setting; the whole row is the button. It shows the stored value, and changes only when that does.
pub(super) struct Switch<'a> {
    pub(super) setting: &'a Setting,
    pub(super) label: &'a str,
    pub(super) help: &'a str,
    pub(super) testid: &'a str,
}

pub(super) fn switch(ctx: &PageContext<'_>, card: &str, switch: &Switch<'_>) -> Markup {
    let on = ctx.values.on(switch.setting);
    switch_to(ctx, card, "/settings/set", on, switch)
}

/// A switch that posts to an address of its own, because it does more than set its setting.
pub(super) fn switch_to(
    ctx: &PageContext<'_>,
    card: &str,
    action: &str,
    on: bool,
    switch: &Switch<'_>,
) -> Markup {
    let help = format!("{}-help", switch.testid);
    let content = html! {
        input type="hidden" name="key" value=(switch.setting.key);
        input type="hidden" name="value" value=(!on);
        button class="switch" type="submit" role="switch" aria-checked=(on) aria-describedby=(help)
            data-testid=(switch.testid) { span { (switch.label) } span class="track" {} }
        p class="quiet" id=(help) { (switch.help) }
        (told())
    };
    form(ctx, card, action, "", &content)
}

/// A slider for a setting, with a label for each stop.
pub(super) struct Slider<'a> {
    pub(super) setting: &'a Setting,
    pub(super) label: &'a str,
    /// One label for each value of the setting, in order.
    pub(super) stops: &'a [String],
    pub(super) testid: &'a str,
}

pub(super) fn slider(ctx: &PageContext<'_>, card: &str, slider: &Slider<'_>) -> Markup {
    let value = ctx.values.of(slider.setting);
    let at = match slider.setting.kind {
        Kind::Choice(values) => values.iter().position(|it| *it == value).unwrap_or_default(),
        _ => value.parse().unwrap_or_default(),
    };
    let content = html! {
        input type="hidden" name="key" value=(slider.setting.key);
        div class="between" {
            label for=(slider.testid) { (slider.label) }
            output for=(slider.testid) { (slider.stops.get(at).map_or("", String::as_str)) }
        }
        (range(slider.testid, "stop", at, slider.stops))
        div class="stops quiet" aria-hidden="true" { @for stop in slider.stops { span { (stop) } } }
        (told())
        (set_button(ctx.lang))
    };
    form(ctx, card, "/settings/set", "slider", &content)
}

/// The slider's input element; its id is also its test id.
pub(super) fn range(id: &str, name: &str, at: usize, stops: &[String]) -> Markup {
    html! {
        input type="range" id=(id) data-testid=(id) name=(name) min="0" max=(stops.len().saturating_sub(1)) step="1"
            value=(at) data-stops=(stops.join("|")) aria-valuetext=(stops.get(at).map_or("", String::as_str))
            autocomplete="off";
    }
}

/// Where the script shows why a form was refused: right below it. In forms without this, the card shows it.
pub(super) fn told() -> Markup {
    html! { p class="told" role="status" data-keep {} }
}

/// Submits a slider or a select box; shown only without a script, which would submit it by itself.
pub(super) fn set_button(lang: Lang) -> Markup {
    html! { button type="submit" class="no-js" { (lang.settings_set()) } }
}

/// A text area for a setting with a longer text, with a character count.
pub(super) struct Editor<'a> {
    pub(super) setting: &'a Setting,
    pub(super) label: &'a str,
    pub(super) help: &'a str,
    /// Kai's default text, which applies while the user has set none.
    pub(super) own: &'a str,
    pub(super) testid: &'a str,
}

pub(super) fn editor(ctx: &PageContext<'_>, card: &str, editor: &Editor<'_>) -> Markup {
    let stored = ctx.values.of(editor.setting);
    let key = editor.setting.key.as_ref();
    let typed = ctx.error.filter(|told| told.typed(card, "key") == Some(key));
    let meant = if stored.is_empty() { editor.own.trim() } else { &stored };
    let text = typed.and_then(|told| told.typed(card, "value")).unwrap_or(meant);
    let longest = if let Kind::Text { longest } = editor.setting.kind { longest } else { 0 };
    let id = editor.testid;
    let content = html! {
        input type="hidden" name="key" value=(key);
        input type="hidden" name="own" value=(editor.own.trim());
        div class="between" {
            label for=(id) { (editor.label) }
            output class="quiet" for=(id) data-longest=(longest) data-testid=(format!("{id}-count")) {
                (count(text.chars().count(), longest, ctx.lang))
            }
        }
        p class="quiet" { (editor.help) }
        textarea id=(id) data-testid=(id) name="value" rows="5" autocomplete="off" dir="auto" { "\n" (text) }
        div class="choices" {
            button type="submit" data-testid=(format!("{id}-save")) { (ctx.lang.settings_save()) }
            @if !stored.is_empty() {
                button type="submit" class="plain" name="reset" value="yes" data-testid=(format!("{id}-reset")) {
                    (ctx.lang.settings_reset())
                }
            }
        }
        (told())
    };
    form(ctx, card, "/settings/text", "editor", &content)
}

fn count(length: usize, longest: usize, lang: Lang) -> String {
    format!("{} / {}", lang.number(length), lang.number(longest))
}

/// A submit button that shows only an icon.
pub(super) fn icon_button(testid: &str, name: &str, icon: &Markup) -> Markup {
    html! { button class="round" type="submit" data-testid=(testid) aria-label=(name) title=(name) { (icon) } }
}

/// A spinning icon for work in progress.
pub(super) fn spinner(what: &str) -> Markup {
    html! { span class="turning" role="status" data-testid="spinner" { (icons::again()) (what) } }
}

/// Stands for a time in a sentence that [`timed`] shows.
pub(super) const TIME: &str = "{time}";

/// A sentence with a time, given in epoch milliseconds, in the place of [`TIME`].
pub(super) fn timed(ctx: &PageContext<'_>, sentence: &Said, at: i64) -> Markup {
    rich(sentence, ctx.lang, |value| {
        if value == TIME {
            ctx.times.moment(at)
        } else {
            html! { (value) }
        }
    })
}

/// A sentence with a date, given in epoch milliseconds, in the place of [`TIME`]. The script leaves it as it is.
pub(super) fn dated(ctx: &PageContext<'_>, sentence: &Said, at: i64) -> Markup {
    rich(sentence, ctx.lang, |value| {
        if value == TIME {
            ctx.times.date(at)
        } else {
            html! { (value) }
        }
    })
}

/// A sentence with a name that someone chose. The name has a direction of its own, as it may be in any script.
pub(super) fn naming(ctx: &PageContext<'_>, sentence: &Said) -> Markup {
    rich(sentence, ctx.lang, |name| html! { bdi { (name) } })
}

/// A link that folds or unfolds a part, or opens an item.
pub(super) fn link(href: &str, card: &str, testid: &str, label: &str) -> Markup {
    html! { a class="more" href=(format!("{href}#{card}")) data-show data-testid=(testid) { (label) } }
}

/// One row of a list of facts: a name and a value.
pub(super) fn fact(name: &str, value: &str) -> Markup {
    html! { div class="fact" { dt { (name) } dd { (value) } } }
}

/// The strip at the bottom of the page that offers to undo the newest deletion.
pub(super) fn undo(ctx: &PageContext<'_>) -> Markup {
    let deleted = ctx.web.bin.newest(UndoPlace::InSettings, ctx.web.app.clock.now());
    html! {
        @if let Some(deleted) = deleted {
            div class="card bar" data-testid="undo-bar" {
                span { (naming(ctx, &said::settings_deleted(&deleted.title))) }
                form class="choices" method="post" action="/undo" data-live {
                    input type="hidden" name="csrf" value=(ctx.csrf);
                    input type="hidden" name="number" value=(deleted.number);
                    button type="submit" name="act" value="restore" data-testid="undo" { (ctx.lang.settings_undo()) }
                    @let dismiss = ctx.lang.settings_dismiss();
                    button class="round" type="submit" name="act" value="forget" aria-label=(dismiss) title=(dismiss) {
                        (icons::close())
                    }
                }
            }
        }
    }
}
