//! The streams of messages that handlers read and write.

use bytes::Bytes;
use tokio::sync::mpsc;
use weir_net::ReadError;

use crate::frames::{FrameError, Frames};
use crate::status::{Code, Status};
use crate::wire::FrameType;

/// The requests of a call, in order.
pub struct RequestReceiver {
    frames: Frames,
}

/// Takes the responses of a call, in order.
#[derive(Debug)]
pub struct ResponseSender {
    queue: mpsc::Sender<Bytes>,
}

/// The call has ended: nobody waits for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call has ended")]
pub struct SendError;

impl RequestReceiver {
    pub(super) fn new(frames: Frames) -> Self {
        Self { frames }
    }

    /// Returns the next request; `None` after the last one. A client that sends faster than the
    /// handler reads waits, by QUIC's flow control.
    ///
    /// # Errors
    /// A status to end the call with: the client cancelled it, or what it sent is malformed or too
    /// large.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let message = self.frames.next_of(FrameType::Message).await;
        message.map_err(status)
    }
}

impl ResponseSender {
    pub(super) fn new(queue: mpsc::Sender<Bytes>) -> Self {
        Self { queue }
    }

    /// Sends a response; waits while the client takes no more.
    ///
    /// # Errors
    /// [`SendError`] where the call has ended.
    pub async fn send(&mut self, response: impl Into<Bytes>) -> Result<(), SendError> {
        let sent = self.queue.send(response.into()).await;
        sent.map_err(|_| SendError)
    }
}

impl From<SendError> for Status {
    fn from(error: SendError) -> Self {
        Self::new(Code::Cancelled, error.to_string())
    }
}

/// Returns the status of a call whose request is not as it should be.
pub(super) fn status(error: FrameError) -> Status {
    let code = match &error {
        FrameError::Read(ReadError::Connection(_) | ReadError::Reset(_)) => Code::Cancelled,
        FrameError::Wire(_) | FrameError::Read(_) => Code::InvalidArgument,
    };
    Status::new(code, error.to_string())
}
