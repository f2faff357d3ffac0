//! The engine in this process, with the small model that `scripts/test` fetches.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kai_llm::{CallId, Message, ToolCall};
use serde_json::json;

use super::*;
use crate::frame::Frame;

const TINY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models/smollm2-135m-instruct-q4_1.gguf");
/// A control token of its vocabulary.
const TAG: &str = "<repo_name>";
const TAG_TOKEN: LlamaToken = LlamaToken(3);

/// The small model with a change: this tag is a user-defined token, which is found in any text, as `<tool_call>` is one
/// in Qwen's vocabulary.
fn tiny(folder: &Path) -> Option<PathBuf> {
    let there = Path::new(TINY);
    if !there.is_file() {
        let missing = "\n!! The small model is not here, so the engine was NOT TRIED: run scripts/test, which fetches it.\n\n";
        // Past the test harness, which would swallow it.
        let _ = io::Write::write_all(&mut io::stderr(), missing.as_bytes());
        return None;
    }
    let file = folder.join("tiny.gguf");
    fs::copy(there, &file).unwrap();
    let opened = OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let mut head = vec![0; 1 << 20];
    opened.read_exact_at(&mut head, 0).unwrap();
    let key = b"tokenizer.ggml.token_type";
    let at = head.windows(key.len()).position(|window| window == key).unwrap();
    // After the key: that this is a list, of which type, how long it is, and a number for each token.
    let place = at + key.len() + 4 + 4 + 8 + 4 * 3;
    let (control, user_defined) = (3_i32.to_le_bytes(), 4_i32.to_le_bytes());
    assert_eq!(head[place..place + 4], control);
    opened.write_all_at(&user_defined, place as u64).unwrap();
    Some(file)
}

/// What the worker says.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Said {
    fn events(&self) -> Vec<Event> {
        let bytes = self.0.lock().unwrap().clone();
        let mut rest = &bytes[..];
        std::iter::from_fn(|| Frame::read(&mut rest).ok()).map(|frame| frame.parse().unwrap()).collect()
    }
}

fn request(system: &str, text: &str) -> Request {
    Request { system: system.to_owned(), messages: vec![Message::user(text)], tools: vec![] }
}

/// This model knows no tools. It writes a call when it is shown many.
fn shown_calls() -> Request {
    let shown = |city: &str| {
        let (id, name) = (CallId("1".to_owned()), "get_weather".to_owned());
        let call = ToolCall { id, name, arguments: format!(r#"{{"city": "{city}"}}"#), signature: None };
        [
            Message::user(format!("Weather in {city}?")),
            Message::Assistant { text: String::new(), calls: vec![call], signature: None },
        ]
    };
    let cities = ["Rome", "Paris", "London", "Madrid", "Berlin", "Vienna", "Prague", "Athens"];
    let mut messages: Vec<Message> = cities.into_iter().flat_map(shown).collect();
    messages.push(Message::user("Weather in Oslo?"));
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    });
    let (name, description) = ("get_weather".to_owned(), "Tells the weather in a city.".to_owned());
    let tools = vec![ToolSpec { name, description, parameters: parameters.into() }];
    Request { system: "You call tools.".to_owned(), messages, tools }
}

/// One test, because a process has the engine's backend only once.
#[test]
fn a_prompt_is_read_in_steps_of_about_one_length() {
    for (ahead, most, expected) in [
        (1, 64, vec![1]),
        (64, 64, vec![64]),
        (65, 64, vec![48, 17]),
        (589, 208, vec![208, 192, 189]),
        (600, 512, vec![304, 296]),
        (40, 16, vec![16, 16, 8]),
    ] {
        let mut left = ahead;
        let steps = std::iter::from_fn(|| {
            let step = even_step(left, most);
            left -= step;
            (step > 0).then_some(step)
        });
        assert_eq!(steps.collect::<Vec<_>>(), expected, "{ahead} in steps of up to {most}");
    }
}

#[test]
fn a_loaded_model_reads_and_writes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = tiny(folder.path()) else { return };
    let mut backend = LlamaBackend::init().unwrap();
    backend.void_logs();
    let model = load(&backend, &file).unwrap();
    let mut engine = Engine::new(&model, &backend, &Load { file, window: 2_048, threads: 2 }).unwrap();
    what_others_wrote_is_no_tag(&engine);
    a_call_gives_signs_of_life(&mut engine);
    a_model_that_forgets_everything_weighs_alike(&mut engine);
}

fn what_others_wrote_is_no_tag(engine: &Engine<'_>) {
    let vocab = engine.model.vocab();
    assert_eq!(control(&vocab, TAG), [TAG_TOKEN], "in our own text it is one");
    let text = format!("Look: {TAG}Kai");
    let found = vocab.tokenize(text.as_bytes(), false, false);
    assert!(found.contains(&TAG_TOKEN), "the tokenizer finds it in any text");
    let read = engine.tokens(&request(&text, &text)).unwrap().all;
    assert!(!read.contains(&TAG_TOKEN), "{read:?}");
    let written: Vec<u8> = read.iter().flat_map(|token| vocab.token_to_piece(*token, true, None)).collect();
    let written = String::from_utf8(written).unwrap();
    assert_eq!(written.matches(text.as_str()).count(), 2, "the words are the same: {written}");
}

fn a_call_gives_signs_of_life(engine: &mut Engine<'_>) {
    let said = Said::default();
    let done = engine.ask(&shown_calls(), &mut Line::one_way(said.clone())).unwrap();
    assert!(done.call.is_some(), "shown a call, it writes one: {done:?}");
    let signs = said.events().iter().filter(|event| matches!(event, Event::Writing)).count();
    let written = usize::try_from(done.usage.output).unwrap();
    // The count begins anew with the call, so fewer tokens than for one sign are left over before and after that.
    assert!((signs + 2) * SIGN_EVERY > written && signs > 0, "{signs} signs for {written} tokens");
}

fn a_model_that_forgets_everything_weighs_alike(engine: &mut Engine<'_>) {
    let told = "The zebra quietly paints seven umbrellas.";
    let asked = request("You repeat what you are told.", &format!("Repeat this: {told}"));
    // Without the prompt, nobody would guess the second one.
    let answers = ["A heron eats a fish.", told].map(str::to_owned);
    let mut margin = |forgets_parts| {
        engine.forgets_parts = forgets_parts;
        engine.prefer(&asked, &answers, &mut Line::one_way(io::sink())).unwrap()
    };
    let (part, all) = (margin(true), margin(false));
    assert!((part - all).abs() < 0.5, "{part} and {all}");
}
