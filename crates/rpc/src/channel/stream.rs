//! The streams of messages of a call, on the client's side.

use bytes::Bytes;
use weir_net::rpc::CALL_DEADLINE;
use weir_net::{SendStream, WriteError};

use super::call::Response;
use super::error::CallError;
use super::exchange::{Deadline, Server, give_up_code, within};
use crate::executed::Executed;
use crate::frames::Frames;
use crate::metadata::Metadata;
use crate::status::Code;
use crate::wire::{FrameType, ResponseStatus, WireError, put_frame, put_head};

/// Up to this size a message is copied, to be sent with its head at once.
const COPIED: usize = 4096;

/// Sends the requests of a call, in order. Dropping it before [`RequestSender::finish`] tells the
/// server that the requests are not complete.
pub struct RequestSender {
    send: SendStream,
    /// What leaves with the next message.
    head: Vec<u8>,
    deadline: Option<Deadline>,
    is_finished: bool,
}

/// The server takes no more requests, or the connection ended: [`ResponseReceiver::next`] says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call takes no more requests: its response says why")]
pub struct StreamClosed;

/// The responses of a call, in order. Dropping it before their end cancels the call.
pub struct ResponseReceiver {
    frames: Frames,
    deadline: Option<Deadline>,
    server: Server,
    has_message: bool,
    /// How the call ended: the status's metadata, or the error.
    end: Option<Result<Metadata, CallError>>,
}

impl RequestSender {
    pub(super) fn new(send: SendStream, head: Vec<u8>, deadline: Option<Deadline>) -> Self {
        Self {
            send,
            head,
            deadline,
            is_finished: false,
        }
    }

    /// Sends a request; waits while the server takes no more.
    ///
    /// # Errors
    /// [`StreamClosed`] where the server has ended the call, the connection is over, or the
    /// deadline has passed.
    pub async fn send(&mut self, request: impl Into<Bytes>) -> Result<(), StreamClosed> {
        let rest = self.put(request.into());
        let head = Bytes::from(std::mem::take(&mut self.head));
        let sending = async {
            self.send.write_bytes(head).await?;
            self.send.write_bytes(rest).await
        };
        match within(self.deadline, sending).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(StreamClosed),
        }
    }

    /// Ends the requests.
    ///
    /// # Errors
    /// As [`RequestSender::send`].
    pub async fn finish(mut self) -> Result<(), StreamClosed> {
        let deadline = self.deadline;
        let finishing = self.finish_with(Bytes::new());
        match within(deadline, finishing).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(StreamClosed),
        }
    }

    /// Sends the header now.
    pub(super) async fn begin(&mut self) -> Result<(), WriteError> {
        let head = Bytes::from(std::mem::take(&mut self.head));
        self.send.write_bytes(head).await
    }

    /// Sends the header and the only request, and ends the requests.
    pub(super) async fn only(mut self, request: Bytes) -> Result<(), WriteError> {
        let rest = self.put(request);
        self.finish_with(rest).await
    }

    async fn finish_with(&mut self, rest: Bytes) -> Result<(), WriteError> {
        let head = Bytes::from(std::mem::take(&mut self.head));
        if rest.is_empty() {
            self.send.finish_with(head).await?;
        } else {
            self.send.write_bytes(head).await?;
            self.send.finish_with(rest).await?;
        }
        self.is_finished = true;
        Ok(())
    }

    /// Appends a message's frame to the head; returns the message where it is to be sent without a
    /// copy.
    fn put(&mut self, message: Bytes) -> Bytes {
        if message.len() <= COPIED {
            put_frame(&mut self.head, FrameType::Message, &message);
            return Bytes::new();
        }
        put_head(&mut self.head, FrameType::Message, message.len());
        message
    }
}

impl Drop for RequestSender {
    fn drop(&mut self) {
        if !self.is_finished {
            // Fails only where the server stopped the stream first.
            let _ = self.send.reset(give_up_code(self.deadline));
        }
    }
}

impl ResponseReceiver {
    pub(super) fn new(frames: Frames, deadline: Option<Deadline>, server: Server) -> Self {
        Self {
            frames,
            deadline,
            server,
            has_message: false,
            end: None,
        }
    }

    /// Returns the next response; `None` after the last one of a call that succeeded.
    ///
    /// # Errors
    /// [`CallError`] where the call failed; then the same each time.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        if let Some(end) = &self.end {
            return end.clone().map(|_| None);
        }
        let end = match self.read().await {
            Ok(Received::Message(message)) => {
                self.has_message = true;
                return Ok(Some(message));
            }
            Ok(Received::Status(metadata)) => Ok(metadata),
            Err(error) => Err(error),
        };
        self.report(&end);
        self.end = Some(end.clone());
        end.map(|_| None)
    }

    /// Returns the only response, with the metadata of the status.
    ///
    /// # Errors
    /// [`CallError`] where the call failed, or there is not exactly one response.
    pub async fn only(mut self) -> Result<Response, CallError> {
        let Some(body) = self.next().await? else {
            return Err(CallError::Malformed(WireError::Truncated));
        };
        if self.next().await?.is_some() {
            let error = WireError::Misplaced(FrameType::Message);
            return Err(CallError::not_received(self.frames.reject(error.into())));
        }
        Ok(Response {
            body,
            metadata: self.metadata().cloned().unwrap_or_default(),
        })
    }

    /// Returns the metadata of the status, after the last response.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.end.as_ref()?.as_ref().ok()
    }

    async fn read(&mut self) -> Result<Received, CallError> {
        let Some(frame) = within(self.deadline, self.frames.next()).await else {
            self.frames.stop(CALL_DEADLINE);
            let passed = |deadline: Deadline| deadline.passed(Executed::Maybe);
            return Err(self.deadline.map_or(CallError::Reset(0), passed));
        };
        let frame = frame.map_err(CallError::not_received)?;
        let Some(frame) = frame else {
            return Err(CallError::Malformed(WireError::Truncated));
        };
        match frame.frame_type {
            FrameType::Message => Ok(Received::Message(frame.payload)),
            FrameType::Status => self.end_of(&frame.payload).await.map(Received::Status),
            other => {
                let error = self.frames.reject(WireError::Misplaced(other).into());
                Err(CallError::not_received(error))
            }
        }
    }

    /// Reads the status; returns the metadata of a success.
    async fn end_of(&mut self, payload: &Bytes) -> Result<Metadata, CallError> {
        let read = ResponseStatus::read(payload, &self.server.limits);
        let status =
            read.map_err(|error| CallError::not_received(self.frames.reject(error.into())))?;
        // The end has usually arrived with the status: then there is nothing to stop.
        tokio::select! {
            biased;
            _ = self.frames.next() => {}
            () = std::future::ready(()) => {}
        }
        if status.status.code == Code::Ok {
            return Ok(status.status.metadata);
        }
        let is_executed = status.executed || self.has_message;
        Err(CallError::Status {
            status: status.status,
            executed: if is_executed {
                Executed::Yes
            } else {
                Executed::No
            },
        })
    }

    fn report(&self, end: &Result<Metadata, CallError>) {
        match end {
            Ok(_) => self.server.picked.on_answer(),
            Err(CallError::Status { status, executed }) => match (status.code, executed) {
                // A refusal says nothing about the server's health.
                (_, Executed::No) => {}
                (Code::Unavailable, _) => self.server.picked.on_failure(),
                _ => self.server.picked.on_answer(),
            },
            // Nor does a server that drains.
            Err(error) if error.executed() == Executed::No => {}
            Err(_) => self.server.picked.on_failure(),
        }
    }
}

enum Received {
    Message(Bytes),
    Status(Metadata),
}

impl Drop for ResponseReceiver {
    fn drop(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.frames.stop(give_up_code(self.deadline));
        if self.deadline.is_some_and(|deadline| deadline.is_over()) {
            self.server.picked.on_failure();
        }
    }
}
