//! Limits what a program writes before anybody else reads it. The SDK would skip a line that is too long and wait on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use kai_assistant::mcp::port::LinkError;
use kai_assistant::untrusted::Untrusted;
use tokio::io::{AsyncRead, ReadBuf};

use super::LARGEST_MESSAGE;
use super::fault::Fault;

/// A program's output, which ends at the first line that is too long.
pub(super) struct Bounded<R> {
    from: R,
    lines: Lines,
    fault: Fault,
    ended: bool,
}

impl<R> Bounded<R> {
    pub(super) fn new(from: R, fault: Fault) -> Self {
        Self { from, lines: Lines::default(), fault, ended: false }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.from).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            let this = &mut *self;
            match this.lines.judge(&buffer.filled()[before..]) {
                Judged::Fine => {}
                Judged::Stray(line) => this.fault.suspect(Some(LinkError::Garbled { why: line })),
                Judged::Message => this.fault.suspect(None),
                Judged::Over(error) => {
                    this.fault.found(error);
                    this.ended = true;
                    buffer.set_filled(before);
                }
            }
        }
        read
    }
}

/// How many lines in a row may be no messages. Some programs greet on their standard output before they speak MCP.
const MOST_STRAY: usize = 1_000;
/// How many bytes of such a line are kept, for the error.
const KEPT_OF_STRAY: usize = 200;

/// Counts lines as they pass. A line that does not begin and end like JSON is no message.
#[derive(Default)]
struct Lines {
    /// Bytes of the current line so far.
    length: usize,
    /// The beginning of the current line.
    beginning: Vec<u8>,
    /// The last byte of the current line that is not blank.
    last: u8,
    strays_in_a_row: usize,
}

enum Judged {
    Fine,
    /// The last line that ended is no message.
    Stray(Untrusted),
    /// The last line that ended looks like a message.
    Message,
    Over(LinkError),
}

impl Lines {
    fn judge(&mut self, read: &[u8]) -> Judged {
        let mut found = Judged::Fine;
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            self.add(piece);
            if self.length > LARGEST_MESSAGE {
                return Judged::Over(LinkError::TooLarge);
            }
            if piece.ends_with(b"\n") {
                found = self.end_of_line().unwrap_or(found);
            }
            if self.strays_in_a_row > MOST_STRAY {
                let why = if let Judged::Stray(line) = found { line } else { Untrusted::default() };
                return Judged::Over(LinkError::Garbled { why });
            }
        }
        found
    }

    fn add(&mut self, piece: &[u8]) {
        let room = KEPT_OF_STRAY.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&piece[..piece.len().min(room)]);
        self.length += piece.len();
        self.last = piece.trim_ascii_end().last().copied().unwrap_or(self.last);
    }

    /// What the line was that ended; `None` if it was empty.
    fn end_of_line(&mut self) -> Option<Judged> {
        let line = std::mem::take(self);
        let text = line.beginning.trim_ascii();
        let first = text.first()?;
        if b"{[".contains(first) && b"}]".contains(&line.last) {
            return Some(Judged::Message);
        }
        self.strays_in_a_row = line.strays_in_a_row + 1;
        Some(Judged::Stray(Untrusted::new(String::from_utf8_lossy(text))))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn passed(output: &[u8]) -> (usize, Fault) {
        let fault = Fault::default();
        let mut passed = Vec::new();
        Bounded::new(output, fault.clone()).read_to_end(&mut passed).await.unwrap();
        (passed.len(), fault)
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let mut long = vec![b'{'; LARGEST_MESSAGE];
        long[LARGEST_MESSAGE - 1] = b'\n';
        let twice = [&long[..], &long[..]].concat();
        let (length, fault) = passed(&twice).await;
        assert_eq!((length, fault.known()), (2 * LARGEST_MESSAGE, None));
        let (length, fault) = passed(&vec![b'{'; LARGEST_MESSAGE + 1]).await;
        assert!(length <= LARGEST_MESSAGE);
        assert_eq!(fault.known(), Some(LinkError::TooLarge));
    }

    #[tokio::test]
    async fn a_greeting_is_let_through_but_not_without_end() {
        let (_, fault) = passed(b"\nHello!\nusage: x\n{}\n").await;
        assert_eq!(fault.suspected(), None, "it speaks MCP at last");
        let (_, fault) = passed(b"\nHello!\n\nusage: x\n").await;
        assert_eq!(
            (fault.known(), fault.suspected()),
            (None, Some(LinkError::Garbled { why: said("usage: x") }))
        );
        for stray in ["no", "{no", "no}"] {
            let (_, fault) = passed(format!("{stray}\n").repeat(MOST_STRAY + 1).as_bytes()).await;
            assert_eq!(fault.known(), Some(LinkError::Garbled { why: said(stray) }));
        }
        let (_, fault) = passed("no\n{}\n".repeat(MOST_STRAY + 1).as_bytes()).await;
        assert_eq!(fault.known(), None, "a message in between");
    }

    fn said(text: &str) -> Untrusted {
        Untrusted::new(text)
    }
}
