//! Forms of the settings pages: reading their fields, and reporting the result in their card.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Extension;
use axum::extract::{FromRequest, Query, Request};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use kai_assistant::agent::Nobody;
use kai_assistant::settings::{self, Kind, Setting};
use kai_words::{Said, said};
use maud::{Markup, html};

use super::context::{FormError, Page, Place};
use crate::answer::answer;
use crate::app::App;
use crate::app::sessions::Session;
use crate::call::Call;
use crate::failure::Failure;
use crate::web::state::Web;
use crate::web::{page, reply};

/// A submitted form, with the headers that say which page it came from.
pub(super) struct Form {
    pub(super) web: Web,
    headers: HeaderMap,
    fields: BTreeMap<String, String>,
}

impl FromRequest<Web> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let headers = request.headers().clone();
        let session = request.extensions().get::<Option<Session>>().cloned().flatten();
        session.ok_or_else(|| page::sign_in(&headers, &web.app.home))?;
        let fields = axum::Form::<BTreeMap<String, String>>::from_request(request, web).await;
        let axum::Form(mut fields) = fields.map_err(|_| reply::misfilled(&headers))?;
        for typed in fields.values_mut() {
            // Browsers submit line breaks as CR LF.
            *typed = typed.replace("\r\n", "\n");
        }
        Ok(Self { web: web.clone(), headers, fields })
    }
}

/// How long [`Form::start`] waits for a result to report. Work that takes longer shows its progress in its region.
const PATIENCE: Duration = Duration::from_millis(700);

impl Form {
    /// The value of a field; empty if it was not sent.
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    /// What was typed, without this field and what every form carries.
    pub(super) fn typed_besides(&self, field: &str) -> BTreeMap<String, String> {
        let mut typed = self.fields.clone();
        typed.retain(|name, _| ![field, "csrf", "page", "card"].contains(&name.as_str()));
        typed
    }

    /// The page that the form is on.
    pub(super) fn page(&self) -> Page {
        Page::named(self.field("page"))
    }

    pub(super) fn app(&self) -> &App {
        &self.web.app
    }

    /// Runs a call exactly as the command line does.
    pub(super) async fn call(&self, call: Call) -> Result<(), Failure> {
        answer(self.app(), call, &self.app().env, &Nobody).await.map(drop)
    }

    /// Starts work that may take minutes; the daemon finishes it even if the browser disconnects. An early failure is
    /// returned.
    pub(super) async fn start(
        &self,
        work: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Result<(), Failure> {
        let begun = tokio::spawn(work);
        match tokio::time::timeout(PATIENCE, begun).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Failure::failed(said::frame_bug())),
            Err(_) => Ok(()),
        }
    }

    /// Responds with the result; what changed is seen on the page.
    pub(super) fn answer<T>(self, done: Result<T, Failure>) -> Response {
        self.respond(done.map(|_| None))
    }

    /// Responds with this sentence if the change was made.
    pub(super) fn answer_saying<T>(self, done: Result<T, Failure>, sentence: Said) -> Response {
        self.respond(done.map(|_| Some(sentence)))
    }

    /// Responds with the reason why nothing was changed.
    pub(super) fn refuse(self, failure: Failure) -> Response {
        self.respond(Err(failure))
    }

    fn respond(self, done: Result<Option<Said>, Failure>) -> Response {
        // Not everything that a card shows is in the store, so open pages are notified here.
        self.web.turns.move_on();
        if reply::by_script(&self.headers) {
            return match done {
                Ok(Some(sentence)) => reply::done_saying(sentence),
                Ok(None) => reply::done_here(&self.headers),
                Err(failure) => reply::not_done(&self.headers, failure.message),
            };
        }
        let place = self.place();
        let card = self.field("card").to_owned();
        match done {
            Ok(_) => Redirect::to(&format!("{}#{card}", place.address())).into_response(),
            Err(failure) => {
                let status = if failure.code == 2 { StatusCode::BAD_REQUEST } else { StatusCode::CONFLICT };
                let error = FormError { place, status, card, sentence: failure.message, fields: self.fields };
                (status, Extension(error)).into_response()
            }
        }
    }

    /// The page that the form is on, with what was unfolded there.
    fn place(&self) -> Place {
        let page = self.page();
        let from: Uri = reply::from(&self.headers).parse().unwrap_or_default();
        let query = Query::try_from_uri(&from).map(|Query(query)| query).unwrap_or_default();
        Place::new(page, if from.path() == page.path() { query } else { BTreeMap::new() })
    }
}

/// `/settings/set`: sets one setting by its key, as `kai settings set` does.
pub(super) async fn set(form: Form) -> Response {
    let done = set_value(&form).await;
    form.answer(done)
}

/// `/settings/text`: sets a setting to an editor's or a field's text. Text equal to Kai's default is not stored, so
/// that the user gets a better default with a later version.
pub(super) async fn set_text(form: Form) -> Response {
    let (text, reset) = (form.field("value").trim(), !form.field("reset").is_empty());
    let value = if reset || text == form.field("own").trim() { "" } else { text };
    let done = store(&form, form.field("key"), value).await;
    form.answer_saying(done, said::settings_saved())
}

/// Sets a setting. The page has its own words for a value that the setting does not accept.
async fn store(form: &Form, key: &str, value: &str) -> Result<(), Failure> {
    let all = settings::catalogue(form.app().toolbox.settings());
    if let Some(setting) = all.iter().find(|setting| setting.key == key)
        && setting.accept(value).is_err()
    {
        return Err(Failure::usage(refusal(setting.kind)));
    }
    form.call(Call::SettingsSet { key: key.to_owned(), value: value.to_owned() }).await
}

/// What a setting of this kind accepts.
pub(super) fn refusal(kind: Kind) -> Said {
    match kind {
        Kind::Switch | Kind::Choice(_) => said::settings_refused_choice(),
        Kind::Whole { from, to } => said::settings_refused_number(from, to),
        Kind::Hosts => said::settings_refused_hosts(),
        Kind::Apps => said::settings_refused_names(),
        Kind::Folders => said::settings_refused_folders(),
        Kind::Text { longest } => said::settings_refused_text(longest),
        Kind::WebAddress => said::settings_refused_address(),
        Kind::Secret => said::settings_refused_key(500_u32),
    }
}

async fn set_value(form: &Form) -> Result<(), Failure> {
    let key = form.field("key");
    let all = settings::catalogue(form.app().toolbox.settings());
    let setting = all.iter().find(|setting| setting.key == key);
    // A slider sends the index of its stop.
    let value = match (form.fields.get("stop"), setting) {
        (Some(stop), Some(setting)) => stop_value(setting, stop),
        _ => form.field("value").to_owned(),
    };
    store(form, key, &value).await
}

/// The value of a setting at a slider's stop.
fn stop_value(setting: &Setting, stop: &str) -> String {
    match setting.kind {
        Kind::Choice(values) => {
            let value = stop.parse().ok().and_then(|at: usize| values.get(at));
            value.map_or_else(|| stop.to_owned(), |value| (*value).to_owned())
        }
        _ => stop.to_owned(),
    }
}

/// The hidden fields of every form: the CSRF token, and the page and card that show the result.
pub(super) fn hidden(csrf: &str, page: Page, card: &str) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(csrf);
        input type="hidden" name="page" value=(page.name());
        input type="hidden" name="card" value=(card);
    }
}
