//! A phone's inbox, and whether we may read it: asked at most once a minute, and learned from every real answer.

use std::sync::Arc;
use std::time::Duration;

use super::port::{From, ReadError, SmsReader};
use super::search::Wanted;
use super::{Sms, SmsId};
use crate::access::{Access, Known};
use crate::clock::Clock;

/// A request to a model does not wait longer for the phone.
const PATIENCE: Duration = Duration::from_secs(3);

/// Characters of a body.
const LONGEST: usize = 40_000;
const FIRST_PAGE: usize = 500;
const PAGE: usize = 5_000;

pub struct Inbox {
    reader: Arc<dyn SmsReader>,
    clock: Arc<dyn Clock>,
    access: Known,
}

impl Inbox {
    pub fn new(reader: Arc<dyn SmsReader>, clock: Arc<dyn Clock>) -> Self {
        Self { reader, clock, access: Known::default() }
    }

    /// Asks the phone whether we may read, unless it said so within the last minute.
    pub async fn probe_access(&self) -> Access {
        if self.access.is_old(self.clock.now()) {
            let silent = |_| Access::Silent("The phone did not answer.".to_owned());
            let access = tokio::time::timeout(PATIENCE, self.reader.access()).await.unwrap_or_else(silent);
            self.access.learn(access, self.clock.now());
        }
        self.access()
    }

    /// Asks the phone now, however long it takes; where the platform can ask the person, it does.
    pub async fn ask(&self) -> Access {
        let access = self.reader.access().await;
        self.access.learn(access, self.clock.now());
        self.access()
    }

    /// What is known without asking.
    pub fn access(&self) -> Access {
        self.access.last().unwrap_or_else(|| Access::Silent("The phone was not asked yet.".to_owned()))
    }

    /// Why its tools cannot be used, if so.
    pub fn lacks(&self) -> Option<String> {
        match self.access.last() {
            // It is asked before anything is offered; until then there is nothing to say against it.
            None | Some(Access::Granted) => None,
            Some(Access::Denied(what_to_do)) => Some(what_to_do),
            Some(Access::Silent(why)) => Some(format!("SMS cannot be read right now: {why}")),
        }
    }

    pub(super) async fn last(&self) -> Result<Option<Sms>, ReadError> {
        self.learn(self.reader.last().await)
    }

    pub async fn from(&self, from: From, limit: usize) -> Result<Vec<Sms>, ReadError> {
        self.learn(self.reader.from(from, limit).await).map(Self::bounded)
    }

    pub async fn newest(&self, skip: usize, limit: usize) -> Result<Vec<Sms>, ReadError> {
        self.learn(self.reader.newest(skip, limit).await).map(Self::bounded)
    }

    /// One message of the inbox.
    pub async fn message(&self, id: SmsId) -> Result<Option<Sms>, ReadError> {
        Ok(self.from(From::Id(id), 1).await?.into_iter().find(|sms| sms.id == id))
    }

    /// The newest messages that hold what is wanted, as `shown` shows them, page by page until there are enough.
    pub async fn search(
        &self,
        wanted: Wanted,
        shown: impl Fn(&Sms) -> Sms + Send + Sync + 'static,
        most: usize,
    ) -> Result<Vec<Sms>, ReadError> {
        let look = Arc::new(move |rows: &[Sms]| {
            let parts = |sms: &Sms, found: fn(&Wanted, &str) -> bool| {
                found(&wanted, sms.address.as_written()) || found(&wanted, sms.body.as_written())
            };
            let possible = rows.iter().filter(|sms| parts(sms, Wanted::may_be_seen_in));
            possible.map(&shown).filter(|sms| parts(sms, Wanted::is_in)).collect::<Vec<_>>()
        });
        let (mut found, mut skip): (Vec<Sms>, usize) = (vec![], 0);
        loop {
            // A short first page answers most questions; then in strides, since each costs a call.
            let limit = if skip == 0 { FIRST_PAGE } else { PAGE };
            let rows = self.newest(skip, limit).await?;
            let over = rows.len() < limit;
            skip += rows.len();
            let look = Arc::clone(&look);
            // Thousands of messages take a moment; other work goes on meanwhile.
            let hits = tokio::task::spawn_blocking(move || look(&rows)).await;
            let hits = hits.map_err(|_| ReadError::Failed("The search was stopped.".to_owned()))?;
            for hit in hits {
                // One that arrives between two pages shifts them, and shows a message twice.
                if found.iter().all(|known| known.identity() != hit.identity()) {
                    found.push(hit);
                }
            }
            if over || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }

    /// No SMS is longer than what 255 parts hold; a body that is came from something else, and would hold up everyone.
    fn bounded(rows: Vec<Sms>) -> Vec<Sms> {
        let cut = |sms: Sms| match sms.body.as_written().char_indices().nth(LONGEST) {
            Some((end, _)) => Sms { body: sms.body.map(|body| body[..end].to_owned()), ..sms },
            None => sms,
        };
        rows.into_iter().map(cut).collect()
    }

    fn learn<T>(&self, answer: Result<T, ReadError>) -> Result<T, ReadError> {
        let access = match &answer {
            Ok(_) => Some(Access::Granted),
            Err(ReadError::NotPermitted(what_to_do)) => Some(Access::Denied(what_to_do.clone())),
            // A phone that stumbles once has not taken the permission away.
            Err(ReadError::Failed(_)) => None,
        };
        if let Some(access) = access {
            self.access.learn(access, self.clock.now());
        }
        answer
    }
}
