//! What a group of flows achieved.

use serde::{Deserialize, Serialize};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate};

use super::CompletionTimes;
use crate::Ratio;
use crate::serialized::{bps, bytes, seconds};

/// What a group of flows achieved after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Bytes that arrived in order at the receiving applications, per time, summed over the flows.
    #[serde(rename = "goodput_bps", with = "bps")]
    pub goodput: Rate,
    /// The group's part of all groups' goodput, between 0 and 1.
    pub share: Ratio,
    /// The goodput in bytes of full IP packets, as a part of what the slowest link carries in such bytes;
    /// of transports whose headers do not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_share: Option<Ratio>,
    /// How many flows it has.
    pub flows: u64,
    /// The bytes behind the goodput.
    #[serde(rename = "delivered_bytes", with = "bytes")]
    pub delivered: ByteSize,
    /// Segments, or datagrams, that the senders sent again.
    pub retransmits: u64,
    /// Retransmission time-outs that went off.
    pub timeouts: u64,
    /// Flows that had a retransmission time-out.
    #[serde(default)]
    pub flows_with_timeout: u64,
    /// Packets that arrived at the receivers with a CE mark.
    pub marks: u64,
    /// Transfers of a given size that were completed.
    pub completed: u64,
    /// How long they took, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionTimes>,
    /// Transfers that were not complete by their deadline, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines_missed: Option<u64>,
    /// Jain's index of the flows' goodputs ([`Ratio::fairness`]), if the group has any goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Ratio>,
    /// How its requests in step went, if that is its workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<EpochSummary>,
}

impl GroupSummary {
    /// Of a group whose flows counted this in `span`; all else is left empty.
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

/// How a group's requests in step went after the warm-up. An epoch is one request of each flow; it
/// takes a group as long as the slowest of its flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochSummary {
    /// Epochs that were completed.
    pub count: u64,
    /// How long these took the group, all together.
    #[serde(rename = "total_s", with = "seconds")]
    pub total: Duration,
    /// Requests that were given up.
    pub lost: u64,
}
