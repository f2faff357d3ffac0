//! The dialogs that a key opens on every page: the search over everything, and the sheet of shortcuts. The script in
//! `assets/finder.js` opens and fills them; without it, [`opener`] is a link to the page of the search.

use kai_words::Lang;
use maud::{Markup, html};

use super::icons;

/// The path of the search over everything.
pub(super) const SEARCH: &str = "/search";

/// The link in the head of a page that opens the search.
pub(super) fn opener(lang: Lang) -> Markup {
    html! {
        a class="round find" href=(SEARCH) data-finds data-testid="find" aria-label=(lang.finder_open())
            title={ (lang.finder_open()) " (" (lang.finder_key_ctrl()) "+K)" } { (icons::search()) }
    }
}

/// The shortcuts, each with its keys.
fn shortcuts(lang: Lang) -> [(Vec<&'static str>, &'static str); 6] {
    let (ctrl, alt, shift) = (lang.finder_key_ctrl(), lang.finder_key_alt(), lang.finder_key_shift());
    let (enter, esc) = (lang.finder_key_enter(), lang.finder_key_esc());
    [
        (vec![ctrl, "K"], lang.finder_shortcut_find()),
        (vec![alt, "N"], lang.finder_shortcut_new()),
        (vec![esc], lang.finder_shortcut_close()),
        (vec![enter], lang.finder_shortcut_send()),
        (vec![shift, enter], lang.finder_shortcut_line()),
        (vec!["?"], lang.finder_shortcut_sheet()),
    ]
}

pub(super) fn all(lang: Lang) -> Markup {
    html! {
        dialog id="finder" class="finder" aria-label=(lang.finder_open()) {
            form class="search" method="get" action=(SEARCH) role="search" {
                input type="search" id="finder-input" name="q" data-testid="finder-input" placeholder=(lang.finder_placeholder())
                    aria-label=(lang.finder_placeholder()) role="combobox" aria-autocomplete="list" aria-expanded="true"
                    aria-controls="finder-results" autocomplete="off" spellcheck="false" dir="auto";
                button class="round" type="button" data-closes-dialog aria-label=(lang.finder_close()) title=(lang.finder_close()) { (icons::close()) }
            }
            div id="finder-results" role="listbox" aria-label=(lang.finder_open()) data-testid="finder-results" {}
            p class="finder-foot" {
                button type="button" class="small" data-shortcuts data-testid="finder-shortcuts" { (lang.finder_shortcuts()) " " kbd { "?" } }
            }
        }
        dialog id="shortcuts" class="finder" aria-labelledby="shortcuts-title" {
            div class="between" {
                h2 id="shortcuts-title" { (lang.finder_shortcuts()) }
                button class="round" type="button" data-closes-dialog data-testid="shortcuts-close" aria-label=(lang.finder_close()) title=(lang.finder_close()) { (icons::close()) }
            }
            dl data-testid="shortcuts" {
                @for (keys, what) in shortcuts(lang) {
                    div { dt { @for key in keys { kbd { (key) } " " } } dd { (what) } }
                }
            }
        }
    }
}
