//! Writes frames to a host's interface; merges segments that are due together.

use weir_enforce::offload::MacAddress;
use weir_enforce::port::Port;
use weir_enforce::segment::{Segment, SegmentRun};
use weir_units::Time;

use super::fidelity::Fidelity;
use super::losses::Losses;
use crate::clock::Clock;

/// The egress side of a host's interface, with pending consecutive segments of one frame.
#[derive(Debug, Default)]
pub(super) struct TxPort {
    pending: Option<PendingSegment>,
    pub(super) losses: Losses,
}

#[derive(Debug)]
struct PendingSegment {
    run: SegmentRun,
    /// When the first and the last left the last link.
    due: (Time, Time),
}

/// The interface that a [`TxPort`] writes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxTarget<'a> {
    pub(super) port: &'a Port,
    pub(super) to: MacAddress,
    pub(super) clock: Clock,
}

impl TxPort {
    /// Adds a segment that was `due`. Flushes pending segments that it cannot be merged with. Returns
    /// whether it is the only pending segment.
    pub(super) fn push(
        &mut self,
        due: Time,
        segment: &Segment,
        exit: TxTarget<'_>,
        fidelity: &mut Fidelity,
    ) -> bool {
        if let Some(pending) = &mut self.pending
            && pending.run.extend(segment)
        {
            pending.due.1 = due;
            return false;
        }
        let is_first = self.pending.is_none();
        self.flush(exit, fidelity);
        self.pending = Some(PendingSegment {
            run: SegmentRun::new(segment),
            due: (due, due),
        });
        is_first
    }

    /// Writes the pending segments.
    pub(super) fn flush(&mut self, exit: TxTarget<'_>, fidelity: &mut Fidelity) {
        let Some(PendingSegment { run, due }) = self.pending.take() else {
            return;
        };
        let count = u64::from(run.segments());
        fidelity.handed_over(exit.clock.now(), due, count, run.unread());
        let cut = run.frame_to(exit.to);
        match exit.port.send(&cut.slices()) {
            Ok(true) => {}
            Ok(false) => self.losses.full += 1,
            Err(error) => self.losses.count(&error),
        }
    }
}
