//! The HTML frame around every page.

use kai_words::Lang;
use maud::{DOCTYPE, Markup, html};

use super::assets::{AROUND, FAVICON, FINDER_SCRIPT, FINDER_STYLE, MANIFEST, SCRIPT, STYLE};
use super::dialogs;

/// Renders a whole HTML page. `theme` is the value of the setting: `system`, `light` or `dark`.
pub(super) fn frame(title: &str, lang: Lang, theme: &str, head: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(lang.code()) dir=(if lang.is_rtl() { "rtl" } else { "ltr" }) data-theme=(theme) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @for (scheme, colour) in AROUND {
                    @if theme == scheme { meta name="theme-color" content=(colour); }
                    @if theme == "system" { meta name="theme-color" media={ "(prefers-color-scheme:" (scheme) ")" } content=(colour); }
                }
                title { (title) }
                link rel="manifest" href=(MANIFEST);
                link rel="icon" href=(*FAVICON);
                link rel="stylesheet" href=(*STYLE);
                link rel="stylesheet" href=(*FINDER_STYLE);
                script src=(*SCRIPT) defer {}
                script src=(*FINDER_SCRIPT) defer {}
                (head)
            }
            body { (body) }
        }
    }
}

/// What the scripts say, in the user's language, and their dialogs.
pub(super) fn script_words(lang: Lang) -> Markup {
    html! {
        div id="words" hidden data-no-answer=(lang.script_no_answer()) data-reconnecting=(lang.script_reconnecting())
            data-tap-moved=(lang.script_tap_moved()) data-copied=(lang.script_copied()) data-just-now=(lang.script_just_now()) {}
        (dialogs::all(lang))
    }
}

/// Kai's logo: a speech bubble with a dot to tap.
pub(super) fn mark() -> Markup {
    html! {
        svg class="mark" viewBox="0 0 48 48" aria-hidden="true" {
            path class="bubble" d="M10 6h28a8 8 0 0 1 8 8v14a8 8 0 0 1-8 8H24l-10 8v-8h-4a8 8 0 0 1-8-8V14a8 8 0 0 1 8-8z" {}
            circle class="dot" cx="24" cy="21" r="6" {}
        }
    }
}
