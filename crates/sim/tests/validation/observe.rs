//! Helpers of the tests: a run's summary and its samples.

use std::fmt::Debug;

use weir_results::{
    GroupSample, Observation, OutputError, PortSample, PortSummary, Recorder, RunSummary,
};
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;
use weir_units::{ByteSize, Time};

/// The length of the queue at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSample {
    pub(crate) time: Time,
    pub(crate) queue: ByteSize,
}

/// The mean congestion window of a group's flows at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSample {
    pub(crate) time: Time,
    pub(crate) window: ByteSize,
}

/// The records of a run with one measured port and one group.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) queue: Vec<QueueSample>,
    pub(crate) windows: Vec<WindowSample>,
    pub(crate) summary: RunSummary,
}

impl Recorder for Observed {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Port(PortSample { time, queue, .. }) => {
                self.queue.push(QueueSample { time, queue });
            }
            Observation::Group(GroupSample { time, window, .. }) => self
                .windows
                .extend(window.map(|window| WindowSample { time, window })),
            _ => {}
        }
        Ok(())
    }
}

/// Parses a scenario from TOML, with settings in place of its own values.
pub(crate) fn scenario(text: &str, settings: &[String]) -> Scenario {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    match Scenario::parse("test", text, &settings) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Simulates a scenario from start to end.
pub(crate) fn run(text: &str, settings: &[String]) -> RunSummary {
    record(text, settings, &mut ())
}

/// Simulates a scenario from start to end, and keeps its samples.
pub(crate) fn observe(text: &str, settings: &[String]) -> Observed {
    let mut observed = Observed::default();
    observed.summary = record(text, settings, &mut observed);
    observed
}

/// Simulates a scenario from start to end with this recorder.
pub(crate) fn record(text: &str, settings: &[String], recorder: &mut dyn Recorder) -> RunSummary {
    let mut simulation = Simulation::new(scenario(text, settings)).unwrap();
    simulation.advance(Time::MAX, recorder).unwrap();
    simulation.finish(recorder).unwrap()
}

/// Returns the port that all of these scenarios measure.
pub(crate) fn bottleneck(summary: &RunSummary) -> &PortSummary {
    &summary.ports["bottleneck"]
}

/// Asserts that a measurement is within the relative `tolerance` of its expected value.
#[track_caller]
pub(crate) fn assert_close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!(
        "{what}: {measured:.4}, expected {expected:.4} ({:+.1} %)",
        error * 100.0
    );
    assert!(
        error.abs() <= tolerance,
        "{what}: {measured} is off by {:+.1} % from {expected}",
        error * 100.0
    );
}

/// Records everything, row by row, as text and as a digest of it.
#[derive(Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) text: Vec<String>,
}

impl Rows {
    /// FNV-1a with 64 bits (Fowler, Noll and Vo; RFC 9923).
    pub(crate) fn digest(&self) -> u64 {
        let bytes = self.text.iter().flat_map(|row| row.bytes().chain([b'\n']));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    fn push(&mut self, row: &dyn Debug) -> Result<(), OutputError> {
        self.text.push(format!("{row:?}"));
        Ok(())
    }
}

impl Recorder for Rows {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => self.push(&flow),
            Observation::Port(sample) => self.push(&sample),
            Observation::Group(sample) => self.push(&sample),
            _ => Ok(()),
        }
    }
}

/// Records flows alone, row by row, and wants no samples.
#[derive(Default)]
pub(crate) struct FlowRows(pub(crate) Rows);

impl Recorder for FlowRows {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(_) => self.0.record(observation),
            _ => Ok(()),
        }
    }

    fn wants_samples(&self) -> bool {
        false
    }
}
