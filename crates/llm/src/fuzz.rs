//! Checks that any bytes from a server give a reply or a one-sentence error, and the same one however they are split
//! into chunks. Every test run does this with mutated recordings; `fuzz/` searches for more cases.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use std::collections::HashSet;
use std::sync::Mutex;

use serde_json::Value;

use crate::draft::MOST_CALLS;
use crate::format::{Format, body, wire};
use crate::ids::is_generated;
use crate::incoming::{Incoming, Shape};
use crate::message::Message;
use crate::refusal::{Refused, classify, retry_after};
use crate::wire::Ask;
use crate::{CallId, Delta, Reply, Request, ToolSpec};

const FORMATS: [Format; 3] = [Format::OpenAi, Format::Gemini, Format::Anthropic];
/// Longest allowed error in characters: our own sentence and what it quotes from the server.
const LONGEST_SENTENCE: usize = 700;

/// Reads arbitrary bytes as a provider's answer, whole and byte by byte.
pub fn answer(bytes: &[u8]) {
    let cuts: Vec<usize> = (0..=bytes.len()).collect();
    check_answer(bytes, &cuts);
}

/// Reads arbitrary bytes as an error response: the `retry-after` value on the first line, then the body.
pub fn refusal(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (wait, body) = text.split_once('\n').unwrap_or(("", &text));
    for status in [200, 400, 401, 404, 413, 429, 500, 529] {
        check_refusal(status, body, wait);
    }
}

/// The reply or the error message, and the text streamed until then. `None` if the bytes do not look like an answer
/// at all.
pub(crate) type Outcome = Option<(Result<Reply, String>, String)>;

/// Reads an answer in the given chunks.
pub(crate) fn read<'a>(format: Format, answer: &[u8], chunks: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let streamed = Mutex::new(String::new());
    let deltas = |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            streamed.lock().unwrap().push_str(text);
        }
    };
    let mut incoming = Incoming::new(Shape::of("", answer)?, wire(format).reader("m"));
    let mut outcome = Ok(());
    for chunk in chunks {
        outcome = outcome.and_then(|()| incoming.feed(chunk, &deltas));
    }
    let reply = outcome.and_then(|()| incoming.finish(&deltas)).map(named);
    Some((reply.map_err(|error| error.tidied(None).to_string()), streamed.into_inner().unwrap()))
}

/// Replaces the ids we generated, which are random, with fixed ones that can be compared.
pub(crate) fn named(mut reply: Reply) -> Reply {
    let made_up = reply.calls.iter_mut().filter(|call| is_generated(&call.id));
    for (at, call) in made_up.enumerate() {
        call.id.0 = format!("made up {}", at + 1);
    }
    reply
}

/// Checks an answer in every format, whole and cut at the given positions.
fn check_answer(answer: &[u8], cuts: &[usize]) {
    for format in FORMATS {
        let whole = read(format, answer, [answer].into_iter());
        let cut = read(format, answer, cuts.windows(2).map(|pair| &answer[pair[0]..pair[1]]));
        assert_eq!(cut, whole, "cut at {cuts:?}");
        match whole {
            Some((Ok(reply), streamed)) => check_reply(&reply, &streamed, answer.len()),
            Some((Err(sentence), _)) => check_sentence(&sentence),
            None => {}
        }
    }
}

/// Checks that an error response, with its `retry-after` header, gives a valid error message.
fn check_refusal(status: u16, body: &str, wait: &str) {
    let wait = retry_after(wait, Some("Sun, 06 Nov 1994 08:49:00 GMT"));
    let refused = Refused { status, body, model: "m", wait };
    if let Some(error) = classify(&refused) {
        check_sentence(&error.tidied(None).to_string());
    }
}

fn check_sentence(sentence: &str) {
    assert!(sentence.chars().count() <= LONGEST_SENTENCE, "{sentence}");
    assert!(!sentence.chars().any(|c| c.is_control() || c == '\u{2028}'), "{sentence:?}");
}

/// Checks that a reply is no larger than what was received, that its calls have unique ids, and that every provider's
/// format can continue the conversation.
fn check_reply(reply: &Reply, streamed: &str, received: usize) {
    assert_eq!(streamed, reply.text);
    let calls = &reply.calls;
    let held: usize = calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    assert!(reply.text.len() + held <= 3 * received + 2 * calls.len(), "more was read than came in");
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.0.as_str()).collect();
    assert!(ids.len() == calls.len() && !ids.contains("") && calls.len() <= MOST_CALLS, "{ids:?}");
    let history = [
        Message::user("hello".to_owned()),
        Message::Assistant { text: reply.text.clone(), calls: calls.clone(), signature: None },
        Message::Tool {
            call: calls.first().map_or(CallId("x".to_owned()), |call| call.id.clone()),
            tool: calls.first().map(|call| call.name.clone()).unwrap_or_default(),
            result: "{}".to_owned(),
        },
    ];
    let tool = ToolSpec { name: "t".to_owned(), description: String::new(), parameters: Value::Null.into() };
    let tools = vec![tool];
    let request = Request { system: String::new(), messages: crate::repair(&history, &tools, 0), tools };
    for format in FORMATS {
        let ask = Ask { request: &request, model: "m", host: "", window: 128_000, stream: true };
        serde_json::from_slice::<Value>(&body(wire(format), &ask)).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::recorded::answers;

    proptest! {
        #[test]
        fn whatever_a_server_sends_is_a_reply_or_a_sentence(
            answer in kai_mutate::bytes(answers()),
            cuts in proptest::collection::vec(any::<Index>(), 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(answer.len() + 1)).collect();
            cuts.extend([0, answer.len()]);
            cuts.sort_unstable();
            check_answer(&answer, &cuts);
        }

        #[test]
        fn whatever_an_error_says_is_one_sentence(
            body in kai_mutate::text(vec![
                r#"{"error":{"message":"Rate limit reached","type":"rate_limit_error","code":429}}"#.to_owned(),
                r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"13s"}]}}]"#.to_owned(),
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#.to_owned(),
                r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#.to_owned(),
                r#"{"message":"model not found","code":"404"}"#.to_owned(),
            ]),
            status in prop_oneof![Just(200), Just(400), Just(404), Just(429), Just(500), 100..1000_u16],
            wait in kai_mutate::text(vec!["13".to_owned(), "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()]),
        ) {
            check_refusal(status, &body, &wait);
        }
    }
}
