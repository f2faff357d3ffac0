//! A real server on loopback, good and bad: each failure ends in one sentence that names cause and next step.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod context;
mod offered;
mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_llm::{Config, Delta, Format, Http, Limits, Message, ModelError, Request, connect};
use support::{
    Do, HELLO, KEY, LIMITS, Log, answer, ask, config, end_of_stream, hello, model, question, serve, stream,
    talk,
};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::{TlsAcceptor, rustls};

const JSON: &str = "application/json";

/// What the server does, and words that the one sentence must contain.
#[rustfmt::skip]
fn bad_servers() -> Vec<(&'static str, Vec<Do>, [&'static str; 2])> {
    let raw = |text: &str| vec![Do::Send(text.as_bytes().to_vec()), Do::Close];
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"hel";
    let long = "x".repeat(150_000);
    vec![
        ("a web page", answer("200 OK", "text/html", "<!doctype html><p>Hi"), ["web page", "probably lacks /v1"]),
        ("a web page that claims to be JSON", answer("200 OK", JSON, "<html>"), ["web page", "probably lacks /v1"]),
        ("a picture", answer("200 OK", "image/png", "\u{1}PNG..."), ["type image/png", "probably lacks /v1"]),
        ("half a JSON", answer("200 OK", JSON, r#"{"choices":[{"mess"#), ["JSON breaks off", "try again"]),
        ("another JSON", answer("200 OK", JSON, r#"{"hello":"world"}"#), ["no answer in it", "try again"]),
        ("a number", answer("200 OK", JSON, "17"), ["not the expected JSON", "try again"]),
        ("half an event", [stream(&[cut]), vec![end_of_stream()]].concat(), ["JSON breaks off", "try again"]),
        ("half a stream", [stream(&[&HELLO[..50]]), vec![Do::Close]].concat(), ["ended too early", "check"]),
        ("an empty body", answer("200 OK", JSON, ""), ["it is empty", "try again"]),
        ("an empty stream", [stream(&[]), vec![end_of_stream()]].concat(), ["it is empty", "try again"]),
        ("200 with an error", answer("200 OK", JSON, r#"{"error":{"message":"out of\nluck"}}"#), ["out of luck", "try again"]),
        ("a redirect", raw("HTTP/1.1 307 Moved\r\nlocation: /chat\r\ncontent-length: 0\r\n\r\n"), ["redirects to /chat", "base URL"]),
        ("404 page", answer("404 Not Found", "text/html", "<html>404</html>"), ["status 404 and a web page", "probably lacks /v1"]),
        ("404 JSON", answer("404 Not Found", JSON, r#"{"detail":"Not Found"}"#), ["status 404", "probably lacks /v1"]),
        ("no such model", answer("404 Not Found", JSON, r#"{"error":{"message":"model 'x' not found"}}"#), ["no model named \"some-model\"", "spelling"]),
        ("a refused key", answer("401 Unauthorized", JSON, &format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#)), ["refused the key", "set a new key"]),
        ("a forbidden thing", answer("403 Forbidden", JSON, &format!(r#"{{"error":"{KEY} may not"}}"#)), ["… may not", "check what the key"]),
        ("too many requests", raw("HTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n"), ["pause of 7 s", "wait"]),
        ("a bad request", answer("400 Bad Request", JSON, r#"{"error":{"message":"roles must alternate"}}"#), ["roles must alternate", "choose another"]),
        ("a broken server", answer("502 Bad Gateway", "text/html", "<html>"), ["status 502", "try again"]),
        ("an overloaded server", answer("503 Busy", JSON, "{}"), ["overloaded", "in a minute"]),
        ("too much", answer("200 OK", "text/event-stream", &format!("data: {long}")), ["limit of 100000 bytes", "base URL"]),
        ("no HTTP", raw("SSH-2.0-OpenSSH\r\n"), ["does not answer in HTTP", "https://"]),
        ("closed at once", vec![Do::Close], ["closed without an answer", "check"]),
        ("silence", vec![Do::Pause(Duration::from_secs(9))], ["no answer within 0 s", "stuck"]),
        ("silence in the middle", [stream(&[&HELLO[..50]]), vec![Do::Pause(Duration::from_secs(9))]].concat(), ["no answer within 0 s", "stuck"]),
    ]
}

#[tokio::test]
async fn a_bad_server_ends_in_one_sentence() {
    for (name, script, words) in bad_servers() {
        let (address, _) = serve(vec![script]).await;
        let sentence = ask(&config(&format!("http://{address}"))).await.unwrap_err().to_string();
        assert!(words.iter().all(|word| sentence.contains(word)), "{name}: {sentence}");
        assert!(
            !sentence.contains(KEY) && !sentence.contains('\n') && sentence.ends_with('.'),
            "{name}: {sentence}"
        );
    }
}

#[tokio::test]
async fn nothing_listens_there() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let sentence = ask(&config(&format!("http://{address}/v1"))).await.unwrap_err().to_string();
    assert!(
        sentence.contains("nothing is listening there") && sentence.contains(&address.to_string()),
        "{sentence}"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_named_so() {
    let (address, _) = serve(vec![hello()]).await;
    let sentence = ask(&config(&format!("https://{address}/v1"))).await.unwrap_err().to_string();
    assert!(sentence.contains("does not speak TLS") && sentence.contains("try http://"), "{sentence}");
}

#[tokio::test]
async fn an_unsigned_certificate_is_refused() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let tls =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        if let Ok(stream) = TlsAcceptor::from(Arc::new(tls)).accept(stream).await {
            talk(stream, 0, vec![hello()], Log::default()).await;
        }
    });
    let error = ask(&config(&format!("https://localhost:{port}/v1"))).await.unwrap_err();
    assert!(matches!(error, ModelError::Certificate { .. }), "{error}");
    assert!(error.to_string().contains("no issuer that this system trusts has signed it"), "{error}");
}

#[tokio::test]
async fn a_prompt_of_20_megabytes_is_refused_before_it_is_sent() {
    let (address, log) = serve(vec![hello()]).await;
    let messages = vec![Message::user("long ".repeat(4 << 20))];
    let request = kai_llm::fit(Request { messages, ..question() }, 8192);
    let error = model(&config(&format!("http://{address}/v1"))).reply(&request, &|_| {}).await.unwrap_err();
    assert_eq!(error, ModelError::TooLong { limit: None });
    assert!(log.seen().is_empty());
}

#[tokio::test]
async fn a_reply_comes_however_it_is_cut_and_what_was_sent_is_what_body_says() {
    let pieces: Vec<&str> = (0..HELLO.len()).map(|at| &HELLO[at..=at]).collect();
    let (address, log) = serve(vec![[stream(&pieces), vec![end_of_stream()]].concat()]).await;
    let model = model(&config(&format!("http://{address}/v1")));
    let heard = Mutex::new(Vec::new());
    let hear = |delta: Delta<'_>| heard.lock().unwrap().push(format!("{delta:?}"));
    let reply = model.reply(&question(), &hear).await.unwrap();
    assert_eq!(
        (reply.text.as_str(), heard.into_inner().unwrap()),
        ("hello", vec!["Text(\"hel\")".to_owned(), "Text(\"lo\")".to_owned()])
    );
    let seen = &log.seen()[0];
    assert_eq!(seen.body, model.body(&question()));
    assert!(seen.head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{}", seen.head);
    assert!(seen.head.contains(&format!("authorization: bearer {KEY}")), "{}", seen.head);
}

#[tokio::test]
async fn each_format_has_its_address_and_its_key_header() {
    for (format, stream, path, header) in [
        (Format::OpenAi, true, "/chat/completions", "authorization: bearer sk-very-secret"),
        (
            Format::Gemini,
            true,
            "/v1beta/models/some-model:streamgeneratecontent?alt=sse",
            "x-goog-api-key: sk-very-secret",
        ),
        (
            Format::Gemini,
            false,
            "/v1beta/models/some-model:generatecontent",
            "x-goog-api-key: sk-very-secret",
        ),
        (Format::Anthropic, true, "/v1/messages", "x-api-key: sk-very-secret\r\n"),
        (Format::Anthropic, false, "/v1/messages", "anthropic-version: 2023-06-01\r\n"),
    ] {
        let (address, log) = serve(vec![answer("500 No", JSON, "{}")]).await;
        let config = Config { format, stream, ..config(&format!("http://{address}")) };
        ask(&config).await.unwrap_err();
        let head = &log.seen()[0].head;
        assert!(head.starts_with(&format!("post {path} http/1.1")) && head.contains(header), "{head}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_stream_is_understood() {
    let whole = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    for kind in [JSON, "text/plain", ""] {
        let (address, _) = serve(vec![answer("200 OK", kind, whole)]).await;
        assert_eq!(ask(&config(&format!("http://{address}/v1"))).await.unwrap().text, "hello", "{kind}");
    }
}

#[tokio::test]
async fn two_replies_use_one_connection() {
    let (address, log) = serve(vec![hello()]).await;
    let model = model(&config(&format!("http://{address}/v1")));
    for _ in 0..2 {
        assert_eq!(model.reply(&question(), &|_| {}).await.unwrap().text, "hello");
    }
    assert_eq!(log.seen().iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 0]);
}

#[tokio::test]
async fn models_of_one_http_share_connections() {
    let (address, log) = serve(vec![hello()]).await;
    let http = Http::new(LIMITS);
    for model in ["one", "two"] {
        let config = Config { model: model.to_owned(), ..config(&format!("http://{address}/v1")) };
        connect(&config, &http).unwrap().reply(&question(), &|_| {}).await.unwrap();
    }
    assert_eq!(log.seen().iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 0]);
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_no_failure() {
    let closing = vec![Do::Close];
    let (address, log) = serve(vec![hello(), closing, hello()]).await;
    let model = model(&config(&format!("http://{address}/v1")));
    for _ in 0..2 {
        assert_eq!(model.reply(&question(), &|_| {}).await.unwrap().text, "hello");
    }
    assert_eq!(log.seen().iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 0, 1]);
}

#[tokio::test]
async fn a_request_on_a_new_connection_is_posted_once_whatever_was_kept_before() {
    // The first answer leaves a connection, the second breaks it, and the third breaks a new one.
    let (address, log) = serve(vec![hello(), vec![Do::Close], vec![Do::Close], hello()]).await;
    let model = model(&config(&format!("http://{address}/v1")));
    model.reply(&question(), &|_| {}).await.unwrap();
    for expected in [3, 4] {
        let again = model.reply(&question(), &|_| {}).await;
        if expected == 3 {
            assert!(matches!(again, Err(ModelError::Network { .. })), "{again:?}");
        }
        assert_eq!(log.seen().len(), expected);
    }
    // A new connection that is closed at once, while another server's was kept.
    let (closing, seen) = serve(vec![vec![Do::Close]]).await;
    let http = Http::new(Limits::default());
    connect(&config(&format!("http://{address}/v1")), &http)
        .unwrap()
        .reply(&question(), &|_| {})
        .await
        .unwrap();
    let broken = connect(&config(&format!("http://{closing}/v1")), &http).unwrap();
    assert!(broken.reply(&question(), &|_| {}).await.is_err());
    assert_eq!(seen.seen().len(), 1, "posted twice");
}

#[tokio::test]
async fn an_answer_is_not_held_up_by_a_server_that_does_not_end_it() {
    let (address, _) =
        serve(vec![[stream(&[HELLO]), vec![Do::Pause(Duration::from_secs(9))]].concat()]).await;
    let config = config(&format!("http://{address}/v1"));
    assert_eq!(timeout(Duration::from_secs(1), ask(&config)).await.unwrap().unwrap().text, "hello");
}

#[tokio::test]
async fn dropping_a_reply_closes_the_connection() {
    let (address, log) = serve(vec![[stream(&[&HELLO[..60]]), vec![Do::AwaitEnd]].concat()]).await;
    let model = model(&config(&format!("http://{address}/v1")));
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let request = question();
    let deltas = move |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            drop(said.send(text.to_owned()));
        }
    };
    tokio::select! {
        reply = model.reply(&request, &deltas) => panic!("it ended: {reply:?}"),
        text = heard.recv() => assert_eq!(text.as_deref(), Some("hel")),
    }
    timeout(Duration::from_secs(2), log.ended.notified()).await.expect("the server still has a connection");
}
