//! The results of a run, in the structure of the JSON file.

mod mixes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::calls::driver::Phase;
use crate::calls::network::loopback_name;
use crate::calls::paper;
use crate::calls::placement::Placement;
use crate::calls::statistics::Summary;

pub use mixes::{Mix, MixRatio};

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Latencies.
    pub measurements: Vec<Measurement>,
    /// Latencies relative to a baseline's.
    pub ratios: Vec<Ratio>,
    /// Downloads.
    pub bulk: Vec<Bulk>,
    /// Mixes of many connections.
    pub mixes: Vec<Mix>,
    /// Mixes relative to a baseline's.
    #[serde(default)]
    pub mix_ratios: Vec<MixRatio>,
    /// Failed measurements and their errors.
    pub failures: Vec<Failure>,
    /// The machine, the software and the parameters.
    pub environment: Environment,
}

/// The latencies of one transport in one situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Transport and settings.
    pub transport: String,
    /// The measured phase.
    pub phase: Phase,
    /// Size of the reply; 0 for handshakes.
    pub size_bytes: u64,
    /// Placement of client and server.
    pub placement: Placement,
    /// The network between them.
    #[serde(default = "loopback_name")]
    pub network: String,
    /// Number of measured times.
    pub iterations: usize,
    /// 10th percentile in microseconds; 0 in reports of earlier versions.
    #[serde(default)]
    pub p10_us: f64,
    /// Median in microseconds.
    pub median_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile in microseconds.
    pub p999_us: f64,
    /// Median time of closing the connection afterwards, in microseconds; absent for calls on an open
    /// connection.
    #[serde(default)]
    pub teardown_us: Option<f64>,
    /// Processor time of both sides per call, in microseconds, if known.
    pub cpu_us: Option<f64>,
    /// The server's part of it.
    #[serde(default)]
    pub server_cpu_us: Option<f64>,
    /// Timer interrupts beyond the kernel's tick per call, on the processors of both sides; absent
    /// where the scheduler chooses them.
    pub timer_interrupts: Option<f64>,
}

impl Measurement {
    /// Returns a measurement from its summary.
    #[must_use]
    pub fn new(
        transport: String,
        phase: Phase,
        size_bytes: u64,
        placement: Placement,
        network: String,
        summary: &Summary,
    ) -> Self {
        let microseconds = |time: weir_units::Duration| time.as_nanos() as f64 / 1000.0;
        Self {
            transport,
            phase,
            size_bytes,
            placement,
            network,
            iterations: summary.count,
            p10_us: microseconds(summary.p10()),
            median_us: microseconds(summary.median()),
            p99_us: microseconds(summary.p99()),
            p999_us: microseconds(summary.p999()),
            teardown_us: None,
            cpu_us: None,
            server_cpu_us: None,
            timer_interrupts: None,
        }
    }

    /// Sets the median time of closing the connection.
    #[must_use]
    pub fn with_teardown(self, teardown: Option<weir_units::Duration>) -> Self {
        Self {
            teardown_us: teardown.map(|time| time.as_nanos() as f64 / 1000.0),
            ..self
        }
    }

    /// Sets what a call costs: processor time of the client and of the server, and timer interrupts
    /// beyond the tick.
    #[must_use]
    pub fn with_costs(
        self,
        processor: Option<(weir_units::Duration, weir_units::Duration)>,
        timer_interrupts: Option<f64>,
    ) -> Self {
        let microseconds = |time: weir_units::Duration| time.as_nanos() as f64 / 1000.0;
        Self {
            cpu_us: processor.map(|(client, server)| microseconds(client + server)),
            server_cpu_us: processor.map(|(_, server)| microseconds(server)),
            timer_interrupts,
            ..self
        }
    }

    /// Returns whether the other was measured in the same situation.
    #[must_use]
    pub fn is_comparable(&self, other: &Self) -> bool {
        let situation = |of: &Self| (of.phase, of.size_bytes, of.placement);
        situation(self) == situation(other) && self.network == other.network
    }

    /// Whether this measurement of a baseline is the one that `other` is compared with.
    fn is_baseline_of(&self, other: &Self) -> bool {
        let of = (other.phase.baseline(), other.size_bytes, other.placement);
        (self.phase, self.size_bytes, self.placement) == of && self.network == other.network
    }
}

/// The ratio of a transport's median to a baseline's in the same situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Transport and settings.
    pub transport: String,
    /// The baseline.
    pub to: String,
    /// The measured phase.
    pub phase: Phase,
    /// Size of the reply.
    pub size_bytes: u64,
    /// Placement of client and server.
    pub placement: Placement,
    /// The network between them.
    #[serde(default = "loopback_name")]
    pub network: String,
    /// The ratio of the medians.
    pub median_ratio: f64,
    /// The paper's ratio of DCQUIC to TCP + TLS in its own network, if it reports one.
    pub paper_ratio: Option<f64>,
}

/// Downloads by one transport. Rates and times are medians of the rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// Transport and settings.
    pub transport: String,
    /// Placement of client and server.
    pub placement: Placement,
    /// The network between them.
    #[serde(default = "loopback_name")]
    pub network: String,
    /// Bytes per round.
    pub size_bytes: u64,
    /// Rounds.
    pub rounds: usize,
    /// Rate in Gbit/s.
    pub gbit_per_s: f64,
    /// Processor seconds per GB (10⁹ bytes), both sides together; absent if the server is on
    /// another machine.
    pub cpu_s_per_gb: Option<f64>,
    /// The client's share.
    pub client_cpu_s_per_gb: f64,
    /// The server's share.
    pub server_cpu_s_per_gb: Option<f64>,
}

/// A failed measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Transport and settings.
    pub transport: String,
    /// The measurement.
    pub what: String,
    /// The error.
    pub message: String,
}

/// The machine, the software and the parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The date, as given by the caller.
    pub date: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// The number of processors that may be used.
    pub cores: usize,
    /// The TLS parameters that all transports share.
    pub tls: String,
    /// The kernel's default congestion control.
    pub kernel_congestion: String,
    /// Each driver's library and version.
    pub versions: BTreeMap<String, String>,
    /// The processors behind each placement.
    pub placements: BTreeMap<String, String>,
    /// The notes of each server.
    pub notes: BTreeMap<String, Vec<String>>,
}

impl Report {
    /// Recomputes the ratios to each of the baselines that were measured.
    pub fn compare(&mut self, baselines: &[String]) {
        self.compare_mixes(baselines);
        self.ratios.clear();
        for baseline in baselines {
            for of in &self.measurements {
                let to = self
                    .measurements
                    .iter()
                    .find(|to| to.transport == *baseline && to.is_baseline_of(of));
                let Some(to) = to else { continue };
                if of.transport == to.transport || to.median_us <= 0.0 {
                    continue;
                }
                let paper_ratio = (of.transport.starts_with(paper::SUBJECT)
                    && to.transport == paper::BASELINE)
                    .then(|| paper::ratio(of.phase, of.size_bytes))
                    .flatten();
                self.ratios.push(Ratio {
                    transport: of.transport.clone(),
                    to: to.transport.clone(),
                    phase: of.phase,
                    size_bytes: of.size_bytes,
                    placement: of.placement,
                    network: of.network.clone(),
                    median_ratio: of.median_us / to.median_us,
                    paper_ratio,
                });
            }
        }
    }

    /// Adds the results of another run of the same program, including its environment's notes.
    pub fn merge(&mut self, other: Self) {
        self.measurements.extend(other.measurements);
        self.ratios.extend(other.ratios);
        self.bulk.extend(other.bulk);
        self.mixes.extend(other.mixes);
        self.mix_ratios.extend(other.mix_ratios);
        self.failures.extend(other.failures);
        if self.environment.kernel.is_empty() {
            self.environment = other.environment;
        } else {
            let environment = &mut self.environment;
            environment.versions.extend(other.environment.versions);
            environment.placements.extend(other.environment.placements);
            for (transport, notes) in other.environment.notes {
                let known = environment.notes.entry(transport).or_default();
                known.extend(notes);
                known.sort_unstable();
                known.dedup();
            }
        }
    }

    /// Returns the ratio of a measurement to a baseline, if it was computed.
    #[must_use]
    pub fn ratio_of(&self, of: &Measurement, baseline: &str) -> Option<f64> {
        self.ratios
            .iter()
            .find(|ratio| {
                ratio.to == baseline
                    && ratio.transport == of.transport
                    && ratio.network == of.network
                    && (ratio.phase, ratio.size_bytes, ratio.placement)
                        == (of.phase, of.size_bytes, of.placement)
            })
            .map(|ratio| ratio.median_ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(transport: &str, phase: Phase, size_bytes: u64, median_us: f64) -> Measurement {
        Measurement {
            transport: transport.to_owned(),
            phase,
            size_bytes,
            placement: Placement::OneCore,
            network: loopback_name(),
            iterations: 1,
            p10_us: median_us,
            median_us,
            p99_us: median_us,
            p999_us: median_us,
            teardown_us: None,
            cpu_us: None,
            server_cpu_us: None,
            timer_interrupts: None,
        }
    }

    #[test]
    fn ratios_compare_only_equal_phases_and_sizes() {
        let mut report = Report {
            measurements: vec![
                measured("tcp-tls", Phase::Fresh, 10_000, 400.0),
                measured("dcquic", Phase::Fresh, 10_000, 300.0),
                measured("dcquic", Phase::Fresh, 100_000, 500.0),
                measured("quinn", Phase::Fresh, 10_000, 800.0),
            ],
            ..Report::default()
        };
        report.compare(&["tcp-tls".to_owned(), "floor".to_owned()]);
        assert_eq!(report.ratios.len(), 2);
        assert_eq!(report.ratios[0].median_ratio, 0.75);
        let paper = report.ratios[0].paper_ratio.unwrap();
        assert!((paper - 0.363).abs() < 1e-9);
        assert_eq!(report.ratios[1].median_ratio, 2.0);
        assert_eq!(report.ratios[1].paper_ratio, None);
    }

    #[test]
    fn the_file_has_the_promised_keys() {
        let mut report = Report {
            measurements: vec![measured("tcp-tls", Phase::Established, 10_000, 60.0)],
            ..Report::default()
        };
        report.compare(&["tcp-tls".to_owned()]);
        let value = serde_json::to_value(&report).unwrap();
        for key in ["measurements", "ratios", "environment"] {
            assert!(value.get(key).is_some(), "{key}");
        }
        let measurement = &value["measurements"][0];
        assert_eq!(measurement["phase"], "established");
        for key in [
            "transport",
            "size_bytes",
            "iterations",
            "median_us",
            "p99_us",
            "p999_us",
        ] {
            assert!(measurement.get(key).is_some(), "{key}");
        }
        let back: Report = serde_json::from_value(value).unwrap();
        assert_eq!(back, report);
    }
}
