//! The summary of an experiment: the contents of `summary.json` and of the `--json` output.

mod change;
mod completion;
mod deadlines;
mod emulation;
mod group;
mod load;
mod port;
mod slowdown;
mod tcon;
#[cfg(test)]
mod tests;

pub use change::ChangeRecord;
pub use completion::CompletionTimes;
pub use deadlines::{DeadlineSummary, PortDeadlines};
pub use emulation::{AchievedRate, Emulation, HostSummary, RunKind};
pub use group::{EpochSummary, GroupSummary};
pub use load::LinkLoad;
pub use port::{Drops, PortSummary};
pub(crate) use slowdown::{SIZE_NAMES, size_end, size_range, size_value, slowdown};
pub use slowdown::{SlowdownStatistics, Slowdowns, TransferTime};
pub use tcon::TconSummary;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::Duration;

use crate::Ratio;
use crate::serialized::seconds;

/// The version of the format. It increases when a key changes its meaning or is removed, but not
/// when keys are added.
pub const SCHEMA_VERSION: u32 = 2;

/// The results of an experiment. Keys are written in the order of declaration, maps in insertion
/// order, so that equal experiments give equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The scenario's title.
    pub title: String,
    /// The reference for the experiment: paper and section, or RFC. Empty if the file has none.
    pub source: String,
    /// The scenario with the file's own values.
    #[serde(flatten)]
    pub run: RunSummary,
    /// The scenario's variants by name.
    pub variants: IndexMap<String, RunSummary>,
}

/// The results of one run of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Simulated or live.
    #[serde(default)]
    pub world: RunKind,
    /// The seed of the random number generator.
    pub seed: u64,
    /// The settings that override the file's values, from the command line or a variant: key and value.
    pub settings: IndexMap<String, String>,
    /// The simulated or emulated time, warm-up included.
    #[serde(rename = "simulated_s", with = "seconds")]
    pub simulated: Duration,
    /// The time at the start that all counters and averages below exclude.
    #[serde(rename = "warm_up_s", with = "seconds")]
    pub warm_up: Duration,
    /// The CPU time of the run. For a simulation, this is the only value that differs between two
    /// runs of the same scenario with the same seed.
    #[serde(rename = "cpu_s", with = "seconds")]
    pub cpu: Duration,
    /// The changes of settings up to its end, in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeRecord>,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// The groups of flows by name.
    pub groups: IndexMap<String, GroupSummary>,
    /// The measured ports by name.
    pub ports: IndexMap<String, PortSummary>,
    /// The loads of classes of links by name, if flows arrive at random.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub loads: IndexMap<String, LinkLoad>,
    /// The counters of switches with transparent congestion control, by name; they include the warm-up.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tcon: IndexMap<String, TconSummary>,
    /// The reduction of one group's completion times against another's, if the scenario asks for it
    /// ([`Self::saved`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Ratio>,
    /// The results of transfers with deadlines, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<DeadlineSummary>,
    /// The hosts by name, if they are real.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hosts: IndexMap<String, HostSummary>,
    /// The accuracy of the emulation, in a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
}

impl RunSummary {
    /// Returns the reduction of the group `of`'s completion times against those of the group
    /// `against`: one minus the quotient of their sums. `None` if one of the two has completed
    /// nothing, or took no time.
    pub fn saved(&self, of: &str, against: &str) -> Option<Ratio> {
        let total = |name| Some(self.groups.get(name)?.completion?.total.as_secs_f64());
        Ratio::new(1.0 - total(of)? / total(against)?)
    }
}

/// The error of reading a summary.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// It is not JSON, or a key is missing or of the wrong type.
    #[error("this is no summary of an experiment: {0}")]
    Format(#[from] serde_json::Error),
    /// The format has another version.
    #[error(
        "this summary has schema_version {found}; this program reads {accepted}",
        accepted = SCHEMA_VERSION
    )]
    Version {
        /// The version of the text.
        found: u32,
    },
}

impl Summary {
    /// A summary without variants.
    pub fn new(title: impl Into<String>, source: impl Into<String>, run: RunSummary) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            title: title.into(),
            source: source.into(),
            run,
            variants: IndexMap::new(),
        }
    }

    /// The text of `summary.json`: JSON over several lines.
    ///
    /// # Errors
    /// Only the serializer's; a summary itself causes none.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// The text is not a summary, or has another version.
    pub fn from_json(text: &str) -> Result<Self, SummaryError> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let Version { schema_version } = serde_json::from_str(text)?;
        if schema_version != SCHEMA_VERSION {
            return Err(SummaryError::Version {
                found: schema_version,
            });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Returns the file's own run, without a name, and the variants with their names.
    pub fn runs(&self) -> impl Iterator<Item = (Option<&str>, &RunSummary)> {
        let variants = self.variants.iter();
        let variants = variants.map(|(name, run)| (Some(name.as_str()), run));
        std::iter::once((None, &self.run)).chain(variants)
    }
}
