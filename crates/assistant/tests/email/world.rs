//! A home with two mail accounts, a scripted model and a clock by hand.

use std::sync::Arc;

use jiff::SignedDuration;
use kai_assistant::MIGRATIONS;
use kai_assistant::agent::{Driver, Nobody, Ready};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::poll::{PollError, Polled};
use kai_assistant::email::queue::{QUEUE, Queued};
use kai_assistant::email::store::{self, NewAccount};
use kai_assistant::email::{
    CheckEmail, ComposeEmail, Mailboxes, Poller, Post, ReadEmail, ReplyEmail, SearchEmail, SetupEmail,
};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::heartbeat::{Beat, BeatResult, Why as Asked};
use kai_assistant::outbox::door::{Act, Door, Tap};
use kai_assistant::outbox::{Draft, store as outbox};
use kai_assistant::pending;
use kai_assistant::secret::Secret;
use kai_assistant::settings::{self, EMAIL_ENABLED};
use kai_assistant::tool::{AnyTool, Run, ToolResult, execute};
use kai_assistant::toolbox::{EnabledBy, Entry, Toolbox};
use kai_llm::{Act as Says, Scripted};
use rusqlite::Transaction;
use serde_json::Value;

use crate::servers::Servers;

pub(crate) const HOME: &str = "me@home.test";
pub(crate) const WORK: &str = "me@work.test";

pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) poller: Poller,
    pub(crate) door: Door,
    pub(crate) toolbox: Toolbox,
    pub(crate) home: Account,
    pub(crate) work: Account,
}

pub(crate) fn new_account(address: &str) -> NewAccount {
    let server = |name: &str, port| Server { host: format!("{name}.test"), port, security: Security::Tls };
    NewAccount {
        address: address.to_owned(),
        user: address.to_owned(),
        imap: server("imap", 993),
        smtp: server("smtp", 465),
        credentials: Credentials::Password(Secret::new("hunter2")),
    }
}

impl World {
    /// Monday, 9 March 2026, 12:00 UTC. Both inboxes hold two old mails, and are not polled yet.
    pub(crate) fn new() -> Self {
        let db = Db::in_memory(MIGRATIONS).unwrap();
        let clock = Arc::new(ManualClock::at("2026-03-09T12:00Z".parse().unwrap()));
        let servers = Arc::new(Servers::default());
        for address in [HOME, WORK] {
            servers.deliver(address, crate::servers::letter("Old", "old"));
            servers.deliver(address, crate::servers::letter("Older", "old"));
        }
        let now = clock.now();
        let add = |address| db.write_now(|tx| store::add(tx, &new_account(address), now)).unwrap();
        let (home, work) = (add(HOME), add(WORK));
        let poller = Poller { db: db.clone(), clock: clock.clone(), servers: servers.clone() };
        let door = Door {
            db: db.clone(),
            clock: clock.clone(),
            senders: Arc::default(),
            mailer: Some(Arc::new(Post { db: db.clone(), servers: servers.clone() })),
            answerable: |_, _, _| Ok(None),
            under_way: Arc::default(),
        };
        let toolbox = toolbox(&db, &clock, &servers);
        Self { db, clock, servers, poller, door, toolbox, home, work }
    }

    /// A world whose inboxes were polled once.
    pub(crate) async fn seeded() -> Self {
        let world = Self::new();
        for (_, polled) in world.poller.tick().await.unwrap() {
            assert_eq!(polled.unwrap(), Polled { fresh: 0, more: false, seeded: true });
        }
        world
    }

    pub(crate) async fn poll(&self) -> Result<Polled, PollError> {
        self.poller.poll(self.home.source).await
    }

    pub(crate) fn minutes(&self, minutes: i64) {
        self.clock.advance(SignedDuration::from_mins(minutes));
    }

    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> T {
        self.db.read_now(work).unwrap()
    }

    pub(crate) fn set(&self, key: &str, value: &str) {
        self.db.write_now(|tx| settings::store(tx, key, value)).unwrap();
    }

    pub(crate) fn queued(&self) -> Vec<Queued> {
        let waiting = self.read(|tx| pending::waiting::<Queued>(tx, QUEUE));
        waiting.into_iter().map(|one| one.entry).collect()
    }

    pub(crate) fn subjects(&self) -> Vec<String> {
        self.queued().iter().map(|queued| queued.subject.as_written().to_owned()).collect()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_in(&Run { conversation: 1, ..Run::BY_HAND }, tool, arguments).await.0
    }

    /// The result, and the level that it raises.
    pub(crate) async fn call_in(&self, run: &Run, tool: &str, arguments: Value) -> (Value, Level) {
        let values = self.read(settings::load);
        self.probe().await;
        let ToolResult { text, meaning, .. } =
            execute(self.toolbox.usable(tool, &values), &values, &arguments.to_string(), run).await;
        (serde_json::from_str(&text).unwrap(), meaning.taint)
    }

    pub(crate) async fn probe(&self) {
        let values = self.read(settings::load);
        self.toolbox.check(&self.db, &values).await.unwrap();
    }

    pub(crate) fn drafts(&self) -> Vec<Draft> {
        self.read(outbox::all)
    }

    pub(crate) fn draft(&self) -> Draft {
        self.drafts().pop().unwrap()
    }

    /// Runs a heartbeat whose model says this. Returns what came of it and the prompt.
    pub(crate) async fn beat(&self, says: Vec<Says>) -> (BeatResult, String) {
        let model = Arc::new(Scripted::new(says));
        let ready = Ready {
            label: "m".to_owned(),
            local: true,
            vision: kai_assistant::models::vision::Vision::Unknown,
            model: Box::new(Arc::clone(&model)),
        };
        let models = [ready];
        let driver = Driver {
            db: &self.db,
            clock: self.clock.as_ref(),
            toolbox: &self.toolbox,
            models: &models,
            face: &Nobody,
            kind: RunKind::Chat,
            level: Level::Nothing,
            shown: &[],
            platform: "test",
        };
        self.probe().await;
        let beat = Beat { db: &self.db, clock: self.clock.as_ref(), lang: kai_words::Lang::ENGLISH };
        let prompt = beat.dry_run(100_000).await.unwrap().text;
        (beat.run(Asked::Asked, Ok(driver)).await.unwrap(), prompt)
    }
}

pub(crate) fn tap(draft: &Draft) -> Tap {
    let act = Act::fitting(&draft.status).unwrap();
    Tap { draft: draft.id, act, shown: draft.digest(), attempts: draft.attempts }
}

fn toolbox(db: &Db, clock: &Arc<ManualClock>, servers: &Arc<Servers>) -> Toolbox {
    let mailboxes = Mailboxes::new(db.clone(), servers.clone());
    let (boxes, clock) = (|| mailboxes.clone(), || clock.clone());
    let tools: Vec<Arc<dyn AnyTool>> = vec![
        Arc::new(CheckEmail { mailboxes: boxes(), clock: clock() }),
        Arc::new(ReadEmail { mailboxes: boxes(), clock: clock() }),
        Arc::new(SearchEmail { mailboxes: boxes(), clock: clock() }),
        Arc::new(ComposeEmail { mailboxes: boxes(), clock: clock() }),
        Arc::new(ReplyEmail { mailboxes: boxes(), clock: clock() }),
        Arc::new(SetupEmail { mailboxes: boxes() }),
    ];
    let entry = |tool| Entry { tool, governed: EnabledBy::Features(vec![&EMAIL_ENABLED]) };
    Toolbox::new(tools.into_iter().map(entry).collect())
}
