//! Style and script, compiled in. Their names carry a hash of their content, so a browser may keep them.

use std::sync::LazyLock;

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use kai_assistant::hex;
use sha2::{Digest, Sha256};

static CSS: LazyLock<String> = LazyLock::new(|| dense(&lean(include_str!("assets/app.css"))));
static JS: LazyLock<String> = LazyLock::new(|| lean(include_str!("assets/app.js")));
#[cfg(feature = "foss")]
static DRAFTS_JS: LazyLock<String> = LazyLock::new(|| lean(include_str!("assets/drafts.js")));
const ICON: &str = include_str!("assets/icon.svg");

/// The address of the style sheet.
pub(super) static STYLE: LazyLock<String> = LazyLock::new(|| named("app", &CSS, "css"));
pub(super) static SCRIPT: LazyLock<String> = LazyLock::new(|| named("app", &JS, "js"));
/// Only for pages that show drafts.
#[cfg(feature = "foss")]
pub(super) static DRAFTS: LazyLock<String> = LazyLock::new(|| named("drafts", &DRAFTS_JS, "js"));
pub(super) static FAVICON: LazyLock<String> = LazyLock::new(|| named("icon", ICON, "svg"));

fn named(stem: &str, content: &str, ending: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    let short = hex::encode(&hash[..6]);
    format!("/assets/{stem}.{short}.{ending}")
}

/// What a browser reads: no indentation, and no line that is only a comment. Both files keep to that form.
fn lean(written: &str) -> String {
    let comment = |line: &str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    let lines = written.lines().map(str::trim).filter(|line| !line.is_empty() && !comment(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Spaces that are there for people.
const AIRY: [(&str, &str); 5] = [(" { ", "{"), ("; }", "}"), ("; ", ";"), (": ", ":"), (", ", ",")];

/// A style sheet without them.
fn dense(style: &str) -> String {
    AIRY.iter().fold(style.to_owned(), |style, (airy, dense)| style.replace(airy, dense))
}

pub(super) async fn serve(uri: Uri) -> Response {
    let asked = uri.path();
    let (content, kind) = match asked {
        _ if asked == *STYLE => (CSS.as_str(), "text/css; charset=utf-8"),
        _ if asked == *SCRIPT => (JS.as_str(), "text/javascript; charset=utf-8"),
        #[cfg(feature = "foss")]
        _ if asked == *DRAFTS => (DRAFTS_JS.as_str(), "text/javascript; charset=utf-8"),
        _ if asked == *FAVICON => (ICON, "image/svg+xml"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let forever = "public, max-age=31536000, immutable";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, forever)], content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_what_counts() {
        assert_eq!(
            lean("/* Tokens. */\na {\n  b: c;\n}\n\n  // why\n  let url = 1; // here\n"),
            "a {\nb: c;\n}\nlet url = 1; // here\n"
        );
        assert_eq!(dense("a > b, c { d: e f; g: \"h i\"; }\n"), "a > b,c{d:e f;g:\"h i\"}\n");
        let told = include_str!("assets/app.css").split('"').skip(1).step_by(2);
        for text in told {
            assert!(AIRY.iter().all(|(airy, _)| !text.contains(airy)), "{text:?} would be changed");
        }
        for whole in
            [include_str!("assets/app.css"), include_str!("assets/app.js"), include_str!("assets/drafts.js")]
        {
            let (open, closed) = (whole.matches("/*").count(), whole.matches("*/").count());
            assert_eq!(open, closed);
            let longer =
                whole.lines().map(str::trim).filter(|line| line.starts_with("/*") != line.ends_with("*/"));
            assert_eq!(longer.count(), 0, "a comment is one line, or it would be cut in two");
            assert!(
                whole.lines().all(|line| line.matches('`').count() % 2 == 0),
                "no text goes over several lines"
            );
        }
    }
}
