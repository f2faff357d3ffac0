//! Messages to the user that are a response of their own: a page, or JSON for the script. A handler says what to tell;
//! one layer, [`Message::render`], puts it into the user's language.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kai_words::{Lang, Said};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::frame::{frame, mark};
use super::remedy::Trouble;
use super::rich::rich;

/// A page that shows only a message.
#[derive(Debug, Clone)]
pub(super) struct Notice {
    status: StatusCode,
    title: Said,
    parts: Vec<Part>,
    /// Should the browser load the address again at once?
    refresh: bool,
}

#[derive(Debug, Clone)]
enum Part {
    /// A paragraph; its values, such as a command, are shown as code.
    Text(Said),
    Link {
        to: String,
        label: Said,
    },
    /// A value to copy, under the name that tests know it by.
    Value {
        testid: &'static str,
        value: String,
    },
}

impl Notice {
    pub(super) fn new(status: StatusCode, title: Said) -> Self {
        Self { status, title, parts: vec![], refresh: false }
    }

    pub(super) fn text(mut self, text: Said) -> Self {
        self.parts.push(Part::Text(text));
        self
    }

    pub(super) fn link(mut self, to: &str, label: Said) -> Self {
        self.parts.push(Part::Link { to: to.to_owned(), label });
        self
    }

    pub(super) fn value(mut self, testid: &'static str, value: &str) -> Self {
        self.parts.push(Part::Value { testid, value: value.to_owned() });
        self
    }

    pub(super) fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    fn render(&self, lang: Lang) -> Response {
        let title = self.title.to(lang);
        let head = html! { @if self.refresh { meta http-equiv="refresh" content="0"; } };
        let body = html! {
            main class="notice" { (mark()) h1 { (title) } @for part in &self.parts { p { (part.render(lang)) } } }
        };
        (self.status, frame(&title, lang, "system", &head, &body)).into_response()
    }
}

impl Part {
    fn render(&self, lang: Lang) -> Markup {
        match self {
            Self::Text(text) => rich(text, lang, |value| html! { code { (value) } }),
            Self::Link { to, label } => html! { a href=(to) { (label.to(lang)) } },
            Self::Value { testid, value } => html! { code data-testid=(testid) { (value) } },
        }
    }
}

impl IntoResponse for Notice {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A JSON object for the script with one sentence in it, and the link to the page that helps.
#[derive(Debug, Clone)]
pub(super) struct JsonMessage {
    pub(super) status: StatusCode,
    pub(super) field: &'static str,
    pub(super) told: Trouble,
}

impl IntoResponse for JsonMessage {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A message that a response carries and that still has to be put into the user's language.
pub(super) enum Message {
    Notice(Notice),
    Json(JsonMessage),
}

impl Message {
    /// Takes the message out of the response, if it carries one.
    pub(super) fn of(response: &mut Response) -> Option<Self> {
        let carried = response.extensions_mut();
        let notice = carried.remove().map(Self::Notice);
        notice.or_else(|| carried.remove().map(Self::Json))
    }

    pub(super) fn render(self, lang: Lang) -> Response {
        match self {
            Self::Notice(notice) => notice.render(lang),
            Self::Json(JsonMessage { status, field, told }) => {
                let mut object = Map::from_iter([(field.to_owned(), Value::from(told.why.to(lang)))]);
                if let Some(remedy) = told.remedy {
                    let link = json!({"href": remedy.href, "text": remedy.label.to(lang)});
                    object.insert("remedy".to_owned(), link);
                }
                let json = [(header::CONTENT_TYPE, "application/json")];
                (status, json, Value::Object(object).to_string()).into_response()
            }
        }
    }
}
