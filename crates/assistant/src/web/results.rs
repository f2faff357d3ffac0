//! Reads search results from the responses of search services. A page that is not a list of results is an error and
//! never "nothing was found", because a model would believe that and tell the user so.

use reqwest::Url;
use serde::Serialize;
use serde_json::Value;

use super::html::{Piece, Tag, pieces};
use super::readable::one_line;

/// One search result. Its texts were written by a stranger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
}

/// Why no results could be read from a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(
        "The search service wants proof that a person is searching, so it gave no results. Try again later, or let the \
         user choose another search service: kai settings set web_search_backend"
    )]
    Captcha,
    #[error(
        "Kai does not understand the search service's answer, so it cannot tell whether there are results. The user \
         can choose another one: kai settings set web_search_backend"
    )]
    Unknown,
    #[error("The search service gave no results: {0}.")]
    Said(String),
}

/// The most results that a model gets.
pub(super) const MOST: usize = 5;
const TITLE: usize = 150;
const SNIPPET: usize = 400;
/// The longest address that is accepted, in bytes. A longer one carries more data than just where a page is.
const ADDRESS: usize = 1_000;

/// Reads the results page that `DuckDuckGo` serves to browsers without scripts.
pub(super) fn duckduckgo(page: &str) -> Result<Vec<Hit>, Unreadable> {
    let mut reading = Reading::default();
    for piece in pieces(page) {
        reading.take(piece);
    }
    reading.finish()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Title,
    Snippet,
}

#[derive(Default)]
struct Reading {
    hits: Vec<Hit>,
    /// Whether the last of `hits` is the result being read. False inside an advertisement or a result without a usable
    /// link.
    at_hit: bool,
    /// The field being read, the name of the element that holds it, and how many elements of that name are open inside
    /// it.
    field: Option<(Field, String, usize)>,
    text: String,
    captcha: bool,
    /// Whether this is certainly a results page, even if it lists none.
    known: bool,
}

impl Reading {
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Open(tag) => self.open(&tag),
            Piece::Close(name) => self.close(&name),
            Piece::Text(text) if self.field.is_some() => self.text.push_str(&text),
            Piece::Text(_) => {}
        }
    }

    fn open(&mut self, tag: &Tag) {
        let class = |name| tag.has_class(name);
        if class("result__a") {
            self.end_field();
            self.start(tag);
        } else if class("result__snippet") && self.at_hit {
            self.end_field();
            self.field = Some((Field::Snippet, tag.name.clone(), 1));
        } else if class("result") {
            self.end_field();
            self.at_hit = false;
            self.known |= class("result--ad");
        } else if let Some((_, name, depth)) = &mut self.field
            && *name == tag.name
        {
            *depth += 1;
        }
        self.known |= class("no-results") || class("result--no-result");
        self.captcha |= class("anomaly-modal__title") || class("anomaly-modal__mask") || is_challenge(tag);
    }

    fn start(&mut self, tag: &Tag) {
        let target = tag.attribute("href").and_then(target);
        self.at_hit = matches!(target, Some(Target::Page(_)));
        match target {
            Some(Target::Page(url)) => {
                self.hits.push(Hit { title: String::new(), url, snippet: String::new() });
                self.field = Some((Field::Title, tag.name.clone(), 1));
            }
            Some(Target::Advertisement) => self.known = true,
            None => {}
        }
    }

    fn close(&mut self, closed: &str) {
        if let Some((_, name, depth)) = &mut self.field
            && name == closed
        {
            *depth -= 1;
            if *depth == 0 {
                self.end_field();
            }
        }
    }

    fn end_field(&mut self) {
        let text = std::mem::take(&mut self.text);
        let Some((field, ..)) = self.field.take() else { return };
        let Some(hit) = self.hits.last_mut() else { return };
        match field {
            Field::Title => hit.title = one_line(&text, TITLE),
            Field::Snippet => hit.snippet = one_line(&text, SNIPPET),
        }
    }

    fn finish(mut self) -> Result<Vec<Hit>, Unreadable> {
        self.end_field();
        self.hits.retain(|hit| !hit.title.is_empty());
        self.hits.truncate(MOST);
        match () {
            () if !self.hits.is_empty() => Ok(self.hits),
            () if self.captcha => Err(Unreadable::Captcha),
            () if self.known => Ok(vec![]),
            () => Err(Unreadable::Unknown),
        }
    }
}

fn is_challenge(tag: &Tag) -> bool {
    tag.name == "form"
        && (tag.attribute("id").is_some_and(|id| id == "challenge-form")
            || tag.attribute("action").is_some_and(|action| action.contains("anomaly.js")))
}

enum Target {
    Page(String),
    Advertisement,
}

/// Where a link on the results page really leads, without `DuckDuckGo`'s redirect.
fn target(href: &str) -> Option<Target> {
    let url = Url::parse("https://duckduckgo.com/html/").ok()?.join(href).ok()?;
    let theirs =
        url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    match url.path() {
        "/y.js" if theirs => Some(Target::Advertisement),
        "/l/" if theirs => {
            let (_, wrapped) = url.query_pairs().find(|(name, _)| name == "uddg")?;
            page(&wrapped).map(Target::Page)
        }
        _ => page(url.as_str()).map(Target::Page),
    }
}

/// The normalized form of an `http` or `https` address, if it is not too long.
fn page(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let web = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= ADDRESS;
    web.then(|| url.into())
}

/// Reads the response of `SearXNG` to `/search?format=json`.
pub(super) fn searxng(body: &str) -> Result<Vec<Hit>, Unreadable> {
    let answer = json(body)?;
    let hits = hits(answer.get("results"), "content", str::to_owned)?;
    let silent =
        answer.get("unresponsive_engines").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if hits.is_empty() && silent {
        return Err(Unreadable::Said("the engines it asks did not answer".to_owned()));
    }
    Ok(hits)
}

pub(super) fn brave(body: &str) -> Result<Vec<Hit>, Unreadable> {
    let answer = json(body)?;
    // If Brave found no web pages, the whole section is missing.
    if answer.get("web").is_none() && answer.get("type").and_then(Value::as_str) == Some("search") {
        return Ok(vec![]);
    }
    hits(answer.pointer("/web/results"), "description", without_tags)
}

pub(super) fn tavily(body: &str) -> Result<Vec<Hit>, Unreadable> {
    hits(json(body)?.get("results"), "content", str::to_owned)
}

fn json(body: &str) -> Result<Value, Unreadable> {
    serde_json::from_str(body).map_err(|_| Unreadable::Unknown)
}

/// Reads the results from a JSON list and skips unusable items. A list in which no item is usable is an error.
fn hits(list: Option<&Value>, snippet: &str, plain: fn(&str) -> String) -> Result<Vec<Hit>, Unreadable> {
    let list = list.and_then(Value::as_array).ok_or(Unreadable::Unknown)?;
    let hit = |item: &Value| {
        let field = |name| plain(item.get(name).and_then(Value::as_str).unwrap_or_default());
        let url = page(item.get("url")?.as_str()?)?;
        let title = Some(one_line(&field("title"), TITLE)).filter(|title| !title.is_empty());
        Some(Hit {
            title: title.unwrap_or_else(|| url.clone()),
            url,
            snippet: one_line(&field(snippet), SNIPPET),
        })
    };
    let hits: Vec<Hit> = list.iter().filter_map(hit).take(MOST).collect();
    if hits.is_empty() && !list.is_empty() { Err(Unreadable::Unknown) } else { Ok(hits) }
}

fn without_tags(text: &str) -> String {
    let words = |piece| if let Piece::Text(text) = piece { Some(text) } else { None };
    pieces(text).into_iter().filter_map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The HTML of one result.
    fn result(href: &str, title: &str, snippet: Option<&str>) -> String {
        let snippet = snippet.map(|text| format!("<a class=\"result__snippet\" href=\"{href}\">{text}</a>"));
        format!(
            "<div class=\"result results_links results_links_deep web-result \"><div class=\"links_main result__body\">\
             <h2 class=\"result__title\"><a rel=\"nofollow\" class=\"result__a\" href=\"{href}\">{title}</a></h2>\
             <a class=\"result__url\" href=\"{href}\"> example </a>{}</div></div>",
            snippet.unwrap_or_default()
        )
    }

    fn page_of(results: &[String]) -> String {
        format!(
            "<!DOCTYPE html><html><head><title>x at DuckDuckGo</title></head><body><form id=\"search_form_homepage\" \
             action=\"/html/\"></form><div id=\"links\" class=\"results\">{}</div></body></html>",
            results.concat()
        )
    }

    fn wrapped(url: &str) -> String {
        format!("//duckduckgo.com/l/?uddg={url}&amp;rut=0a1b")
    }

    fn as_lines(found: Result<Vec<Hit>, Unreadable>) -> Result<Vec<String>, Unreadable> {
        let line = |hit: Hit| format!("{} | {} | {}", hit.title, hit.url, hit.snippet);
        found.map(|hits| hits.into_iter().map(line).collect())
    }

    #[test]
    fn results_are_read_as_the_page_writes_them() {
        let plain =
            result(&wrapped("https%3A%2F%2Fa.test%2Fp%3Fq%3D1%26r%3D2"), "A", Some("About <b>a</b>."));
        let direct = result("https://b.test/", "B &amp; <b>b</b>\n &#8211; ü", Some("x &lt;i&gt; y"));
        let bare =
            result(&wrapped("http%3A%2F%2Fc.test%2F%C3%BC"), "日本語 <span>nested <b>deep</b></span>", None);
        let found = as_lines(duckduckgo(&page_of(&[plain, direct, bare]))).unwrap();
        assert_eq!(
            found,
            [
                "A | https://a.test/p?q=1&r=2 | About a.",
                "B & b – ü | https://b.test/ | x <i> y",
                "日本語 nested deep | http://c.test/%C3%BC | ",
            ]
        );
    }

    #[test]
    fn advertisements_and_links_that_are_no_pages_are_left_out() {
        let ad = "<div class=\"result results_links result--ad\"><a class=\"result__a\" \
                  href=\"https://duckduckgo.com/y.js?ad_domain=shop.test&amp;u3=x\">Buy</a>\
                  <a class=\"result__snippet\" href=\"#\">Cheap!</a></div>";
        let real = result("https://a.test/", "A", None);
        let script = result("javascript:alert(1)", "J", Some("evil"));
        let nothing = result(&wrapped("notaurl"), "N", Some("nothing"));
        let with = |parts: &[&str]| page_of(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        let found = as_lines(duckduckgo(&with(&[&real, ad, &script, &nothing])));
        assert_eq!(found, Ok(vec!["A | https://a.test/ | ".to_owned()]));
        assert_eq!(duckduckgo(&with(&[ad])), Ok(vec![]), "only advertisements: nothing was found");
        assert_eq!(
            duckduckgo(&with(&[&script])),
            Err(Unreadable::Unknown),
            "results, but none that we can read"
        );
    }

    #[test]
    fn at_most_five_and_none_too_long() {
        let many: Vec<String> =
            (0..9).map(|n| result(&format!("https://a.test/{n}"), "A", Some("s"))).collect();
        assert_eq!(duckduckgo(&page_of(&many)).unwrap().len(), 5);
        let long = result("https://a.test/", &"t".repeat(999), Some(&"ü".repeat(9_999)));
        let hit = duckduckgo(&page_of(&[long])).unwrap().remove(0);
        assert_eq!((hit.title.chars().count(), hit.snippet.chars().count()), (TITLE + 1, SNIPPET + 1));
    }

    #[test]
    fn what_is_no_list_of_results_is_never_nothing_found() {
        let captcha = "<html><body><div class=\"anomaly-modal__mask\"><div class=\"anomaly-modal__title\">\
                       Unfortunately, bots use DuckDuckGo too.</div></div></body></html>";
        let challenge =
            "<form id=\"challenge-form\" action=\"//duckduckgo.com/anomaly.js?sv=html\" method=\"POST\">";
        let none = page_of(&["<div class=\"result results_links result--no-result\">\
                             <div class=\"no-results\">No results.</div></div>"
            .to_owned()]);
        let whole =
            page_of(&[result("https://a.test/", "A", Some("s")), result("https://b.test/", "B", None)]);
        let changed = whole.replace("result__a", "r-link").replace("class=\"result ", "class=\"r-card ");
        let hit = |title: &str, url: &str, snippet: &str| Hit {
            title: title.to_owned(),
            url: url.to_owned(),
            snippet: snippet.to_owned(),
        };
        for (name, page, expected) in [
            ("captcha", captcha, Err(Unreadable::Captcha)),
            ("challenge", challenge, Err(Unreadable::Captcha)),
            ("no results", &none, Ok(vec![])),
            ("error page", "<html><h1>502 Bad Gateway</h1></html>", Err(Unreadable::Unknown)),
            ("empty", "", Err(Unreadable::Unknown)),
            ("changed layout", &changed, Err(Unreadable::Unknown)),
            ("start page", "<div id=links class=results></div>", Err(Unreadable::Unknown)),
            ("cut before the first", &whole[..150], Err(Unreadable::Unknown)),
            (
                "cut in the second's title",
                &whole[..whole.find(">B<").unwrap()],
                Ok(vec![hit("A", "https://a.test/", "s")]),
            ),
        ] {
            assert_eq!(duckduckgo(page), expected, "{name}");
        }
    }

    #[test]
    fn json_services_leniently_but_never_an_error_as_nothing() {
        type Read = fn(&str) -> Result<Vec<Hit>, Unreadable>;
        let said = Err(Unreadable::Said("the engines it asks did not answer".to_owned()));
        let one = || Ok(vec!["A | https://a.test/ | s".to_owned()]);
        for (read, body, expected) in [
            (
                searxng as Read,
                r#"{"results":[{"title":"A","url":"https://a.test","content":"s","score":1}]}"#,
                one(),
            ),
            (
                searxng,
                r#"{"results":[{"url":"https://a.test/","title":null},{"title":"no url"},7]}"#,
                Ok(vec!["https://a.test/ | https://a.test/ | ".to_owned()]),
            ),
            (searxng, r#"{"results":[],"unresponsive_engines":[]}"#, Ok(vec![])),
            (searxng, r#"{"results":[],"unresponsive_engines":[["x","timeout"]]}"#, said),
            (searxng, "<html>", Err(Unreadable::Unknown)),
            (searxng, r#"{"error":"no"}"#, Err(Unreadable::Unknown)),
            (
                brave,
                r#"{"type":"search","web":{"results":[{"title":"A","url":"https://a.test/","description":"<strong>s</strong>"}]}}"#,
                one(),
            ),
            (brave, r#"{"type":"search","query":{}}"#, Ok(vec![])),
            (brave, r#"{"type":"ErrorResponse","error":{}}"#, Err(Unreadable::Unknown)),
            (
                tavily,
                r#"{"query":"q","answer":null,"results":[{"title":"A","url":"https://a.test/","content":"s"}]}"#,
                one(),
            ),
            (tavily, r#"{"results":[]}"#, Ok(vec![])),
            (tavily, r#"{"results":[{"href":"https://a.test/"}]}"#, Err(Unreadable::Unknown)),
            (tavily, r#"{"detail":{"error":"key"}}"#, Err(Unreadable::Unknown)),
        ] {
            assert_eq!(as_lines(read(body)), expected, "{body}");
        }
    }
}
