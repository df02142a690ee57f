//! The API of a connection that carries a byte stream in each direction.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_dcudp::{ReadError, WriteError};

use super::connection::{DcudpConnection, Stream};
use super::error::DcudpError;

/// A reliable stream of bytes in each direction over UDP, **not encrypted** unless there is a
/// [`PreSharedKey`](super::PreSharedKey).
///
/// It implements tokio's read and write traits. `shutdown` ends this end's data and returns at
/// once; [`DcudpConnection::close`] waits until the peer has acknowledged them. A read of zero
/// bytes means that the peer has ended its data and all have arrived; every other end is an error.
pub type DcudpStream = DcudpConnection<Stream>;

impl DcudpConnection<Stream> {
    fn poll_read_slice(&self, cx: &mut Context<'_>, target: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.connection.lock();
        match state.engine.read(target) {
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

    fn poll_write_slice(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.connection.lock();
        match state.engine.write(data) {
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
        let read = self.poll_read_slice(cx, room);
        read.map_ok(|count| buffer.advance(count))
    }
}

impl AsyncWrite for DcudpConnection<Stream> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_slice(cx, data)
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
