//! Errors that lead to the page where they can be resolved.

use std::borrow::Cow;

use kai_assistant::models::trouble::Fault;
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
    pub(super) href: Cow<'static, str>,
    pub(super) label: Said,
}

impl Remedy {
    fn to(href: &'static str, label: Said) -> Self {
        Self { href: href.into(), label }
    }

    pub(super) fn models() -> Self {
        Self::to("/settings/models", said::remedy_models())
    }

    /// Leads to the field of this model that is at fault.
    pub(super) fn model(name: &str, fault: Fault) -> Self {
        let (field, label) = field_at_fault(fault);
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("open", &format!("model:{name}"))
            .finish();
        Self { href: format!("/settings/models?{query}#models-{field}").into(), label }
    }

    pub(super) fn new_chat() -> Self {
        Self::to("/new", said::remedy_new_chat())
    }

    pub(super) fn phones() -> Self {
        Self::to("/settings/phones", said::remedy_phones())
    }

    pub(super) fn sms() -> Self {
        Self::to("/settings/agent#sms", said::remedy_sms())
    }

    #[cfg(feature = "foss")]
    pub(super) fn notifications() -> Self {
        Self::to("/settings/agent#notifications", said::remedy_notifications())
    }

    pub(super) fn link(&self, lang: Lang) -> Markup {
        html! { a href=(self.href) data-testid="remedy" { (self.label.to(lang)) } }
    }
}

/// The name of the field in the form of a model that is at fault, and what the link to it says.
pub(super) fn field_at_fault(fault: Fault) -> (&'static str, Said) {
    match fault {
        Fault::Key => ("key", said::remedy_model_key()),
        Fault::Model => ("model", said::remedy_model_name()),
        Fault::Address => ("base_url", said::remedy_model_address()),
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
