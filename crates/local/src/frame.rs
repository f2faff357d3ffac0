//! The pipe between Kai and its worker: frames of a length, a kind and their bytes.
//!
//! Orders and events are JSON. The states of a model's memory are tens of megabytes, so they travel as raw pieces after
//! the order or event that announces them.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The largest frame. A request with a whole context window of text stays far below.
const LONGEST: usize = 16 * 1024 * 1024;
/// The size of a raw piece.
pub(crate) const PIECE: usize = 1024 * 1024;

const JSON: u8 = 0;
const RAW: u8 = 1;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Json(Vec<u8>),
    Raw(Vec<u8>),
}

impl Frame {
    pub(crate) fn json(value: &impl Serialize) -> io::Result<Self> {
        Ok(Self::Json(serde_json::to_vec(value)?))
    }

    /// The value in a JSON frame.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> io::Result<T> {
        match self {
            Self::Json(bytes) => Ok(serde_json::from_slice(bytes)?),
            Self::Raw(_) => Err(odd("bytes came where words were expected")),
        }
    }

    fn head(&self) -> [u8; 5] {
        let (kind, bytes) = match self {
            Self::Json(bytes) => (JSON, bytes),
            Self::Raw(bytes) => (RAW, bytes),
        };
        let [a, b, c, d] = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        [a, b, c, d, kind]
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(bytes) | Self::Raw(bytes) => bytes,
        }
    }

    fn of(kind: u8, bytes: Vec<u8>) -> io::Result<Self> {
        match kind {
            JSON => Ok(Self::Json(bytes)),
            RAW => Ok(Self::Raw(bytes)),
            _ => Err(odd("an unknown kind of frame")),
        }
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.head())?;
        to.write_all(self.bytes())?;
        to.flush()
    }

    pub(crate) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let mut bytes = vec![0; length(head)?];
        from.read_exact(&mut bytes)?;
        Self::of(head[4], bytes)
    }

    pub(crate) async fn send(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.head()).await?;
        to.write_all(self.bytes()).await?;
        to.flush().await
    }

    /// The next frame. Not cancel-safe: a frame that was read in part is lost.
    pub(crate) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = [0; 5];
        from.read_exact(&mut head).await?;
        let mut bytes = vec![0; length(head)?];
        from.read_exact(&mut bytes).await?;
        Self::of(head[4], bytes)
    }
}

fn length([a, b, c, d, _]: [u8; 5]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > LONGEST { Err(odd("a frame is too long")) } else { Ok(length) }
}

fn odd(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_and_what_is_no_frame_is_refused() {
        let frames = [Frame::json(&"hello").unwrap(), Frame::Raw(vec![7; 3000]), Frame::Raw(vec![])];
        let mut pipe = Vec::new();
        for frame in &frames {
            frame.write(&mut pipe).unwrap();
        }
        let (mut here, mut there) = (&pipe[..], &pipe[..]);
        for frame in &frames {
            assert_eq!(&Frame::read(&mut here).unwrap(), frame);
            assert_eq!(&Frame::receive(&mut there).await.unwrap(), frame);
        }
        assert_eq!(Frame::read(&mut here).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for odd in [&[255, 255, 255, 255, 0][..], &[0, 0, 0, 0, 9]] {
            assert_eq!(Frame::read(&mut &*odd).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        assert_eq!(frames[0].parse::<String>().unwrap(), "hello");
        assert!(frames[1].parse::<String>().is_err());
    }
}
