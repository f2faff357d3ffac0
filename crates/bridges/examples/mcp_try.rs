//! Connects to one MCP server, lists its tools and calls one of them. If the server wants a sign-in, it prints the
//! address of the page first and waits. `scripts/try-mcp` runs it with real servers.
//!
//! ```text
//! cargo run --example mcp_try -- echo '{"message": "hi"}' mcp-server-everything
//! cargo run --example mcp_try -- add '{"a": 1, "b": 2}' http://127.0.0.1:8000/mcp "Authorization: Bearer x"
//! ```

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use kai_assistant::mcp::port::{
    Connected, Connector, Launch, LinkError, Outcome, Secret, SigningIn, Transport,
};
use kai_bridges::Environment;
use kai_bridges::mcp::{Leash, McpConnector, SUBCOMMAND, hold_leash};

type Tried = Result<(), Box<dyn std::error::Error>>;

fn main() -> Tried {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == SUBCOMMAND) {
        hold_leash();
        return Ok(());
    }
    let [tool, arguments, server, rest @ ..] = &args[..] else {
        return Err("usage: mcp_try TOOL ARGUMENTS COMMAND|URL [ARGUMENT|HEADER]…".into());
    };
    let arguments = serde_json::from_str(arguments)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let connected = connected(launch(server, rest)).await.map_err(|error| error.to_string())?;
        let count = connected.tools.len();
        say(&format!("{} lists {count} tools", connected.calls_itself.line(80)))?;
        let progress = |words: kai_assistant::untrusted::Untrusted| {
            let _ = say(&format!(", {}", words.line(80)));
        };
        let outcome =
            connected.link.call(tool, arguments, &progress).await.map_err(|error| error.to_string())?;
        say(&format!("; {tool}: {}\n", shown(&outcome)))?;
        if outcome.failed { Err("the call failed".into()) } else { Ok(()) }
    })
}

/// Connects. If the server wants a sign-in, prints where and waits for it.
async fn connected(mut launch: Launch) -> Result<Connected, LinkError> {
    let tokens = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&tokens);
    launch.keep_tokens =
        Arc::new(move |tokens| *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens));
    match connector().connect(launch.clone()).await {
        Err(LinkError::SignIn) => {}
        other => return other,
    }
    let SigningIn { url, done } = connector().sign_in(launch.clone()).await?;
    let _ = say(&format!("{url}\n"));
    done.await?;
    launch.tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner).take();
    connector().connect(launch).await
}

#[expect(clippy::disallowed_methods, reason = "an example is a program of its own")]
fn connector() -> McpConnector {
    McpConnector::new(Environment::of(std::env::vars_os()), Leash::ourselves())
}

fn launch(server: &str, rest: &[String]) -> Launch {
    let over_http = server.starts_with("http");
    let header = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), Secret::new(value.trim())))
    };
    let transport = if over_http {
        Transport::Http { url: server.to_owned() }
    } else {
        Transport::Stdio { command: server.to_owned(), args: rest.to_owned() }
    };
    let secrets = if over_http { rest.iter().filter_map(header).collect() } else { vec![] };
    Launch { name: "try".to_owned(), transport, secrets, tokens: None, keep_tokens: Arc::new(|_| {}) }
}

fn shown(outcome: &Outcome) -> String {
    let structured =
        outcome.structured.iter().map(|value| format!(" + {} bytes of JSON", value.to_string().len()));
    let media = outcome.media.iter().map(|kind| format!(" + {kind}"));
    let links = outcome.links.iter().map(|(name, _)| format!(" → {}", name.line(40)));
    std::iter::once(outcome.text.line(100)).chain(structured).chain(media).chain(links).collect()
}

fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}
