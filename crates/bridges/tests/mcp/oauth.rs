//! Signing in to a server.

use kai_assistant::mcp::port::{Connector, LinkError, SigningIn, Transport};

use super::web::{Door, Web};
use super::*;

fn at(web: &Web, kept: &Kept) -> Launch {
    let transport = Transport::Http { url: web.url("/mcp") };
    Launch { keep_tokens: kept.keep(), tokens: kept.last(), ..launch(transport, &[]) }
}

async fn begun(web: &Web, kept: &Kept) -> SigningIn {
    connector().sign_in(at(web, kept)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Looks at a page as a browser does. Returns its status, where it leads, and its text.
async fn browse(url: &str) -> (u16, String, String) {
    let client = kai_llm::client_builder().unwrap().build().unwrap();
    let page = client.get(url).send().await.unwrap();
    let (status, to) = (page.status().as_u16(), page.headers().get("location").cloned());
    let to = to.map(|to| to.to_str().unwrap().to_owned()).unwrap_or_default();
    (status, to, page.text().await.unwrap())
}

/// Signs in as a user does.
async fn signed_in(web: &Web, kept: &Kept) {
    let SigningIn { url, done } = begun(web, kept).await;
    let (status, back, _) = browse(&url).await;
    assert_eq!(status, 302);
    let (done, (status, _, page)) = tokio::join!(done, browse(&back));
    assert_eq!(done, Ok(()));
    assert!(status == 200 && page.contains("You can close this window and go back to Kai."), "{page}");
}

#[tokio::test]
async fn a_sign_in_is_kept_used_and_renewed() {
    let (web, kept) = (Web::open(Door::OAuth).await, Kept::default());
    assert_eq!(refused(at(&web, &kept)).await, LinkError::SignIn);
    signed_in(&web, &kept).await;
    assert_eq!(kept.times(), 1);
    let server = connected(at(&web, &kept)).await;
    assert_eq!(text(&server, "do").await, "do");
    web.forget_access();
    assert_eq!(text(&server, "do").await, "do", "the token was renewed on the way");
    assert_eq!(kept.times(), 2);
    let again = connected(at(&web, &kept)).await;
    assert_eq!(text(&again, "do").await, "do", "with the renewed tokens");
    web.forget_access();
    let again = connected(at(&web, &kept)).await;
    assert_eq!(text(&again, "do").await, "do", "renewed with what was stored");
    assert_eq!(kept.times(), 3);
}

#[tokio::test]
async fn who_is_not_signed_in_any_more_is_asked_again() {
    let (web, kept) = (Web::open(Door::OAuth).await, Kept::default());
    signed_in(&web, &kept).await;
    let server = connected(at(&web, &kept)).await;
    web.forget_access();
    web.forget_refresh();
    assert_eq!(call(&server, "do").await, Err(LinkError::SignIn));
    assert_eq!(refused(at(&web, &kept)).await, LinkError::SignIn);
    let launch = Launch { tokens: Some(Secret::new("nonsense")), ..at(&web, &kept) };
    assert_eq!(refused(launch).await, LinkError::SignIn);
}

#[tokio::test]
async fn only_the_answer_to_our_own_question_counts() {
    let (web, kept) = (Web::open(Door::OAuth).await, Kept::default());
    let SigningIn { url, done } = begun(&web, &kept).await;
    let (_, back, _) = browse(&url).await;
    let (place, _) = back.split_once('?').unwrap();
    let forged = format!("{place}?code=code-1&state=forged");
    let strangers = async {
        assert_eq!(browse(&forged).await.0, 404);
        assert_eq!(browse(&place.replace("/callback", "/favicon.ico")).await.0, 404);
        browse(&back).await.0
    };
    let (done, status) = tokio::join!(done, strangers);
    assert_eq!((done, status, kept.times()), (Ok(()), 200, 1));
    assert!(tokio::net::TcpStream::connect(authority(place)).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn who_refuses_is_not_signed_in() {
    let (web, kept) = (Web::open(Door::OAuth).await, Kept::default());
    let SigningIn { url, done } = begun(&web, &kept).await;
    let (_, back, _) = browse(&url).await;
    let refusal = back.replace("code=code-1", "error=access_denied&error_description=Not%20today");
    let (done, _) = tokio::join!(done, browse(&refusal));
    assert_eq!(done, Err(LinkError::NotSignedIn { why: untrusted("Not today") }));
    let SigningIn { url, done } = begun(&web, &kept).await;
    let (_, back, _) = browse(&url).await;
    let wrong = back.replace("code-1", "code-2");
    let (done, _) = tokio::join!(done, browse(&wrong));
    assert!(matches!(done, Err(LinkError::NotSignedIn { .. })), "the server does not know that code");
    assert_eq!(kept.times(), 0);
}

#[tokio::test]
async fn nobody_listens_longer_than_five_minutes() {
    let (web, kept) = (Web::open(Door::OAuth).await, Kept::default());
    let SigningIn { done, .. } = begun(&web, &kept).await;
    tokio::time::pause();
    let why = untrusted("nobody did within five minutes");
    assert_eq!(done.await, Err(LinkError::NotSignedIn { why }));
}

#[tokio::test]
async fn where_nobody_can_sign_in_that_is_said() {
    let (web, kept) = (Web::open(Door::Open).await, Kept::default());
    let no = |why: &str| LinkError::NotSignedIn { why: untrusted(why) };
    let error = connector().sign_in(at(&web, &kept)).await.err().unwrap();
    assert_eq!(error, no("it does not say where"));
    let error = connector().sign_in(lying("honest")).await.err().unwrap();
    assert_eq!(error, no("it is a program on this machine"));
}

fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").split('/').next().unwrap()
}
