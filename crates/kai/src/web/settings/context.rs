//! What a settings page is rendered from: which page, what is unfolded on it, and the error of a refused form.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use kai_assistant::settings::Values;
use kai_words::{Lang, Said};
use serde::Deserialize;

use crate::web::state::Web;
use crate::web::times::Times;

/// The settings pages, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::web) enum Page {
    Agent,
    Tools,
    Models,
    Phones,
    Mcp,
    General,
    Ledger,
    /// Not listed: the first page of an empty home, and reachable from *General*.
    Welcome,
}

/// The path of the page that the chat's Settings link opens.
pub(in crate::web) const FIRST: &str = Page::ALL[0].path();

impl Page {
    pub(in crate::web) const ALL: &[Self] =
        &[Self::Agent, Self::Tools, Self::Models, Self::Phones, Self::Mcp, Self::General, Self::Ledger];

    /// The page with this name; the first for any other.
    pub(in crate::web) fn named(name: &str) -> Self {
        let known = Self::ALL.iter().chain([&Self::Welcome]).copied();
        known.into_iter().find(|page| page.name() == name).unwrap_or(Self::ALL[0])
    }

    /// The name of the page in the query of `/events` and in forms.
    pub(in crate::web) fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tools => "tools",
            Self::Models => "models",
            Self::Phones => "phones",
            Self::Mcp => "mcp",
            Self::Ledger => "ledger",
            Self::General => "general",
            Self::Welcome => "welcome",
        }
    }

    pub(in crate::web) const fn path(self) -> &'static str {
        match self {
            Self::Agent => "/settings/agent",
            Self::Tools => "/settings/tools",
            Self::Models => "/settings/models",
            Self::Phones => "/settings/phones",
            Self::Mcp => "/settings/mcp",
            Self::Ledger => "/ledger",
            Self::General => "/settings/general",
            Self::Welcome => "/welcome",
        }
    }

    pub(in crate::web) fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Agent => lang.settings_agent(),
            Self::Tools => lang.settings_tools(),
            Self::Models => lang.settings_models(),
            Self::Phones => lang.settings_phones(),
            Self::Mcp => lang.settings_mcp(),
            Self::Ledger => lang.settings_ledger(),
            Self::General => lang.settings_general(),
            Self::Welcome => lang.welcome_title(),
        }
    }
}

/// What the URL of a settings page asks to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::web) struct Place {
    pub(in crate::web) page: Page,
    query: BTreeMap<String, String>,
}

impl Place {
    pub(in crate::web) fn new(page: Page, query: BTreeMap<String, String>) -> Self {
        Self { page, query }
    }

    /// The value of a query parameter; empty if there is none.
    pub(in crate::web) fn says(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The parts of cards that are unfolded.
    pub(in crate::web) fn shown(&self) -> BTreeSet<&str> {
        self.says("show").split(',').filter(|part| !part.is_empty()).collect()
    }

    pub(in crate::web) fn shows(&self, part: &str) -> bool {
        self.shown().contains(part)
    }

    /// The id of the item that is open, if it is of this kind.
    pub(in crate::web) fn open(&self, kind: &str) -> Option<&str> {
        self.says("open").strip_prefix(kind)?.strip_prefix(':')
    }

    /// The URL that unfolds a part, or folds it if it is unfolded.
    pub(in crate::web) fn turned(&self, part: &str) -> String {
        let mut shown = self.shown();
        if !shown.remove(part) {
            shown.insert(part);
        }
        self.with("show", &shown.into_iter().collect::<Vec<_>>().join(","))
    }

    /// The URL with another item open, or none.
    pub(in crate::web) fn opening(&self, kind: &str, which: Option<&str>) -> String {
        let what = which.map(|which| format!("{kind}:{which}")).unwrap_or_default();
        self.with("open", &what)
    }

    /// The URL with another value for this query parameter.
    pub(in crate::web) fn with(&self, name: &str, value: &str) -> String {
        let mut query = self.query.clone();
        query.insert(name.to_owned(), value.to_owned());
        Self::new(self.page, query).address()
    }

    pub(in crate::web) fn address(&self) -> String {
        let pairs = self.query.iter().filter(|(_, value)| !value.is_empty());
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{mark}{query}", self.page.path())
    }
}

/// Should rendering a page ask the phone for its state, which may take seconds? Loading a page does not wait for that;
/// the live updates do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum ProbePhone {
    No,
    Phone,
}

/// Everything that a settings page is rendered from.
pub(in crate::web) struct PageContext<'a> {
    pub(in crate::web) web: &'a Web,
    pub(in crate::web) place: &'a Place,
    pub(in crate::web) csrf: &'a str,
    pub(in crate::web) values: Values,
    pub(in crate::web) lang: Lang,
    pub(in crate::web) times: Times,
    pub(in crate::web) probe: ProbePhone,
    pub(in crate::web) error: Option<&'a FormError>,
}

/// The error of a refused form and what was typed into it, shown on the page that a browser without a script gets back.
#[derive(Debug, Clone)]
pub(in crate::web) struct FormError {
    /// The page that the form is on, with what was unfolded there.
    pub(in crate::web) place: Place,
    pub(in crate::web) status: StatusCode,
    pub(in crate::web) card: String,
    pub(in crate::web) sentence: Said,
    pub(in crate::web) fields: BTreeMap<String, String>,
}

impl FormError {
    /// What was typed into a field of this card's form.
    pub(in crate::web) fn typed(&self, card: &str, field: &str) -> Option<&str> {
        self.fields.get(field).filter(|_| self.card == card).map(String::as_str)
    }

    /// The error message, if the form is in this card.
    pub(in crate::web) fn to(&self, card: &str) -> Option<&Said> {
        (self.card == card).then_some(&self.sentence)
    }
}
