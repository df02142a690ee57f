//! The kind of a run, and the accuracy of an emulated network.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::{Duration, Rate};

use crate::serialized::{bps, seconds};

/// Simulated or live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// In virtual time.
    #[default]
    Simulated,
    /// In real time, with real endpoints in an emulated network.
    Live,
}

impl RunKind {
    /// Returns the name as written in the summary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Live => "live",
        }
    }
}

/// The results of a real host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSummary {
    /// The CPU time of its programs and of the kernel on their behalf.
    #[serde(rename = "cpu_s", with = "seconds")]
    pub cpu: Duration,
}

/// The accuracy of a network's emulation. The results of an unfaithful run depend on the machine
/// more than on the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Emulation {
    /// Whether the results are reliable.
    pub faithful: bool,
    /// The reasons if not, and other notes, as text: kernel options that are missing, for example.
    pub reasons: Vec<String>,
    /// How late packets left the emulated links: median.
    #[serde(rename = "lateness_p50_s", with = "seconds")]
    pub lateness_p50: Duration,
    /// How late packets left the emulated links: 99th percentile.
    #[serde(rename = "lateness_p99_s", with = "seconds")]
    pub lateness_p99: Duration,
    /// How late packets left the emulated links: maximum.
    #[serde(rename = "lateness_max_s", with = "seconds")]
    pub lateness_max: Duration,
    /// The error of the links' delays: median.
    #[serde(rename = "delay_error_p50_s", with = "seconds")]
    pub delay_error_p50: Duration,
    /// The error of the links' delays: 99th percentile.
    #[serde(rename = "delay_error_p99_s", with = "seconds")]
    pub delay_error_p99: Duration,
    /// The rates of the ports that always had packets to send, by name.
    pub rates: IndexMap<String, AchievedRate>,
    /// The CPU time of the thread that emulated the network.
    #[serde(rename = "switch_cpu_s", with = "seconds")]
    pub switch_cpu: Duration,
}

/// The rate of a busy port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AchievedRate {
    /// The rate in the scenario.
    #[serde(rename = "asked_bps", with = "bps")]
    pub asked: Rate,
    /// The rate that it sent at, framing included.
    #[serde(rename = "achieved_bps", with = "bps")]
    pub achieved: Rate,
}
