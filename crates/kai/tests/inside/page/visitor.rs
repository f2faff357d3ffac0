//! Somebody with a browser that has no script: reads a page, follows links, fills in forms and sends them. Like an open
//! page it can be told what changes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

use serde_json::Value;

use super::document::Document;
use super::house::{Answer, House};

pub(super) struct Visitor<'a> {
    house: &'a House,
    pub(super) cookie: String,
    pub(super) path: String,
    pub(super) answer: Answer,
    pub(super) page: Document,
}

impl<'a> Visitor<'a> {
    pub(super) fn new(house: &'a House, path: &str) -> Self {
        let cookie = house.sign_in();
        let answer = Answer { status: 0, text: String::new() };
        let mut visitor = Self { house, cookie, path: String::new(), answer, page: Document::new("") };
        visitor.open(path);
        visitor
    }

    /// Goes there and follows where it leads.
    pub(super) fn open(&mut self, path: &str) {
        path.split('#').next().unwrap_or_default().clone_into(&mut self.path);
        let answer = self.house.get(&self.path, &self.cookie);
        self.arrive(answer);
    }

    pub(super) fn reload(&mut self) {
        self.open(&self.path.clone());
    }

    pub(super) fn arrive(&mut self, answer: Answer) {
        if answer.status == 303 {
            let to = answer.header("location").unwrap().to_owned();
            return self.open(&to);
        }
        self.page = Document::new(answer.body());
        self.answer = answer;
    }

    pub(super) fn has(&self, testid: &str) -> bool {
        !self.page.all(testid).is_empty()
    }

    pub(super) fn texts(&self, testid: &str) -> Vec<&str> {
        self.page.all(testid).into_iter().map(|at| self.page.text_of(at)).collect()
    }

    pub(super) fn says(&self, words: &str) -> bool {
        Self::read(&self.page).contains(words)
    }

    /// All that can be read.
    fn read(page: &Document) -> String {
        page.whole_text().to_owned()
    }

    pub(super) fn is_on(&self, switch: &str) -> bool {
        self.page.attribute(self.first(switch), "aria-checked") == Some("true")
    }

    pub(super) fn first(&self, testid: &str) -> usize {
        let found = self.page.all(testid).first().copied();
        found.unwrap_or_else(|| panic!("no {testid} on {}: {}", self.path, self.answer.text))
    }

    /// One inside of the element with this value of this attribute.
    pub(super) fn within(&self, (name, value): (&str, &str), testid: &str) -> usize {
        let outer = self.page.having(name, value);
        let found =
            self.page.all(testid).into_iter().find(|at| outer.iter().any(|it| self.page.holds(*it, *at)));
        found.unwrap_or_else(|| panic!("no {testid} in {name}={value}: {}", self.answer.text))
    }

    /// The text of each element right in it.
    pub(super) fn text_of_children(&self, testid: &str) -> Vec<String> {
        let outer = self.first(testid);
        self.page.children_of(outer).map(|at| self.page.text_of(at).to_owned()).collect()
    }

    /// What all with this test id have under this name.
    pub(super) fn attributes(&self, testid: &str, name: &str) -> Vec<&str> {
        self.page.all(testid).into_iter().filter_map(|at| self.page.attribute(at, name)).collect()
    }

    pub(super) fn value(&self, testid: &str) -> String {
        self.page.value(self.first(testid))
    }

    pub(super) fn fill(&mut self, testid: &str, text: &str) {
        let at = self.first(testid);
        self.page.fill(at, text);
    }

    /// Presses a button or follows a link.
    pub(super) fn press(&mut self, testid: &str) {
        self.press_at(self.first(testid));
    }

    pub(super) fn press_at(&mut self, at: usize) {
        if let Some(href) = self.page.attribute(at, "href").map(str::to_owned) {
            let here = self.path.split('?').next().unwrap_or_default();
            let relative = href.starts_with('?').then(|| format!("{here}{href}"));
            return self.open(&relative.unwrap_or(href));
        }
        let form = self.page.form_of(at).unwrap_or_else(|| panic!("no form: {}", self.answer.text));
        if self.page.attribute(form, "method") == Some("get") {
            let path = self.page.attribute(form, "action").unwrap_or(&self.path).to_owned();
            return self.open(&format!("{path}?{}", self.body(form, at)));
        }
        let answer = self.sent(at, &[]);
        self.arrive(answer);
    }

    fn body(&self, form: usize, pressed: usize) -> String {
        let fields = self.page.fields(form, pressed);
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    /// Presses it as a script does; what it is told.
    pub(super) fn press_live(&mut self, testid: &str) -> Value {
        let answer = self.sent(self.first(testid), &[("X-Live", "1")]);
        self.reload();
        serde_json::from_str(answer.body()).unwrap_or_else(|e| panic!("{e}: {}", answer.text))
    }

    pub(super) fn sent(&self, at: usize, more: &[(&str, &str)]) -> Answer {
        let form = self.page.form_of(at).unwrap_or_else(|| panic!("no form: {}", self.answer.text));
        let action = self.page.attribute(at, "formaction").or(self.page.attribute(form, "action")).unwrap();
        let origin = format!("http://{}", self.house.address);
        let from = format!("{origin}{}", self.path);
        let own = [("Cookie", self.cookie.as_str()), ("Origin", &origin), ("Referer", &from)];
        self.house.send("POST", action, &[&own, more].concat(), &self.body(form, at))
    }

    /// Sends a form that is on no page.
    pub(super) fn post(&self, path: &str, body: &str) -> Answer {
        let from = format!("http://{}{}", self.house.address, self.path);
        let csrf = self.house.get("/new", &self.cookie).csrf();
        let headers = [("Cookie", self.cookie.as_str()), ("Referer", &from)];
        self.house.send("POST", path, &headers, &format!("csrf={csrf}&{body}"))
    }

    /// Keeps the page open until what it is told makes this true, then looks at it anew.
    pub(super) fn until(&mut self, what: &str, there: impl Fn(&Document, &str) -> bool) {
        let mut told = self.follow();
        loop {
            let html = told.html();
            let page = Document::new(&html);
            if there(&page, &Self::read(&page)) {
                break;
            }
            assert!(told.next(), "{what} did not happen; the page says: {}", Self::read(&page));
        }
        self.reload();
    }

    pub(super) fn until_says(&mut self, words: &str) {
        self.until(words, |_, text| text.contains(words));
    }

    pub(super) fn until_seen(&mut self, testid: &str) {
        self.until(testid, |page, _| !page.all(testid).is_empty());
    }

    pub(super) fn until_gone(&mut self, testid: &str) {
        self.until(testid, |page, _| page.all(testid).is_empty());
    }

    pub(super) fn until_text(&mut self, testid: &str, text: &str) {
        self.until(&format!("{testid}: {text}"), |page, _| {
            page.all(testid).first().is_some_and(|at| page.text_of(*at) == text)
        });
    }

    pub(super) fn until_on(&mut self, switch: &str, on: bool) {
        let on = on.to_string();
        self.until(&format!("{switch}: {on}"), |page, _| {
            let at = page.all(switch).first().copied();
            at.and_then(|at| page.attribute(at, "aria-checked")) == Some(on.as_str())
        });
    }

    /// An open page of this address, and what it has been told: everything, to begin with.
    pub(super) fn follow(&self) -> Following {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let place = match path.rsplit_once('/') {
            Some(("/settings", page) | ("", page @ ("ledger" | "welcome"))) => format!("page={page}"),
            Some(("", "inbox")) => "inbox=".to_owned(),
            Some(("/inbox", message)) => format!("inbox={message}"),
            Some(("/c", chat)) => format!("chat={chat}"),
            _ => {
                let app = self.page.having("class", "app chat");
                let chat = app.first().and_then(|at| self.page.attribute(*at, "data-chat"));
                chat.map(|chat| format!("chat={chat}")).unwrap_or_default()
            }
        };
        let mut stream = self.house.connect();
        let head = format!(
            "GET /events?{place}&{query} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
            self.house.address, self.cookie
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut told = Following {
            lines: BufReader::new(stream),
            regions: BTreeMap::new(),
            blocks: vec![],
            gone: false,
        };
        assert!(told.next(), "nothing was told");
        told
    }
}

/// What an open page was told so far.
pub(super) struct Following {
    lines: BufReader<std::net::TcpStream>,
    regions: BTreeMap<String, String>,
    blocks: Vec<String>,
    /// It was told that nobody is signed in any more.
    pub(super) gone: bool,
}

impl Following {
    /// Waits for the next news; false if there will be none.
    pub(super) fn next(&mut self) -> bool {
        let mut line = String::new();
        while !self.gone {
            line.clear();
            if !self.lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                return false;
            }
            // A sign of life after a long silence: nothing comes any more.
            if line.starts_with(':') {
                return false;
            }
            self.gone = line.trim() == "event: gone";
            if let Some(data) = line.strip_prefix("data: ") {
                self.take(&serde_json::from_str(data).unwrap());
                return true;
            }
        }
        false
    }

    fn take(&mut self, patches: &Value) {
        for patch in patches.as_array().unwrap() {
            if let Some(from) = patch["from"].as_u64() {
                self.blocks.truncate(usize::try_from(from).unwrap());
                let blocks = patch["blocks"].as_array().unwrap().iter();
                self.blocks.extend(blocks.map(|block| block.as_str().unwrap().to_owned()));
            } else {
                let (id, html) = (patch["id"].as_str().unwrap(), patch["html"].as_str().unwrap());
                self.regions.insert(id.to_owned(), html.to_owned());
            }
        }
    }

    /// All that the page shows by now.
    pub(super) fn html(&self) -> String {
        let regions = self.regions.iter().map(|(id, html)| format!("<div id=\"{id}\">{html}</div>"));
        let regions: String = regions.collect();
        format!("<html><ol>{}</ol>{regions}</html>", self.blocks.concat())
    }
}
