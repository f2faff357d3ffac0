//! Files attached to a message: accepts them before the message is sent, shows them in the chat, and serves their bytes.

use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use kai_assistant::agent::TurnError;
use kai_assistant::agent::conversation::{self, ConversationId};
use kai_assistant::attachments::store::{self, StagedId};
use kai_assistant::attachments::{self, Attachment, FileKind, LARGEST, MOST, Prepared, Refused};
use kai_assistant::models::vision::Vision;
use kai_words::{Lang, Said};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::state::Web;
use super::{assets, icons, page, picker, reasons, reply};
use crate::app::App;
use crate::commands::{chats, models};

/// Where files are uploaded to.
pub(super) const UPLOAD: &str = "/attach";

const STYLE: &str = include_str!("assets/attach.css");
const SCRIPT: &str = include_str!("assets/attach.js");
static STYLE_PATH: LazyLock<String> = LazyLock::new(|| assets::named("attach", STYLE, "css"));
static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| assets::named("attach", SCRIPT, "js"));

/// What a file may do when a browser opens it by itself: nothing.
const FILE_CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; sandbox; frame-ancestors 'none'",
);

pub(super) fn routes() -> Router<Web> {
    let style = get(async || assets::cached(STYLE, "text/css; charset=utf-8"));
    let script = get(async || assets::cached(SCRIPT, "text/javascript; charset=utf-8"));
    Router::new()
        // The guard limits it.
        .route(UPLOAD, post(upload).layer(DefaultBodyLimit::disable()))
        .route("/attach/{id}/remove", post(remove))
        .route("/files/{hash}", get(file))
        .route(&STYLE_PATH, style)
        .route(&SCRIPT_PATH, script)
}

/// Style and script of pages with a message field.
pub(super) fn head() -> Markup {
    html! {
        link rel="stylesheet" href=(*STYLE_PATH);
        script src=(*SCRIPT_PATH) defer {}
    }
}

/// The path of a file.
pub(super) fn path(hash: &str) -> String {
    format!("/files/{hash}")
}

/// The button in the message form, and the field with the numbers of the attached files.
pub(super) fn button(lang: Lang) -> Markup {
    html! {
        input type="hidden" name="files" id="files" value="" autocomplete="off";
        // Neither is sent: the script uploads what is chosen.
        input type="file" id="attach-choose" multiple hidden aria-label=(lang.attach_add())
            accept="image/jpeg,image/png,image/webp,text/*,.md,.csv,.json,.log,.xml,.yaml,.yml,.toml,.ini,.conf,.sh,.py,.rs,.js,.ts,.c,.h,.cpp,.java,.tex,.srt,.ics,.vcf";
        button type="button" class="round js-only" id="attach" data-testid="attach" aria-label=(lang.attach_add()) title=(lang.attach_add()) {
            (icons::clip())
        }
    }
}

/// The files that are attached to the message that is being written. The script fills it.
pub(super) fn tray(lang: Lang) -> Markup {
    html! {
        ul id="attached" class="files" aria-label=(lang.attach_attached()) aria-live="polite" hidden
            data-most=(MOST) data-largest=(LARGEST) data-drop=(lang.attach_drop()) data-close=(lang.attach_close())
            data-reading=(lang.attach_reading(NAME)) data-failed=(lang.attach_failed(NAME))
            data-too-many=(Refused::TooMany.said().to(lang))
            data-too-big=(Refused::TooBig { name: NAME.to_owned() }.said().to(lang)) {}
    }
}

/// What stands for a file's name in the texts of the script.
const NAME: &str = "{name}";

/// The files of a message in the chat.
pub(super) fn shown(files: &[Attachment], lang: Lang) -> Markup {
    html! {
        @if !files.is_empty() {
            ul class="files" aria-label=(lang.attach_attached()) {
                @for file in files { li { (link(file, lang)) } }
            }
        }
    }
}

fn link(file: &Attachment, lang: Lang) -> Markup {
    let to = path(&file.hash);
    match file.kind {
        FileKind::Picture { width, height, .. } => html! {
            a class="picture" href=(to) target="_blank" rel="noopener" data-testid="attachment-picture"
                title=(file.name) aria-label=(lang.attach_open_large(&file.name)) {
                img src=(to) alt=(lang.attach_picture(&file.name)) width=(width) height=(height) loading="lazy" decoding="async";
            }
        },
        FileKind::Text => html! {
            a class="file" href=(to) target="_blank" rel="noopener" data-testid="attachment-file" {
                (icons::page()) span class="file-name" dir="auto" { (file.name) } span class="quiet" { (size(file.size, lang)) }
            }
        },
    }
}

/// A file of the message that is being written, with a button that removes it.
fn chip(id: StagedId, file: &Attachment, lang: Lang) -> Markup {
    let label = lang.attach_remove(&file.name);
    html! {
        li class="chip-file" data-file=(id.0) data-testid="attached-file" {
            @if file.is_picture() {
                a class="picture" href=(path(&file.hash)) target="_blank" rel="noopener" aria-label=(lang.attach_open_large(&file.name)) {
                    img src=(path(&file.hash)) alt=(lang.attach_picture(&file.name)) width="40" height="40";
                }
            } @else { (icons::page()) }
            span class="file-name" dir="auto" title=(file.name) { (file.name) }
            span class="quiet" { (size(file.size, lang)) }
            button type="button" class="round" data-detach data-testid="attach-remove" aria-label=(label) title=(label) { (icons::close()) }
        }
    }
}

/// A size as people read it.
fn size(bytes: usize, lang: Lang) -> String {
    const KB: usize = 1024;
    match bytes {
        0..KB => lang.attach_size_bytes(bytes),
        _ if bytes < KB * KB => lang.attach_size_kb(bytes.div_ceil(KB)),
        _ => lang.attach_size_mb(lang.tenths(bytes * 10 / (KB * KB))),
    }
}

/// Accepts a file and answers with its chip. A model that is known not to see pictures is named at once.
async fn upload(
    State(web): State<Web>,
    Query(meant): Query<MeantFor>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let app = &web.app;
    let prepared = match attachments::prepare(name(&headers), body.to_vec()).await {
        Ok(prepared) => prepared,
        Err(refused) => return reply::not_done(&headers, refused.said()),
    };
    let (file, lang) = (prepared.file.clone(), lang(app).await);
    let id = match chats::stage(app, prepared).await {
        Ok(id) => id,
        Err(error) => return reply::not_done(&headers, error.said()),
    };
    let warning = if file.is_picture() { blind(app, meant).await } else { None };
    let remedy = warning.as_ref().and_then(|trouble| trouble.remedy.as_ref());
    let told = json!({
        "chip": chip(id, &file, lang).into_string(),
        "warning": warning.as_ref().map(|trouble| trouble.why.to(lang)),
        "remedy": remedy.map(|remedy| json!({"href": remedy.href, "text": remedy.label.to(lang)})),
    });
    ([(header::CONTENT_TYPE, "application/json")], told.to_string()).into_response()
}

async fn lang(app: &App) -> Lang {
    App::lang(&app.values().await.unwrap_or_default(), &app.env)
}

/// Where the message will be sent.
#[derive(Deserialize)]
struct MeantFor {
    /// The number of the chat; empty for a new one.
    #[serde(default)]
    chat: String,
    /// The model that is chosen for a new chat.
    #[serde(default)]
    model: String,
}

/// Why the model that would be asked cannot see pictures.
async fn blind(app: &App, meant: MeantFor) -> Option<super::remedy::Trouble> {
    let chosen = match meant.chat.parse() {
        Ok(id) => app.db.read(move |tx| conversation::model(tx, ConversationId(id))).await.ok()?,
        Err(_) => picker::named(meant.model),
    };
    let ready = models::connected_for(app, &app.env, chosen).await.ok()?;
    let first = ready.first().filter(|first| first.vision == Vision::No)?;
    Some(reasons::turn(&TurnError::CannotSee { label: first.label.clone() }))
}

/// The name that the browser gives the file.
fn name(headers: &HeaderMap) -> String {
    let given = headers.get("x-file-name").and_then(|name| name.to_str().ok()).unwrap_or_default();
    let decoded = form_urlencoded::parse(format!("n={}", given.replace('+', "%2B")).as_bytes())
        .next()
        .map(|(_, name)| name.into_owned());
    decoded.unwrap_or_default()
}

/// What is said of a file that is too large to be read at all.
pub(super) fn too_large(headers: &HeaderMap) -> Said {
    Refused::TooBig { name: attachments::name::harmless(&name(headers)) }.said()
}

/// Removes a file from the message that is being written.
async fn remove(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    match web.app.db.write(move |tx| store::take_back(tx, StagedId(id))).await {
        Ok(()) => reply::done_here(&headers),
        Err(error) => reply::not_done(&headers, kai_assistant::db::DbError::said(&error)),
    }
}

/// Serves the bytes of a file, as one of the three kinds that there are.
async fn file(State(web): State<Web>, Path(hash): Path<String>, uri: Uri) -> Response {
    let found = web.app.db.read(move |tx| store::find(tx, &hash)).await;
    match found.map_err(|error: kai_assistant::db::DbError| error) {
        Ok(Some(Prepared { file, bytes })) => {
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static(file.kind.content_type())),
                (header::CONTENT_SECURITY_POLICY, FILE_CSP),
                (header::CONTENT_DISPOSITION, HeaderValue::from_static("inline")),
            ];
            (StatusCode::OK, headers, bytes).into_response()
        }
        Ok(None) => page::not_found(uri).await,
        Err(error) => page::trouble(error.said()),
    }
}

/// The files that a message form names; `None` if that is no list of numbers.
pub(super) fn ids(field: &str) -> Option<Vec<StagedId>> {
    let numbers = field.split(',').filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().ok().map(StagedId)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_a_form_is_a_list_of_numbers() {
        for (field, expected) in [
            ("", Some(vec![])),
            ("7", Some(vec![StagedId(7)])),
            ("7,8", Some(vec![StagedId(7), StagedId(8)])),
            ("x", None),
            ("7;8", None),
        ] {
            assert_eq!(ids(field), expected, "{field}");
        }
    }

    #[test]
    fn sizes_are_written_as_people_read_them() {
        for (bytes, english, german) in [
            (512, "512 bytes", "512 Bytes"),
            (1024, "1 KB", "1 KB"),
            (200_000, "196 KB", "196 KB"),
            (1_700_000, "1.6 MB", "1,6 MB"),
        ] {
            assert_eq!(size(bytes, Lang::ENGLISH), english);
            assert_eq!(size(bytes, Lang::of("de")), german);
        }
    }

    #[test]
    fn a_name_arrives_as_the_browser_knows_it() {
        for (header, expected) in [
            ("cat.jpg", "cat.jpg"),
            ("Gr%C3%BC%C3%9Fe%20a%26b.txt", "Grüße a&b.txt"),
            ("a+b.txt", "a+b.txt"),
            ("", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-file-name", header.parse().unwrap());
            assert_eq!(name(&headers), expected);
        }
    }
}
