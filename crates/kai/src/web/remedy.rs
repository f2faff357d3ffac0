//! Errors that lead to the page where they can be resolved.

use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::rich::rich;
use super::settings;

/// Why something was not done, and where on the page that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) why: Said,
    pub(super) remedy: Option<Remedy>,
}

/// The page that resolves an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    Models,
    NewChat,
    Phones,
    #[cfg(feature = "foss")]
    Sms,
    #[cfg(feature = "foss")]
    Notifications,
}

impl Remedy {
    pub(super) fn href(self) -> &'static str {
        match self {
            Self::Models => settings::Page::Models.path(),
            Self::NewChat => "/new",
            Self::Phones => settings::Page::Phones.path(),
            #[cfg(feature = "foss")]
            Self::Sms => "/settings/agent#sms",
            #[cfg(feature = "foss")]
            Self::Notifications => "/settings/agent#notifications",
        }
    }

    pub(super) fn label(self) -> Said {
        match self {
            Self::Models => said::remedy_models(),
            Self::NewChat => said::remedy_new_chat(),
            Self::Phones => said::remedy_phones(),
            #[cfg(feature = "foss")]
            Self::Sms => said::remedy_sms(),
            #[cfg(feature = "foss")]
            Self::Notifications => said::remedy_notifications(),
        }
    }

    pub(super) fn link(self, lang: Lang) -> Markup {
        html! { a href=(self.href()) data-testid="remedy" { (self.label().to(lang)) } }
    }
}

impl Trouble {
    pub(super) fn new(why: Said, remedy: Remedy) -> Self {
        Self { why, remedy: Some(remedy) }
    }

    /// The sentence, followed by the link.
    pub(super) fn render(&self, lang: Lang) -> Markup {
        let why = rich(&self.why, lang, |value| html! { bdi { (value) } });
        html! { (why) @if let Some(remedy) = self.remedy { " " (remedy.link(lang)) } }
    }
}

impl From<Said> for Trouble {
    fn from(why: Said) -> Self {
        Self { why, remedy: None }
    }
}
