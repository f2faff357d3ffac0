//! Signs the user in to a server that asks for it: OAuth, with the SDK's knowledge of who is asked what, and our own
//! client and listener.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Response;
use kai_assistant::mcp::port::{Launch, LinkError, SigningIn, Transport};
use kai_assistant::untrusted::Untrusted;
use reqwest::{Client, Request};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig, OAuthHttpClient,
    OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use rmcp::transport::common::http_header::EVENT_STREAM_MIME_TYPE;
use url::{Host, Url};

use super::http::{Http, address, body, client, content_type};
use super::redirect::{Answer, Listener};
use super::tokens::Keeper;

/// How long the user may take to sign in.
const FOR_THE_USER: Duration = Duration::from_mins(5);
/// How long one request of a sign-in may take.
const FOR_A_REQUEST: Duration = Duration::from_secs(15);
/// The most bytes of an answer.
const LARGEST_ANSWER: usize = 1024 * 1024;
const UNAUTHORIZED: u16 = 401;

/// What makes a connection with the tokens of an earlier sign-in. `None` without such tokens.
pub(super) async fn signed_in(launch: &Launch, url: &str) -> Result<Option<AuthorizationManager>, LinkError> {
    let keep = || Arc::clone(&launch.keep_tokens);
    let Some(keeper) = launch.tokens.as_ref().and_then(|tokens| Keeper::reading(tokens, keep())) else {
        return Ok(None);
    };
    let mut manager = manager(url).await?;
    manager.set_credential_store(keeper.clone());
    if !manager.initialize_from_store().await.map_err(not_signed_in)? {
        return Ok(None);
    }
    if let Some((id, Some(secret))) = keeper.client() {
        let known = OAuthClientConfig::new(id, url).with_client_secret(secret);
        manager.configure_client(known).map_err(not_signed_in)?;
    }
    Ok(Some(manager))
}

/// What a server means that answered with "unauthorized": the user can sign in, or the user's header is wrong.
pub(super) async fn wanted(url: &str, challenge: &str, http: &Http) -> LinkError {
    let refused = LinkError::Refused { status: UNAUTHORIZED };
    if http.has_own_authorization() {
        return refused;
    }
    let Ok(manager) = manager(url).await else { return refused };
    match manager.resolve_metadata_from_challenge(Some(challenge)).await {
        Ok(found) if found.source.is_discovered() => LinkError::SignIn,
        _ => refused,
    }
}

/// Begins a sign-in: finds out where, registers Kai there, and listens for the answer.
pub(super) async fn begin(launch: &Launch) -> Result<SigningIn, LinkError> {
    let Transport::Http { url } = &launch.transport else {
        return Err(no_sign_in("it is a program on this machine"));
    };
    let keeper = Keeper::empty(Arc::clone(&launch.keep_tokens));
    let mut manager = manager(url).await?;
    manager.set_credential_store(keeper.clone());
    let found = manager.resolve_metadata().await.map_err(not_signed_in)?;
    if !found.source.is_discovered() {
        return Err(no_sign_in("it does not say where"));
    }
    check(&found.metadata)?;
    manager.set_metadata(found.metadata);
    let listener = Listener::bind().await.map_err(|error| no_sign_in(&error.to_string()))?;
    let scopes = manager.select_initial_scopes(&[]).await;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let known = manager.register_client("Kai", listener.address(), &scopes).await.map_err(not_signed_in)?;
    keeper.set_client_secret(known.client_secret);
    let page = manager.get_authorization_url(&scopes).await.map_err(not_signed_in)?;
    let state = state(&page).ok_or_else(|| no_sign_in("its page is not one"))?;
    Ok(SigningIn { url: page, done: Box::pin(finish(manager, listener, state)) })
}

async fn finish(manager: AuthorizationManager, listener: Listener, state: String) -> Result<(), LinkError> {
    let answer = tokio::time::timeout(FOR_THE_USER, listener.answer(&state)).await;
    match answer.map_err(|_| no_sign_in("nobody did within five minutes"))? {
        Answer::Refused(why) => Err(LinkError::NotSignedIn { why: Untrusted::new(why) }),
        Answer::Code { code, issuer } => {
            let tokens = manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref()).await;
            tokens.map(|_| ()).map_err(not_signed_in)
        }
    }
}

async fn manager(url: &str) -> Result<AuthorizationManager, LinkError> {
    let requests = Arc::new(Requests(client()?));
    let url = address(url)?;
    AuthorizationManager::new_with_oauth_http_client(url, requests).await.map_err(not_signed_in)
}

/// Refuses a sign-in that others could read on its way.
fn check(metadata: &AuthorizationMetadata) -> Result<(), LinkError> {
    let page = Url::parse(&metadata.authorization_endpoint).ok();
    match page.filter(is_private) {
        Some(_) => Ok(()),
        None => Err(no_sign_in("its page is not protected by https")),
    }
}

/// Whether nobody else can read what goes to this address: https, or this machine.
fn is_private(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_here)
}

fn state(page: &str) -> Option<String> {
    let page = Url::parse(page).ok()?;
    page.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
}

fn no_sign_in(why: &str) -> LinkError {
    LinkError::NotSignedIn { why: Untrusted::new(why) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn not_signed_in(error: AuthError) -> LinkError {
    LinkError::NotSignedIn { why: Untrusted::new(error.to_string()) }
}

/// Sends the requests of a sign-in. They carry no headers of the user.
struct Requests(Client);

impl OAuthHttpClient for Requests {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = Request::try_from(request.request)?;
            if !is_private(request.url()) {
                return Err("it is not protected by https".into());
            }
            let answered = tokio::time::timeout(FOR_A_REQUEST, self.answer(request)).await;
            answered.map_err(|_| OAuthHttpClientError::from("it did not answer in time"))?
        })
    }
}

impl Requests {
    async fn answer(&self, request: Request) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let answer = self.0.execute(request).await.map_err(|error| kai_llm::why_no_answer(&error))?;
        let mut response = Response::new(Vec::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        // The SDK also asks the server itself, which may answer with a stream that does not end.
        if !content_type(&answer).starts_with(EVENT_STREAM_MIME_TYPE) {
            *response.body_mut() = body(answer, LARGEST_ANSWER).await.map_err(|error| error.to_string())?;
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_is_protected() {
        for (url, expected) in [
            ("https://example.org/authorize", true),
            ("http://127.0.0.1:1234/authorize", true),
            ("http://[::1]:1234/authorize", true),
            ("http://localhost/authorize", true),
            ("http://example.org/authorize", false),
            ("http://192.168.0.1/authorize", false),
            ("http://localhost.example.org/authorize", false),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_private(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
