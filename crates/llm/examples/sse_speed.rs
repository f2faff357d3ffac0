//! Prints how fast server-sent events are read, in MB/s. Run it with `--release`.
#![expect(clippy::print_stdout, reason = "a program to look at")]

use std::convert::Infallible;
use std::time::Instant;

use kai_llm::sse::Parser;

const MEGABYTES: usize = 256;

fn main() {
    let event = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}"#;
    let stream = format!("{event}\n\n").repeat((MEGABYTES << 20) / (event.len() + 2)).into_bytes();
    for (name, size) in [("16 KB chunks", 16 << 10), ("1,400 byte chunks", 1400), ("40 byte chunks", 40)] {
        println!("{name:>18}: {:6.0} MB/s", speed(&stream, size));
    }
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch")]
fn speed(stream: &[u8], size: usize) -> f64 {
    let (mut events, mut bytes, start) = (0_usize, 0_usize, Instant::now());
    let mut parser = Parser::default();
    for chunk in stream.chunks(size) {
        let Ok(()) = parser.feed(chunk, &mut |data| {
            events += 1;
            bytes += data.len();
            Ok::<(), Infallible>(())
        });
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(bytes + 8 * events, stream.len());
    let megabytes = u32::try_from(stream.len()).map_or(0.0, f64::from) / 1e6;
    megabytes / seconds
}
