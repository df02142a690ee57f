//! The status of rules that are tried, for people and programs to read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_canary::{CanaryReport, Comparison, Difference, Estimate, RECENT, Summary};
use weir_policy::Share;
use weir_units::Time;

/// A rule that is tried on a part of the connections, or has guards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CanaryStatus {
    /// Its line in the policy file.
    pub line: u32,
    /// The part of the connections that it is tried on.
    pub share: f64,
    /// Whether the others are measured for comparison.
    pub is_compared: bool,
    /// That a guard has taken it back; absent if it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<UndoneStatus>,
    /// The figures of the last seconds.
    pub recent: PeriodStatus,
    /// The figures since the rule came into force.
    pub total: PeriodStatus,
}

/// That a guard has taken a rule back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UndoneStatus {
    /// How long ago, in milliseconds.
    pub ms_ago: u64,
    /// The condition, and the figures for which it held.
    pub reason: String,
}

/// The figures of some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeriodStatus {
    /// The time in seconds; absent since the rule came into force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Those of the connections that get the rule's action.
    pub treated: GroupStatus,
    /// Those of the connections that are left alone.
    pub control: GroupStatus,
    /// The differences, treated minus control, by the names of the figures.
    pub differences: BTreeMap<String, IntervalStatus>,
}

/// The figures of a group of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Connections that ended or were open.
    pub connections: u64,
    /// Connections that ended.
    pub completed: u64,
    /// Segments with data sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Bytes acknowledged.
    pub delivered: u64,
    /// The figures by name: `retransmits` as a part of 1; `rtt`, `rtt_min`, `completion` and
    /// `completion_p99` in seconds; `delivery_rate` in bits per second.
    pub figures: BTreeMap<String, IntervalStatus>,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalStatus {
    /// The estimate.
    pub value: f64,
    /// The lower end; absent if there is none, for lack of connections.
    pub low: Option<f64>,
    /// The upper end; absent if there is none, for lack of connections.
    pub high: Option<f64>,
}

impl CanaryStatus {
    pub(crate) fn of(report: CanaryReport, now: Time) -> Self {
        let undone = report.undone.map(|undone| UndoneStatus {
            ms_ago: now.since(undone.at).as_millis(),
            reason: undone.evidence.to_string(),
        });
        let seconds = RECENT.as_millis() / 1000;
        Self {
            line: report.line,
            share: report.share.map_or(1.0, Share::fraction),
            is_compared: report.is_compared,
            undone,
            recent: PeriodStatus::of(&report.recent, Some(seconds)),
            total: PeriodStatus::of(&report.total, None),
        }
    }
}

impl PeriodStatus {
    fn of(comparison: &Comparison, seconds: Option<u64>) -> Self {
        let Comparison { treated, control } = comparison;
        let pairs = treated.figures().into_iter().zip(control.figures());
        let difference = |((name, treated), (_, control)): ((&str, _), (_, Option<Estimate>))| {
            let treated: Option<Estimate> = treated;
            let difference = treated?.minus(1.0, &control?);
            Some((name.to_owned(), difference.into()))
        };
        Self {
            seconds,
            treated: treated.into(),
            control: control.into(),
            differences: pairs.filter_map(difference).collect(),
        }
    }
}

impl From<&Summary> for GroupStatus {
    fn from(summary: &Summary) -> Self {
        let figures = summary.figures().into_iter();
        let known = figures.filter_map(|(name, figure)| Some((name.to_owned(), figure?.into())));
        Self {
            connections: summary.connections,
            completed: summary.completed,
            segments_sent: summary.segments_sent,
            segments_retransmitted: summary.segments_retransmitted,
            delivered: summary.delivered.bytes(),
            figures: known.collect(),
        }
    }
}

impl From<Estimate> for IntervalStatus {
    fn from(estimate: Estimate) -> Self {
        Self::new(estimate.value, estimate.low, estimate.high)
    }
}

impl From<Difference> for IntervalStatus {
    fn from(difference: Difference) -> Self {
        Self::new(difference.value, difference.low, difference.high)
    }
}

impl IntervalStatus {
    fn new(value: f64, low: f64, high: f64) -> Self {
        let finite = |end: f64| end.is_finite().then_some(end);
        Self {
            value,
            low: finite(low),
            high: finite(high),
        }
    }
}
