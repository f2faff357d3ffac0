//! Opens and closes the endpoint.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::phones::store::{self, OwnIdentity};
use kai_bridges::kdeconnect::{
    Capabilities, Credentials, DeviceId, DeviceKind, DeviceName, Endpoint, Identity, OpenError, Pin,
    Protocol, Setup, Strangers, Use,
};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::super::state::NetworkTrouble;
use super::{Network, Open, Paired, Running};

/// What phones read as the name of this machine.
const NAME: &str = "Kai";
/// How long closing waits for links to end.
const CLOSING: Duration = Duration::from_millis(500);

impl Running<'_> {
    pub(super) async fn open_up(&mut self, uses: BTreeSet<Use>) {
        let opened = match self.setup(&uses).await {
            Ok(setup) => Endpoint::open(setup).await.map_err(trouble),
            Err(trouble) => Err(trouble),
        };
        match opened {
            Ok((endpoint, events)) => {
                tracing::info!(port = endpoint.port(), hears = endpoint.hears(), "phones can connect");
                self.open = Some(Open { endpoint: Arc::new(endpoint), events, uses });
                self.plan.opened();
                self.trouble = None;
            }
            Err(trouble) => {
                if self.trouble.as_ref() != Some(&trouble) {
                    tracing::warn!(?trouble, "phones cannot connect");
                }
                self.trouble = Some(trouble);
                self.plan.not_opened(self.now());
            }
        }
    }

    async fn setup(&self, uses: &BTreeSet<Use>) -> Result<Setup, NetworkTrouble> {
        let (id, credentials) = self.identity().await?;
        let Network { reach, limits, .. } = self.around.network.clone();
        let capabilities = Capabilities::of_computer(&uses.iter().copied().collect::<Vec<_>>());
        let pin = |paired: &Paired| Pin {
            device: paired.device.clone(),
            certificate: paired.row.certificate.clone(),
            protocol: Protocol::new(paired.row.protocol.into()).unwrap_or(Protocol::V8),
        };
        Ok(Setup {
            me: Identity {
                id,
                name: DeviceName::clean(NAME),
                kind: DeviceKind::Desktop,
                protocol: Protocol::V8,
                incoming: capabilities.incoming,
                outgoing: capabilities.outgoing,
            },
            credentials,
            pins: self.phones.values().map(pin).collect(),
            strangers: Strangers::Refused,
            reach,
            limits,
            clock: Arc::clone(&self.around.clock),
        })
    }

    /// This machine as phones know it. It is made once.
    async fn identity(&self) -> Result<(DeviceId, Credentials), NetworkTrouble> {
        let wrong = |why: &dyn std::fmt::Display| NetworkTrouble::Identity(why.to_string());
        let kept = self.around.db.read(store::identity).await.map_err(|_: DbError| NetworkTrouble::Store)?;
        let own = if let Some(own) = kept {
            own
        } else {
            let new = new_identity(self.now())?;
            let kept = self.around.db.write(move |tx| store::keep_identity(tx, &new)).await;
            kept.map_err(|_: DbError| NetworkTrouble::Store)?
        };
        let id = DeviceId::parse(&own.device).ok_or_else(|| wrong(&"the id cannot be read"))?;
        let credentials = Credentials::from_der(own.certificate, Zeroizing::new(own.key));
        Ok((id, credentials.map_err(|bad| wrong(&bad.0))?))
    }

    /// Stops listening and ends all links.
    pub(super) async fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        // Calls end with the endpoint, and count as if they had not been made.
        self.calls.abort_all();
        self.calls = JoinSet::new();
        let now = self.now();
        for (source, paired) in &mut self.phones {
            if paired.connected.take().is_some() {
                paired.phone.lost();
                self.around.drivers.lost(*source, &paired.phone);
            }
            self.plan.hung_up(*source, now);
        }
        self.pairings.clear();
        self.leaving.clear();
        if timeout(CLOSING, open.endpoint.close()).await.is_err() {
            tracing::debug!("a phone took its time to hang up");
        }
        tracing::info!("phones cannot connect any more");
    }
}

fn new_identity(now: Timestamp) -> Result<OwnIdentity, NetworkTrouble> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| NetworkTrouble::Identity(error.to_string()))?;
    let id = DeviceId::from_random(random);
    let made = Credentials::make(&id, now).map_err(|bad| NetworkTrouble::Identity(bad.0))?;
    Ok(OwnIdentity {
        device: id.to_string(),
        certificate: made.certificate().to_vec(),
        key: made.key().to_vec(),
    })
}

fn trouble(error: OpenError) -> NetworkTrouble {
    match error {
        OpenError::Credentials(bad) => NetworkTrouble::Identity(bad.0),
        OpenError::Listen(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            NetworkTrouble::PortsTaken
        }
        OpenError::Listen(error) => NetworkTrouble::NotAllowed(error.to_string()),
    }
}
