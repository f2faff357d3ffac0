//! Who visits a server over HTTP: somebody who has signed in, or anybody. One type for both, because the SDK's part of a
//! connection is built once for each type, and it is large.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpClient, StreamableHttpPostResponse};
use sse_stream::Sse;

use super::http::{Failed, Http, Wrapped};

/// How Kai comes to a server.
#[derive(Clone)]
pub(super) enum Visitor {
    Anybody(Http),
    SignedIn(AuthClient<Http>),
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Visitor {
    type Error = Failed;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Wrapped<StreamableHttpPostResponse> {
        match self {
            Self::Anybody(http) => http.post_message(uri, message, session, token, headers).await,
            Self::SignedIn(client) => client.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Wrapped<()> {
        match self {
            Self::Anybody(http) => http.delete_session(uri, session, token, headers).await,
            Self::SignedIn(client) => client.delete_session(uri, session, token, headers).await,
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Wrapped<BoxStream<'static, Result<Sse, SseError>>> {
        match self {
            Self::Anybody(http) => http.get_stream(uri, session, last_event, token, headers).await,
            Self::SignedIn(client) => client.get_stream(uri, session, last_event, token, headers).await,
        }
    }
}
