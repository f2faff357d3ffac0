//! Sentences with marked-up values: a link or a command in the middle of a translated sentence.

use kai_assistant::legible::visible;
use kai_words::{Lang, Part, Said};
use maud::{Markup, html};

/// The sentence in this language, with each of its values rendered by `value`. Characters that cannot be seen are spelled
/// out, because a value may be a stranger's.
pub(super) fn rich(said: &Said, lang: Lang, value: impl Fn(&str) -> Markup) -> Markup {
    html! {
        @for part in said.parts(lang) {
            @match part {
                Part::Words(words) => (visible(&words)),
                Part::Value(text) => (value(&visible(&text))),
            }
        }
    }
}
