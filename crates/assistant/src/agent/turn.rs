//! The decisions of one turn: ask, run tools, ask again, done. Nothing here awaits, stores or reads the clock.
//!
//! The driver reports what happened and carries out the next step. Every guard of the loop is here: the limit on
//! rounds, and the checks for a repeated round or a cycle of rounds.

use kai_llm::{Message, Reply, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    AskModel { offer: Offer },
    RunTools(Vec<ToolCall>),
    Done { text: String, end: End },
}

/// Whether the model may call tools in this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    Tools,
    /// The last request of a turn that has to end: the model sees all results but no tools.
    Nothing,
    /// A small model repeated a call: what its calls returned is told again, as text, and it gets no tools.
    Retold,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Answered,
    OutOfRounds,
    Repeating,
}

/// How many rounds of tool calls one turn may have.
pub const ROUNDS: usize = 15;
/// How often a round, or a cycle of up to [`LONGEST_CYCLE`] rounds, may occur in a row before the turn is ended.
const REPEATS: usize = 3;
const LONGEST_CYCLE: usize = 3;
const NOT_RUN: &str = "Not run: the same calls were made again and again. Answer with what you have.";

/// A running turn: the conversation so far, and the rounds of calls since the user's message.
#[derive(Debug)]
pub struct Turn {
    messages: Vec<Message>,
    /// Index of the user's newest message.
    start: usize,
    limit: usize,
    rounds: Vec<Round>,
    calls: Vec<ToolCall>,
    ending: Option<End>,
}

/// The calls of a round, by name and arguments; used to compare rounds.
type Round = Vec<(String, String)>;

impl Turn {
    /// Starts a turn. `history` contains the conversation up to and including the user's newest message; an answer that
    /// broke off may follow it.
    pub fn start(history: Vec<Message>, limit: usize) -> (Self, Step) {
        let start = history.iter().rposition(|m| matches!(m, Message::User { .. })).unwrap_or(0);
        let turn = Self { messages: history, start, limit, rounds: vec![], calls: vec![], ending: None };
        (turn, Step::AskModel { offer: Offer::Tools })
    }

    /// Starts a turn in which the model only writes.
    pub fn without_tools(history: Vec<Message>) -> (Self, Step) {
        let (turn, _) = Self::start(history, 0);
        let step = Step::AskModel { offer: Offer::Nothing };
        (Self { ending: Some(End::Answered), ..turn }, step)
    }

    /// The whole conversation, this turn included.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Index of the message this turn began with.
    pub fn began_at(&self) -> usize {
        self.start
    }

    pub fn on_reply(&mut self, reply: Reply) -> Step {
        let Reply { text, calls, signature, .. } = reply;
        // A model may call tools even if none were offered; then its text is the answer.
        let calls = if self.ending.is_some() { vec![] } else { calls };
        self.messages.push(Message::Assistant { text: text.clone(), calls: calls.clone(), signature });
        if calls.is_empty() {
            return Step::Done { text, end: self.ending.unwrap_or(End::Answered) };
        }
        self.rounds.push(calls.iter().map(signature_of).collect());
        self.calls = calls;
        if repeating(&self.rounds) {
            let refused = json!({"success": false, "error": NOT_RUN}).to_string();
            self.keep_results(|_| refused.clone());
            return self.end(End::Repeating);
        }
        Step::RunTools(self.calls.clone())
    }

    /// Takes the reply of a small model. Of several calls only the first counts, and one that was made in this turn
    /// already is not made again.
    pub fn on_small_reply(&mut self, mut reply: Reply) -> Step {
        reply.calls.truncate(1);
        let call = reply.calls.first().map(signature_of).filter(|_| self.ending.is_none());
        if call.is_some_and(|call| self.rounds.iter().any(|round| round.contains(&call))) {
            self.ending = Some(End::Answered);
            return Step::AskModel { offer: Offer::Retold };
        }
        self.on_reply(reply)
    }

    /// Takes the results of the calls of [`Step::RunTools`], in the same order.
    pub fn on_results(&mut self, results: Vec<String>) -> Step {
        let mut results = results.into_iter();
        self.keep_results(|_| results.next().unwrap_or_default());
        if self.rounds.len() >= self.limit {
            return self.end(End::OutOfRounds);
        }
        Step::AskModel { offer: Offer::Tools }
    }

    fn keep_results(&mut self, mut result: impl FnMut(&ToolCall) -> String) {
        for call in std::mem::take(&mut self.calls) {
            let result = result(&call);
            self.messages.push(Message::Tool { call: call.id, tool: call.name, result });
        }
    }

    fn end(&mut self, end: End) -> Step {
        self.ending = Some(end);
        Step::AskModel { offer: Offer::Nothing }
    }
}

/// Name and normalised arguments of a call, so that key order and whitespace do not matter.
fn signature_of(call: &ToolCall) -> (String, String) {
    let canonical = serde_json::from_str::<Value>(&call.arguments).map(|arguments| arguments.to_string());
    (call.name.clone(), canonical.unwrap_or_else(|_| call.arguments.trim().to_owned()))
}

fn repeating(rounds: &[Round]) -> bool {
    (1..=LONGEST_CYCLE).any(|cycle| {
        let Some(tail) = rounds.len().checked_sub(cycle * REPEATS).map(|from| &rounds[from..]) else {
            return false;
        };
        tail.chunks(cycle).all(|block| block == &tail[..cycle])
    })
}

#[cfg(test)]
mod tests {
    use kai_llm::CallId;

    use super::*;

    fn calls(script: &str) -> Vec<ToolCall> {
        let call = |(n, c): (usize, char)| ToolCall {
            id: CallId(n.to_string()),
            name: c.to_string(),
            arguments: "{}".to_owned(),
            signature: None,
        };
        script.chars().enumerate().map(call).collect()
    }

    fn reply(text: &str, calls: Vec<ToolCall>) -> Reply {
        Reply {
            text: text.to_owned(),
            calls,
            signature: None,
            usage: kai_llm::Usage::default(),
            cut_off: false,
        }
    }

    fn said(text: &str) -> Vec<Message> {
        vec![Message::user(text.to_owned())]
    }

    /// Plays a model that makes these rounds of calls (one word each) and then answers; returns how it ended and
    /// how many rounds were run.
    fn play(limit: usize, script: &str) -> (End, usize) {
        let mut rounds = script.split_whitespace();
        let (mut turn, mut step) = Turn::start(said("hi"), limit);
        let mut ran = 0;
        loop {
            step = match step {
                Step::AskModel { offer: Offer::Tools } => {
                    let next = rounds.next();
                    turn.on_reply(reply(next.map_or("done", |_| ""), next.map(calls).unwrap_or_default()))
                }
                Step::AskModel { offer: Offer::Nothing | Offer::Retold } => {
                    turn.on_reply(reply("best so far", calls("Z")))
                }
                Step::RunTools(calls) => {
                    ran += 1;
                    turn.on_results(calls.iter().map(|_| "ok".to_owned()).collect())
                }
                Step::Done { text, end } => {
                    assert_eq!(text, if end == End::Answered { "done" } else { "best so far" });
                    return (end, ran);
                }
            };
        }
    }

    #[test]
    fn each_guard_stops_what_it_should_and_nothing_else() {
        for (name, limit, script, expected) in [
            ("plain answer", 15, "", (End::Answered, 0)),
            ("one round", 15, "A", (End::Answered, 1)),
            ("parallel calls are one round", 15, "ABC", (End::Answered, 1)),
            ("too many rounds", 2, "A B C", (End::OutOfRounds, 2)),
            ("exactly the limit", 3, "A B C", (End::OutOfRounds, 3)),
            ("same round thrice", 15, "A A A", (End::Repeating, 2)),
            ("twice is fine", 15, "A A", (End::Answered, 2)),
            ("thrice but not in a row", 15, "A A B A A", (End::Answered, 5)),
            ("a cycle of two, three times", 15, "A B A B A B", (End::Repeating, 5)),
            ("a cycle of two, twice", 15, "A B A B", (End::Answered, 4)),
            ("a cycle of three, three times", 15, "A B C A B C A B C", (End::Repeating, 8)),
            ("the order of calls matters", 15, "AB BA AB", (End::Answered, 3)),
            ("the real limit", ROUNDS, "A B C D E F G H I J K L M N O P Q", (End::OutOfRounds, 15)),
        ] {
            assert_eq!(play(limit, script), expected, "{name}");
        }
    }

    #[test]
    fn a_small_model_makes_one_call_a_round_and_none_twice() {
        let (mut turn, _) = Turn::start(said("hi"), 15);
        assert_eq!(turn.on_small_reply(reply("", calls("AB"))), Step::RunTools(calls("A")));
        turn.on_results(vec!["1".to_owned()]);
        assert_eq!(turn.on_small_reply(reply("", calls("B"))), Step::RunTools(calls("B")));
        turn.on_results(vec!["2".to_owned()]);
        let before = turn.messages().len();
        assert_eq!(turn.on_small_reply(reply("Hm.", calls("A"))), Step::AskModel { offer: Offer::Retold });
        assert_eq!(turn.messages().len(), before, "the repeated call leaves no trace");
        let done = Step::Done { text: "Here.".to_owned(), end: End::Answered };
        assert_eq!(turn.on_small_reply(reply("Here.", calls("A"))), done, "it has no tools any more");
    }

    #[test]
    fn a_turn_without_tools_is_one_answer() {
        let (mut turn, step) = Turn::without_tools(said("hi"));
        assert_eq!(step, Step::AskModel { offer: Offer::Nothing });
        let done = Step::Done { text: "Hm.".to_owned(), end: End::Answered };
        assert_eq!(turn.on_reply(reply("Hm.", calls("A"))), done);
    }

    #[test]
    fn key_order_and_blanks_do_not_make_a_call_another() {
        let written = |arguments: &str| {
            let mut call = calls("A").remove(0);
            call.arguments = arguments.to_owned();
            signature_of(&call)
        };
        assert_eq!(
            written(r#"{"a":1,"b":{"c":2,"d":3}}"#),
            written("{ \"b\": {\"d\":3, \"c\":2}, \"a\": 1 }")
        );
        assert_ne!(written(r#"{"a":1}"#), written(r#"{"a":2}"#));
        assert_eq!(written("not json "), written("not json"));
    }

    #[test]
    fn every_call_has_its_result_in_call_order_also_when_stopped() {
        let (mut turn, _) = Turn::start(said("hi"), 15);
        for _ in 0..2 {
            turn.on_reply(reply("", calls("AB")));
            turn.on_results(vec!["1".to_owned(), "2".to_owned()]);
        }
        assert_eq!(turn.on_reply(reply("", calls("AB"))), Step::AskModel { offer: Offer::Nothing });
        let results: Vec<&str> = turn
            .messages()
            .iter()
            .filter_map(|m| if let Message::Tool { result, .. } = m { Some(result.as_str()) } else { None })
            .collect();
        assert_eq!(&results[..4], ["1", "2", "1", "2"]);
        assert!(results[4].contains("Not run") && results.len() == 6);
    }
}
