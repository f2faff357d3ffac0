//! How large a model's window is taken to be: what its server tells, what the person sets, what a refusal shows.

use kai_stand_ins::{Act, Provider};
use serde_json::{Value, json};

use super::kit::Home;

const PROPS: &str = r#"{"default_generation_settings":{"n_ctx":16384},"total_slots":1}"#;

#[test]
fn the_server_tells_it_and_the_person_may_set_it() {
    let provider = Provider::start([Act::says("Yes.")]);
    let home = Home::with_model(&provider);
    assert_eq!(window(&home), (json!(8192), json!("preset")), "a server that tells nothing");
    let listed = home.run(&["models", "list"]).out;
    assert!(listed.contains("context window: 8,192 tokens, assumed"), "{listed}");
    provider.tells("/props", PROPS);
    for (typed, expected, words) in [
        ("auto", (json!(16_384), json!("server")), "context window: 16,384 tokens, reported by the server"),
        ("32,768", (json!(32_768), json!("set")), "context window: 32,768 tokens, set by you"),
        ("auto", (json!(16_384), json!("server")), "reported by the server"),
    ] {
        let set = home.run(&["models", "context", "mine", typed]);
        assert!(set.code == 0 && set.out.contains(words), "{set:?}");
        assert_eq!(window(&home), expected, "{typed}");
    }
    for (name, typed, code, words) in [
        ("mine", "many", 2, "number of tokens"),
        ("mine", "12", 2, "from 1,024"),
        ("other", "auto", 1, "There’s no added model called other"),
    ] {
        let refused = home.run(&["models", "context", name, typed]);
        assert!(refused.code == code && refused.err.contains(words), "{refused:?}");
    }
    let base = ["models", "add", "openai-compatible", "--name", "mine", "--base-url", &provider.base_url];
    let again = home.run(&[&base[..], &["--model", "m", "--context", "65536"]].concat());
    assert!(again.code == 0 && again.out.contains("65,536 tokens, set by you"), "{again:?}");
    home.run(&[&base[..], &["--model", "m"]].concat());
    assert_eq!(window(&home), (json!(65_536), json!("set")), "what was set stays with its model");
}

#[test]
fn a_turn_does_not_wait_for_it_and_does_not_ask_each_time() {
    let provider = Provider::start([Act::says("Yes.")]);
    provider.tells("/props", PROPS);
    let home = Home::with_model(&provider);
    let before = provider.asked_for_window();
    assert_eq!(before, 1, "once, when it was added");
    for _ in 0..3 {
        assert_eq!(home.run(&["ask", "Hello?"]).code, 0);
    }
    assert_eq!((provider.asked_for_window(), provider.asked().len()), (before, 3));
}

#[test]
fn a_refusal_is_learned_from_and_the_question_is_answered() {
    let body = r#"{"error":{"message":"This model's maximum context length is 2048 tokens. However, you requested 5000 tokens."}}"#;
    let refusal = Act::status("400 Bad Request", "application/json", body);
    let provider = Provider::start([refusal, Act::says("Fits."), Act::says("Fits again.")]);
    let home = Home::with_model(&provider);
    let answer = home.run(&["ask", "--json", "Hello?"]);
    assert_eq!(answer.json()["text"], "Fits.", "{answer:?}");
    let asked = provider.asked();
    assert!(asked.len() == 2 && asked[1].raw.len() < asked[0].raw.len(), "shorter the second time");
    assert!(asked[1].body["tools"].as_array().unwrap().len() > 3, "with the likeliest tools");
    assert_eq!(window(&home), (json!(2048), json!("refusal")));
    assert!(
        home.run(&["models", "list"])
            .out
            .contains("2,048 tokens, because the server refused a longer request")
    );
    assert_eq!(home.run(&["ask", "--json", "And now?"]).json()["text"], "Fits again.", "no second refusal");
    assert_eq!(provider.asked().len(), 3);
}

/// The window of the first model, and why.
fn window(home: &Home) -> (Value, Value) {
    let rows = home.run(&["models", "list", "--json"]).json();
    (rows[0]["context"].clone(), rows[0]["context_from"].clone())
}
