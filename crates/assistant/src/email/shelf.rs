//! The last few mails that the user opened, read from their servers. Nothing of them is stored.

use std::sync::{Arc, Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};

use super::EmailId;
use super::mailboxes::{Mailboxes, NotRead};
use super::port::Letter;
use crate::clock::Clock;
use crate::inbox::Fetching;
use crate::lock::lock;

/// How many mails are kept in memory.
const KEPT: usize = 8;
/// How long a failure counts before the server is asked again.
const FAILED: SignedDuration = SignedDuration::from_secs(60);
/// After that long, a read that has not ended counts as dead.
const DEAD: SignedDuration = SignedDuration::from_mins(2);

/// What is known of a mail's text.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// The server was not asked yet.
    Nothing,
    Reading,
    Read(Arc<Letter>),
    Failed(Said),
}

struct Place {
    id: EmailId,
    known: Known,
    /// Since when that is known.
    since: Timestamp,
}

/// Mails that were read.
pub(super) struct Shelf {
    mailboxes: Mailboxes,
    clock: Arc<dyn Clock>,
    places: Arc<Mutex<Vec<Place>>>,
}

impl Shelf {
    pub(super) fn new(mailboxes: Mailboxes, clock: Arc<dyn Clock>) -> Self {
        Self { mailboxes, clock, places: Arc::default() }
    }

    pub(super) fn known(&self, id: EmailId) -> Known {
        let places = lock(&self.places);
        places.iter().find(|place| place.id == id).map_or(Known::Nothing, |place| place.known.clone())
    }

    /// Begins to read a mail, unless it is here or being read, or could not be read just now.
    pub(super) fn ask(&self, id: EmailId) -> Option<Fetching> {
        let now = self.clock.now();
        {
            let mut places = lock(&self.places);
            if places.iter().any(|place| place.id == id && place.is_good(now)) {
                return None;
            }
            put(&mut places, Place { id, known: Known::Reading, since: now });
        }
        let (mailboxes, clock, places) =
            (self.mailboxes.clone(), Arc::clone(&self.clock), Arc::clone(&self.places));
        Some(Box::pin(async move {
            let known = match mailboxes.letter(id).await {
                Ok((_, letter)) => Known::Read(Arc::new(letter)),
                Err(error) => Known::Failed(failure(error)),
            };
            put(&mut lock(&places), Place { id, known, since: clock.now() });
        }))
    }
}

impl Place {
    fn is_good(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.since).abs();
        match self.known {
            Known::Nothing => false,
            Known::Reading => age < DEAD,
            Known::Read(_) => true,
            Known::Failed(_) => age < FAILED,
        }
    }
}

/// Puts a mail into its place. The one that was there longest makes room.
fn put(places: &mut MutexGuard<'_, Vec<Place>>, place: Place) {
    places.retain(|known| known.id != place.id);
    places.push(place);
    let surplus = places.len().saturating_sub(KEPT);
    places.drain(..surplus);
}

/// The failure in the user's language.
fn failure(error: NotRead) -> Said {
    match error {
        NotRead::Unknown(_) | NotRead::Gone(_) => said::email_gone(),
        NotRead::Server(_, trouble) => trouble.said(),
        NotRead::Store(sentence) => sentence.into(),
    }
}
