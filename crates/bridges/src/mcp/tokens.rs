//! The tokens of a sign-in, in the form in which they are stored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kai_assistant::mcp::port::{KeepTokens, Secret};
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};

/// What is needed to use and to renew a sign-in. The SDK would not keep the secret that a server may have given us
/// when we registered.
#[derive(Clone, Serialize, Deserialize)]
struct Stored {
    credentials: StoredCredentials,
    #[serde(default)]
    client_secret: Option<String>,
}

/// Holds the tokens of one connection, and has every change of them stored.
#[derive(Clone)]
pub(super) struct Keeper {
    keep: KeepTokens,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    credentials: Option<StoredCredentials>,
    client_secret: Option<String>,
}

impl Keeper {
    pub(super) fn empty(keep: KeepTokens) -> Self {
        Self { keep, held: Arc::default() }
    }

    /// Reads stored tokens. `None` if they are not what we wrote.
    pub(super) fn reading(tokens: &Secret, keep: KeepTokens) -> Option<Self> {
        let Stored { credentials, client_secret } = serde_json::from_str(tokens.reveal()).ok()?;
        let held = Held { credentials: Some(credentials), client_secret };
        Some(Self { keep, held: Arc::new(Mutex::new(held)) })
    }

    /// The client that the server knows us as, with its secret if there is one.
    pub(super) fn client(&self) -> Option<(String, Option<String>)> {
        let held = self.held();
        held.credentials.as_ref().map(|it| (it.client_id.clone(), held.client_secret.clone()))
    }

    pub(super) fn set_client_secret(&self, secret: Option<String>) {
        self.held().client_secret = secret;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CredentialStore for Keeper {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.held().credentials.clone())
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let stored = {
            let mut held = self.held();
            held.credentials = Some(credentials.clone());
            Stored { credentials, client_secret: held.client_secret.clone() }
        };
        let written =
            serde_json::to_string(&stored).map_err(|e| AuthError::CredentialStoreError(e.to_string()))?;
        (self.keep)(Secret::new(written));
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.held().credentials = None;
        Ok(())
    }
}
