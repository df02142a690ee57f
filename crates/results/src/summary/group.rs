//! Results of a group of flows.

use serde::{Deserialize, Serialize};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate};

use super::{CompletionTimes, Slowdowns};
use crate::Ratio;
use crate::serialized::{bps, bytes, seconds};

/// The results of a group of flows after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Bytes that arrived in order at the receiving applications, per time, summed over the flows.
    #[serde(rename = "goodput_bps", with = "bps")]
    pub goodput: Rate,
    /// The group's share of all groups' goodput, between 0 and 1.
    pub share: Ratio,
    /// The goodput in bytes of full IP packets, relative to the capacity in such bytes of the slowest link that all
    /// flows of the group cross; absent without such a link, and for transports with variable headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_share: Option<Ratio>,
    /// The number of flows.
    pub flows: u64,
    /// Connections that began without a handshake, those of the warm-up included; only for DCQUIC with
    /// `known_peers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_without_handshake: Option<u64>,
    /// The delivered bytes from which the goodput is computed.
    #[serde(rename = "delivered_bytes", with = "bytes")]
    pub delivered: ByteSize,
    /// Segments or datagrams that the senders retransmitted.
    pub retransmits: u64,
    /// Retransmission time-outs that fired.
    pub timeouts: u64,
    /// Flows that had a retransmission time-out.
    #[serde(default)]
    pub flows_with_timeout: u64,
    /// Packets that arrived at the receivers with a CE mark.
    pub marks: u64,
    /// Completed transfers of a given size.
    pub completed: u64,
    /// Transfers that had begun and were not complete at the end, or when their group stopped or their connection
    /// failed. Their times are not among the completion times.
    #[serde(default)]
    pub unfinished: u64,
    /// Their completion times, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionTimes>,
    /// Transfers that missed their deadline, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines_missed: Option<u64>,
    /// The completion times in relation to those on the empty network, if the group has transfers with a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Slowdowns>,
    /// Jain's index ([`Ratio::fairness`]) of the goodputs of the flows without an end of their own, each over the
    /// time from its start, or from the end of the warm-up, until it stopped. Absent if there are no such flows, or
    /// if none had any goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Ratio>,
    /// The results of its synchronized requests, if that is its workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<EpochSummary>,
}

impl GroupSummary {
    /// Returns the summary of a group with these counters over `span`; all other fields are empty.
    pub fn of(counters: &FlowCounters, span: Duration) -> Self {
        Self {
            goodput: counters.goodput(span),
            delivered: counters.delivered,
            retransmits: counters.retransmits,
            timeouts: counters.timeouts,
            marks: counters.marks,
            ..Self::default()
        }
    }
}

/// The results of a group's synchronized requests after the warm-up. An epoch is one request of
/// each flow. Its completion time is that of its slowest flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochSummary {
    /// Completed epochs.
    pub count: u64,
    /// The sum of their completion times.
    #[serde(rename = "total_s", with = "seconds")]
    pub total: Duration,
    /// Abandoned requests.
    pub lost: u64,
}
