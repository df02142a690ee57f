//! The summary of an experiment: what `summary.json` holds and `--json` prints.

mod completion;
mod deadlines;
mod emulation;
mod group;
mod port;
mod tcon;
#[cfg(test)]
mod tests;

pub use completion::CompletionTimes;
pub use deadlines::{DeadlineSummary, PortDeadlines};
pub use emulation::{AchievedRate, Emulation, HostSummary, RunKind};
pub use group::{EpochSummary, GroupSummary};
pub use port::{Drops, PortSummary};
pub use tcon::TconSummary;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::Duration;

use crate::Ratio;
use crate::serialized::seconds;

/// The version of the format. It grows when a key changes its meaning or goes away; keys may be added
/// without.
pub const SCHEMA_VERSION: u32 = 1;

/// What an experiment gave. Keys are written in the order of declaration, maps in the order in which
/// they were filled, so that equal experiments give equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The scenario's title.
    pub title: String,
    /// Where the experiment comes from: paper and section, RFC; empty if it says nothing.
    pub source: String,
    /// The scenario with the file's own values.
    #[serde(flatten)]
    pub run: RunSummary,
    /// The scenario's variants by name.
    pub variants: IndexMap<String, RunSummary>,
}

/// What one run of a scenario gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Where it took place.
    #[serde(default)]
    pub world: RunKind,
    /// The seed of all randomness.
    pub seed: u64,
    /// What was set over the file's values, by command line or variant: key and value.
    pub settings: IndexMap<String, String>,
    /// How much time was simulated, or went by in an emulated network, with the warm-up.
    #[serde(rename = "simulated_s", with = "seconds")]
    pub simulated: Duration,
    /// How much of it, from the start, is left out of all counters and averages below.
    #[serde(rename = "warm_up_s", with = "seconds")]
    pub warm_up: Duration,
    /// The CPU time that the run took: of a simulation the only value that differs between two runs of
    /// the same scenario with the same seed.
    #[serde(rename = "cpu_s", with = "seconds")]
    pub cpu: Duration,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// The groups of flows by name.
    pub groups: IndexMap<String, GroupSummary>,
    /// The measured ports by name.
    pub ports: IndexMap<String, PortSummary>,
    /// What switches with transparent congestion control did, by name; the warm-up is counted too.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tcon: IndexMap<String, TconSummary>,
    /// Which part of one group's completion times another one saved, where the scenario asks for it
    /// ([`Self::saved`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Ratio>,
    /// How transfers with deadlines went, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<DeadlineSummary>,
    /// The hosts by name, where they are real.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hosts: IndexMap<String, HostSummary>,
    /// How well the network was emulated, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
}

impl RunSummary {
    /// Which part of the group `against`'s completion times the group `of` saved: one less the
    /// quotient of their sums. `None` where one of the two has completed nothing, or took no time.
    pub fn saved(&self, of: &str, against: &str) -> Option<Ratio> {
        let total = |name| Some(self.groups.get(name)?.completion?.total.as_secs_f64());
        Ratio::new(1.0 - total(of)? / total(against)?)
    }
}

/// Why a text is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// It is not JSON, or a key is missing or of the wrong type.
    #[error("this is no summary of an experiment: {0}")]
    Format(#[from] serde_json::Error),
    /// Another version of the format.
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
    /// None that a summary can cause; those of the serializer.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// Text that is no summary, and one of another version.
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

    /// The file's own run, without a name, and the variants with theirs.
    pub fn runs(&self) -> impl Iterator<Item = (Option<&str>, &RunSummary)> {
        let variants = self.variants.iter();
        let variants = variants.map(|(name, run)| (Some(name.as_str()), run));
        std::iter::once((None, &self.run)).chain(variants)
    }
}
