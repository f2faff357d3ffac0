//! Servers on loopback that list their models, each in its own way, and servers that do not.

use crate::support::{KEY, LIMITS, answer, config, serve};
use kai_llm::{Config, Format, Http, ModelError, offered};

const JSON: &str = "application/json";

#[tokio::test]
async fn each_format_has_its_list_and_the_key_goes_along() {
    let openai = r#"{"data":[{"id":"m"}]}"#;
    for (format, base, body, path) in [
        (Format::OpenAi, "/v1", openai, "get /v1/models "),
        (Format::OpenAi, "/v1/chat/completions", openai, "get /v1/models "),
        (Format::Anthropic, "", openai, "get /v1/models?limit=1000 "),
        (Format::Anthropic, "/v1", openai, "get /v1/models?limit=1000 "),
        (Format::Gemini, "", r#"{"models":[{"name":"models/m"}]}"#, "get /v1beta/models?pagesize=1000 "),
    ] {
        let (address, log) = serve(vec![answer("200 OK", JSON, body)]).await;
        let config = Config { format, ..config(&format!("http://{address}{base}")) };
        let found = offered(&config, &Http::new(LIMITS)).await.unwrap();
        assert_eq!(found.len(), 1, "{base}");
        assert_eq!(found[0].id, "m");
        let head = log.seen()[0].head.clone();
        assert!(head.starts_with(path) && head.contains(KEY), "{head}");
    }
}

#[tokio::test]
async fn a_server_without_a_list_says_what_is_wrong_and_never_the_key() {
    let echo = format!(r#"{{"error":{{"message":"{KEY} is not allowed"}}}}"#);
    for (status, kind, body, expected) in [
        ("401 Unauthorized", JSON, "{}", "refused the key"),
        ("403 Forbidden", JSON, echo.as_str(), "… is not allowed"),
        ("404 Not Found", "text/plain", "404 page not found", "status 404"),
        ("404 Not Found", JSON, r#"{"error":{"message":"model not found"}}"#, "status 404"),
        ("307 Moved", JSON, "{}", "refused the request"),
        ("200 OK", "text/html", "<html>", "not the expected JSON"),
        ("500 Oops", JSON, "{}", "status 500"),
    ] {
        let (address, _log) = serve(vec![answer(status, kind, body)]).await;
        let failed = offered(&config(&format!("http://{address}/v1")), &Http::new(LIMITS)).await.unwrap_err();
        let sentence = failed.to_string();
        assert!(sentence.contains(expected) && !sentence.contains(KEY), "{status}: {sentence}");
    }
    let nobody = config("http://127.0.0.1:9/v1");
    assert!(matches!(offered(&nobody, &Http::new(LIMITS)).await, Err(ModelError::Network { .. })));
    let wrong = config("no address");
    assert!(matches!(offered(&wrong, &Http::new(LIMITS)).await, Err(ModelError::BadSetup { .. })));
}
