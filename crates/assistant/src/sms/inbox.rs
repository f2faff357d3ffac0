//! A phone's inbox, and whether Kai may read it. The permission is probed at most once a minute, and every successful
//! or refused read updates it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kai_words::{Said, said};

use super::port::{From, ReadError, SmsReader};
use super::search::Wanted;
use super::{Sms, SmsId};
use crate::access::{Access, Known};
use crate::clock::Clock;
use crate::phones::port::Contact;

/// How long a request to a model waits for the phone to report its permission.
const PATIENCE: Duration = Duration::from_secs(3);

/// The most characters of a body that are read.
const LONGEST: usize = 40_000;
pub(super) const FIRST_PAGE: usize = 500;
const PAGE: usize = 5_000;

/// Picks messages of a page.
pub(super) type Look = dyn Fn(&[Sms]) -> Vec<Sms> + Send + Sync;

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    /// How many of the newest messages are left out.
    pub(super) skip: usize,
    /// How many messages the first page has. A short one answers most questions.
    pub(super) first: usize,
}

/// What was picked, newest first, and where the last page that was read began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picked {
    pub(super) found: Vec<Sms>,
    /// How many messages come before that page.
    pub(super) begins: usize,
    /// The first message of that page.
    pub(super) first: Option<(Timestamp, SmsId)>,
}

/// A phone's inbox, with what is known about the permission to read it.
pub struct Inbox {
    reader: Arc<dyn SmsReader>,
    clock: Arc<dyn Clock>,
    access: Known,
}

impl Inbox {
    pub fn new(reader: Arc<dyn SmsReader>, clock: Arc<dyn Clock>) -> Self {
        Self { reader, clock, access: Known::default() }
    }

    /// Asks the phone whether Kai may read, unless that was learned within the last minute. Waits three seconds at
    /// most.
    pub async fn probe_access(&self) -> Access {
        if self.access.is_old(self.clock.now()) {
            let silent = |_| Access::Silent(said::access_phone_silent());
            let access = tokio::time::timeout(PATIENCE, self.reader.access()).await.unwrap_or_else(silent);
            self.access.learn(access, self.clock.now());
        }
        self.access()
    }

    /// Asks the phone now and waits as long as it takes. If the platform can prompt the user, it does.
    pub async fn ask(&self) -> Access {
        let access = self.reader.access().await;
        self.access.learn(access, self.clock.now());
        self.access()
    }

    /// The last known permission, without asking the phone.
    pub fn access(&self) -> Access {
        self.access.last().unwrap_or_else(|| Access::Silent(said::access_phone_unasked()))
    }

    /// Why the tools that read SMS cannot be used, or `None` if they can.
    pub fn lacks(&self) -> Option<Said> {
        match self.access.last() {
            // The permission is probed before any tool is offered; until then there is no reason to withhold them.
            None | Some(Access::Granted) => None,
            Some(Access::Denied(what_to_do)) => Some(what_to_do),
            Some(Access::Silent(why)) => Some(said::access_phone_now(why)),
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

    /// The phone's contacts. What is known about reading messages stays as it is.
    pub(super) async fn contacts(&self) -> Result<Vec<Contact>, ReadError> {
        self.reader.contacts().await
    }

    /// The message with this id.
    pub async fn message(&self, id: SmsId) -> Result<Option<Sms>, ReadError> {
        Ok(self.from(From::Id(id), 1).await?.into_iter().find(|sms| sms.id == id))
    }

    /// Searches for the newest messages that match `wanted`, page by page until `most` are found. A message must match
    /// as `shown` renders it, and is returned in that form.
    pub async fn search(
        &self,
        wanted: Wanted,
        shown: impl Fn(&Sms) -> Sms + Send + Sync + 'static,
        most: usize,
    ) -> Result<Vec<Sms>, ReadError> {
        let look: Arc<Look> = Arc::new(move |rows: &[Sms]| {
            let parts = |sms: &Sms, found: fn(&Wanted, &str) -> bool| {
                let address = sms.address.as_written();
                found(&wanted, address) || wanted.is_from(address) || found(&wanted, sms.body.as_written())
            };
            let possible = rows.iter().filter(|sms| parts(sms, Wanted::may_be_seen_in));
            possible.map(&shown).filter(|sms| parts(sms, Wanted::is_in)).collect::<Vec<_>>()
        });
        Ok(self.pick(Reach { skip: 0, first: FIRST_PAGE }, look, most).await?.found)
    }

    /// Reads messages newest first, page by page, until `look` has picked `most` of them.
    pub(super) async fn pick(&self, reach: Reach, look: Arc<Look>, most: usize) -> Result<Picked, ReadError> {
        let (mut found, mut skip, mut limit): (Vec<Sms>, _, _) = (vec![], reach.skip, reach.first);
        loop {
            let rows = self.newest(skip, limit).await?;
            let over = rows.len() < limit;
            let look = Arc::clone(&look);
            let first = rows.first().map(|sms| (sms.date, sms.id));
            let begins = skip;
            skip += rows.len();
            // Searching thousands of messages takes a moment; do not block other tasks meanwhile.
            let hits = tokio::task::spawn_blocking(move || look(&rows)).await;
            let hits = hits.map_err(|_| ReadError::Failed(said::access_search_stopped()))?;
            for hit in hits {
                // A message that arrives between two pages shifts them, so one may be returned twice.
                if found.iter().all(|known| known.identity() != hit.identity()) {
                    found.push(hit);
                }
            }
            if over || found.len() >= most {
                found.truncate(most);
                return Ok(Picked { found, begins, first });
            }
            // Later pages are larger, since each costs a call to the phone.
            limit = PAGE;
        }
    }

    /// Cuts bodies that are too long. No SMS is longer than 255 parts; a longer body is not a real SMS, and would slow
    /// everything down.
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
            // A single failure does not mean that the permission was revoked.
            Err(ReadError::Failed(_)) => None,
        };
        if let Some(access) = access {
            self.access.learn(access, self.clock.now());
        }
        answer
    }
}
