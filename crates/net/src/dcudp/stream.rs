//! The API of a connection that carries a byte stream in each direction.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_dcudp::{ReadError, WriteError};

use super::connection::{DcudpConnection, Stream};
use super::error::DcudpError;
use super::state::DcudpState;

/// A reliable stream of bytes in each direction over UDP, **not encrypted** unless there is a
/// [`PreSharedKey`](super::PreSharedKey).
///
/// It implements tokio's read and write traits. `shutdown` ends this end's data and returns at
/// once; [`DcudpConnection::close`] waits until the peer has acknowledged them. A read of zero
/// bytes means that the peer has ended its data and all have arrived; every other end is an error.
pub type DcudpStream = DcudpConnection<Stream>;

impl DcudpConnection<Stream> {
    /// Fills `chunks` from the front with parts of the stream as they were received, of `most` bytes
    /// together, without copying them, and waits until there are any. Returns the number of parts; zero at
    /// the stream's end.
    ///
    /// A part is a packet's payload. It keeps the buffer of up to 64 KB in use that the kernel has filled:
    /// copy what is kept for long.
    ///
    /// # Errors
    /// As of a read.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes], most: usize) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read_chunks(cx, chunks, most)).await
    }

    /// As [`Self::read_chunks`], for a future of your own.
    ///
    /// # Errors
    /// As of a read.
    pub fn poll_read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, |state| state.engine.read_chunks(chunks, most))
    }

    /// Writes all of `data` without copying them: they are sent from where they are, and kept until the
    /// peer has acknowledged them.
    ///
    /// # Errors
    /// As of a write; a prefix may have been written.
    pub async fn write_bytes(&mut self, mut data: Bytes) -> io::Result<()> {
        while !data.is_empty() {
            poll_fn(|cx| self.poll_write_bytes(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Writes a prefix of `data` without copying it, removes it from `data`, and waits for buffer space;
    /// returns the prefix's length.
    ///
    /// # Errors
    /// As of a write.
    pub fn poll_write_bytes(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |state| state.engine.write_bytes(data))
    }

    /// Reads by `read`, which returns zero only for no room.
    fn poll_read_with(
        &self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut DcudpState) -> Result<usize, ReadError>,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.connection.lock();
        match read(&mut state) {
            Ok(count) => {
                // Reading may have freed buffer space that the peer should learn of.
                state.queue();
                Poll::Ready(Ok(count))
            }
            Err(ReadError::Ended) => Poll::Ready(Ok(0)),
            Err(ReadError::Blocked) => {
                state.check_open()?;
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Err(error) => {
                state.check_open()?;
                Poll::Ready(Err(match error {
                    ReadError::Closed(cause) => {
                        DcudpError::new(state.engine.remote(), cause).into()
                    }
                    other => io::Error::other(other),
                }))
            }
        }
    }

    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut DcudpState) -> Result<usize, WriteError>,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.connection.lock();
        match write(&mut state) {
            Ok(count) => {
                state.on_written(count);
                Poll::Ready(Ok(count))
            }
            Err(WriteError::Blocked) => {
                state.check_open()?;
                state.writer = Some(cx.waker().clone());
                state.send();
                Poll::Pending
            }
            Err(error) => {
                state.check_open()?;
                Poll::Ready(Err(io::Error::new(io::ErrorKind::NotConnected, error)))
            }
        }
    }
}

impl AsyncRead for DcudpConnection<Stream> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.initialize_unfilled();
        if room.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let read = self.poll_read_with(cx, |state| state.engine.read(room));
        read.map_ok(|count| buffer.advance(count))
    }
}

impl AsyncWrite for DcudpConnection<Stream> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |state| state.engine.write(data))
    }

    /// Sends what the pacer allows; the rest follows by itself.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.lock().send();
        Poll::Ready(Ok(()))
    }

    /// Ends this end's data; does not wait for the peer's acknowledgment.
    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(self.connection.peek().check_open().map_err(Into::into))
    }
}
