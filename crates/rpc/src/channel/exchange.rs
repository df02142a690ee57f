//! The stream of one attempt: opened, with the request's header.

use tokio::time::Instant;
use weir_channel::Picked;
use weir_net::rpc::{CALL_CANCELLED, CALL_DEADLINE};
use weir_net::{Connection, Duration};

use super::error::CallError;
use super::stream::{RequestSender, ResponseReceiver};
use crate::executed::Executed;
use crate::frames::Frames;
use crate::wire::{FrameType, Limits, RequestHeader, put_frame};

/// When a call has to be over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    /// The time that the call had.
    pub(super) span: Duration,
}

impl Deadline {
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }

    pub(super) fn time_left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now()).into()
    }

    pub(super) const fn passed(&self, executed: Executed) -> CallError {
        CallError::DeadlinePassed {
            after: self.span,
            executed,
        }
    }
}

/// Returns the code with which a call is given up now.
pub(super) fn give_up_code(deadline: Option<Deadline>) -> u64 {
    match deadline {
        Some(deadline) if deadline.is_over() => CALL_DEADLINE,
        _ => CALL_CANCELLED,
    }
}

/// Waits for a future up to a deadline; `None` where that passes.
pub(super) async fn within<F: Future>(deadline: Option<Deadline>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.at, future).await.ok(),
        None => Some(future.await),
    }
}

/// The server of an attempt. The call counts as under way there until this is dropped.
pub(super) struct Server {
    pub(super) picked: Picked<Connection>,
    /// What the response may be.
    pub(super) limits: Limits,
}

impl Server {
    /// Opens the stream of a call. The header leaves with what is sent first.
    ///
    /// # Errors
    /// [`CallError::NotBegun`] where the connection is over.
    pub(super) async fn open(
        self,
        header: &RequestHeader,
        deadline: Option<Deadline>,
    ) -> Result<(RequestSender, ResponseReceiver), CallError> {
        let (send, recv) = self
            .picked
            .link()
            .open_bi()
            .await
            .map_err(CallError::NotBegun)?;
        let mut payload = Vec::with_capacity(128);
        header.write(&mut payload);
        let mut head = Vec::with_capacity(payload.len() + 8);
        put_frame(&mut head, FrameType::Header, &payload);
        let frames = Frames::new(recv, self.limits);
        let requests = RequestSender::new(send, head, deadline);
        Ok((requests, ResponseReceiver::new(frames, deadline, self)))
    }
}
