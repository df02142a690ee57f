//! Frames on their way back to a host: segments that are due together travel together.

use weir_enforce::offload::MacAddress;
use weir_enforce::port::Port;
use weir_enforce::segment::{Segment, SegmentRun};
use weir_units::Time;

use super::fidelity::Fidelity;
use super::losses::Losses;
use crate::clock::Clock;

/// What waits to be handed to a host's interface: consecutive segments of one frame.
#[derive(Debug, Default)]
pub(super) struct TxPort {
    pending: Option<PendingSegment>,
    pub(super) losses: Losses,
}

#[derive(Debug)]
struct PendingSegment {
    run: SegmentRun,
    /// When the first and the last came out of the last link.
    due: (Time, Time),
}

/// Where an outlet leads.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxTarget<'a> {
    pub(super) port: &'a Port,
    pub(super) to: MacAddress,
    pub(super) clock: Clock,
}

impl TxPort {
    /// Adds a segment that was `due`; what cannot travel with it goes first. Tells whether it is the
    /// first that waits.
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

    /// Hands over what waits.
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
