//! Errors that lead to the page where they can be resolved.

use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::rich::rich;

/// Why something was not done, and where on the page that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) why: Said,
    pub(super) remedy: Option<Remedy>,
}

/// A link to the page that resolves an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remedy {
    pub(super) href: &'static str,
    pub(super) label: Said,
}

impl Remedy {
    pub(super) fn models() -> Self {
        Self { href: "/settings/models", label: said::remedy_models() }
    }

    pub(super) fn new_chat() -> Self {
        Self { href: "/new", label: said::remedy_new_chat() }
    }

    pub(super) fn phones() -> Self {
        Self { href: "/settings/phones", label: said::remedy_phones() }
    }

    pub(super) fn sms() -> Self {
        Self { href: "/settings/agent#sms", label: said::remedy_sms() }
    }

    #[cfg(feature = "foss")]
    pub(super) fn notifications() -> Self {
        Self { href: "/settings/agent#notifications", label: said::remedy_notifications() }
    }

    pub(super) fn link(&self, lang: Lang) -> Markup {
        html! { a href=(self.href) data-testid="remedy" { (self.label.to(lang)) } }
    }
}

impl Trouble {
    pub(super) fn new(why: Said, remedy: Remedy) -> Self {
        Self { why, remedy: Some(remedy) }
    }

    /// The sentence, followed by the link.
    pub(super) fn render(&self, lang: Lang) -> Markup {
        let why = rich(&self.why, lang, |value| html! { bdi { (value) } });
        html! { (why) @if let Some(remedy) = &self.remedy { " " (remedy.link(lang)) } }
    }
}

impl From<Said> for Trouble {
    fn from(why: Said) -> Self {
        Self { why, remedy: None }
    }
}
