//! The post office: real mail servers, an account at them that the daemon reads and sends by, and a line to them that can
//! be cut. Mails arrive while the daemon is killed.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use kai_assistant::email::queue::{QUEUE, Queued};
use kai_assistant::email::{store, sync};
use kai_assistant::home;
use kai_assistant::home::Unlock;
use kai_assistant::pending;
use kai_stand_ins::mail::PostOffice;

use super::Dice;
use super::books::numbered;
use super::relay::Relay;
use crate::paired::open_store;
use crate::phone::Phone;

/// Who writes to the user, and gets the user's mails.
pub(super) const BOB: &str = "bob@post.test";
const ALICE: &str = "alice";

pub(super) struct Post {
    office: Arc<PostOffice>,
    pub(super) relay: Arc<Relay>,
    /// How many mails have arrived since the account was added.
    pub(super) arrived: u64,
    /// The number of the last mail before that.
    last_old: u32,
}

/// What the store says about mails that arrived.
#[derive(Debug)]
pub(super) struct Queue {
    /// The numbers of those that wait for a heartbeat.
    pub(super) waiting: Vec<u64>,
    /// The ids of the same.
    pub(super) ids: Vec<String>,
    /// How many the mark has moved over.
    pub(super) read: usize,
    pub(super) dropped: usize,
}

impl Post {
    /// Opens one that this phone's Kai trusts. `None` if this machine has no mail servers.
    pub(super) fn open(phone: &mut Phone) -> Option<Self> {
        if !["/usr/sbin/dovecot", "/usr/sbin/exim4"].iter().all(|program| Path::new(program).exists()) {
            return None;
        }
        let office = Arc::new(PostOffice::open(&[ALICE, "bob"]));
        phone.trusts = Some(office.authority());
        let relay = Relay::to(office.ports.smtp);
        Some(Self { office, relay, arrived: 0, last_old: 0 })
    }

    /// Adds the account, in whose inbox something lies already.
    pub(super) fn add_account(&mut self, phone: &Phone) {
        for _ in 0..3 {
            self.office.deliver(ALICE, &raw(0, "Long ago, old-0@"));
        }
        let (imap, smtp) =
            (format!("localhost:{}", self.office.ports.imaps), format!("localhost:{}", self.relay.port));
        let address = self.office.address(ALICE);
        let words = ["email", "add", &address, "--imap", &imap, "--smtp", &smtp, "--password-stdin"];
        let mut command = phone.command();
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut adding = command.spawn().unwrap();
        adding.stdin.take().unwrap().write_all(self.office.password(ALICE).as_bytes()).unwrap();
        let added = adding.wait_with_output().unwrap();
        assert!(added.status.success(), "{added:?} {}", self.office.logs());
        self.last_old = mark(phone);
        assert_eq!(self.last_old, 3, "what was there counts as seen");
    }

    /// Lets some mails arrive from now on, within so many milliseconds.
    pub(super) fn goes_on(&mut self, dice: &mut Dice, within: u64) -> JoinHandle<()> {
        let mut coming = vec![];
        for _ in 0..dice.below(4) {
            self.arrived += 1;
            coming.push((dice.below(within / 2 + 1), self.arrived));
        }
        let office = Arc::clone(&self.office);
        std::thread::spawn(move || {
            for (pause, number) in coming {
                std::thread::sleep(Duration::from_millis(pause));
                office.deliver(ALICE, &raw(number, &format!("Hi, this is letter-{number}@ and more")));
            }
        })
    }

    /// The mails that have left, once all that the server took are delivered.
    pub(super) fn left(&self) -> Vec<String> {
        let mails = self.office.wait_for_mails("bob", "INBOX", self.relay.taken());
        mails.iter().map(|raw| String::from_utf8_lossy(raw).into_owned()).collect()
    }

    /// The copies of mails that have left.
    pub(super) fn copies(&self) -> Vec<String> {
        let copies = self.office.mails(ALICE, "Sent");
        copies.iter().map(|(_, raw)| String::from_utf8_lossy(raw).into_owned()).collect()
    }

    pub(super) fn queue(&self, phone: &Phone) -> Queue {
        let (waiting, dropped) = read(phone, |tx| {
            let waiting = pending::waiting::<Queued>(tx, QUEUE).unwrap();
            (waiting, pending::dropped(tx, QUEUE).unwrap().len())
        });
        let number = |entry: &Queued| numbered(&entry.preview.as_written().into(), "letter-");
        Queue {
            waiting: waiting.iter().map(|one| number(&one.entry).unwrap_or_default()).collect(),
            ids: waiting.iter().map(|one| one.entry.id.to_string()).collect(),
            read: usize::try_from(mark(phone) - self.last_old).unwrap(),
            dropped,
        }
    }
}

fn raw(number: u64, text: &str) -> Vec<u8> {
    let head = format!("From: Bob <{BOB}>\r\nTo: alice@post.test\r\nMessage-ID: <{number}@post.test>");
    format!("{head}\r\nSubject: Hello\r\n\r\n{text}\r\n").into_bytes()
}

/// How far the inbox was read.
fn mark(phone: &Phone) -> u32 {
    read(phone, |tx| {
        let account = store::all(tx).unwrap().remove(0);
        sync::sync(tx, account.source).unwrap().mark.unwrap().uid
    })
}

/// Reads the store as it lies there.
fn read<T: Send + 'static>(
    phone: &Phone,
    look: impl FnOnce(&rusqlite::Transaction<'_>) -> T + Send + 'static,
) -> T {
    let folder = home::Home::at(phone.home.path()).unwrap();
    let (_, key) = folder.unlock(&Unlock { keyring: None, passphrase: &|| Ok(None) }).unwrap();
    let db = open_store(&folder, &key);
    db.read_now(|tx| Ok::<_, kai_assistant::db::DbError>(look(tx))).unwrap()
}
