//! Servers that are reached over HTTP.

use std::sync::Mutex;

use kai_assistant::mcp::port::{LinkError, LinkEvent, Transport};

use super::web::{Door, Web};
use super::*;

fn at(url: String, secrets: &[(&str, &str)]) -> Launch {
    launch(Transport::Http { url }, secrets)
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let web = Web::open(Door::Token("secret-token")).await;
    let server = connected(at(web.url("/mcp"), &[("Authorization", "Bearer secret-token")])).await;
    assert_eq!((names(&server), server.calls_itself.as_written()), (vec!["do"], "Web 1"));
    assert_eq!(text(&server, "do").await, "do");
    assert_eq!(text(&server, "stream").await, "stream");
    assert!(server.link.stderr().is_empty());
}

#[tokio::test]
async fn a_change_is_told_on_the_servers_own_stream() {
    let web = Web::open(Door::Open).await;
    let server = connected(at(web.url("/mcp"), &[])).await;
    happens("Kai listens", || web.seen().requests.contains(&"GET /mcp".to_owned())).await;
    assert_eq!(text(&server, "change").await, "change");
    assert_eq!(server.link.event().await, LinkEvent::ToolsChanged);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled() {
    let web = Web::open(Door::Open).await;
    let server = connected(at(web.url("/mcp"), &[])).await;
    let asked = |method: &str| web.seen().methods.contains(&method.to_owned());
    tokio::select! {
        answer = call(&server, "wait") => panic!("it answered: {answer:?}"),
        () = happens("the call begins", || asked("tools/call")) => {}
    }
    happens("the server is told", || asked("notifications/cancelled")).await;
    assert_eq!(text(&server, "do").await, "do");
    drop(server);
    happens("the session ends", || web.seen().requests.contains(&"DELETE /mcp".to_owned())).await;
}

#[tokio::test]
async fn who_is_refused_is_told_why() {
    let forbidden = Web::open(Door::Forbidden).await;
    assert_eq!(refused(at(forbidden.url("/mcp"), &[])).await, LinkError::Refused { status: 403 });
    let web = Web::open(Door::Token("t")).await;
    for secrets in [&[][..], &[("Authorization", "Bearer wrong")]] {
        assert_eq!(refused(at(web.url("/mcp"), secrets)).await, LinkError::Refused { status: 401 });
    }
    let oauth = Web::open(Door::OAuth).await;
    assert_eq!(refused(at(oauth.url("/mcp"), &[])).await, LinkError::SignIn);
    let own = [("Authorization", "Bearer wrong")];
    assert_eq!(refused(at(oauth.url("/mcp"), &own)).await, LinkError::Refused { status: 401 });
}

#[tokio::test]
async fn what_is_no_server_ends_in_a_sentence() {
    let web = Web::open(Door::Open).await;
    let unreachable = |why: &str| LinkError::Unreachable { why: why.to_owned() };
    let garbled = |why: &str| LinkError::Garbled { why: untrusted(why) };
    for (path, expected) in [
        ("/html", garbled("it answers with text/html")),
        ("/text", garbled("it answers with something that is not a message")),
        ("/broken", unreachable("it answers with status 500")),
        ("/nowhere", unreachable("it answers with status 404")),
        ("/without-end", LinkError::TooLarge),
        ("/away", unreachable("it redirects to another address")),
        ("/round", unreachable("it redirects to another address")),
    ] {
        assert_eq!(refused(at(web.url(path), &[])).await, expected, "{path}");
    }
    assert!(matches!(refused(at("http://127.0.0.1:1/".into(), &[])).await, LinkError::Unreachable { .. }));
    assert!(matches!(refused(at("file:///mcp".into(), &[])).await, LinkError::Unreachable { .. }));
    assert_eq!(names(&connected(at(web.url("/moved"), &[])).await), ["do"], "a move within the server");
}

/// The other server answers everything, so only we keep the header from it.
#[tokio::test]
async fn headers_go_to_no_other_server() {
    let other = Web::open(Door::Open).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, to) = (format!("http://{}/mcp", listener.local_addr().unwrap()), other.url("/mcp"));
    let router = axum::Router::new().fallback(|| async move {
        (axum::http::StatusCode::TEMPORARY_REDIRECT, [(axum::http::header::LOCATION, to)])
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let error = refused(at(url, &[("Authorization", "Bearer secret")])).await;
    assert!(matches!(error, LinkError::Unreachable { .. }), "{error}");
    assert!(other.seen().requests.is_empty());
}

#[tokio::test]
async fn what_is_too_large_ends_the_connection() {
    let web = Web::open(Door::Open).await;
    for tool in ["large", "large_stream"] {
        let server = connected(at(web.url("/mcp"), &[])).await;
        assert_eq!(call(&server, tool).await, Err(LinkError::TooLarge), "{tool}");
        assert_eq!(server.link.event().await, LinkEvent::Ended(LinkError::TooLarge), "{tool}");
    }
}

#[tokio::test]
async fn progress_is_told_and_a_cut_stream_is_an_error() {
    let web = Web::open(Door::Open).await;
    let server = connected(at(web.url("/mcp"), &[])).await;
    let why = untrusted("its answer was cut off");
    assert_eq!(call(&server, "cut").await, Err(LinkError::Failed { why }));
    let seen = Mutex::new(Vec::new());
    // The server answers only after that.
    let progress = |words: Untrusted| {
        seen.lock().unwrap().push(words.as_written().to_owned());
        web.go_on.notify_one();
    };
    let answer = server.link.call("step", no_arguments(), &progress).await.unwrap();
    assert_eq!((answer.text.as_written(), &seen.lock().unwrap()[..]), ("step", &["1".to_owned()][..]));
}
