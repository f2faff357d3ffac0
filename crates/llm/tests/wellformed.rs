//! Whatever happened to a history (cancelled, trimmed, restarted, tools switched off), what we send of it is
//! well-formed in every format, holds the newest turn, and fits the window.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::collections::HashSet;

use kai_llm::window::answer_room;
use kai_llm::{
    CallId, Config, Format, Http, Limits, Message, Request, ToolCall, ToolSpec, connect, fit, repair,
    request_tokens, tokens,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const SYSTEM: &str = "You are Kai, and this line is always there.";
const NAMES: [&str; 4] = ["look", "send", "gone", "näme with blanks"];
const IDS: [&str; 6] =
    ["a", "b", "call_1", "", "kai000001", "föreign/id that is longer than what some providers take"];

// ---- random histories

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("  ".to_owned()),
        "[a-z ]{1,30}",
        "\\PC{0,20}",
        "[äß日👋\"\\\\\n]{1,200}",
        "x{600}"
    ]
}

fn call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        Just(r#"{"city": "Paris"}"#.to_owned()),
        Just(String::new()),
        Just("{\"half\":".to_owned()),
        Just("[1]".to_owned()),
        "\\PC{0,12}",
    ];
    let signature = proptest::option::of(Just("c2ln".to_owned()));
    (0..IDS.len(), 0..NAMES.len(), arguments, signature).prop_map(|(id, name, arguments, signature)| {
        ToolCall { id: CallId(IDS[id].to_owned()), name: NAMES[name].to_owned(), arguments, signature }
    })
}

/// A message without regard to what stands before it, so orphans of every kind arise.
fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        text().prop_map(Message::user),
        (text(), vec(call(), 0..4)).prop_map(|(text, calls)| Message::Assistant {
            text,
            calls,
            signature: None
        }),
        (0..IDS.len(), 0..NAMES.len(), text()).prop_map(|(id, name, result)| Message::Tool {
            call: CallId(IDS[id].to_owned()),
            tool: NAMES[name].to_owned(),
            result,
        }),
    ]
}

/// The turn under way: a question and rounds of calls whose results are all there, but perhaps the last one's.
fn current_turn() -> impl Strategy<Value = Vec<Message>> {
    let round = (text(), vec((call(), text()), 1..4));
    let question = prop_oneof!["[a-z]{1,20}", "[äß日👋]{1,40}"];
    (question, vec(round, 0..4), any::<bool>()).prop_map(|(question, rounds, cancelled)| {
        let mut turn = vec![Message::user(format!("Q: {question}"))];
        for (text, calls) in rounds {
            let (calls, results): (Vec<ToolCall>, Vec<String>) = calls.into_iter().unzip();
            let results =
                calls.iter().zip(results).map(|(call, text)| (call.id.clone(), call.name.clone(), text));
            let results: Vec<_> = results.collect();
            turn.push(Message::Assistant { text, calls, signature: None });
            for (call, tool, result) in results {
                // Each result begins with a mark, by which it is found again when it was cut.
                turn.push(Message::Tool { call, tool, result: format!("R{}: {result}", turn.len()) });
            }
        }
        if cancelled && turn.len() > 2 {
            turn.pop();
        }
        turn
    })
}

fn tools() -> impl Strategy<Value = Vec<ToolSpec>> {
    proptest::sample::subsequence(vec!["look", "send"], 0..=2).prop_map(|names| {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            parameters: parameters.clone().into(),
        };
        names.into_iter().map(tool).collect()
    })
}

// ---- what must hold in every format

struct Sent {
    request: Request,
    window: usize,
    /// The results of the current turn, by their marks.
    marks: Vec<String>,
    question: String,
}

fn send(old: Vec<Message>, turn: &[Message], tools: Vec<ToolSpec>, window: usize) -> Sent {
    let keep_from = old.len();
    let history = [old, turn.to_vec()].concat();
    let messages = repair(&history, &tools, keep_from);
    let request = fit(Request { system: SYSTEM.to_owned(), messages, tools }, window);
    let marks = turn.iter().filter_map(|message| match message {
        Message::Tool { result, .. } => Some(result.split_inclusive(':').next().unwrap().to_owned()),
        _ => None,
    });
    let Message::User { text, .. } = &turn[0] else { unreachable!() };
    Sent { request, window, marks: marks.collect(), question: text.clone() }
}

impl Sent {
    /// Within the window, or nothing was left that could go: the newest turn alone, its results at their least.
    fn check_size(&self) {
        if request_tokens(&self.request) <= self.window - answer_room(self.window) {
            return;
        }
        let users = self.request.messages.iter().filter(|m| matches!(m, Message::User { .. })).count();
        assert_eq!(users, 1, "an older turn was kept though there is no room");
        for message in &self.request.messages {
            if let Message::Tool { result, .. } = message {
                assert!(tokens(result) <= 64, "a result of {} tokens was left", tokens(result));
            }
        }
    }

    fn check_present(&self, body: &str) {
        for wanted in self.marks.iter().chain([&self.question, &SYSTEM.to_owned()]) {
            assert!(body.contains(wanted), "{wanted} is missing in {body}");
        }
    }

    fn body(&self, format: Format, base_url: &str) -> Value {
        let (model, base_url) = ("gemini-3-pro".to_owned(), base_url.to_owned());
        let config = Config { format, base_url, model, key: None, window: self.window, stream: true };
        let model = connect(&config, &Http::new(Limits::default())).unwrap();
        let body = String::from_utf8(model.body(&self.request)).unwrap();
        self.check_present(&body);
        serde_json::from_str(&body).unwrap()
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Begins with the user, then takes turns; `yes` says whether two roles may follow each other.
fn check_order(roles: &[&str], yes: impl Fn(&str, &str) -> bool) {
    assert_eq!(roles.first(), Some(&"user"), "{roles:?}");
    for pair in roles.windows(2) {
        assert!(yes(pair[0], pair[1]), "{} after {} in {roles:?}", pair[1], pair[0]);
    }
}

fn check_ids(ids: &[String], takes: impl Fn(&str) -> bool) {
    assert!(ids.iter().all(|id| !id.is_empty() && takes(id)), "{ids:?}");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{ids:?}");
}

// ---- one checker for each format

fn check_openai(body: &Value, takes: impl Fn(&str) -> bool) {
    let messages = list(body, "messages");
    assert_eq!(word(&messages[0], "role"), "system");
    let roles: Vec<&str> = messages[1..].iter().map(|m| word(m, "role")).collect();
    check_order(&roles, |before, after| {
        matches!(
            (before, after),
            ("user", "assistant") | ("assistant", "user" | "tool") | ("tool", "tool" | "assistant")
        )
    });
    let mut ids = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if word(message, "role") == "tool" {
            assert_eq!(open.remove(0), word(message, "tool_call_id"), "{body}");
            assert!(!word(message, "content").is_empty(), "{body}");
            continue;
        }
        assert!(open.is_empty(), "calls without results in {body}");
        let calls = list(message, "tool_calls");
        assert!(
            !word(message, "content").trim().is_empty() || !calls.is_empty(),
            "an empty message in {body}"
        );
        for call in calls {
            let arguments: Value = serde_json::from_str(word(&call["function"], "arguments")).unwrap();
            assert!(arguments.is_object() && is_name(word(&call["function"], "name")), "{call}");
            open.push(word(call, "id").to_owned());
        }
        ids.extend(open.clone());
    }
    assert!(open.is_empty(), "calls without results in {body}");
    assert!(ids.is_empty() || !list(body, "tools").is_empty(), "calls without tools in {body}");
    check_ids(&ids, takes);
}

fn check_gemini(body: &Value) {
    let contents = list(body, "contents");
    check_order(&contents.iter().map(|c| word(c, "role")).collect::<Vec<_>>(), |before, after| {
        before != after
    });
    let mut open: Vec<(Value, Value)> = Vec::new();
    for content in contents {
        let parts = list(content, "parts");
        assert!(!parts.is_empty(), "{body}");
        let of = |kind: &str| parts.iter().filter_map(|part| part.get(kind).cloned()).collect::<Vec<Value>>();
        let responses = of("functionResponse");
        assert!(responses.iter().all(|response| response["response"].is_object()), "{body}");
        let answered: Vec<_> = responses.iter().map(|r| (r["name"].clone(), r["id"].clone())).collect();
        assert_eq!(answered, open, "{body}");
        assert!(answered.is_empty() || answered.len() == parts.len(), "results beside other parts in {body}");
        let calls = of("functionCall");
        assert!(calls.iter().all(|call| call["args"].is_object() && is_name(word(call, "name"))), "{body}");
        let first = parts.iter().find(|part| part.get("functionCall").is_some());
        assert!(
            first.is_none_or(|part| part.get("thoughtSignature").is_some()),
            "an unsigned call in {body}"
        );
        open = calls.iter().map(|call| (call["name"].clone(), call["id"].clone())).collect();
        assert!(of("text").iter().all(|text| text != ""), "{body}");
    }
    assert!(open.is_empty(), "calls without results in {body}");
}

fn check_anthropic(body: &Value) {
    let messages = list(body, "messages");
    check_order(&messages.iter().map(|m| word(m, "role")).collect::<Vec<_>>(), |before, after| {
        before != after
    });
    let (mut ids, mut open) = (Vec::new(), Vec::new());
    for message in messages {
        let blocks = list(message, "content");
        assert!(!blocks.is_empty(), "{body}");
        let ids_of = |kind: &str, field: &str| {
            let blocks = blocks.iter().filter(|block| word(block, "type") == kind);
            blocks.map(|block| word(block, field).to_owned()).collect::<Vec<_>>()
        };
        let results = ids_of("tool_result", "tool_use_id");
        assert_eq!(results, open, "{body}");
        let leading = blocks.iter().take_while(|block| word(block, "type") == "tool_result").count();
        assert_eq!(leading, results.len(), "a result after a text in {body}");
        assert!(
            blocks.iter().all(|b| word(b, "type") != "text" || !word(b, "text").trim().is_empty()),
            "{body}"
        );
        let inputs = blocks.iter().filter(|block| word(block, "type") == "tool_use");
        assert!({ inputs }.all(|block| block["input"].is_object() && is_name(word(block, "name"))), "{body}");
        open = ids_of("tool_use", "id");
        ids.extend(open.clone());
    }
    assert!(open.is_empty(), "calls without results in {body}");
    assert!(ids.is_empty() || !list(body, "tools").is_empty(), "calls without tools in {body}");
    check_ids(&ids, |id| {
        id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_request_is_well_formed(
        old in vec(message(), 0..14),
        turn in current_turn(),
        tools in tools(),
        window in 300_usize..12_000,
    ) {
        let sent = send(old, &turn, tools, window);
        sent.check_size();
        let nine = |id: &str| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        check_openai(&sent.body(Format::OpenAi, "http://127.0.0.1/v1"), |_| true);
        check_openai(&sent.body(Format::OpenAi, "https://api.openai.com/v1"), |id| id.len() <= 40);
        check_openai(&sent.body(Format::OpenAi, "https://api.mistral.ai/v1"), nine);
        check_gemini(&sent.body(Format::Gemini, "http://127.0.0.1"));
        check_anthropic(&sent.body(Format::Anthropic, "http://127.0.0.1"));
    }
}
