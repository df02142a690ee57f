//! The API of a connection that carries messages.

use std::future::poll_fn;
use std::task::Poll;

use weir_dcudp::{ReadError, WriteError};

use super::connection::{DcudpConnection, Messages};
use super::error::DcudpError;

/// Messages in each direction over UDP, each delivered whole and once, **not encrypted** unless there
/// is a [`PreSharedKey`](super::PreSharedKey).
pub type DcudpMessages = DcudpConnection<Messages>;

/// Why a message was not sent or not received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The message is larger than the peer accepts.
    #[error("the message is larger than the {limit} bytes that the peer can take")]
    TooLarge {
        /// The largest one in bytes.
        limit: usize,
    },
    /// This end has finished.
    #[error("this end has said that no more messages come")]
    Finished,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] DcudpError),
}

impl DcudpConnection<Messages> {
    /// Sends a message, delivered in order after those before it. Waits for buffer space, not for
    /// the peer's acknowledgment.
    ///
    /// # Errors
    /// [`MessageError`] where it is not sent.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), MessageError> {
        self.submit(message, true).await
    }

    /// Sends a message that the peer delivers on arrival, regardless of those before it.
    ///
    /// # Errors
    /// [`MessageError`] where it is not sent.
    pub async fn send_unordered(&mut self, message: &[u8]) -> Result<(), MessageError> {
        self.submit(message, false).await
    }

    async fn submit(&mut self, message: &[u8], in_order: bool) -> Result<(), MessageError> {
        poll_fn(|cx| {
            let mut state = self.connection.lock();
            match state.engine.write_message(message, in_order) {
                Ok(()) => {
                    state.on_written(message.len());
                    Poll::Ready(Ok(()))
                }
                Err(WriteError::Blocked) => {
                    state.check_open()?;
                    state.writer = Some(cx.waker().clone());
                    state.send();
                    Poll::Pending
                }
                Err(WriteError::TooLarge { limit }) => {
                    Poll::Ready(Err(MessageError::TooLarge { limit }))
                }
                Err(WriteError::Ended | WriteError::WrongKind | WriteError::Closed(_)) => {
                    state.check_open()?;
                    Poll::Ready(Err(MessageError::Finished))
                }
            }
        })
        .await
    }

    /// Receives the next message into `buffer`, whose contents and length it replaces; returns
    /// `false` once the peer has ended its messages.
    ///
    /// # Errors
    /// [`DcudpError`] where the connection ended otherwise.
    pub async fn receive_into(&mut self, buffer: &mut Vec<u8>) -> Result<bool, DcudpError> {
        buffer.clear();
        poll_fn(|cx| {
            let mut state = self.connection.lock();
            let read = state.engine.read_message(buffer);
            match read {
                // Reading may have freed buffer space that the peer should learn of, or revealed
                // that the peer's messages are malformed.
                Ok(_) | Err(ReadError::Closed(_)) => state.queue(),
                Err(ReadError::Blocked | ReadError::Ended | ReadError::WrongKind) => {}
            }
            match read {
                Ok(_) => Poll::Ready(Ok(true)),
                Err(ReadError::Ended | ReadError::WrongKind) => Poll::Ready(Ok(false)),
                Err(ReadError::Blocked) => {
                    state.check_open()?;
                    state.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
                Err(ReadError::Closed(cause)) => {
                    state.check_open()?;
                    Poll::Ready(Err(DcudpError::new(state.engine.remote(), cause)))
                }
            }
        })
        .await
    }

    /// Receives the next message; `None` once the peer has ended its messages.
    ///
    /// # Errors
    /// [`DcudpError`] where the connection ended otherwise.
    pub async fn receive(&mut self) -> Result<Option<Vec<u8>>, DcudpError> {
        let mut message = Vec::new();
        let received = self.receive_into(&mut message).await?;
        Ok(received.then_some(message))
    }

    /// Returns the largest message in bytes that the peer accepts.
    pub fn message_limit(&self) -> usize {
        self.connection.peek().engine.message_limit()
    }
}
