//! A connection to a mail server: reads lines and counted bytes, and never more than was agreed.

use kai_assistant::email::port::Why;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a connection runs over: TCP, or TLS over it.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection to a mail server.
pub(super) struct Line {
    stream: Box<dyn Duplex>,
    /// What has arrived and was not taken yet is after `taken`.
    arrived: Vec<u8>,
    taken: usize,
    /// How many more bytes may arrive.
    allowance: u64,
}

/// How many bytes are read at once.
const CHUNK: usize = 8 * 1024;

impl Line {
    pub(super) fn new(stream: Box<dyn Duplex>, allowance: u64) -> Self {
        Self { stream, arrived: Vec::new(), taken: 0, allowance }
    }

    /// Lets so many more bytes arrive.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.allowance = bytes;
    }

    /// What the connection runs over, unless the server has said more than it was asked.
    pub(super) fn into_stream(self) -> Option<Box<dyn Duplex>> {
        (self.taken == self.arrived.len()).then_some(self.stream)
    }

    /// Reads a line with its end.
    pub(super) async fn line(&mut self, kept: &mut Kept) -> Result<(), Why> {
        kept.tail.clear();
        loop {
            let waiting = &self.arrived[self.taken..];
            if let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                kept.add(&waiting[..=end]);
                self.taken += end + 1;
                return Ok(());
            }
            kept.add(waiting);
            self.receive().await?;
        }
    }

    /// Reads exactly so many bytes.
    pub(super) async fn bytes(&mut self, mut count: u64, kept: &mut Kept) -> Result<(), Why> {
        let waiting = (self.arrived.len() - self.taken) as u64;
        if count > self.allowance.saturating_add(waiting) {
            return Err(Why::Nonsense);
        }
        while count > 0 {
            if self.taken == self.arrived.len() {
                self.receive().await?;
            }
            let waiting = &self.arrived[self.taken..];
            let taken = waiting.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            kept.add(&waiting[..taken]);
            self.taken += taken;
            count -= taken as u64;
        }
        Ok(())
    }

    /// Waits for more. What had arrived before counts as taken.
    async fn receive(&mut self) -> Result<(), Why> {
        self.taken = 0;
        // Whoever waits may go away meanwhile; then nothing has arrived.
        let mut chunk = std::mem::take(&mut self.arrived);
        chunk.resize(CHUNK, 0);
        let read = self.stream.read(&mut chunk).await.map_err(|_| Why::Broken)?;
        chunk.truncate(read);
        self.arrived = chunk;
        if read == 0 {
            return Err(Why::Broken);
        }
        self.allowance = self.allowance.checked_sub(read as u64).ok_or(Why::Nonsense)?;
        Ok(())
    }

    /// Writes all of it.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Why> {
        self.stream.write_all(bytes).await.map_err(|_| Why::Broken)?;
        self.stream.flush().await.map_err(|_| Why::Broken)
    }
}

/// The beginning of what a server sent. The rest is forgotten as it arrives.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
    most: usize,
    /// The last bytes of the last line, also of what was forgotten.
    tail: Vec<u8>,
}

/// Room for the announcement of a literal.
const TAIL: usize = 32;

impl Kept {
    pub(super) fn up_to(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }

    /// How many bytes follow, if the last line announces them: `{310}` at its end.
    pub(super) fn announced(&self) -> Option<u64> {
        let line = self.tail.strip_suffix(b"\n")?;
        let line = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b"}")?;
        let begin = line.iter().rposition(|byte| *byte == b'{')?;
        let digits = std::str::from_utf8(&line[begin + 1..]).ok()?;
        digits.strip_suffix('+').unwrap_or(digits).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: &'static [u8], allowance: u64) -> Line {
        Line::new(Box::new(tokio::io::join(bytes, tokio::io::sink())), allowance)
    }

    #[tokio::test]
    async fn what_is_too_long_is_read_to_its_end_and_not_kept() {
        let mut line = line(b"0123456789 {3}\r\nabcnext\r\n", 100);
        let mut kept = Kept::up_to(4);
        line.line(&mut kept).await.unwrap();
        assert_eq!((kept.bytes.as_slice(), kept.announced()), (&b"0123"[..], Some(3)));
        line.bytes(3, &mut kept).await.unwrap();
        assert_eq!((kept.bytes.as_slice(), kept.announced()), (&b"0123"[..], None));
        let mut next = Kept::up_to(100);
        line.line(&mut next).await.unwrap();
        assert_eq!(next.bytes, b"next\r\n");
        assert_eq!(line.line(&mut next).await, Err(Why::Broken));
    }

    #[tokio::test]
    async fn nobody_sends_more_than_was_agreed() {
        let mut endless = line(vec![b'x'; 100_000].leak(), 20_000);
        let mut kept = Kept::up_to(1_000);
        assert_eq!(endless.line(&mut kept).await, Err(Why::Nonsense));
        assert_eq!(kept.bytes.len(), 1_000);
        let mut huge = line(b"", 20_000);
        assert_eq!(huge.bytes(1 << 30, &mut kept).await, Err(Why::Nonsense));
        assert_eq!(huge.bytes(u64::MAX, &mut kept).await, Err(Why::Nonsense));
    }

    #[test]
    fn a_literal_is_announced_at_the_end_of_a_line() {
        for (line, expected) in [
            (&b"* 1 FETCH (BODY[] {310}\r\n"[..], Some(310)),
            (b"{0}\n", Some(0)),
            (b"{12+}\r\n", Some(12)),
            (b"{99999999999999999999999}\r\n", None),
            (b"{-1}\r\n", None),
            (b"{1} \r\n", None),
            (b"x}\r\n", None),
            (b"{5}", None),
        ] {
            let mut kept = Kept::up_to(100);
            kept.add(line);
            assert_eq!(kept.announced(), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
