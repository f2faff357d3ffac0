//! A daemon that polls, captures, beats and sends, killed at any moment, on a disk that is full now and then, with a paired
//! phone that dies as well and a line to it that is cut, and with a mail account whose server answers late or never. After
//! every round the books must balance: nothing lost, nothing doubled, nothing sent by itself.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::books::{Account, Books, Outside, Tapped, Way, numbered, receipt};
use super::pocket::{self, Pocket};
use super::post::{self, Post};
use super::relay::Fate;
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
    /// A mail account, where there are mail servers.
    post: Option<Post>,
    /// How much waited after the last round, and how many mails.
    waiting: usize,
    letters_waiting: usize,
}

/// While more waits, nothing more arrives in the pocket or by mail: the queues are never full here.
const ROOM: usize = 40;

/// Ids begin here; smaller ones were there before.
const FIRST: u64 = 100;

impl World {
    fn new(provider: &Provider) -> Self {
        let mut phone = ready();
        let post = Post::open(&mut phone);
        use_model(&phone, provider);
        phone.program("termux-notification-list", r#"cat "$DIR/tray""#);
        let small_disk = on_a_small_disk(phone.home.path());
        let pocket = Pocket::pair(&phone);
        let mut world = Self {
            phone,
            books: Books::default(),
            dice: Dice::new(7),
            inbox: vec![],
            tray: vec![],
            small_disk,
            pocket,
            post,
            waiting: 0,
            letters_waiting: 0,
        };
        world.lay_out();
        let _daemon = world.phone.start();
        let on = world.phone.run(&["settings", "set", "notifications_enabled", "true"]);
        assert_eq!(on.code, 0, "{on:?}");
        world.phone.run(&["notifications", "refresh"]);
        if world.pocket.is_some() {
            Pocket::may_be_used_by(&world.phone);
        }
        if let Some(post) = &mut world.post {
            post.add_account(&world.phone);
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
            self.books.drafts.insert(id, Tapped::new(body, way));
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

    /// Two taps at once on one of the drafts that may be tapped, as two tabs would. Both count as posted, whatever becomes
    /// of them. Returns the draft.
    fn tap(&mut self, daemon: &Daemon, cookie: &str, may_be: impl Fn(&Tapped, &str) -> bool) -> Option<i64> {
        let page = daemon.get("/", cookie);
        let cards: Vec<(i64, &str)> =
            page.text.split("data-testid=\"draft-card\"").skip(1).map(form).collect();
        let may_be = |id: &i64, card: &str| {
            let (_, status) = card.split_once("data-status=\"").unwrap();
            let status = status.split_once('"').unwrap().0;
            self.books.drafts.get(id).is_some_and(|draft| may_be(draft, status))
        };
        let cards: Vec<(i64, &str)> = cards.into_iter().filter(|(id, card)| may_be(id, card)).collect();
        let chosen = self.dice.below(cards.len().max(1) as u64);
        let (id, card) = *cards.get(usize::try_from(chosen).unwrap())?;
        let (_, form) = card.split_once(&format!("action=\"/drafts/{id}/tap\""))?;
        self.books.drafts.get_mut(&id)?.tap();
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
        Some(id)
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
        let reachable = self.post.as_mut().filter(|_| self.letters_waiting < ROOM);
        let mails = reachable.map(|post| post.goes_on(&mut self.dice, life));
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
        let polls: &[&[&str]] = &[&["sms", "poll"], &["email", "poll"]];
        let mut commands: Vec<Child> = polls.iter().map(|poll| self.in_the_background(poll)).collect();
        if self.dice.below(2) == 0 {
            self.notification_comes();
        }
        commands.push(self.in_the_background(&["heartbeat", "run"]));
        let tapped = if full { None } else { self.taps(&daemon, &cookie, round, &mut life) };
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
        if let Some(mails) = mails {
            mails.join().unwrap();
        }
        self.note_fate(tapped);
    }

    /// Drafts for the phone in the pocket and mails, and taps. Changes how long this life lasts from then on. Returns the
    /// mail that was tapped.
    fn taps(&mut self, daemon: &Daemon, cookie: &str, round: u64, life: &mut u64) -> Option<i64> {
        if self.pocket.is_some() && round % 4 == 1 {
            let sent = self.pocket.as_ref().map_or(0, Pocket::sent);
            self.draft_for_the_pocket(round);
            self.tap(daemon, cookie, is_waiting_text);
            self.tap(daemon, cookie, is_waiting_text);
            // A message leaves seconds after its tap. The end shall come around that moment, and not always before.
            if let Some(pocket) = self.pocket.as_ref().filter(|_| self.dice.below(3) > 0) {
                pocket.until_more_sent(sent);
                *life = 700;
            }
        }
        if self.dice.below(2) == 0 {
            self.tap(daemon, cookie, is_waiting_text);
        }
        if self.post.is_none() || self.dice.below(3) == 0 {
            return None;
        }
        self.draft_mail(round);
        let fate = Fate::rolled(&mut self.dice);
        let relay = self.post.as_ref().map(|post| Arc::clone(&post.relay))?;
        relay.let_next(fate);
        let tapped = self.tap(daemon, cookie, is_mail_to_send)?;
        if fate.holds() {
            relay.until_met();
            *life = 50;
        }
        Some(tapped)
    }

    /// A new mail, or an answer to one that waits.
    fn draft_mail(&mut self, round: u64) {
        self.make_room();
        let body = format!("Mail number {round}!");
        let ids = self.post.as_ref().map(|post| post.queue(&self.phone).ids).unwrap_or_default();
        let (tool, arguments) = match ids.last().filter(|_| self.dice.below(2) == 0) {
            Some(id) => ("reply_email", json!({"email_id": id, "body": body})),
            None => ("compose_email", json!({"to": post::BOB, "subject": "Hello", "body": body})),
        };
        self.stage(tool, &arguments, Way::Mail, body);
    }

    /// Notes what happened on the way to the mail that was tapped, once nobody speaks to its server any more.
    fn note_fate(&mut self, tapped: Option<i64>) {
        let met = self.post.as_ref().and_then(|post| post.relay.settled());
        let draft = tapped.and_then(|id| self.books.drafts.get_mut(&id));
        assert!(met.is_none() || draft.is_some(), "a mail left that nobody tapped");
        if let (Some(fate), Some(draft)) = (met, draft) {
            draft.met = Some(fate);
            *self.books.fates.entry(fate).or_default() += 1;
        }
    }

    fn balance(&mut self, round: u64) -> Account {
        let outside = Outside { phone: &self.phone, pocket: self.pocket.as_ref(), post: self.post.as_ref() };
        let account = self.books.balance(outside, round);
        (self.waiting, self.letters_waiting) = (account.waiting, account.letters_waiting);
        account
    }

    fn outside(&self) -> Outside<'_> {
        Outside { phone: &self.phone, pocket: self.pocket.as_ref(), post: self.post.as_ref() }
    }

    /// Undisturbed, until the copies of all mails that were sent are in their folder. A daemon that starts takes a few.
    fn until_copied(&self) {
        let outside = self.outside();
        for _ in 0..10 {
            let _daemon = self.phone.start();
            for _ in 0..10 {
                if self.books.not_copied(outside).1 == 0 {
                    return;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        panic!("of the mails that were sent so many have no copy: {:?}", self.books.not_copied(outside));
    }

    fn print_pocket(&self, account: &Account) {
        let Some(pocket) = &self.pocket else {
            println!("kills, paired phone: not without a network of our own");
            return;
        };
        println!(
            "kills, paired phone: {} of its messages arrived, {} told exactly once, all archived exactly once; {} of its \
             notifications taken, each told exactly once; {} of its messages and {} replies left by taps",
            pocket.received,
            account.pocket_told,
            self.books.bubbles.len(),
            pocket.sent(),
            pocket.handset.replies().len(),
        );
    }

    fn print_post(&self, account: &Account) {
        let Some(post) = &self.post else {
            println!("kills, mail: not without Dovecot and Exim");
            return;
        };
        let mails = self.books.drafts.values().filter(|draft| draft.way == Way::Mail);
        let (sent, _) = self.books.not_copied(self.outside());
        println!(
            "kills, mail: {} mails arrived, {} told exactly once; {} drafts, {} mails left by {} taps, {sent} drafts said \
             SENT, {} copies; on the way {:?}",
            post.arrived,
            account.letters_told,
            mails.clone().count(),
            post.left().len(),
            mails.map(Tapped::times_tapped).sum::<u64>(),
            post.copies().len(),
            self.books.fates,
        );
    }

    /// Undisturbed, until nothing waits any more.
    fn quiet_end(&mut self) -> Account {
        let daemon = self.phone.start();
        assert_eq!(self.phone.run(&["sms", "poll"]).code, 0);
        if self.post.is_some() {
            crate::kit::wait_for("a look into the mail account", || {
                let looked = self.phone.run(&["email", "poll", "--json"]);
                looked.code == 0 && looked.json()["accounts"][0]["error"].is_null()
            });
        }
        if let Some(pocket) = &self.pocket {
            pocket.until_archived(&self.phone);
        }
        for _ in 0..20 {
            self.phone.run(&["heartbeat", "run"]);
        }
        drop(daemon);
        self.until_copied();
        let account = self.balance(u64::MAX);
        assert_eq!((account.told, account.waiting), (self.books.arrived.len(), 0), "{account:?}");
        let letters = self.post.as_ref().map_or(0, |post| post.arrived);
        assert_eq!(account.letters_told as u64, letters, "each mail is told");
        let Some(pocket) = &self.pocket else { return account };
        assert_eq!(account.pocket_told as u64, pocket.received, "each message in the pocket is told");
        let (mut here, mut there) = (Pocket::archived(&self.phone), pocket.texts());
        here.sort();
        there.sort();
        assert_eq!(here, there, "the archive holds each message of the pocket once");
        account
    }
}

/// A message of a phone that waits for its first tap.
fn is_waiting_text(draft: &Tapped, status: &str) -> bool {
    draft.way != Way::Mail && status == "PENDING"
}

/// A mail that may be tapped, also once more.
fn is_mail_to_send(draft: &Tapped, status: &str) -> bool {
    draft.way == Way::Mail && matches!(status, "PENDING" | "FAILED" | "UNKNOWN")
}

/// The draft of a card, with the rest of the page.
fn form(card: &str) -> (i64, &str) {
    let (_, id) = card.split_once("data-draft=\"").unwrap();
    (id.split_once('"').unwrap().0.parse().unwrap(), card)
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
    let account = world.quiet_end();
    world.print_pocket(&account);
    world.print_post(&account);
    let Account { told, left, unknown, .. } = account;
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
