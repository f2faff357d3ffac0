//! MCP over standard input and output: one message a line. Standard output carries nothing else.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use super::session::{Ask, Session};
use super::{LONGEST, protocol};
use crate::call::Call;
use crate::call::guests::GuestCall;
use crate::caller::Caller;
use crate::terminal::{input, out};

/// How often to look whether the user has allowed a guest that waits for it.
const LOOK: Duration = Duration::from_secs(3);

/// Serves the program that started us, until it closes our input.
pub(crate) fn serve(caller: &Caller) {
    let (lines, heard) = sync_channel(1);
    std::thread::spawn(move || {
        let mut input = BufReader::new(input::piped());
        while let Some(line) = next(&mut input) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let ask = |call: GuestCall| caller.ask(Call::Guest(call));
    let (mut session, mut told) = (Session::default(), None);
    while let Some(line) = heard_next(&heard, &mut session, &ask) {
        let answers = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => vec![],
            Line::Whole(line) => session.respond(&line, &ask),
            Line::TooLong => vec![protocol::too_long()],
        };
        for answer in answers {
            out::line(&answer.to_string());
        }
        let waits_for = session.waits_for();
        if waits_for != told {
            if let Some(why) = &waits_for {
                out::complain(why);
            }
            told = waits_for;
        }
    }
}

/// The next line; `None` when there will be none. While the guest waits for the user's answer, tells it of that.
fn heard_next(heard: &Receiver<Line>, session: &mut Session, ask: Ask<'_>) -> Option<Line> {
    loop {
        if !session.may_become_welcome() {
            return heard.recv().ok();
        }
        match heard.recv_timeout(LOOK) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(changed) = session.look_again(ask) {
                    out::line(&changed.to_string());
                }
            }
        }
    }
}

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    /// It was longer than we take, and was read to its end without being kept.
    TooLong,
}

/// Reads a line; `None` at the end of the input.
fn next(input: &mut impl BufRead) -> Option<Line> {
    let mut line = Vec::new();
    let limit = u64::try_from(LONGEST).unwrap_or(u64::MAX) + 1;
    let length = input.by_ref().take(limit).read_until(b'\n', &mut line).ok()?;
    match line.last() {
        None => None,
        Some(b'\n') => Some(Line::Whole(line)),
        Some(_) if length > LONGEST => {
            skip(input)?;
            Some(Line::TooLong)
        }
        // The input ended without a line break.
        Some(_) => Some(Line::Whole(line)),
    }
}

/// Reads to the end of the line and keeps nothing of it.
fn skip(input: &mut impl BufRead) -> Option<()> {
    loop {
        let piece = input.fill_buf().ok()?;
        if piece.is_empty() {
            return Some(());
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_or_too_long_and_the_next_one_is_read_all_the_same() {
        let most = "x".repeat(LONGEST - 1);
        let more = "x".repeat(LONGEST + 1);
        let text = format!("a\n\n{most}\n{more}\n{more}{more}\nb");
        let mut input = BufReader::with_capacity(1_000, text.as_bytes());
        let read: Vec<Line> = std::iter::from_fn(|| next(&mut input)).collect();
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(
            read,
            [
                whole("a\n"),
                whole("\n"),
                whole(&format!("{most}\n")),
                Line::TooLong,
                Line::TooLong,
                whole("b")
            ]
        );
    }

    #[test]
    fn a_line_that_never_ends_is_too_long_once() {
        let text = "x".repeat(3 * LONGEST);
        let mut input = BufReader::new(text.as_bytes());
        assert_eq!(next(&mut input), Some(Line::TooLong));
        assert_eq!(next(&mut input), None);
    }
}
