//! Combines the blocks of a latency measurement.

use weir_units::Duration;

use super::pair::{Block, ProcessorTimes};
use crate::calls::statistics::Summary;

/// The results of the blocks of one transport in one situation.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) times: Vec<u64>,
    teardowns: Vec<u64>,
    processor: Option<ProcessorTimes>,
    interrupts: Option<u64>,
    /// Calls that processor time and interrupts include, warm-ups among them.
    calls: u64,
}

impl Samples {
    pub(super) fn add(&mut self, block: Block, warm_up: u32) {
        self.calls += block.times.calls_ns.len() as u64 + u64::from(warm_up);
        self.times.extend(block.times.calls_ns);
        self.teardowns.extend(block.times.teardowns_ns);
        if let Some(more) = block.processor {
            let so_far = self.processor.get_or_insert_default();
            so_far.client += more.client;
            so_far.server += more.server;
        }
        if let Some(more) = block.interrupts {
            self.interrupts = Some(self.interrupts.unwrap_or_default() + more);
        }
    }

    /// Returns the median time of a teardown; `None` for calls on an open connection.
    pub(super) fn teardown(&mut self) -> Option<Duration> {
        Summary::of(&mut self.teardowns).map(|summary| summary.median())
    }

    /// Returns the timer interrupts beyond the tick per call.
    pub(super) fn interrupts_per_call(&self) -> Option<f64> {
        self.interrupts
            .map(|interrupts| interrupts as f64 / self.calls as f64)
    }

    /// Returns the processor time of both sides per call.
    pub(super) fn processor_per_call(&self) -> Option<ProcessorTimes> {
        self.processor.map(|processor| ProcessorTimes {
            client: processor.client / self.calls,
            server: processor.server / self.calls,
        })
    }
}
