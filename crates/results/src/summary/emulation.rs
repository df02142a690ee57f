//! Where a run took place, and how far an emulated network can be believed.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::{Duration, Rate};

use crate::serialized::{bps, seconds};

/// Where a run took place.
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
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Live => "live",
        }
    }
}

/// What a real host did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSummary {
    /// The CPU time of its programs and of the kernel on their behalf.
    #[serde(rename = "cpu_s", with = "seconds")]
    pub cpu: Duration,
}

/// How well a network was emulated. A run whose emulation was not faithful says more about the machine
/// than about the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Emulation {
    /// Whether the figures can be believed.
    pub faithful: bool,
    /// Why not, and what else one should know, in words: options that the kernel does not have, for
    /// example.
    pub reasons: Vec<String>,
    /// How late packets left the emulated links: the median.
    #[serde(rename = "lateness_p50_s", with = "seconds")]
    pub lateness_p50: Duration,
    /// 99 % of the packets were not later.
    #[serde(rename = "lateness_p99_s", with = "seconds")]
    pub lateness_p99: Duration,
    /// The latest.
    #[serde(rename = "lateness_max_s", with = "seconds")]
    pub lateness_max: Duration,
    /// By how much links' delays differed from what was asked for: the median.
    #[serde(rename = "delay_error_p50_s", with = "seconds")]
    pub delay_error_p50: Duration,
    /// 99 % of the packets had no larger error.
    #[serde(rename = "delay_error_p99_s", with = "seconds")]
    pub delay_error_p99: Duration,
    /// The ports that always had something to send, by name: how fast they did.
    pub rates: IndexMap<String, AchievedRate>,
    /// The CPU time of the thread that emulated the network.
    #[serde(rename = "switch_cpu_s", with = "seconds")]
    pub switch_cpu: Duration,
}

/// The rate of a busy port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AchievedRate {
    /// What the scenario asks for.
    #[serde(rename = "asked_bps", with = "bps")]
    pub asked: Rate,
    /// What it sent, framing included.
    #[serde(rename = "achieved_bps", with = "bps")]
    pub achieved: Rate,
}
