//! One stream: its halves and what it has to send.

use super::chunk::ChunkPool;
use super::receive::ReceiveHalf;
use super::send::SendHalf;

/// What a stream has to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendDemand {
    /// A control frame.
    pub(super) control: bool,
    /// Lost data, or the stream's end alone.
    pub(super) repair: bool,
    /// How many bytes were lost.
    pub(super) lost: u64,
    /// How many new bytes the stream's own flow control lets it send.
    pub(super) fresh: u64,
    /// How many new bytes there are.
    pub(super) unsent: u64,
}

/// A stream that is not closed.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its sending half; `None` where there is none, or none any more.
    pub(super) send: Option<SendHalf>,
    /// Its receiving half; `None` where there is none, or none any more.
    pub(super) receive: Option<ReceiveHalf>,
    pub(super) priority: i32,
    /// What the scheduler knows of.
    pub(super) scheduled: SendDemand,
}

impl Stream {
    /// What there is to send now.
    pub(super) fn demand(&self) -> SendDemand {
        let mut demand = SendDemand::default();
        if let Some(receive) = &self.receive {
            demand.control = receive.update_due() || receive.stop_due().is_some();
        }
        if let Some(send) = &self.send {
            demand.control |= send.reset_due().is_some() || send.report_due();
            demand.repair = send.needs_repair();
            demand.lost = send.lost();
            demand.unsent = send.unsent();
            demand.fresh = demand.unsent.min(send.credit.available());
        }
        demand
    }

    /// Drops halves that have nothing left to do; `true` where none is left.
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
