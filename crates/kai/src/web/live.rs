//! `/events`: keeps an open page up to date. Whenever the store or a turn changes, the page's regions are rendered
//! again and those that changed are sent. A page that was slow or disconnected misses nothing: it gets the current
//! state.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use kai_assistant::agent::conversation::{ConversationId, Revision};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::state::Web;
use super::turns::Ended;
use super::view::{self, Place, Stored, View};
use super::{drafts, inbox, settings};
use crate::app::App;
use crate::app::sessions::Session;
use crate::failure::Failure;
use crate::web::regions;

/// How long changes are collected before they are sent together; short enough that an answer grows smoothly.
const PACE: Duration = Duration::from_millis(60);
/// How often the store is checked for changes by other processes: commands write to it too.
const LOOK: Duration = Duration::from_secs(2);

/// How often a page is rendered again although nothing changed, to update relative times.
const AGES: Duration = Duration::from_secs(20);

/// The query of `/events`: which page is open, and what it shows.
#[derive(Deserialize)]
pub(super) struct EventsQuery {
    /// The settings page; `None` for the chat.
    page: Option<settings::Page>,
    /// The page of the inbox: the message that is open there, or nothing for the list.
    inbox: Option<String>,
    chat: Option<i64>,
    #[serde(default)]
    q: String,
    whole: Option<i64>,
    edit: Option<i64>,
    /// The [`sum`] of the messages that the page already has.
    #[serde(default)]
    have: String,
}

pub(super) async fn events(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
    Query(asked): Query<EventsQuery>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(session) = session else { return StatusCode::UNAUTHORIZED.into_response() };
    let follower = Follower::new(web, session, asked, query);
    let told = stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Sse::new(told).keep_alive(KeepAlive::default()).into_response()
}

/// Counts a page as open until this is dropped.
struct Open(Arc<App>);

impl Open {
    fn new(app: Arc<App>) -> Self {
        app.pages.send_modify(|count| *count += 1);
        Self(app)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.pages.send_modify(|count| *count -= 1);
    }
}

/// Which kind of page is open.
enum Watched {
    Chat(Box<Chat>),
    Settings(settings::Place),
    Inbox(inbox::Place),
}

/// An open page of the chat: what was read for it, and which messages it has.
struct Chat {
    place: Place,
    have: String,
    stored: Option<Stored>,
    /// Hashes of the messages that the page has; `None` before the first rendering.
    blocks: Option<Vec<u64>>,
    /// What `blocks` was rendered from; it is rendered again only when this changes.
    made_from: Option<BlocksKey>,
}

/// What the blocks of messages depend on.
type BlocksKey = (Revision, TurnStatus);

/// The state of a turn in the conversation, as far as its messages depend on it.
#[derive(PartialEq, Eq)]
enum TurnStatus {
    Not,
    /// Another process is answering.
    Elsewhere,
    /// A turn of ours; `None` while it is running.
    To(Option<Ended>),
}

/// The current rendering of a page: all of its regions, and the patches for its messages.
struct Sight {
    regions: Vec<(&'static str, String)>,
    patches: Vec<Value>,
    /// How long the page can stay like this although nothing changes, if it shows something that ends.
    stale_in: Option<Duration>,
}

/// One open page, and what has been sent to it.
struct Follower {
    web: Web,
    session: Session,
    watched: Watched,
    store: ChangeCounter,
    turns: watch::Receiver<u64>,
    /// Hashes of the regions that the page has, by id; empty before the first rendering.
    regions: BTreeMap<&'static str, u64>,
    /// How long the page can stay as it is.
    stale_in: Duration,
    over: bool,
    _open: Open,
}

impl Follower {
    fn new(web: Web, session: Session, asked: EventsQuery, mut query: BTreeMap<String, String>) -> Self {
        // The rest of the query belongs to the page itself.
        let watched = match (asked.page, &asked.inbox) {
            (Some(page), _) => {
                query.remove("page");
                Watched::Settings(settings::Place::new(page, query))
            }
            (None, Some(message)) => Watched::Inbox(inbox::Place::new(message, query)),
            (None, None) => {
                query.remove("chat");
                query.remove("have");
                Watched::Chat(Box::new(Chat::new(asked, query)))
            }
        };
        Self {
            store: ChangeCounter::of(web.app.db.changes()),
            turns: web.turns.moves(),
            watched,
            regions: BTreeMap::new(),
            stale_in: AGES,
            over: false,
            _open: Open::new(Arc::clone(&web.app)),
            session,
            web,
        }
    }

    /// Returns the next event to send; `None` once the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        while !self.over {
            let first = self.regions.is_empty();
            let moved = if first { Changed::Store } else { self.wait().await? };
            let sight = match self.next_sight(moved).await {
                Ok(Some(sight)) => sight,
                Ok(None) => {
                    self.over = true;
                    return Some(Event::default().event("gone").data("-"));
                }
                Err(failure) => {
                    tracing::warn!(failure = %failure.message, "an open page could not be kept true");
                    return None;
                }
            };
            // Relative times change, and an offer to undo something ends.
            self.stale_in = sight.stale_in.map_or(AGES, |offered| AGES.min(offered + PACE));
            let patches = self.patches(sight);
            if !patches.is_empty() || first {
                return Some(Event::default().event("patch").data(Value::from(patches).to_string()));
            }
        }
        None
    }

    /// Waits until something changes, or until what the page shows may be stale. `None` on shutdown.
    async fn wait(&mut self) -> Option<Changed> {
        let stale = tokio::time::sleep(self.stale_in);
        let moved = tokio::select! {
            () = self.web.stop.cancelled() => return None,
            moved = self.store.counter.changed() => moved.map(|()| Changed::Store).ok()?,
            moved = self.turns.changed() => moved.map(|()| Changed::Turns).ok()?,
            () = stale => return Some(Changed::Store),
        };
        tokio::time::sleep(PACE).await;
        self.turns.borrow_and_update();
        Some(if self.store.take() { Changed::Store } else { moved })
    }

    /// Renders the page; `None` once the session has ended.
    async fn next_sight(&mut self, moved: Changed) -> Result<Option<Sight>, Failure> {
        match &mut self.watched {
            Watched::Chat(chat) => chat.next_sight(&self.web, &self.session, moved).await,
            Watched::Settings(place) => {
                let regions = settings::named(&self.web, &self.session, place).await?;
                Ok(regions.map(|regions| Sight { regions, patches: vec![], stale_in: None }))
            }
            Watched::Inbox(place) => {
                let sight = inbox::sight(&self.web, &self.session, place).await?;
                Ok(sight.map(|inbox::Sight { regions, stale_in }| Sight {
                    regions,
                    patches: vec![],
                    stale_in,
                }))
            }
        }
    }

    /// The patches for the messages, and one for each region that changed since it was last sent.
    fn patches(&mut self, sight: Sight) -> Vec<Value> {
        let mut patches = sight.patches;
        for (id, html) in sight.regions {
            let now = hash(&html);
            if self.regions.insert(id, now) != Some(now) {
                patches.push(json!({"id": id, "html": html}));
            }
        }
        patches
    }
}

/// A change counter, and its value when it was last read.
struct ChangeCounter {
    counter: watch::Receiver<u64>,
    seen: u64,
}

impl ChangeCounter {
    fn of(counter: watch::Receiver<u64>) -> Self {
        let seen = *counter.borrow();
        Self { counter, seen }
    }

    /// Has the counter changed since the last call? Reads it and marks it as seen in one step, so that a change in
    /// between is seen next time.
    fn take(&mut self) -> bool {
        let now = *self.counter.borrow_and_update();
        std::mem::replace(&mut self.seen, now) != now
    }
}

/// What has changed. If only turns have, the store is not read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    Store,
    Turns,
}

impl Chat {
    fn new(asked: EventsQuery, query: BTreeMap<String, String>) -> Self {
        let EventsQuery { page: _, inbox: _, chat, q, whole, edit, have } = asked;
        let place = Place { chat: chat.map(ConversationId), q, whole, edit, query };
        Self { place, have, stored: None, blocks: None, made_from: None }
    }

    async fn next_sight(
        &mut self,
        web: &Web,
        session: &Session,
        moved: Changed,
    ) -> Result<Option<Sight>, Failure> {
        let stored = match self.stored.take() {
            Some(stored) if moved == Changed::Turns => stored,
            known => view::stored(web, &self.place, session, known).await?,
        };
        let stored = self.stored.insert(stored);
        if stored.signed_out {
            return Ok(None);
        }
        let csrf = session.csrf();
        let view = View::of(web, &self.place, stored, &csrf);
        let turn = match &view.sight {
            Some(sight) => TurnStatus::To(sight.ended.clone()),
            None if view.answered_elsewhere() => TurnStatus::Elsewhere,
            None => TurnStatus::Not,
        };
        let mut patches = vec![];
        let from = (stored.reached, turn);
        if self.made_from.as_ref() != Some(&from) {
            let (blocks, patch) = newer(&regions::blocks(&view), self.blocks.take(), &self.have);
            patches.extend(patch);
            (self.blocks, self.made_from) = (Some(blocks), Some(from));
        }
        let stale_in = drafts::stale_in(&stored.drafts, web.app.clock.now());
        Ok(Some(Sight { regions: regions::regions(&view).named(), patches, stale_in }))
    }
}

/// Hashes the messages, and returns a patch from the first one that differs from what the page has. That is `told` if
/// something was sent already, and otherwise what the page was loaded with, whose sum is `have`.
fn newer(blocks: &[String], told: Option<Vec<u64>>, have: &str) -> (Vec<u64>, Option<Value>) {
    let now: Vec<u64> = blocks.iter().map(|block| hash(block)).collect();
    let told = told.unwrap_or_else(|| if have == sum_of(&now) { now.clone() } else { vec![] });
    let same = now.iter().zip(&told).take_while(|(now, told)| now == told).count();
    if same == now.len() && same == told.len() {
        return (now, None);
    }
    let patch = json!({"from": same, "blocks": &blocks[same..]});
    (now, Some(patch))
}

/// A hash over all messages of a page, by which the page later says what it was loaded with.
pub(super) fn sum(blocks: &[String]) -> String {
    sum_of(&blocks.iter().map(|block| hash(block)).collect::<Vec<_>>())
}

fn sum_of(blocks: &[u64]) -> String {
    let mut all = DefaultHasher::new();
    blocks.hash(&mut all);
    format!("{:x}", all.finish())
}

fn hash(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

/// Checks the store for changes by other processes, as long as a page is open.
pub(super) async fn notice_others(web: Web) {
    let mut pages = web.app.pages.subscribe();
    loop {
        tokio::select! {
            () = web.stop.cancelled() => return,
            open = pages.wait_for(|count| *count > 0) => if open.is_err() { return },
        }
        if let Err(error) = web.app.db.poll_external_changes().await {
            tracing::warn!(%error, "the store could not be asked for changes");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Tells open pages how MCP servers are doing, which is not in the store.
pub(super) async fn notice_servers(web: Web) {
    let Some(servers) = web.app.toolbox.servers() else { return };
    let mut changes = servers.changes();
    while changes.changed().await.is_ok() {
        web.turns.move_on();
    }
}

/// How often open pages are told how far a download is.
const DOWNLOAD: Duration = Duration::from_millis(500);

/// Tells open pages how far a download is, which is not in the store.
pub(super) async fn notice_downloads(web: Web) {
    let mut changes = web.app.downloads.changes();
    while changes.changed().await.is_ok() {
        web.turns.move_on();
        tokio::time::sleep(DOWNLOAD).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that happens during `take` is not lost: `take` reports it now, or it wakes the next wait.
    #[test]
    fn a_move_is_seen_now_or_next_time() {
        const MOVES: u64 = 200_000;
        let counter = watch::Sender::new(0);
        let mut moves = ChangeCounter::of(counter.subscribe());
        assert!(!moves.take());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (0..MOVES).for_each(|_| counter.send_modify(|count| *count += 1)));
            while !other.is_finished() {
                let before = moves.seen;
                assert_eq!(moves.take(), moves.seen != before);
            }
        });
        assert!(moves.take() || moves.seen == MOVES);
        assert_eq!(moves.seen, MOVES);
        assert!(!moves.take() && !moves.counter.has_changed().unwrap());
    }

    #[test]
    fn only_what_is_new_is_sent() {
        let blocks = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let (told, patch) = newer(&blocks(&["a", "b"]), None, "something else");
        assert_eq!(patch.unwrap(), json!({"from": 0, "blocks": ["a", "b"]}));
        let (_, patch) = newer(&blocks(&["a", "b"]), None, &sum(&blocks(&["a", "b"])));
        assert_eq!(patch, None, "the page came with them");
        let (_, patch) = newer(&blocks(&["a", "c", "d"]), Some(told.clone()), "");
        assert_eq!(patch.unwrap(), json!({"from": 1, "blocks": ["c", "d"]}));
        let (_, patch) = newer(&blocks(&["a"]), Some(told), "");
        assert_eq!(patch.unwrap(), json!({"from": 1, "blocks": []}), "one is gone");
    }
}
