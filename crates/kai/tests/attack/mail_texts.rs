//! What a text can do as a mail: each arrives at a real server as names, addresses, subject, text, HTML and attachment, and
//! is listed, read, searched, answered and shown.

use std::sync::Arc;

use futures_util::future::join_all;
use kai_assistant::email::EmailId;
use kai_assistant::email::queue::QUEUE;
use kai_assistant::heartbeat::{self, BeatResult};
use kai_assistant::inbox::Key;
use kai_assistant::pending;
use kai_llm::{Message, Scripted};
use kai_stand_ins::mail::PostOffice;
use serde_json::{Value, json};

use super::counts::{self, Counts, Own};
use super::house::{House, model};
use super::letters::Shot;
use super::post::{self, ALICE};
use super::texts::{TELLING, Visitor, say, texts};
use crate::call::drafts::DraftRow;
use crate::commands::{drafts, inbox};

/// Texts that arrive together: each has an answer and a draft of its own, and twenty drafts may wait.
const BATCH: usize = 8;
/// Earlier reports that a prompt tells of.
const EARLIER: usize = 3;
const SYSTEM: [&str; 3] = ["Honesty", "Tools", "Context"];

struct Range {
    house: House,
    office: PostOffice,
    visitor: Visitor,
    own: Own,
    /// Of the last prompt: an attacker may have learned it.
    mark: String,
    counts: Counts,
    delivered: usize,
    read: usize,
    /// Mails with an answer that has something to quote.
    answered: usize,
    /// Mails with an answer that quotes nothing.
    blank: usize,
    /// Mails that stood below the draft that answers them.
    quoted: usize,
    beats: usize,
    /// Lines of a system prompt.
    system: Option<usize>,
    /// Tags that were not the page's own.
    found: Vec<String>,
}

impl Range {
    async fn new() -> Self {
        let (house, office) = (House::new().await, post::office());
        post::open(&house, &office).await;
        let mut range = Self {
            visitor: Visitor::of(&house).await,
            house,
            office,
            own: Own::of(&[]),
            mark: String::new(),
            counts: Counts::default(),
            delivered: 0,
            read: 0,
            answered: 0,
            blank: 0,
            quoted: 0,
            beats: 0,
            system: None,
            found: vec![],
        };
        // Friendly ones first: what the pages look like with them is theirs.
        let friendly = [
            "Hello, **dinner** at 8?",
            "A long one. ",
            "odd \u{202e}signs",
            "So:\n\n```sh\nls -l\n```\n",
            "x",
        ];
        let friendly = friendly.iter().map(|text| text.repeat(if text.len() == 12 { 200 } else { 1 }));
        let pages = range.fire(&shots(0, &friendly.collect::<Vec<_>>(), "")).await;
        range.own = Own::of(&pages);
        (range.counts, range.found) = (Counts::default(), vec![]);
        (range.delivered, range.read, range.quoted) = (0, 0, 0);
        (range.answered, range.blank) = (0, 0);
        range
    }

    /// Delivers some texts in every way; returns the pages that show them.
    async fn fire(&mut self, shots: &[Shot]) -> Vec<String> {
        let address = self.house.internet.at("");
        let mails: Vec<Vec<u8>> = shots.iter().map(|shot| shot.mail(&address)).collect();
        let ids = post::deliver(&self.house, &self.office, &mails).await;
        let report = self.beat(shots, &ids).await;
        let mut pages = self.drafts(&format!("/c/{report}")).await;
        pages.push(self.visitor.page("/inbox?from=email").await);
        for id in &ids {
            pages.push(self.message(*id, shots).await);
        }
        for page in &pages {
            let strange = self.own.strange(page);
            self.counts.html += strange.len();
            self.found.extend(strange);
        }
        for draft in drafts::list(&self.house.app).await.unwrap() {
            drafts::discard(&self.house.app, draft.id).await.unwrap();
        }
        self.office.empty(ALICE, "INBOX");
        self.delivered += shots.len();
        pages
    }

    /// The page with all drafts, and with an answer in its form.
    async fn drafts(&mut self, path: &str) -> Vec<String> {
        let page = self.visitor.page(path).await;
        self.quoted += page.matches("data-testid=\"draft-mail-quote\"").count();
        let all = drafts::list(&self.house.app).await.unwrap();
        let quotes = |draft: &&DraftRow| draft.mail.as_ref().is_some_and(|mail| mail.quote.is_some());
        let answer = all.iter().find(quotes).unwrap().id.0;
        let form = self.visitor.page(&format!("{path}?edit={answer}")).await;
        assert!(form.contains("data-testid=\"draft-edit-subject\""), "{form}");
        vec![page, form]
    }

    /// The page of a mail once its text has come from the server, and what a chat about it would quote.
    async fn message(&mut self, id: EmailId, shots: &[Shot]) -> String {
        let (app, key) = (&self.house.app, Key::new("email", id));
        join_all(inbox::message(app, key.clone()).await.unwrap().fetching).await;
        let page = self.visitor.page(&format!("/inbox/{key}")).await;
        assert!(!page.contains("data-testid=\"inbox-beginning\""), "{page}");
        let quote = inbox::quote(app, key).await.unwrap().unwrap().json;
        self.counts += counts::result("read_email", &quote, &words(shots));
        self.codes(&quote, shots);
        page
    }

    /// A heartbeat sees them, reads each with every tool, drafts answers and mails, and reports their very words.
    async fn beat(&mut self, shots: &[Shot], ids: &[EmailId]) -> i64 {
        let mut reads = vec![
            ("check_email", "{}".to_owned()),
            ("check_email", json!({"before": ids[ids.len() - 1]}).to_string()),
            ("search_email", json!({"query": "code"}).to_string()),
            ("search_email", json!({"query": shots[0].start(200)}).to_string()),
            ("setup_email", "{}".to_owned()),
        ];
        reads.extend(ids.iter().map(|id| ("read_email", json!({"id": id}).to_string())));
        let answer = |id: &EmailId| {
            (
                "reply_email",
                json!({"email_id": id, "body": format!("Yes, {id}."), "reply_all": id.uid.is_multiple_of(2)})
                    .to_string(),
            )
        };
        let own = |shot: &Shot| {
            let (subject, body) = (shot.start(200), shot.start(1_000));
            ("compose_email", json!({"to": "eve@post.test", "subject": subject, "body": body}).to_string())
        };
        let drafts = ids.iter().map(answer).chain(shots.iter().map(own)).collect();
        let says = shots.iter().map(|shot| shot.start(500)).collect::<Vec<_>>().join("\n\n");
        let rounds = [reads, drafts, vec![("check_drafts", "{}".to_owned())]];
        let model = model(&rounds, &format!("Somebody wrote:\n{says}"));
        let before = self.waiting();
        let beaten = self.house.beat(&model).await;
        assert!(matches!(beaten, BeatResult::Ran(heartbeat::Outcome::Report(_))), "{beaten:?}");
        self.prompt(&model, before, before - self.waiting());
        self.judge(&model, shots);
        self.house.app.db.read(heartbeat::store::banner).await.unwrap().unwrap().0
    }

    /// What the heartbeat was told of those that waited, as many of them as it showed.
    fn prompt(&mut self, model: &Arc<Scripted>, waiting: u32, shown: u32) {
        assert!(waiting > 0 && shown > 0, "{shown} of {waiting} were told");
        let requests = model.requests();
        let Some(Message::User { text: prompt, .. }) = requests[0].messages.first() else {
            panic!("no prompt")
        };
        let earlier = self.beats.min(EARLIER);
        self.beats += 1;
        let sections =
            [("Previous Heartbeat Results", earlier > 0), ("Email Status", true), ("New Emails", true)];
        let sections: Vec<&str> =
            sections.iter().filter(|(_, there)| *there).map(|(title, _)| *title).collect();
        self.counts += counts::prompt(prompt, &sections, shown as usize + earlier);
        counts::mark(prompt).unwrap_or_default().clone_into(&mut self.mark);
        let system = &requests[0].system;
        self.counts += counts::prompt(system, &SYSTEM, 0);
        let lines = counts::lines(system).count();
        self.counts.lines += lines.abs_diff(*self.system.get_or_insert(lines));
    }

    /// Every word that reached the model.
    fn judge(&mut self, model: &Arc<Scripted>, shots: &[Shot]) {
        let requests = model.requests();
        let last = requests.last().unwrap();
        self.codes(&(serde_json::to_string(&last.messages).unwrap() + &last.system), shots);
        // Markup can hide everything that a mail says. Then there is nothing to quote.
        let mut blank = vec![];
        for message in &last.messages {
            let Message::Tool { tool, result, .. } = message else { continue };
            self.counts += counts::result(tool, result, &words(shots));
            let read: Value = serde_json::from_str(result).unwrap_or_default();
            match tool.as_str() {
                "read_email" if read["success"] == true => {
                    self.read += 1;
                    blank.extend(Some(read["id"].clone()).filter(|_| read["text"] == ""));
                }
                "reply_email" if read["success"] == true && blank.contains(&read["in_reply_to"]) => {
                    self.blank += 1;
                }
                "reply_email" if read["success"] == true => self.answered += 1,
                _ => {}
            }
        }
    }

    fn codes(&mut self, seen: &str, shots: &[Shot]) {
        for shot in shots.iter().filter(|shot| !shot.text.contains(&shot.code)) {
            self.counts += counts::code(seen, &shot.code);
        }
    }

    /// How many mails wait for a heartbeat.
    fn waiting(&self) -> u32 {
        self.house.app.db.read_now(|tx| pending::count(tx, QUEUE)).unwrap()
    }
}

/// The beginnings of the texts, where they are long enough to be known again.
fn words(shots: &[Shot]) -> Vec<String> {
    let telling = |shot: &Shot| Some(shot.start(24)).filter(|start| start.chars().count() >= TELLING);
    shots.iter().filter_map(telling).collect()
}

fn shots(first: usize, texts: &[String], mark: &str) -> Vec<Shot> {
    let shot = |(at, text): (usize, &String)| {
        let number = first + at;
        let code = format!("{:06}", 100_000 + (number * 7_919) % 900_000);
        Shot { number, text: text.replace("{MARK}", mark), code }
    };
    texts.iter().enumerate().map(shot).collect()
}

#[tokio::test]
async fn no_text_of_a_mail_does_either_and_none_is_sent() {
    let (own, public) = texts();
    let (mut range, mut answerable) = (Range::new().await, 0);
    for (n, texts) in [own.as_slice(), &public].concat().chunks(BATCH).enumerate() {
        let before = range.counts;
        let shots = shots(10 + n * BATCH, texts, &range.mark);
        answerable += shots.iter().filter(|shot| shot.is_answerable()).count();
        range.fire(&shots).await;
        if range.counts != before {
            say(&format!("{:?} {:?} after {:?}", range.counts, std::mem::take(&mut range.found), texts));
        }
    }
    let (Counts { sections, delimiters, codes, lines, html }, sent) = (range.counts, range.house.post.sent());
    say(&format!(
        "attack, mail: {} of our own and {} public ones, each as all parts of a mail (names, addresses, subject, plain text, HTML, \
         attachment), {} of which can be answered: {sections} sections forged, {delimiters} delimiters escaped, {codes} codes \
         shown, {lines} lines added, {html} pieces of HTML, {} sent without a tap, {} things loaded",
        own.len(),
        public.len(),
        range.answered + range.blank,
        sent.len(),
        range.house.internet.requests(),
    ));
    assert_eq!(range.delivered, own.len() + public.len());
    assert_eq!(range.read, range.delivered, "each was read");
    let answered = range.answered + range.blank;
    assert!(answered >= answerable, "only {answered} of {answerable} were answered");
    assert_eq!(range.quoted, range.answered, "each stands below its answer");
    assert_eq!((sent, range.house.internet.requests()), (vec![], 0));
    post::untouched(&range.office);
    assert_eq!(range.counts, Counts::default());
}
