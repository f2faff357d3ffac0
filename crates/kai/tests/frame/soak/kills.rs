//! A daemon that polls, captures, beats and sends, killed at any moment, on a disk that is full now and then, with a paired
//! phone that dies as well and a line to it that is cut. After every round the books must balance: nothing lost, nothing
//! doubled, nothing sent by itself.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::books::{Account, Books, Tapped, Way, numbered, receipt};
use super::pocket::{self, Pocket};
use super::{Dice, asked_for};
use crate::banners::use_model;
use crate::kit::Daemon;
use crate::phone::Phone;
use crate::provider::{Act, Provider};
use crate::sms::{ALICE, ready};

struct World {
    phone: Phone,
    books: Books,
    dice: Dice,
    /// Texts of all messages, oldest first: the inbox.
    inbox: Vec<String>,
    tray: Vec<Value>,
    /// The home lies on a disk of its own, which can be full.
    small_disk: bool,
    /// A paired phone, in a network of our own.
    pocket: Option<Pocket>,
    /// How much waited after the last round.
    waiting: usize,
}

/// While more waits, nothing more arrives in the pocket: the queue is never full here.
const ROOM: usize = 40;

/// Ids begin here; smaller ones were there before.
const FIRST: u64 = 100;

impl World {
    fn new(provider: &Provider) -> Self {
        let phone = ready();
        use_model(&phone, provider);
        phone.program("termux-notification-list", r#"cat "$DIR/tray""#);
        let small_disk = on_a_small_disk(phone.home.path());
        let pocket = Pocket::pair(&phone);
        let world = Self {
            phone,
            books: Books::default(),
            dice: Dice::new(7),
            inbox: vec![],
            tray: vec![],
            small_disk,
            pocket,
            waiting: 0,
        };
        world.lay_out();
        let _daemon = world.phone.start();
        let on = world.phone.run(&["settings", "set", "notifications_enabled", "true"]);
        assert_eq!(on.code, 0, "{on:?}");
        world.phone.run(&["notifications", "refresh"]);
        if world.pocket.is_some() {
            Pocket::may_be_used_by(&world.phone);
        }
        world
    }

    /// Puts inbox and tray where the programs find them. Beside their place and renamed: nobody reads half a file.
    fn lay_out(&self) {
        let old = (41, ALICE, "before".to_owned());
        let new = self
            .inbox
            .iter()
            .zip(FIRST..)
            .map(|(text, id)| (i64::try_from(id).unwrap(), ALICE, text.clone()));
        let all: Vec<(i64, &str, String)> = std::iter::once(old).chain(new).collect();
        let rows: Vec<(i64, &str, &str)> =
            all.iter().map(|(id, from, text)| (*id, *from, text.as_str())).collect();
        self.phone.inbox(&rows);
        let folder = self.phone.programs.path();
        std::fs::write(folder.join("tray.new"), Value::from(self.tray.clone()).to_string()).unwrap();
        std::fs::rename(folder.join("tray.new"), folder.join("tray")).unwrap();
    }

    fn messages_arrive(&mut self) {
        for _ in 0..self.dice.below(4) {
            let id = FIRST + self.inbox.len() as u64;
            self.inbox.push(format!("Hello, this is sms-{id}@ and more"));
            self.books.arrived.insert(id);
        }
        self.lay_out();
    }

    /// A notification comes; it counts as taken only if the daemon said so.
    fn notification_comes(&mut self) {
        let id = self.tray.len() as u64;
        let (title, text) = (format!("Alice {id}"), format!("note-{id}@ hello"));
        self.tray.push(json!({"key": format!("0|org.chat|{id}"), "packageName": "org.chat", "title": title, "content": text}));
        self.lay_out();
        let looked = self.phone.run(&["notifications", "refresh", "--json"]);
        let listening = looked.code == 0 && looked.json()["state"] == "listening";
        if listening && self.phone.run(&["notifications", "list"]).out.contains(&format!("note-{id}@")) {
            self.books.acknowledged.insert(id);
        }
    }

    fn draft(&mut self, round: u64) {
        let body = format!("Answer number {round}!");
        let arguments = json!({"to": ALICE, "body": body, "phone": "this phone"});
        self.stage("send_sms", &arguments, Way::Termux, body);
    }

    /// Puts the oldest draft away whose fate is unknown, before the outbox is full of them.
    fn make_room(&mut self) {
        let listed = self.phone.run(&["drafts", "list", "--json"]);
        let rows = if listed.code == 0 { listed.json() } else { json!([]) };
        let unknown = |row: &&Value| row["status"] == "UNKNOWN";
        let unknown: Vec<&Value> = rows.as_array().unwrap().iter().filter(unknown).collect();
        if let (true, Some(id)) = (unknown.len() > 8, unknown.first().and_then(|row| row["id"].as_i64())) {
            self.books.put_away.insert(id);
            self.phone.run(&["drafts", "dismiss", &id.to_string()]);
        }
    }

    fn stage(&mut self, tool: &str, arguments: &Value, way: Way, body: String) {
        let staged = self.phone.run(&["tools", "call", tool, &arguments.to_string()]).json();
        if let Some(id) = staged["draft_id"].as_i64() {
            self.books.drafts.insert(id, Tapped { body, way, taps: 0 });
        }
    }

    /// The phone in the pocket is connected, if it can be. It shows something, which counts as taken only if a command
    /// lists it, and drafts wait for it.
    fn draft_for_the_pocket(&mut self, round: u64) {
        let (true, Some(pocket)) = (Pocket::is_connected(&self.phone), &mut self.pocket) else { return };
        let bubble = pocket.shows();
        self.make_room();
        if let Some(row) = self.listed_bubble(bubble) {
            self.books.bubbles.insert(bubble);
            let body = format!("Reply number {round}!");
            self.stage("reply_notification", &json!({"id": row["id"], "body": body}), Way::App, body);
        }
        let body = format!("From the pocket, number {round}!");
        let arguments = json!({"to": ALICE, "body": body, "phone": pocket::NAME});
        self.stage("send_sms", &arguments, Way::Pocket, body);
    }

    /// Waits a little until a notification of the phone in the pocket is listed. It need not arrive.
    fn listed_bubble(&self, bubble: u64) -> Option<Value> {
        let row = || {
            let listed = self.phone.run(&["notifications", "list", "--json"]);
            let rows = if listed.code == 0 { listed.json() } else { json!([]) };
            let is_it = |row: &&Value| numbered(&row["preview"], "bubble-") == Some(bubble);
            rows.as_array().unwrap().iter().find(is_it).cloned()
        };
        (0..10).find_map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            row()
        })
    }

    /// Two taps at once on one of the drafts that wait, as two tabs would. Both count as posted, whatever becomes of them.
    fn tap(&mut self, daemon: &Daemon, cookie: &str) {
        let page = daemon.get("/", cookie);
        let cards: Vec<&str> = page.text.split("data-status=\"PENDING\"").skip(1).collect();
        let chosen = self.dice.below(cards.len().max(1) as u64);
        let Some(card) = cards.get(usize::try_from(chosen).unwrap()) else { return };
        let Some((_, form)) = card.split_once("action=\"/drafts/") else { return };
        let id: i64 = form.split_once('/').unwrap().0.parse().unwrap();
        let Some(draft) = self.books.drafts.get_mut(&id) else { return };
        draft.taps += 2;
        let body = crate::killed::post_of(form, &page.csrf());
        let (host, length) = (&daemon.address, body.len());
        let request = format!(
            "POST /drafts/{id}/tap HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        for _ in 0..2 {
            let (address, request) = (daemon.address.clone(), request.clone());
            std::thread::spawn(move || posted(&address, &request));
        }
    }

    fn in_the_background(&self, args: &[&str]) -> Child {
        let mut command = self.phone.command();
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Everything at once, and then the end comes. Some lives are long enough for a paired phone, which takes seconds.
    fn live_and_die(&mut self, round: u64) {
        let long = self.pocket.is_some() && round % 4 == 1;
        let (mut life, room) = (if long { 4_000 } else { 500 }, self.waiting < ROOM);
        let going_on = self.pocket.as_mut().map(|pocket| pocket.goes_on(&mut self.dice, life, room));
        let mut daemon = self.phone.start();
        let cookie = daemon.sign_in();
        if round.is_multiple_of(3) {
            self.draft(round);
        }
        self.messages_arrive();
        let full = self.small_disk && self.dice.below(6) == 0;
        if full {
            fill(self.phone.home.path());
        }
        let mut commands = vec![self.in_the_background(&["sms", "poll"])];
        if self.dice.below(2) == 0 {
            self.notification_comes();
        }
        commands.push(self.in_the_background(&["heartbeat", "run"]));
        if long && !full {
            let sent = self.pocket.as_ref().map_or(0, Pocket::sent);
            self.draft_for_the_pocket(round);
            self.tap(&daemon, &cookie);
            self.tap(&daemon, &cookie);
            // A message leaves seconds after its tap. The end shall come around that moment, and not always before.
            if let Some(pocket) = self.pocket.as_ref().filter(|_| self.dice.below(3) > 0) {
                pocket.until_more_sent(sent);
                life = 700;
            }
        }
        if self.dice.below(2) == 0 && !full {
            self.tap(&daemon, &cookie);
        }
        std::thread::sleep(Duration::from_millis(self.dice.below(life)));
        daemon.kill();
        for mut command in commands {
            let _ = command.kill();
            let _ = command.wait();
        }
        empty(self.phone.home.path());
        if let (Some(pocket), Some(going_on)) = (&self.pocket, going_on) {
            pocket.until_over(going_on);
        }
    }

    fn balance(&mut self, round: u64) -> Account {
        let account = self.books.balance(&self.phone, self.pocket.as_ref(), round);
        self.waiting = account.waiting;
        account
    }

    /// Undisturbed, until nothing waits any more.
    fn quiet_end(&mut self) -> Account {
        let daemon = self.phone.start();
        assert_eq!(self.phone.run(&["sms", "poll"]).code, 0);
        if let Some(pocket) = &self.pocket {
            pocket.until_archived(&self.phone);
        }
        for _ in 0..20 {
            self.phone.run(&["heartbeat", "run"]);
        }
        drop(daemon);
        let account = self.balance(u64::MAX);
        assert_eq!((account.told, account.waiting), (self.books.arrived.len(), 0), "{account:?}");
        let Some(pocket) = &self.pocket else { return account };
        assert_eq!(account.pocket_told as u64, pocket.received, "each message in the pocket is told");
        let (mut here, mut there) = (Pocket::archived(&self.phone), pocket.texts());
        here.sort();
        there.sort();
        assert_eq!(here, there, "the archive holds each message of the pocket once");
        account
    }
}

#[test]
#[ignore = "500 rounds of kill -9; scripts/soak runs it"]
fn whenever_it_is_killed_the_books_balance() {
    let rounds = asked_for("KAI_SOAK_KILLS", 500);
    let provider = Provider::start([Act::Answers(receipt)]);
    let mut world = World::new(&provider);
    let began = Instant::now();
    for round in 0..rounds {
        world.live_and_die(round);
        let account = world.balance(round);
        if round % 50 == 49 {
            println!("kills: {} of {rounds}, {account:?}", round + 1);
        }
    }
    let Account { told, left, unknown, pocket_told, .. } = world.quiet_end();
    match &world.pocket {
        Some(pocket) => println!(
            "kills, paired phone: {} of its messages arrived, {pocket_told} told exactly once, all archived exactly once; \
             {} of its notifications taken, each told exactly once; {} of its messages and {} replies left by taps",
            pocket.received,
            world.books.bubbles.len(),
            pocket.sent(),
            pocket.handset.replies().len(),
        ),
        None => println!("kills, paired phone: not without a network of our own"),
    }
    println!(
        "kills: {rounds} in {} s{}; {} messages arrived, {told} told exactly once; {} notifications taken, each told \
         exactly once; {} drafts, {left} left by taps, {unknown} unknown; {} requests; lost 0, doubled 0, sent by itself 0",
        began.elapsed().as_secs(),
        if world.small_disk { ", the disk full in one of six" } else { ", no small disk on this machine" },
        world.books.arrived.len(),
        world.books.acknowledged.len(),
        world.books.drafts.len(),
        provider.asked().len(),
    );
    if world.small_disk {
        let _ = Command::new("umount").arg(world.phone.home.path()).status();
    }
}

/// Whoever is killed in the middle answers nothing.
fn posted(address: &str, request: &str) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    if stream.write_all(request.as_bytes()).is_ok() {
        let _ = stream.read_to_end(&mut vec![]);
    }
}

/// A few megabytes for the home alone. Only in a mount namespace of our own, which `scripts/soak` makes.
fn on_a_small_disk(home: &Path) -> bool {
    if std::env::var_os("KAI_SOAK_NAMESPACE").is_none() {
        return false;
    }
    let beside = home.with_extension("kept");
    let copied = |from: &Path, to: &Path| Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    std::fs::create_dir(&beside).unwrap();
    assert!(copied(home, &beside).unwrap().success());
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"]).arg(home);
    let there = mount.status().is_ok_and(|status| status.success());
    assert!(copied(&beside, home).unwrap().success());
    std::fs::remove_dir_all(&beside).unwrap();
    there
}

fn fill(home: &Path) {
    let filler = home.join("filler");
    // Until nothing more goes in.
    let _ = Command::new("sh").args(["-c", "cat /dev/zero > \"$0\" 2> /dev/null"]).arg(filler).status();
}

fn empty(home: &Path) {
    let _ = std::fs::remove_file(home.join("filler"));
}
