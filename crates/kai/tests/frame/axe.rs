//! Every page as axe-core judges it, with its rules and its best practices: light and dark, on a phone and on a desktop.
//!
//! `scripts/test` installs axe-core; without it these pages pass our own checks alone, and the test says so.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::ask::with_model;
use crate::browser::Browser;
use crate::kit::{Daemon, Home, kai, wait_for};
use crate::page::{check, look};
use crate::provider::{Act, Provider};

const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe/node_modules/axe-core/axe.min.js");

/// A page and how it is judged.
struct Judge {
    browser: Browser,
    axe: Option<String>,
}

impl Judge {
    fn new() -> Self {
        let axe = std::fs::read_to_string(Path::new(AXE)).ok();
        if axe.is_none() {
            // Not `eprintln`, which a test without --nocapture would swallow.
            let missing = "\n!! axe-core is not installed, so no page was checked with it: run scripts/test, \
                           which installs it (npm package axe-core).\n\n";
            drop(std::io::stderr().write_all(missing.as_bytes()));
        }
        Self { browser: Browser::start(), axe }
    }

    /// Judges the page that is open, at both widths and in both looks.
    fn judge(&self, name: &str) {
        for (width, height) in [(360, 740), (1280, 800)] {
            for dark in [false, true] {
                look(&self.browser, width, height, dark);
                let name = format!("{name} at {width}, dark: {dark}");
                // What has just moved is faint for a moment.
                self.browser.until("all to stand still", "return !document.querySelector('[data-moved]')");
                check(&self.browser, &name);
                assert_eq!(self.violations(), json!([]), "{name}");
            }
        }
    }

    /// What axe-core finds wrong: the rule, and where.
    fn violations(&self) -> Value {
        let Some(axe) = &self.axe else { return json!([]) };
        if self.browser.run("return typeof axe") == "undefined" {
            self.browser.run(axe);
            // Words that fade in are judged when they are there, and a button that something moves just now as if it stood.
            self.browser.run(
                "const still = new CSSStyleSheet();
                 still.replaceSync('* { transition: none !important; animation: none !important; }' +
                     '[data-moved] { opacity: 1 !important; }');
                 document.adoptedStyleSheets = [still];",
            );
        }
        self.browser.run(
            "return axe.run().then(found => found.violations.map(wrong =>
                 [wrong.id, ...wrong.nodes.map(node => node.target.join(' ') + ': ' + node.html.slice(0, 200))]))",
        )
    }

    fn open(&self, daemon: &Daemon, path: &str) {
        self.browser.open(&format!("http://{}{path}", daemon.address));
    }

    /// Opens a page that is kept true, and judges it.
    fn visit(&self, daemon: &Daemon, path: &str) {
        self.open(daemon, path);
        self.browser.until_live();
        self.judge(path);
    }
}

/// An answer with everything that an answer can have.
const EVERYTHING: &str = "### Third level\n\nSome *words* and a [link](https://example.org/), https://example.com/.\n\n\
    # First level\n\n- [x] done\n- [ ] open\n\n1. one\n2. two\n\n> quoted\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n\
    ```rust\nlet x = 1; // one\n```\n\nA note[^1] and $x^2$.\n\n[^1]: Here.";

#[test]
fn every_page_passes_axe() {
    let judge = Judge::new();
    a_home_of_ones_own(&judge);
    the_demo(&judge);
}

fn a_home_of_ones_own(judge: &Judge) {
    let empty = Home::new();
    let daemon = empty.start();
    judge.open(&daemon, "/");
    judge.browser.until_says("Sign in to Kai");
    judge.judge("sign in");
    judge.open(&daemon, "/login?token=made-up");
    judge.judge("a link that was used");
    judge.browser.enter(&daemon);
    judge.judge("no model");
    judge.open(&daemon, "/nothing-here");
    judge.judge("not found");
    judge.browser.leave();
    drop(daemon);

    let calls = Act::calls("get_local_time", &json!({}));
    let provider = Provider::start([calls, Act::says(EVERYTHING), Act::says("Yes."), Act::Hang]);
    let home = with_model(&provider);
    assert_eq!(home.run(&["ask", "Show me everything"]).code, 0);
    assert_eq!(home.run(&["ask", "And this?"]).code, 0);
    let daemon = home.start();
    judge.browser.enter(&daemon);
    for path in ["/c/1", "/c/1?q=level&hit=4", "/c/1?menu=1&asked=yes", "/c/1?rename=1", "/new"] {
        judge.visit(&daemon, path);
    }
    judge.browser.type_into("chat-input", "Wait\u{e007}");
    judge.browser.until_seen("waiting-chip");
    judge.judge("an answer that is waited for");
    judge.browser.click("chat-stop");
    judge.browser.until_gone("waiting-chip");
    judge.judge("an answer that was stopped");
    the_dialogs(judge, &daemon);
    judge.browser.leave();
}

fn the_dialogs(judge: &Judge, daemon: &Daemon) {
    let browser = &judge.browser;
    browser.run("document.querySelector('[data-testid=find]').click()");
    browser.until("results", "return document.querySelectorAll('[role=option]').length > 3");
    judge.judge("the search");
    browser.run("document.querySelector('[data-testid=finder-shortcuts]').click()");
    browser.until("the sheet", "return document.getElementById('shortcuts').open");
    judge.judge("the sheet of shortcuts");
    for path in ["/search", "/search?q=level"] {
        judge.open(daemon, path);
        judge.judge(path);
    }
}

/// The demo has messages, a draft, a report and a phone.
fn the_demo(judge: &Judge) {
    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let demo = home.path().join("demo");
    let asked = kai(&demo).args(["ask", "please answer the dinner message"]).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    judge.browser.enter(&daemon);
    judge.browser.until_seen("draft-card");
    judge.judge("a chat with a draft");
    judge.visit(&daemon, "/inbox");
    let message = "return document.querySelector('[data-testid=inbox-item] a')?.getAttribute('href') ?? ''";
    wait_for("a message", || judge.browser.run(message) != "");
    judge.visit(&daemon, judge.browser.run(message).as_str().unwrap());
    for page in ["agent", "tools", "models", "phones", "general"] {
        judge.visit(&daemon, &format!("/settings/{page}"));
    }
    judge.visit(&daemon, "/ledger");
}
