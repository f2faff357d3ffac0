//! Fuzz checks for pages and for responses of search services: for any input, the result is bounded, plain and marked
//! as untrusted.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use reqwest::Url;

use super::client::Page;
use super::fetch::{fitted, understood};
use super::html::{Piece, pieces};
use super::readable::readable;
use super::results::{self, Hit, MOST, Unreadable};

fn is_a_line(text: &str, longest: usize) -> bool {
    text.chars().count() <= longest
        && !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

fn check_hits(found: Result<Vec<Hit>, Unreadable>) {
    let hits = found.unwrap_or_default();
    assert!(hits.len() <= MOST);
    for Hit { title, url, snippet } in hits {
        assert!(
            !title.is_empty() && is_a_line(&title, 1_001) && is_a_line(&snippet, 401),
            "{title:?} {snippet:?}"
        );
        let parsed = Url::parse(&url).unwrap();
        assert!(matches!(parsed.scheme(), "http" | "https") && url.len() <= 1_000, "{url}");
        assert_eq!(parsed.as_str(), url, "it has one spelling, by which the gate knows it again");
    }
}

/// Fuzz target: checks any bytes as an HTML page.
pub fn page(bytes: &[u8]) {
    check_page(&String::from_utf8_lossy(bytes));
}

/// Fuzz target: checks any bytes as a server's response, with the content type on the first line and the body after it.
pub fn answer(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (kind, body) = bytes.split_at(end);
    for (status, cut) in [(200, false), (200, true), (404, false)] {
        check_answer(body.to_vec(), String::from_utf8_lossy(kind).into_owned(), status, cut);
    }
}

/// Fuzz target: checks any bytes as the response of each search service.
pub fn found(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for read in [results::duckduckgo, results::searxng, results::brave, results::tavily] {
        check_hits(read(&text));
    }
}

/// Checks that reading a page does not make it much larger.
fn check_page(page: &str) {
    let (mut count, mut held) = (0, 0);
    for piece in pieces(page) {
        count += 1;
        if let Piece::Text(text) = piece {
            held += text.len();
        }
    }
    // A few entities are shorter than the characters that they stand for, and a NUL becomes a sign of three bytes.
    assert!(count <= page.len() + 1 && held <= 3 * page.len(), "{count} pieces, {held} bytes of text");
    let read = readable(page);
    assert!(read.text.len() <= 4 * page.len(), "{} from {}", read.text.len(), page.len());
    assert!(!read.text.contains('\0'));
    assert!(read.title.is_none_or(|title| is_a_line(&title, 301)));
}

/// Checks that any response becomes a result that fits and is marked as untrusted, or an error message that contains no
/// text from the server.
fn check_answer(body: Vec<u8>, content_type: String, status: u16, cut: bool) {
    let url: Url = "https://a.test/".parse().unwrap();
    match understood(&Page { url: url.clone(), status, content_type, body, cut }) {
        Ok(read) => {
            let told = fitted(url.into(), read.title, read.text, cut, 8_000);
            let result = serde_json::to_string(&told).unwrap();
            assert!(result.chars().count() <= 8_000 && result.ends_with("\"untrusted\":true}"), "{result}");
        }
        Err(said) => assert!(is_a_line(&said.0, 200), "{:?}", said.0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "<!DOCTYPE html><html lang=en><head><meta charset=\"utf-8\"><title>A &amp; B</title><style>p{}</style>\
        <script>if (a < b) {}</script></head><body><nav><a href='/x?a=1&amp;b=2'>Home</a></nav><main><h1>Head</h1><p class=\"x y\">\
        One <b>two</b>&nbsp;three &#x20ac; &#128075;<br/>four</p><pre>\n a\n  b\n</pre><ul><li>1<li>2</ul><table><tr><td>c<td>d</table>\
        <div hidden>no</div><p style='display: none'>no</p><textarea>t</textarea><!-- no --></main><footer>f</footer></body></html>";
    const FOUND: &str = "<div class=\"result results_links web-result \"><h2 class=\"result__title\"><a rel=\"nofollow\" \
        class=\"result__a\" href=\"//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2F&amp;rut=1\">A <b>title</b></a></h2>\
        <a class=\"result__snippet\" href=\"https://a.test/\">A snippet</a></div><div class=\"result result--ad\"><a class=\"result__a\" \
        href=\"https://duckduckgo.com/y.js?ad=1\">Ad</a></div><div class=\"no-results\"></div>";
    const JSON: [&str; 3] = [
        r#"{"results":[{"title":"A","url":"https://a.test","content":"s","score":1}],"unresponsive_engines":[["x","t"]]}"#,
        r#"{"type":"search","web":{"results":[{"title":"A","url":"https://a.test/","description":"<strong>s</strong>"}]}}"#,
        r#"{"query":"q","answer":null,"results":[{"title":"A","url":"https://a.test/","content":"s"}]}"#,
    ];

    proptest! {
        #[test]
        fn a_page_becomes_no_more_than_it_was(page in kai_mutate::text(vec![PAGE.to_owned(), FOUND.to_owned()])) {
            check_page(&page);
        }

        #[test]
        fn an_answer_is_a_marked_result_or_our_own_sentence(
            body in kai_mutate::bytes(vec![PAGE.into(), JSON[0].into(), b"plain \xfcext".to_vec()]),
            kind in kai_mutate::text(["text/html; charset=utf-8", "application/ld+json", "image/png"].map(str::to_owned).to_vec()),
            status in prop_oneof![4 => Just(200_u16), 1 => 100..600_u16],
            cut in any::<bool>(),
        ) {
            check_answer(body, kind, status, cut);
        }

        #[test]
        fn results_are_few_plain_and_have_addresses(
            page in kai_mutate::text(vec![FOUND.to_owned(), FOUND.repeat(3)]),
            json in kai_mutate::text(JSON.map(str::to_owned).to_vec()),
        ) {
            check_hits(results::duckduckgo(&page));
            for read in [results::searxng, results::brave, results::tavily] {
                check_hits(read(&json));
            }
        }
    }
}
