//! Compresses the text that the page sends, for browsers that ask for it.

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Body as _;

/// Shorter texts gain nothing.
const SHORTEST: u64 = 1024;
/// Longer ones would keep a thread busy: an export is compressed by whoever stores it.
const LONGEST: u64 = 512 * 1024;

pub(super) async fn compress(request: Request, next: Next) -> Response {
    let wanted = accepts_gzip(request.headers());
    let response = next.run(request).await;
    if wanted && is_text(response.headers()) && has_fitting_length(&response) {
        compressed(response).await
    } else {
        response
    }
}

/// Does the browser accept gzip?
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Is this text of a kind worth compressing, and not compressed yet?
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let text = ["text/html", "text/css", "text/javascript", "application/json", "application/manifest+json"];
    !headers.contains_key(header::CONTENT_ENCODING) && text.iter().any(|known| kind.starts_with(known))
}

/// A stream, such as the live updates, has no length: holding it back to compress it would delay it.
fn has_fitting_length(response: &Response) -> bool {
    response.body().size_hint().exact().is_some_and(|length| (SHORTEST..=LONGEST).contains(&length))
}

async fn compressed(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let most = usize::try_from(LONGEST).unwrap_or(usize::MAX);
    let Ok(plain) = to_bytes(body, most).await else {
        // A body that is in memory, as these are, cannot fail.
        return Response::from_parts(parts, Body::empty());
    };
    let Ok(packed) = gzip(&plain) else { return Response::from_parts(parts, Body::from(plain)) };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(packed))
}

fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    packer.write_all(plain)?;
    packer.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use axum::response::IntoResponse;
    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn only_browsers_that_accept_it_get_it() {
        for (accepted, expected) in [
            ("gzip, deflate, br", true),
            ("GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn text_comes_out_as_it_went_in() {
        let text = "Kai ".repeat(2000);
        let response = compressed(text.clone().into_response()).await;
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        let packed = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(packed.len() * 10 < text.len());
        let mut unpacked = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
    }

    #[test]
    fn streams_and_what_is_packed_already_stay_as_they_are() {
        let streamed =
            Response::new(Body::from_stream(futures_util::stream::empty::<Result<Vec<u8>, axum::Error>>()));
        assert!(!has_fitting_length(&streamed));
        assert!(!has_fitting_length(&"short".into_response()));
        let kind = |kind: &'static str| {
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))])
        };
        assert!(is_text(&kind("text/html; charset=utf-8")) && !is_text(&kind("image/svg+xml")));
        let mut packed = kind("text/html");
        packed.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!is_text(&packed));
    }
}
