//! Asks one model one thing and shows what comes: `ask FORMAT BASE_URL MODEL PROMPT [--whole]`.
//!
//! It offers one tool, gives it a fixed answer, and asks again, so that a whole round can be watched against a
//! real server. A key is read from standard input if there is one.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program to look at")]

use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::process::ExitCode;

use kai_llm::{
    Config, Delta, Format, Http, Key, Limits, Message, Model, ModelError, Request, ToolSpec, connect,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [format, base_url, model, prompt, rest @ ..] = words.as_slice() else {
        eprintln!("usage: ask openai|gemini|anthropic BASE_URL MODEL PROMPT [--whole]");
        return ExitCode::from(2);
    };
    let Ok(format) = serde_json::from_value::<Format>(format.as_str().into()) else {
        eprintln!("The format is one of openai, gemini, anthropic.");
        return ExitCode::from(2);
    };
    let stream = !rest.iter().any(|word| word == "--whole");
    let config =
        Config { format, base_url: base_url.clone(), model: model.clone(), key: key(), window: 8192, stream };
    match talk(&config, prompt).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn key() -> Option<Key> {
    let mut text = String::new();
    if !stdin().is_terminal() {
        stdin().read_to_string(&mut text).ok()?;
    }
    (!text.trim().is_empty()).then(|| Key::new(text.trim()))
}

/// One round with the tool, then the last request without it.
async fn talk(config: &Config, prompt: &str) -> Result<(), ModelError> {
    let model = connect(config, &Http::new(Limits::default()))?;
    let mut request = Request {
        system: "You are a helpful assistant. Use the tool when it helps.".to_owned(),
        messages: vec![Message::user(prompt.to_owned())],
        tools: vec![weather()],
    };
    for round in ["with the tool", "without tools"] {
        println!("--- {round}, {} bytes", model.body(&request).len());
        let calls = ask(&*model, &mut request).await?;
        if calls == 0 {
            break;
        }
        request.tools.clear();
    }
    Ok(())
}

/// Asks, shows, and gives each call the same result. How many calls there were.
async fn ask(model: &dyn Model, request: &mut Request) -> Result<usize, ModelError> {
    let show = |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            print!("{text}");
            let _ = stdout().flush();
        }
    };
    let reply = model.reply(request, &show).await?;
    println!();
    println!("--- {reply:?}");
    let calls = reply.calls.clone();
    request.messages.push(reply.into());
    for call in &calls {
        let result = r#"{"success":true,"weather":"rain, 7 degrees"}"#.to_owned();
        request.messages.push(Message::Tool { call: call.id.clone(), tool: call.name.clone(), result });
    }
    Ok(calls.len())
}

fn weather() -> ToolSpec {
    ToolSpec {
        name: "get_weather".to_owned(),
        description: "The weather in a city, now.".to_owned(),
        parameters: serde_json::json!({
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Name of the city."}},
            "required": ["city"],
        })
        .into(),
    }
}
