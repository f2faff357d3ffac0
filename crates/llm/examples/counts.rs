//! A fixed amount of work for an instruction counter: `counts nothing|sse|fit`. The cost of a part is what it takes
//! more than `nothing`; `scripts/bench` runs it under callgrind.
#![expect(clippy::print_stdout, reason = "a program to look at")]

use std::convert::Infallible;

use kai_llm::sse::Parser;
use kai_llm::{Message, Request, fit};

fn main() {
    let counted = match std::env::args().nth(1).as_deref() {
        Some("sse") => sse(),
        Some("fit") => fitted(),
        _ => 0,
    };
    println!("{counted}");
}

/// Events in one megabyte of stream.
fn sse() -> usize {
    let event =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "word ".repeat(8));
    let stream = event.repeat(1_000_000 / event.len());
    let (mut parser, mut events) = (Parser::default(), 0);
    for chunk in stream.as_bytes().chunks(4096) {
        let Ok(()) = parser.feed(chunk, &mut |_| {
            events += 1;
            Ok::<(), Infallible>(())
        });
    }
    events
}

/// Messages that stay of 1,000 in a window for a few hundred.
fn fitted() -> usize {
    let said = |n: usize| Message::user(format!("message {n} {}", "word ".repeat(40)));
    let request = Request { messages: (0..1000).map(said).collect(), ..Request::default() };
    fit(request, 16_000).messages.len()
}
