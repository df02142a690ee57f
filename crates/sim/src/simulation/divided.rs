//! The event loop of a network that is divided into shards.

use weir_results::{OutputError, Recorder};
use weir_units::{Duration, Time};

use super::Simulation;
use crate::threads::FewerThreads;

impl Simulation {
    /// Returns the number of threads that the simulation runs on.
    pub fn threads(&self) -> usize {
        self.world.shards()
    }

    /// Returns why it runs on fewer threads than it might.
    pub fn fewer_threads(&self) -> Option<&FewerThreads> {
        self.fewer_threads.as_ref()
    }

    /// Sets the clock by which [`Self::others_time`] is measured: the CPU time of the calling thread.
    pub fn set_thread_time(&mut self, thread_time: fn() -> Duration) {
        self.world.set_thread_time(thread_time);
    }

    /// Returns the CPU time so far of threads other than the caller's.
    pub fn others_time(&self) -> Duration {
        self.world.others_time()
    }

    /// Handles all events before `until`. The threads run between control events, and stop for them.
    pub(super) fn advance_divided(
        &mut self,
        until: Time,
        recorder: &mut dyn Recorder,
    ) -> Result<(), OutputError> {
        let runs_ahead = self.is_steady && !recorder.wants_packets();
        loop {
            let end = self.control.min(until);
            let ahead = if runs_ahead { end } else { Time::ZERO };
            self.world.run_before(end, ahead);
            if self.control >= until {
                break;
            }
            self.now = self.control;
            self.on_control(recorder)?;
        }
        self.now = self.now.max(until);
        self.record_packets(recorder)
    }
}
