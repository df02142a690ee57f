//! `[sed]`: a controller that assigns to flows the windows that they need to meet their deadlines.

use serde::Serialize;
use weir_scenario_derive::{Keys, Word};
use weir_units::{Duration, Rate};

use crate::Level;
use crate::document::Reported;
use crate::schema::{Accepts, Fields};

/// Options of SED and RSED: agents in all switches, and one controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[keys(
    title = "[sed]",
    doc = "SED and RSED (docs/sed.md): an agent in each switch, and a controller that gives the flows of \
           congested ports the windows with which they meet their `deadline`. It acts upon TCP with a \
           handshake.",
    check = table.check(fields)
)]
pub struct SedOptions {
    /// K: at this length a port's queue becomes congested; packets count as 1500 B.
    #[key(default = "30 packets", by = read_threshold(fields))]
    pub threshold: Level,
    /// Below this length a port's queue is no longer congested; the paper uses K here too.
    #[key(absent = "half of `threshold`")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Level>,
    /// The round-trip time of the empty network.
    #[key(accepts = Accepts::POSITIVE_SPAN, first)]
    pub rtt: Duration,
    /// RTT_avg in equation 3: `rtt`, or `rtt` + K/C.
    #[key(default = "base")]
    pub total_rtt: RttAverage,
    /// RTT_avg in equation 4.
    #[key(default = "loaded")]
    pub flow_rtt: RttAverage,
    /// The window allocation: the earliest deadline first without stopping a flow, the paper's
    /// Algorithm 2, or admission and turns.
    #[key(default = "earliest-deadline")]
    pub allocation: SedAllocation,
    /// The minimum window of a flow without deadline, in segments, with `paper` and `planned`.
    #[key(
        accepts = Accepts::Count(0, 1000),
        absent = "`1`",
        by = read_base(fields)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u32>,
    /// The least share of all flows without deadline together, in percent, with `earliest-deadline`.
    #[key(
        accepts = Accepts::Count(0, 100),
        absent = "`5`",
        by = read_best_effort(fields)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_effort: Option<u32>,
    /// Whether late flows share the remaining capacity, or are stopped.
    #[key(default = "spare")]
    pub late: SedLate,
    /// RSED: whether the switch reports a dropped packet, so that its sender retransmits it.
    #[key(default = false)]
    pub retransmit: bool,
    /// The time for which a window stays valid without a message from the controller.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "2s")]
    pub lease: Duration,
    /// The interval of the agents' progress reports to the controller while a queue is congested.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "1ms")]
    pub counters_interval: Duration,
    /// The latency of a message between a switch and the controller, without its transmission time.
    #[key(accepts = Accepts::SPAN, default = "100us")]
    pub latency: Duration,
    /// The rate of the channel between a switch and the controller, in each direction.
    #[key(default = "1Gbps")]
    pub rate: Rate,
}

/// Which round-trip time RTT_avg is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum RttAverage {
    /// The round-trip time of the empty network.
    Base,
    /// The round-trip time with the queue at the threshold.
    Loaded,
}

/// The algorithm that allocates windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum SedAllocation {
    /// The earliest deadline first among those that can be met; no flow is stopped.
    EarliestDeadline,
    /// The paper's Algorithm 2.
    Paper,
    /// Admission and turns.
    Planned,
}

/// The policy for late flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum SedLate {
    /// They share the remaining capacity.
    Spare,
    /// They are stopped.
    Stop,
}

impl SedOptions {
    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        let (lease, latency) = (self.lease, self.latency);
        if lease / 3 <= latency {
            return Err(fields.error_position("lease").conflict(
                format!("a lease of {lease} runs out while it is renewed, which takes {latency}"),
                "set a `lease` of more than three times the `latency`",
            ));
        }
        Ok(())
    }
}

/// Reads the minimum window, which `paper` and `planned` have.
fn read_base(fields: &Fields<'_>) -> Result<Option<u32>, Reported> {
    match (fields.get("allocation")?, fields.at("base")) {
        (SedAllocation::EarliestDeadline, Some(written)) => Err(written.conflict(
            "the allocation `earliest-deadline` gives flows without deadline a share, no number of segments",
            "set `best_effort`, or `allocation` to `paper` or `planned`",
        )),
        (SedAllocation::EarliestDeadline, None) => Ok(None),
        (SedAllocation::Paper | SedAllocation::Planned, _) => {
            Ok(Some(fields.optional("base")?.unwrap_or(1)))
        }
    }
}

/// Reads the least share, which `earliest-deadline` has.
fn read_best_effort(fields: &Fields<'_>) -> Result<Option<u32>, Reported> {
    match (fields.get("allocation")?, fields.at("best_effort")) {
        (SedAllocation::Paper | SedAllocation::Planned, Some(written)) => Err(written.conflict(
            "only the allocation `earliest-deadline` has a share for flows without deadline",
            "set `base`, or remove `allocation`",
        )),
        (SedAllocation::Paper | SedAllocation::Planned, None) => Ok(None),
        (SedAllocation::EarliestDeadline, _) => {
            Ok(Some(fields.optional("best_effort")?.unwrap_or(5)))
        }
    }
}

fn read_threshold(fields: &Fields<'_>) -> Result<Level, Reported> {
    let threshold: Level = fields.get("threshold")?;
    if threshold.is_zero() {
        return Err(fields.error_position("threshold").conflict(
            "an empty queue would be congested",
            "set a `threshold` of one packet or more",
        ));
    }
    Ok(threshold)
}
