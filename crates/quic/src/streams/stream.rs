//! One stream: its halves and its demand to send.

use super::chunk::ChunkPool;
use super::receive::ReceiveHalf;
use super::send::SendHalf;

/// A stream's demand to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendDemand {
    /// A control frame.
    pub(super) control: bool,
    /// Lost data, or the stream's end alone.
    pub(super) retransmission: bool,
    /// Lost bytes.
    pub(super) lost: u64,
    /// New bytes that the stream's own flow control allows.
    pub(super) fresh: u64,
    /// New bytes.
    pub(super) unsent: u64,
}

/// A stream that is not closed.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its sending half; `None` if it has none, or none any more.
    pub(super) send: Option<SendHalf>,
    /// Its receiving half; `None` if it has none, or none any more.
    pub(super) receive: Option<ReceiveHalf>,
    pub(super) priority: i32,
    /// The demand known to the scheduler.
    pub(super) scheduled: SendDemand,
}

impl Stream {
    /// Returns the current demand.
    pub(super) fn demand(&self) -> SendDemand {
        let mut demand = SendDemand::default();
        if let Some(receive) = &self.receive {
            demand.control = receive.update_due() || receive.stop_due().is_some();
        }
        if let Some(send) = &self.send {
            demand.control |= send.reset_due().is_some() || send.report_due();
            demand.retransmission = send.needs_retransmission();
            demand.lost = send.lost();
            demand.unsent = send.unsent();
            demand.fresh = demand.unsent.min(send.credit.available());
        }
        demand
    }

    /// Refuses a new stream of the peer, with an application error code.
    pub(super) fn refuse(&mut self, code: u64) {
        if let Some(send) = &mut self.send {
            send.refuse(code);
        }
        if let Some(receive) = &mut self.receive {
            receive.refuse(code);
        }
    }

    /// Drops finished halves; `true` if none is left.
    pub(super) fn drop_done(&mut self, pool: &mut ChunkPool) -> bool {
        if let Some(send) = self.send.as_mut().filter(|send| send.is_done()) {
            send.discard(pool);
            self.send = None;
        }
        if let Some(receive) = self.receive.as_mut().filter(|receive| receive.is_done()) {
            receive.discard(pool);
            self.receive = None;
        }
        self.send.is_none() && self.receive.is_none()
    }
}
