//! The files that a run writes beside its results: packets, and a trace for Perfetto.

use std::path::PathBuf;

use weir_network::{Capture, instants};
use weir_results::{Observation, OutputError, PerfettoTrace, Recorder};
use weir_scenario::Scenario;
use weir_units::{Duration, Time};

use crate::failure::Failure;

/// The files, of those that are wanted.
#[derive(Default)]
pub(super) struct Exports {
    packets: Option<Capture>,
    trace: Option<PerfettoTrace>,
}

/// A file that has been written.
pub(super) struct Exported {
    /// What it has.
    pub(super) content: &'static str,
    pub(super) path: PathBuf,
}

impl Exports {
    /// Opens the files for a run of a scenario.
    pub(super) fn create(
        packets: Option<&PathBuf>,
        trace: Option<&PathBuf>,
        scenario: &Scenario,
    ) -> Result<Self, Failure> {
        let packets = packets.map(|path| Capture::create(path, scenario));
        let trace = trace.map(|path| PerfettoTrace::create(path, &instants(scenario)));
        Ok(Self {
            packets: packets.transpose().map_err(Failure::of)?,
            trace: trace.transpose().map_err(Failure::of)?,
        })
    }

    /// Closes the files of a run of this length, and moves them to their final names.
    pub(super) fn finish(self, simulated: Duration) -> Result<Vec<Exported>, Failure> {
        let mut exported = Vec::new();
        if let Some(packets) = self.packets {
            exported.push(Exported {
                content: "packets",
                path: packets.finish().map_err(Failure::of)?,
            });
        }
        if let Some(trace) = self.trace {
            let end = Time::ZERO + simulated;
            exported.push(Exported {
                content: "a trace for https://ui.perfetto.dev",
                path: trace.finish(end).map_err(Failure::of)?,
            });
        }
        Ok(exported)
    }
}

impl Recorder for Exports {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        self.packets.record(observation)?;
        self.trace.record(observation)
    }

    fn wants_packets(&self) -> bool {
        self.packets.wants_packets()
    }

    fn wants_samples(&self) -> bool {
        self.trace.wants_samples()
    }
}
