//! The results of mixes.

use serde::{Deserialize, Serialize};

use super::Report;
use crate::calls::network::loopback_name;
use crate::calls::placement::Placement;

/// A mix of many connections by one transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Transport and settings.
    pub transport: String,
    /// The workload's name.
    pub workload: String,
    /// Placement of client and server.
    pub placement: Placement,
    /// The network between them.
    #[serde(default = "loopback_name")]
    pub network: String,
    /// Concurrent connections.
    pub connections: u32,
    /// The rate at which calls arrived, per second; absent in a closed loop, where each connection made
    /// its next call at once.
    #[serde(default)]
    pub offered_per_s: Option<f64>,
    /// Calls per second; in a closed loop, from when all connections were open. 0 in reports of earlier
    /// versions.
    #[serde(default)]
    pub calls_per_s: f64,
    /// The part of the time in which the client's processor worked for it, from 0 to 1: near 1, times are
    /// those of a client at its limit. Absent in an open loop, where the client polls between arrivals.
    #[serde(default)]
    pub client_busy: Option<f64>,
    /// Calls that succeeded.
    pub completed: usize,
    /// Connections and calls that failed.
    pub errors: u64,
    /// Connections and calls that did not finish in time.
    pub stalls: u64,
    /// The first error.
    pub first_error: Option<String>,
    /// Median completion time in microseconds.
    pub median_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile in microseconds.
    pub p999_us: f64,
    /// Reply bytes of all calls over the whole time, in Gbit/s.
    pub gbit_per_s: f64,
}

/// The ratios of a transport's completion times to a baseline's in the same mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixRatio {
    /// Transport and settings.
    pub transport: String,
    /// The baseline.
    pub to: String,
    /// The workload's name.
    pub workload: String,
    /// Placement of client and server.
    pub placement: Placement,
    /// The network between them.
    pub network: String,
    /// The rate at which calls arrived, per second; absent in a closed loop.
    pub offered_per_s: Option<f64>,
    /// The ratio of the medians.
    pub median_ratio: f64,
    /// The ratio of the 99th percentiles.
    pub p99_ratio: f64,
    /// The ratio of the 99.9th percentiles.
    pub p999_ratio: f64,
}

impl Mix {
    /// Returns whether the other had the same load in the same situation.
    #[must_use]
    pub fn is_comparable(&self, other: &Self) -> bool {
        self.workload == other.workload
            && self.placement == other.placement
            && self.network == other.network
            && self.connections == other.connections
            && self.offered_per_s == other.offered_per_s
    }

    /// Returns the ratios to a baseline; `None` to itself, to another situation, or if either has
    /// completed nothing.
    fn ratio_to(&self, to: &Self) -> Option<MixRatio> {
        let has_times = |of: &Self| of.median_us > 0.0;
        let is_other = self.transport != to.transport && self.is_comparable(to);
        (is_other && has_times(self) && has_times(to)).then(|| MixRatio {
            transport: self.transport.clone(),
            to: to.transport.clone(),
            workload: self.workload.clone(),
            placement: self.placement,
            network: self.network.clone(),
            offered_per_s: self.offered_per_s,
            median_ratio: self.median_us / to.median_us,
            p99_ratio: self.p99_us / to.p99_us,
            p999_ratio: self.p999_us / to.p999_us,
        })
    }
}

impl Report {
    /// Recomputes the ratios of the mixes to each of the baselines.
    pub(super) fn compare_mixes(&mut self, baselines: &[String]) {
        let mixes = &self.mixes;
        let ratios = baselines.iter().flat_map(|baseline| {
            mixes.iter().filter_map(|of| {
                let to = mixes
                    .iter()
                    .find(|to| to.transport == *baseline && to.is_comparable(of))?;
                of.ratio_to(to)
            })
        });
        self.mix_ratios = ratios.collect();
    }

    /// Returns the ratios of a mix to a baseline, if they were computed.
    #[must_use]
    pub fn ratios_of_mix(&self, of: &Mix, baseline: &str) -> Option<&MixRatio> {
        self.mix_ratios.iter().find(|ratio| {
            ratio.to == baseline
                && ratio.transport == of.transport
                && ratio.workload == of.workload
                && ratio.placement == of.placement
                && ratio.network == of.network
                && ratio.offered_per_s == of.offered_per_s
        })
    }
}
