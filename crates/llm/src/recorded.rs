//! Tests with recorded exchanges from `tests/wire`: compares what we send, and reads the answers whole, byte by byte
//! and in random chunks.
//!
//! Each case has `request.json` (the body we must send), `stream.txt` or `response.json` (the answer), and
//! `expected.json` (our request, and the reply or error it results in; generated ids are replaced by `made up 1` and
//! so on).

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::draft::MOST_CALLS;
use crate::format::{Format, body, wire};
use crate::fuzz::{named, read};
use crate::incoming::{Incoming, Shape};
use crate::wire::Ask;
use crate::{Delta, ModelError, Reply, Request};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    asked: Request,
    #[serde(default = "some_model")]
    model: String,
    #[serde(default)]
    host: String,
    reply: Option<Reply>,
    error: Option<String>,
}

fn some_model() -> String {
    "m".to_owned()
}

struct Case {
    name: String,
    format: Format,
    expected: Expected,
    request: Value,
    answer: Vec<u8>,
    stream: bool,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let formats = [("openai", Format::OpenAi), ("gemini", Format::Gemini), ("anthropic", Format::Anthropic)];
    let folders = |(name, format): (&str, Format)| {
        let entries = fs::read_dir(root.join(name)).unwrap();
        entries.map(|entry| load(&entry.unwrap().path(), format)).collect::<Vec<_>>()
    };
    formats.into_iter().flat_map(folders).collect()
}

/// The answers of all cases.
pub(crate) fn answers() -> Vec<Vec<u8>> {
    cases().into_iter().map(|case| case.answer).collect()
}

fn load(folder: &Path, format: Format) -> Case {
    let read = |name: &str| fs::read(folder.join(name));
    let stream = read("stream.txt");
    Case {
        name: folder.display().to_string(),
        format,
        expected: serde_json::from_slice(&read("expected.json").unwrap()).unwrap(),
        request: serde_json::from_slice(&read("request.json").unwrap()).unwrap(),
        stream: stream.is_ok(),
        answer: stream.or_else(|_| read("response.json")).unwrap(),
    }
}

impl Case {
    /// Reads the answer in chunks of the given sizes. Returns the reply, with generated ids replaced, and the
    /// streamed text.
    fn play(&self, cuts: &[usize]) -> (Result<Reply, ModelError>, String) {
        let streamed = Mutex::new(String::new());
        let deltas = |delta: Delta<'_>| {
            if let Delta::Text(text) = delta {
                streamed.lock().unwrap().push_str(text);
            }
        };
        let shape = Shape::of("", &self.answer).unwrap();
        let mut incoming = Incoming::new(shape, wire(self.format).reader(&self.expected.model));
        let mut rest = self.answer.as_slice();
        let mut outcome = Ok(());
        for size in cuts.iter().copied().chain([usize::MAX]) {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            outcome = outcome.and_then(|()| incoming.feed(chunk, &deltas));
            rest = after;
        }
        let reply = outcome.and_then(|()| incoming.finish(&deltas)).map(named);
        (reply, streamed.into_inner().unwrap())
    }

    fn check(&self, cuts: &[usize]) {
        let (outcome, streamed) = self.play(cuts);
        match (outcome, &self.expected.reply) {
            (Ok(reply), Some(expected)) => {
                assert_eq!(&reply, expected, "{}, cut {cuts:?}", self.name);
                assert_eq!(streamed, reply.text, "{}, cut {cuts:?}", self.name);
            }
            (Err(error), None) => {
                let sentence = error.tidied(None).to_string();
                assert_eq!(Some(sentence), self.expected.error, "{}, cut {cuts:?}", self.name);
            }
            (outcome, _) => panic!("{}, cut {cuts:?}: {outcome:?}", self.name),
        }
    }
}

#[test]
fn requests_are_written_as_recorded() {
    for case in cases() {
        let Expected { asked, model, host, .. } = &case.expected;
        let ask = Ask { request: asked, model, host, window: 128_000, stream: case.stream };
        let written: Value = serde_json::from_slice(&body(wire(case.format), &ask)).unwrap();
        assert_eq!(written, case.request, "{}", case.name);
    }
}

#[test]
fn answers_are_read_whole_and_byte_by_byte() {
    let cases = cases();
    assert!(cases.len() >= 30, "only {} cases were found", cases.len());
    for case in cases {
        case.check(&[]);
        case.check(&vec![1; case.answer.len()]);
    }
}

/// Regression tests for cases found by fuzzing.
#[test]
fn counts_beyond_all_measure() {
    let call = r#"{"id":"","function":{"name":"t","arguments":"{}"}}"#;
    let calls = |count| {
        format!(r#"{{"choices":[{{"message":{{"tool_calls":[{}]}}}}]}}"#, vec![call; count].join(","))
    };
    let most = u64::MAX;
    for (name, format, answer, expected) in [
        (
            "Gemini's tokens",
            Format::Gemini,
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":"hi"}}]}},"finishReason":"STOP"}}],
                    "usageMetadata":{{"promptTokenCount":{most},"toolUsePromptTokenCount":1,
                    "candidatesTokenCount":{most},"thoughtsTokenCount":1}}}}"#
            ),
            Some(0),
        ),
        (
            "Anthropic's tokens",
            Format::Anthropic,
            format!(
                r#"{{"type":"message","content":[{{"type":"text","text":"hi"}}],"usage":{{"input_tokens":{most},
                    "cache_read_input_tokens":{most},"cache_creation_input_tokens":{most},"output_tokens":1}}}}"#
            ),
            Some(0),
        ),
        ("as many calls as there may be", Format::OpenAi, calls(MOST_CALLS), Some(MOST_CALLS)),
        ("one more", Format::OpenAi, calls(MOST_CALLS + 1), None),
    ] {
        let (reply, _) = read(format, answer.as_bytes(), [answer.as_bytes()].into_iter()).unwrap();
        assert_eq!(reply.ok().map(|reply| reply.calls.len()), expected, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_chunking_changes_a_reply(cuts in proptest::collection::vec(0_usize..120, 0..60)) {
        for case in cases() {
            case.check(&cuts);
        }
    }
}
