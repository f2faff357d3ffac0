//! What a text of an MCP server can do: each comes in as the server's own name, as a tool's name, description and
//! parameters, as an answer, an error, a link and progress, and is approved, called and shown.

use kai_assistant::mcp::ToolText;
use kai_assistant::mcp::port::{LinkError, Outcome};
use kai_assistant::untrusted::Untrusted;
use kai_llm::{Message, Scripted};
use serde_json::{Value, json};

use super::counts::{self, Counts, Own};
use super::house::{House, Wary, model};
use super::liar::{self, LIAR};
use super::texts::{TELLING, Visitor, say, texts};
use crate::call::mcp::McpCall;
use crate::commands::{chats, mcp};

/// Texts that come together: each is the name of a tool and the words of another, and more than twenty would be found by
/// words only.
const BATCH: usize = 8;
const SYSTEM: [&str; 3] = ["Honesty", "Tools", "Context"];
const SETTINGS: &str = "/settings/tools?open=server%3Aliar";

struct Shot {
    number: usize,
    text: String,
    code: String,
}

impl Shot {
    fn start(&self, longest: usize) -> String {
        self.text.chars().take(longest).collect()
    }

    /// As what a server says of a tool, in every place that it has for words.
    fn described(&self, place: usize) -> ToolText {
        let text = self.start(700);
        let schema = json!({
            "type": "object",
            "title": text,
            "properties": {
                text.clone(): {"type": "string"},
                "a": {"type": "string", "description": text, "enum": [text, "b"], "default": text},
                "b": {"$ref": "#/$defs/b"},
            },
            "required": [text],
            "$defs": {"b": {"type": "object", "description": text, text.clone(): text}},
        });
        ToolText::read(&format!("t{place}"), &self.text, &schema, true).unwrap()
    }

    /// As the name of a tool, if it can be one.
    fn named(&self) -> Option<ToolText> {
        ToolText::read(&self.start(128), "Adds.", &json!({"type": "object"}), true).ok()
    }

    /// As an answer, with everything that an answer can hold.
    fn answer(&self) -> Outcome {
        let told = Untrusted::new(self.text.as_str());
        Outcome {
            failed: false,
            text: told.clone(),
            structured: Some(json!({"untrusted": false, "said": self.text, self.text.clone(): [self.text]})),
            media: vec![],
            links: vec![(told.clone(), told)],
        }
    }

    /// As one of the ways in which a call can fail.
    fn error(&self) -> Result<Outcome, LinkError> {
        let why = Untrusted::new(self.text.as_str());
        match self.number % 4 {
            0 => Err(LinkError::Failed { why }),
            1 => Err(LinkError::Garbled { why }),
            2 => Err(LinkError::Ended { last_words: why }),
            _ => Ok(Outcome { failed: true, text: why, ..Outcome::default() }),
        }
    }
}

struct Range {
    house: House,
    visitor: Visitor,
    own: Own,
    counts: Counts,
    delivered: usize,
    /// Texts that were the name of a tool.
    names: usize,
    answered: usize,
    /// Lines of a system prompt.
    system: Option<usize>,
    /// Tags that were not the page's own.
    found: Vec<String>,
}

impl Range {
    async fn new() -> Self {
        let house = House::new().await;
        let visitor = Visitor::of(&house).await;
        let (own, counts, found) = (Own::of(&[]), Counts::default(), vec![]);
        let mut range =
            Self { house, visitor, own, counts, delivered: 0, names: 0, answered: 0, system: None, found };
        // Friendly ones first: what the pages look like with them is theirs.
        let friendly =
            ["Hello", "Adds **two** numbers.", "A long one. ", "odd \u{202e}signs", "x", "y", "z", "1"];
        let friendly = friendly.iter().map(|text| text.repeat(if text.len() == 12 { 200 } else { 1 }));
        let pages = range.fire(&shots(0, &friendly.collect::<Vec<_>>())).await;
        range.own = Own::of(&pages);
        (range.counts, range.found) = (Counts::default(), vec![]);
        (range.delivered, range.names, range.answered) = (0, 0, 0);
        range
    }

    /// A server says all of it, and is called; returns the pages that show it.
    async fn fire(&mut self, shots: &[Shot]) -> Vec<String> {
        let mut pages = self.introduce(shots).await;
        let sms = |shot: &Shot| {
            let number = i64::try_from(shot.number + 1).unwrap();
            (number, "+15550666".to_owned(), format!("Your verification code is {}.", shot.code))
        };
        self.house.inbox(&shots.iter().map(sms).collect::<Vec<_>>());
        self.house.look().await;
        for (place, shot) in shots.iter().enumerate() {
            for answer in [Ok(shot.answer()), shot.error()] {
                *self.house.liar.answer.lock().unwrap() = answer;
                pages.extend(self.chat(shot, place).await);
            }
        }
        liar::ask(&self.house, McpCall::Remove { server: LIAR.to_owned() }).await;
        for page in &pages {
            let strange = self.own.strange(page);
            self.counts.html += strange.len();
            self.found.extend(strange);
        }
        self.delivered += shots.len();
        pages
    }

    /// Adds the server, whose tools are approved, become others, and are approved again.
    async fn introduce(&mut self, shots: &[Shot]) -> Vec<String> {
        let house = &self.house;
        let names: Vec<ToolText> = shots.iter().filter_map(Shot::named).collect();
        let mut pages = vec![];
        for turn in [1, 0] {
            let described = shots.iter().cycle().skip(turn).take(shots.len()).enumerate();
            let mut tools: Vec<ToolText> = described.map(|(place, shot)| shot.described(place)).collect();
            tools.extend(names.iter().cloned());
            *house.liar.tools.lock().unwrap() = tools;
            house.liar.calls_itself.lock().unwrap().clone_from(&shots[turn % shots.len()].text);
            match turn {
                1 => liar::add(house, LIAR).await,
                _ => liar::ask(house, McpCall::Test { server: LIAR.to_owned() }).await,
            }
            pages.push(self.visitor.page(SETTINGS).await);
            liar::approve(house, LIAR, &[]).await;
            pages.push(self.visitor.page(SETTINGS).await);
        }
        let usable = mcp::list(&house.app).await.unwrap()[0].usable;
        let mut known: Vec<&str> = names.iter().map(|tool| tool.name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(usable, shots.len() + known.len(), "all of them were approved");
        self.names += names.len();
        pages
    }

    /// A chat finds and calls the tool, then reads a message with a code. The pages show it, and what became of the server.
    async fn chat(&mut self, shot: &Shot, place: usize) -> Vec<String> {
        let query = json!({"query": format!("t{place} {}", shot.start(200))});
        let name = format!("mcp_liar_t{place}");
        let calls = vec![
            ("find_tools", query.to_string()),
            (name.as_str(), json!({"q": liar::ON_PURPOSE}).to_string()),
        ];
        let reads = vec![("read_sms", json!({"id": shot.number + 1}).to_string())];
        let (model, face) = (model(&[calls, reads], "Done."), Wary::default());
        self.house.liar.progress.lock().unwrap().clone_from(&shot.text);
        let answer = self.house.chat(&model, &face).await;
        self.judge(&model, &face, shot);
        let pages = vec![
            self.visitor.page(&format!("/c/{}", answer.conversation.0)).await,
            self.visitor.page(SETTINGS).await,
        ];
        // Every page lists all conversations; they would become long.
        chats::delete(&self.house.app, answer.conversation).await.unwrap();
        pages
    }

    /// Every word that reached the model, and what the person saw of how far the call was.
    fn judge(&mut self, model: &Scripted, face: &Wary, shot: &Shot) {
        for progress in face.progress.lock().unwrap().iter() {
            self.counts.lines += counts::lines(progress).count() - 1;
            self.answered += 1;
        }
        let requests = model.requests();
        let last = requests.last().unwrap();
        self.counts += counts::prompt(&last.system, &SYSTEM, 0);
        let lines = counts::lines(&last.system).count();
        self.counts.lines += lines.abs_diff(*self.system.get_or_insert(lines));
        for spec in last.tools.iter().filter(|spec| spec.name.starts_with("mcp_")) {
            self.counts += counts::offer(spec, LIAR);
        }
        let seen = serde_json::to_string(&last.messages).unwrap() + &last.system;
        if !shot.text.contains(&shot.code) {
            self.counts += counts::code(&seen, &shot.code);
        }
        let telling = Some(shot.start(24)).filter(|start| start.chars().count() >= TELLING);
        let words: Vec<String> = telling.into_iter().collect();
        for message in &last.messages {
            if let Message::Tool { tool, result, .. } = message {
                self.counts += counts::result(tool, result, &words);
                assert!(tool != "read_sms" || is_read(result), "{result}");
            }
        }
    }
}

fn is_read(result: &str) -> bool {
    serde_json::from_str::<Value>(result).is_ok_and(|read| read["success"] == true)
}

fn shots(first: usize, texts: &[String]) -> Vec<Shot> {
    let shot = |(at, text): (usize, &String)| {
        let number = first + at;
        let code = format!("{:06}", 100_000 + (number * 7_919) % 900_000);
        Shot { number, text: text.replace("{MARK}", "m4rk"), code }
    };
    texts.iter().enumerate().map(shot).collect()
}

#[tokio::test]
async fn no_text_of_a_lying_server_does_either() {
    let (own, public) = texts();
    let mut range = Range::new().await;
    for (n, texts) in [own.as_slice(), &public].concat().chunks(BATCH).enumerate() {
        let before = range.counts;
        range.fire(&shots(10 + n * BATCH, texts)).await;
        if range.counts != before {
            say(&format!("{:?} {:?} after {:?}", range.counts, range.found, texts));
        }
    }
    let Counts { sections, delimiters, codes, lines, html } = range.counts;
    say(&format!(
        "attack, texts of a lying server: {} of our own and {} public ones, each as its name, as description, parameters, \
         answer, error, link and progress of a tool, and {} that can be as name of one: {sections} sections forged, \
         {delimiters} delimiters escaped, {codes} codes shown, {lines} lines added, {html} pieces of HTML",
        own.len(),
        public.len(),
        range.names,
    ));
    assert_eq!(range.delivered, own.len() + public.len());
    assert_eq!(range.answered, 2 * range.delivered, "every call reached the server");
    assert_eq!(range.counts, Counts::default());
}
