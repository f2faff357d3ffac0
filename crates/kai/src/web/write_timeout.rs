//! A stream with a write timeout: writing fails once the other side has read nothing for a while.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Wraps a stream and limits how long a write may make no progress. Reads are passed through.
pub(super) struct WriteTimeout<S> {
    stream: S,
    patience: Duration,
    /// The timeout; set while a write is pending.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S: Unpin> WriteTimeout<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    /// Runs one write step and returns its result, or `TimedOut` if the stream has been pending for too long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        step: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = step(Pin::new(&mut self.stream), context) {
            self.waiting = None;
            return Poll::Ready(done);
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.timed(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.timed(context, |stream, context| stream.poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timed(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timed(context, AsyncWrite::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test(start_paused = true)]
    async fn somebody_who_does_not_read_is_given_up() {
        let (ours, _theirs) = duplex(64);
        let mut ours = WriteTimeout::new(ours, PATIENCE);
        let began = tokio::time::Instant::now();
        let failed = ours.write_all(&[7; 1000]).await.unwrap_err();
        assert_eq!((failed.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_who_reads_slowly_is_waited_for() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = WriteTimeout::new(ours, PATIENCE);
        let reading = tokio::spawn(async move {
            let mut taken = Vec::new();
            while taken.len() < 1000 {
                tokio::time::sleep(PATIENCE / 2).await;
                let mut some = [0; 64];
                let length = theirs.read(&mut some).await.unwrap();
                taken.extend_from_slice(&some[..length]);
            }
            taken
        });
        ours.write_all(&[7; 1000]).await.unwrap();
        assert_eq!(reading.await.unwrap(), [7; 1000]);
    }
}
