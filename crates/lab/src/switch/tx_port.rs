//! Writes frames to a host's interface; merges segments that are due together.

use smallvec::SmallVec;
use weir_enforce::offload::MacAddress;
use weir_enforce::port::Port;
use weir_enforce::segment::{Egress, Segment, SegmentRun};
use weir_units::Time;

use super::fidelity::Fidelity;
use super::losses::Losses;
use crate::clock::Clock;

/// Runs of at most this many frames are pending: flows that share a link alternate on it.
const RUNS: usize = 8;

/// The egress side of a host's interface, with pending runs in the order of their first segments.
#[derive(Debug, Default)]
pub(super) struct TxPort {
    pending: SmallVec<[PendingRun; RUNS]>,
    pub(super) losses: Losses,
}

/// Consecutive segments of one frame.
#[derive(Debug)]
struct PendingRun {
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
    /// Adds a segment that was `due`. Segments of other flows may pass it, as in a host's own receive
    /// offload; those of its flow keep their order. Returns whether nothing was pending.
    pub(super) fn push(
        &mut self,
        due: Time,
        segment: &Segment,
        exit: TxTarget<'_>,
        fidelity: &mut Fidelity,
    ) -> bool {
        let last_of_flow = (self.pending.iter_mut().rev()).find(|one| one.run.is_of_flow(segment));
        if let Some(pending) = last_of_flow
            && pending.run.extend(segment, Egress::Host)
        {
            pending.due.1 = due;
            return false;
        }
        let is_first = self.pending.is_empty();
        if self.pending.len() == RUNS {
            self.flush(exit, fidelity);
        }
        self.pending.push(PendingRun {
            run: SegmentRun::new(segment),
            due: (due, due),
        });
        is_first
    }

    /// Writes the pending segments.
    pub(super) fn flush(&mut self, exit: TxTarget<'_>, fidelity: &mut Fidelity) {
        for PendingRun { run, due } in self.pending.drain(..) {
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
}
