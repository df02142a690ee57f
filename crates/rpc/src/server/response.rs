//! The response of a call on its way.

use bytes::Bytes;
use weir_net::{SendStream, WriteError};

use crate::wire::{FrameType, ResponseStatus, put_frame, put_head};

/// Up to this size a message is copied, to be sent with its head at once.
const COPIED: usize = 4096;

/// Sends a response's frames.
pub(super) struct Response {
    send: SendStream,
}

impl Response {
    pub(super) fn new(send: SendStream) -> Self {
        Self { send }
    }

    /// Sends a message; waits while the client takes no more.
    pub(super) async fn message(&mut self, message: Bytes) -> Result<(), WriteError> {
        let mut out = Vec::with_capacity(message.len().min(COPIED) + 16);
        let rest = put_message(&mut out, message);
        self.send.write_bytes(out.into()).await?;
        self.send.write_bytes(rest).await?;
        Ok(())
    }

    /// Sends a last message, if there is one, the status, and the stream's end.
    pub(super) async fn finish(
        &mut self,
        message: Option<Bytes>,
        status: &ResponseStatus,
    ) -> Result<(), WriteError> {
        let mut out = Vec::with_capacity(256);
        if let Some(message) = message {
            let rest = put_message(&mut out, message);
            if !rest.is_empty() {
                self.send
                    .write_bytes(std::mem::take(&mut out).into())
                    .await?;
                self.send.write_bytes(rest).await?;
            }
        }
        let mut payload = Vec::with_capacity(64);
        status.write(&mut payload);
        put_frame(&mut out, FrameType::Status, &payload);
        self.send.finish_with(out.into()).await
    }

    /// Gives the response up.
    pub(super) fn reset(&mut self, code: u64) {
        // Fails only where the client abandoned the call first.
        let _ = self.send.reset(code);
    }

    /// Waits until the client does not want the response any more.
    pub(super) async fn ended(&mut self) {
        // Whatever ends the wait, there is nothing left to do.
        let _ = self.send.stopped().await;
    }
}

/// Appends a message's frame; returns the message where it is to be sent without a copy.
fn put_message(out: &mut Vec<u8>, message: Bytes) -> Bytes {
    if message.len() <= COPIED {
        put_frame(out, FrameType::Message, &message);
        return Bytes::new();
    }
    put_head(out, FrameType::Message, message.len());
    message
}
