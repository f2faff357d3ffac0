//! Keeps the connections to MCP servers: connects in the background and on demand, and tries again after a while.
//!
//! A dead, slow or lying server costs nobody else anything: each has a slot of its own, and whoever does not call
//! its tools does not wait for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_words::{Said, said};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::port::{
    Boxed, Connected, Connector, Launch, Link, LinkError, LinkEvent, Outcome, Progress, Secret, SigningIn,
};
use super::{KnownTool, Server, ServerId, ToolText, store};
use crate::db::{Db, DbError};
use crate::lock::lock;
use crate::untrusted::Untrusted;

/// How long connecting may take. Bridges have a limit of their own, which comes first.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long after a failure a server is tried again at first, and at most.
const SOON: Duration = Duration::from_secs(2);
const LATER: Duration = Duration::from_mins(5);
/// How long a server has to stay connected to count as one that works.
const STEADY: Duration = Duration::from_mins(1);
/// How soon a server's changed list is read again, so that one that always changes it keeps nobody busy.
const BETWEEN_LISTS: Duration = Duration::from_secs(5);
/// How long after the start servers are connected that nobody has called yet. Starting programs would slow the first
/// page down.
const AFTER_START: Duration = Duration::from_secs(2);
/// How soon a change in the store is noticed.
const NOTICING: Duration = Duration::from_secs(1);

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Nobody has tried yet, or the server is turned off.
    Idle,
    Connecting,
    Connected {
        calls_itself: Untrusted,
    },
    Failed(LinkError),
}

/// Why a tool of a server was not called, or has no result.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum CallError {
    /// The server or the tool is not there, or off.
    Off,
    /// The server describes the tool differently since the user approved it.
    Changed,
    Link(#[from] LinkError),
    Store(#[from] DbError),
}

impl CallError {
    /// The error in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::Off => said::mcp_tool_off(),
            Self::Changed => said::mcp_tool_changed(),
            Self::Link(error) => error.said(),
            Self::Store(error) => error.said(),
        }
    }
}

/// All connections. Clones share them.
#[derive(Clone)]
pub struct Hub {
    db: Db,
    connector: Arc<dyn Connector>,
    slots: Arc<Mutex<BTreeMap<ServerId, Arc<Slot>>>>,
    /// Counts the changes of any server's status.
    changes: watch::Sender<u64>,
}

/// The connection to one server, or the place for one.
struct Slot {
    server: Server,
    status: Mutex<Status>,
    link: tokio::sync::Mutex<Option<Arc<dyn Link>>>,
    /// Somebody wants it to be tried now.
    woken: Notify,
    /// Counts how often the connection was to be made anew.
    anew: watch::Sender<u64>,
    /// Cancelled when the server was removed, turned off or changed.
    over: CancellationToken,
    /// Somebody listens to it and makes the connection again when it ends.
    is_kept: AtomicBool,
    /// The sign-in that was begun last, until it is over.
    sign_in: Mutex<Option<SignIn>>,
    /// Tokens on their way into the store.
    storing: TaskTracker,
}

/// A sign-in that has begun and is not over.
struct SignIn {
    /// The page on which the user signs in; `None` once the user is done there.
    page: Option<String>,
    /// Cancelled when nobody waits for it any more: another one was begun, or the user signed out. Under the lock of its
    /// slot, it also tells whether the sign-in there is still this one.
    over: CancellationToken,
}

impl Hub {
    pub fn new(db: Db, connector: Arc<dyn Connector>) -> Self {
        Self { db, connector, slots: Arc::default(), changes: watch::Sender::default() }
    }

    /// Tells when the status of a server changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn status(&self, id: ServerId) -> Status {
        self.existing(id).map_or(Status::Idle, |slot| lock(&slot.status).clone())
    }

    /// The last lines that a server's program wrote to its standard error.
    pub async fn stderr(&self, id: ServerId) -> Vec<Untrusted> {
        let Some(slot) = self.existing(id) else { return vec![] };
        slot.link.lock().await.as_ref().map(|link| link.stderr()).unwrap_or_default()
    }

    fn existing(&self, id: ServerId) -> Option<Arc<Slot>> {
        lock(&self.slots).get(&id).cloned()
    }

    /// Keeps every enabled server connected until told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        let mut changes = self.db.changes();
        if tokio::time::timeout(AFTER_START, stop.cancelled()).await.is_ok() {
            return;
        }
        loop {
            match self.db.read(store::servers).await {
                Ok(servers) => self.settle(&servers, &stop),
                Err(error) => tracing::warn!(%error, "the MCP servers could not be read"),
            }
            let noticed = Instant::now();
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = changes.changed() => tokio::time::sleep_until(noticed + NOTICING).await,
            }
        }
        let slots = std::mem::take(&mut *lock(&self.slots));
        for slot in slots.values() {
            slot.over.cancel();
            slot.link.lock().await.take();
        }
    }

    /// Lets go of servers that are gone or changed, and begins to keep new ones.
    fn settle(&self, servers: &[Server], stop: &CancellationToken) {
        let mut slots = lock(&self.slots);
        slots.retain(|_, slot| {
            let stays = servers.iter().any(|server| slot.leads_to(server) && server.enabled);
            if !stays {
                slot.over.cancel();
            }
            stays
        });
        for server in servers.iter().filter(|server| server.enabled) {
            let new = || Arc::new(Slot::to(server.clone(), stop.child_token()));
            let slot = slots.entry(server.id).or_insert_with(new);
            // Somebody may have needed the server before it was noticed here.
            if !slot.is_kept.swap(true, Ordering::SeqCst) {
                tokio::spawn(self.clone().keep(Arc::clone(slot)));
            }
        }
        drop(slots);
        self.tell();
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Keeps one server connected until its slot is over.
    async fn keep(self, slot: Arc<Slot>) {
        let over = slot.over.clone();
        over.run_until_cancelled(async {
            let mut failures = 0;
            loop {
                let mut anew = slot.anew.subscribe();
                let pause = match self.connected(&slot).await {
                    Ok(link) => {
                        let began = Instant::now();
                        tokio::select! {
                            why = self.listen(&slot, link.as_ref()) => self.lost(&slot, why).await,
                            // Whoever dropped the connection makes the next one, or lets this do it.
                            Ok(()) = anew.changed() => continue,
                        }
                        // One that ends as soon as it is connected is not started again and again.
                        failures = if began.elapsed() < STEADY { failures + 1 } else { 1 };
                        pause_after(failures)
                    }
                    // Only the user can change that, and then wakes it.
                    Err(CallError::Link(LinkError::SignIn)) => LATER,
                    Err(_) => {
                        failures += 1;
                        pause_after(failures)
                    }
                };
                let _ = tokio::time::timeout(pause, slot.woken.notified()).await;
            }
        })
        .await;
        slot.link.lock().await.take();
        *lock(&slot.status) = Status::Idle;
        self.tell();
    }

    /// Listens to a connected server until it ends.
    async fn listen(&self, slot: &Slot, link: &dyn Link) -> LinkError {
        loop {
            match link.event().await {
                LinkEvent::Ended(why) => return why,
                LinkEvent::ToolsChanged => {
                    match link.tools().await {
                        Ok(tools) => self.note(slot.server.id, tools).await,
                        Err(error) => tracing::warn!(server = slot.server.name, %error, "no list of tools"),
                    }
                    tokio::time::sleep(BETWEEN_LISTS).await;
                }
            }
        }
    }

    async fn lost(&self, slot: &Slot, why: LinkError) {
        slot.link.lock().await.take();
        self.set(slot, Status::Failed(why));
    }

    fn set(&self, slot: &Slot, status: Status) {
        *lock(&slot.status) = status;
        self.tell();
    }

    /// The connection to a server; makes one if there is none.
    async fn connected(&self, slot: &Slot) -> Result<Arc<dyn Link>, CallError> {
        let mut place = slot.link.lock().await;
        if let Some(link) = &*place {
            return Ok(Arc::clone(link));
        }
        self.set(slot, Status::Connecting);
        let launch = self.launch(slot).await?;
        let connecting = self.connector.connect(launch);
        let outcome = tokio::time::timeout(PATIENCE, connecting).await.unwrap_or(Err(LinkError::Silent));
        match outcome {
            Ok(Connected { link, tools, calls_itself }) => {
                self.note(slot.server.id, tools).await;
                *place = Some(Arc::clone(&link));
                self.set(slot, Status::Connected { calls_itself });
                Ok(link)
            }
            Err(error) => {
                self.set(slot, Status::Failed(error.clone()));
                Err(error.into())
            }
        }
    }

    async fn note(&self, id: ServerId, tools: Vec<ToolText>) {
        // Most lists are as they were, and need not be written.
        let seen = tools.clone();
        let is_same = self.db.read(move |tx| is_noted(tx, id, &seen)).await;
        if is_same.is_ok_and(|same| same) {
            return;
        }
        if let Err(error) = self.db.write(move |tx| store::note_tools(tx, id, &tools)).await {
            tracing::warn!(%error, "a list of MCP tools could not be stored");
        }
    }

    async fn launch(&self, slot: &Slot) -> Result<Launch, CallError> {
        // Who has just signed in connects with the new tokens.
        slot.storing.wait().await;
        let (server, id) = (&slot.server, slot.server.id);
        let hidden = self.db.read(move |tx| store::hidden(tx, id)).await?.ok_or(CallError::Off)?;
        let (db, storing) = (self.db.clone(), slot.storing.clone());
        let keep_tokens = Arc::new(move |tokens: Secret| {
            let db = db.clone();
            storing.spawn_blocking(move || {
                if let Err(error) = db.write_now(|tx| store::set_tokens(tx, id, Some(&tokens))) {
                    tracing::warn!(%error, "the tokens of an MCP server could not be stored");
                }
            });
        });
        let (name, transport) = (server.name.clone(), server.transport.clone());
        Ok(Launch { name, transport, secrets: hidden.secrets, tokens: hidden.tokens, keep_tokens })
    }

    /// The slot to a server, also where nobody keeps it connected.
    async fn slot(&self, id: ServerId) -> Result<Arc<Slot>, CallError> {
        if let Some(slot) = self.existing(id) {
            return Ok(slot);
        }
        let servers = self.db.read(store::servers).await?;
        let server =
            servers.into_iter().find(|server| server.id == id && server.enabled).ok_or(CallError::Off)?;
        let slot = Arc::new(Slot::to(server, CancellationToken::new()));
        Ok(Arc::clone(lock(&self.slots).entry(id).or_insert(slot)))
    }

    /// Connects to a server now, and returns when its tools are known.
    pub async fn reach(&self, id: ServerId) -> Result<(), CallError> {
        let slot = self.slot(id).await?;
        self.connected(&slot).await.map(drop)
    }

    /// Drops the connection to a server, so that it is made anew.
    pub async fn reconnect(&self, id: ServerId) {
        if let Some(slot) = self.existing(id) {
            slot.link.lock().await.take();
            slot.anew.send_modify(|count| *count += 1);
            slot.woken.notify_one();
        }
    }

    /// Calls a tool as the user approved it. Connects first if necessary.
    pub async fn call(
        &self,
        tool: &KnownTool,
        arguments: Map<String, Value>,
        progress: Progress<'_>,
    ) -> Result<Outcome, CallError> {
        let slot = self.slot(tool.server).await?;
        let link = self.connected(&slot).await?;
        // Connecting may have shown that the tool is another one now.
        let name = tool.offered_as.clone();
        let now = self.db.read(move |tx| store::offered_as(tx, &name)).await?.ok_or(CallError::Off)?;
        if now.approved != tool.approved || now.usable().is_none() {
            return Err(if now.enabled { CallError::Changed } else { CallError::Off });
        }
        let outcome = link.call(tool.name(), arguments, progress).await;
        if let Err(error @ LinkError::Ended { .. }) = &outcome {
            self.lost(&slot, error.clone()).await;
            slot.woken.notify_one();
        }
        Ok(outcome?)
    }

    /// Begins signing in to a server. Returns the page on which the user does it; the rest happens by itself. An earlier
    /// sign-in that is not over ends.
    pub async fn sign_in(&self, id: ServerId) -> Result<String, CallError> {
        let slot = self.slot(id).await?;
        let SigningIn { url, done } = self.connector.sign_in(self.launch(&slot).await?).await?;
        let over = slot.begin_sign_in(&url);
        self.tell();
        tokio::spawn(self.clone().finish_sign_in(slot, over, done));
        Ok(url)
    }

    /// Waits until the user is done, and connects if that was a sign-in.
    async fn finish_sign_in(
        self,
        slot: Arc<Slot>,
        over: CancellationToken,
        done: Boxed<'static, Result<(), LinkError>>,
    ) {
        let Some(outcome) = over.run_until_cancelled(done).await else { return };
        if outcome.is_ok() {
            slot.leave_page(&over);
            self.reconnect(slot.server.id).await;
            // How that went is the server's status.
            drop(self.reach(slot.server.id).await);
        }
        slot.finish_sign_in(&over, outcome.err());
        self.tell();
    }

    /// The page on which the user signs in to the server of this name, as long as somebody waits for that there.
    pub fn sign_in_page(&self, name: &str) -> Option<String> {
        let slots = lock(&self.slots);
        // One that was just removed may have had the same name.
        let mut named = slots.values().filter(|slot| slot.server.name == name);
        named.find_map(|slot| lock(&slot.sign_in).as_ref().and_then(|sign_in| sign_in.page.clone()))
    }

    /// Whether a sign-in to this server has begun and is not over. It is over when the server's status says how it went.
    pub fn is_signing_in(&self, id: ServerId) -> bool {
        self.existing(id).is_some_and(|slot| lock(&slot.sign_in).is_some())
    }

    /// Ends the sign-in to a server, because the user signed out, turned the server off or removed it.
    pub fn end_sign_in(&self, id: ServerId) {
        if let Some(slot) = self.existing(id) {
            slot.end_sign_in();
            self.tell();
        }
    }
}

impl Slot {
    fn to(server: Server, over: CancellationToken) -> Self {
        let storing = TaskTracker::new();
        // Only one that is closed can be waited for. It still takes more.
        storing.close();
        Self {
            server,
            status: Mutex::new(Status::Idle),
            link: tokio::sync::Mutex::default(),
            woken: Notify::new(),
            anew: watch::Sender::default(),
            over,
            is_kept: AtomicBool::new(false),
            sign_in: Mutex::default(),
            storing,
        }
    }

    /// Whether it leads to this server as it is now. Whoever signs in or out makes the connection anew, so this alone
    /// needs no other slot.
    fn leads_to(&self, server: &Server) -> bool {
        *server == Server { signed_in: server.signed_in, ..self.server.clone() }
    }

    /// Notes a sign-in in place of any earlier one. Returns what is cancelled when nobody waits for it any more.
    fn begin_sign_in(&self, page: &str) -> CancellationToken {
        let over = self.over.child_token();
        let new = SignIn { page: Some(page.to_owned()), over: over.clone() };
        let mut sign_in = lock(&self.sign_in);
        if let Some(earlier) = sign_in.replace(new) {
            earlier.over.cancel();
        }
        // Whatever came of an earlier one does not count for this one.
        self.fail_unless_connected(LinkError::SignIn);
        over
    }

    /// The user is done on the page of this sign-in, which leads nowhere from now on.
    fn leave_page(&self, over: &CancellationToken) {
        let mut sign_in = lock(&self.sign_in);
        if !over.is_cancelled()
            && let Some(sign_in) = sign_in.as_mut()
        {
            sign_in.page = None;
        }
    }

    /// This sign-in is over, and failed if there is a reason. That and the status change in one step for whoever waits.
    fn finish_sign_in(&self, over: &CancellationToken, failed: Option<LinkError>) {
        let mut sign_in = lock(&self.sign_in);
        if over.is_cancelled() {
            return;
        }
        *sign_in = None;
        if let Some(why) = failed {
            self.fail_unless_connected(why);
        }
    }

    fn end_sign_in(&self) {
        let mut sign_in = lock(&self.sign_in);
        if let Some(ended) = sign_in.take() {
            ended.over.cancel();
        }
    }

    /// Notes that a sign-in is needed or failed, unless the server works without it.
    fn fail_unless_connected(&self, why: LinkError) {
        let mut status = lock(&self.status);
        if !matches!(*status, Status::Connected { .. }) {
            *status = Status::Failed(why);
        }
    }
}

/// How long after so many failures a server is tried again.
fn pause_after(failures: u32) -> Duration {
    SOON.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(LATER)
}

/// Whether the store knows the tools of a server exactly so.
fn is_noted(tx: &rusqlite::Transaction<'_>, id: ServerId, tools: &[ToolText]) -> Result<bool, DbError> {
    let known = store::of_server(tx, id)?;
    let present: Vec<&ToolText> = known.iter().filter_map(|tool| tool.latest.as_ref()).collect();
    Ok(present.len() == tools.len() && tools.iter().all(|text| present.contains(&text)))
}
