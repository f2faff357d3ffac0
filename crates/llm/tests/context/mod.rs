//! Servers on loopback that tell their window, each in its own way, and servers that do not.

use std::time::Duration;

use crate::support::{Do, KEY, answer, config, serve};
use kai_llm::context::{Tells, ask_window};
use kai_llm::{Config, Format, Http, Limits};

const JSON: &str = "application/json";

fn json(body: &str) -> Vec<Do> {
    answer("200 OK", JSON, body)
}

fn missing() -> Vec<Do> {
    answer("404 Not Found", JSON, "{}")
}

async fn asked(tells: Tells, scripts: Vec<Vec<Do>>) -> (Option<usize>, Vec<String>) {
    let (address, log) = serve(scripts).await;
    let format = if tells == Tells::Gemini { Format::Gemini } else { Format::OpenAi };
    let base = if tells == Tells::Gemini { "v1beta" } else { "v1" };
    let config = Config { format, model: "m".to_owned(), ..config(&format!("http://{address}/{base}")) };
    let window = ask_window(&config, tells, &Http::new(Limits::default())).await;
    let seen = log.seen();
    let first_lines = seen.iter().map(|seen| {
        assert!(seen.head.contains(KEY), "the key goes to the model's own server: {}", seen.head);
        seen.head.lines().next().unwrap_or_default().replace(" http/1.1", "")
    });
    (window, first_lines.collect())
}

#[tokio::test]
async fn each_kind_of_server_is_asked_where_it_tells_its_window() {
    let show = r#"{"parameters":"num_ctx 16384","model_info":{"llama.context_length":131072}}"#;
    let all = [
        (
            Tells::Llamacpp,
            vec![json(r#"{"default_generation_settings":{"n_ctx":2048}}"#)],
            Some(2048),
            vec!["get /props?model=m&autoload=false"],
        ),
        (
            Tells::Ollama,
            vec![json(r#"{"models":[{"name":"m:latest","context_length":4096}]}"#)],
            Some(4096),
            vec!["get /api/ps"],
        ),
        (
            Tells::Ollama,
            vec![json(r#"{"models":[]}"#), json(show)],
            Some(16_384),
            vec!["get /api/ps", "post /api/show"],
        ),
        (
            Tells::Lmstudio,
            vec![json(r#"{"data":[{"id":"m","loaded_context_length":4096}]}"#)],
            Some(4096),
            vec!["get /api/v0/models"],
        ),
        (
            Tells::List,
            vec![json(r#"{"data":[{"id":"m","context_length":32768}]}"#)],
            Some(32_768),
            vec!["get /v1/models"],
        ),
        (
            Tells::Gemini,
            vec![json(r#"{"inputTokenLimit":1048576}"#)],
            Some(1_048_576),
            vec!["get /v1beta/models/m"],
        ),
        (
            Tells::Any,
            vec![missing(), missing(), json(r#"{"data":[{"id":"m","loaded_context_length":4096}]}"#)],
            Some(4096),
            vec!["get /props?model=m&autoload=false", "get /v1/models", "get /api/v0/models"],
        ),
        (Tells::Llamacpp, vec![missing()], None, vec!["get /props?model=m&autoload=false"]),
        (
            Tells::Llamacpp,
            vec![answer("200 OK", "text/html", "<p>")],
            None,
            vec!["get /props?model=m&autoload=false"],
        ),
    ];
    for (tells, scripts, expected, lines) in all {
        assert_eq!(asked(tells, scripts).await, (expected, lines.iter().map(ToString::to_string).collect()));
    }
}

#[tokio::test]
async fn a_redirect_does_not_take_the_key_elsewhere() {
    let (other, log) = serve(vec![json(r#"{"default_generation_settings":{"n_ctx":2048}}"#)]).await;
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: http://{other}/props\r\ncontent-length: 0\r\n\r\n");
    let (window, asked) = asked(Tells::Llamacpp, vec![vec![Do::Send(moved.into_bytes())]]).await;
    assert_eq!((window, asked.len(), log.seen().len()), (None, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_not_waited_for_for_long() {
    let began = tokio::time::Instant::now();
    let (window, _) = asked(Tells::Any, vec![vec![Do::AwaitEnd]]).await;
    assert_eq!(window, None);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}
