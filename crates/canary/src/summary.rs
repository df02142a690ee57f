//! The figures of a group of connections.

use weir_policy::GuardMetric;
use weir_units::ByteSize;

use crate::Estimate;

/// What a group of connections did in some time. A figure is `None` where no connection has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Connections that ended, or were reported as open.
    pub connections: u64,
    /// Of these, those that ended.
    pub completed: u64,
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Data acknowledged.
    pub delivered: ByteSize,
    /// The part of the segments that were retransmissions.
    pub retransmits: Option<Estimate>,
    /// The median of the smoothed round-trip times, in seconds.
    pub rtt: Option<Estimate>,
    /// The median of the minimum round-trip times, in seconds: where it differs between groups that were
    /// drawn at random, their paths differ.
    pub rtt_min: Option<Estimate>,
    /// The median of the delivery rates, in bits per second.
    pub delivery_rate: Option<Estimate>,
    /// The median of the durations of the [short](crate::SHORT) connections that ended, in seconds.
    pub completion: Option<Estimate>,
    /// The 99th percentile of the same.
    pub completion_p99: Option<Estimate>,
    /// The median of the busy parts of the hosts' processors; `None` for the connections of one host.
    pub cpu: Option<Estimate>,
}

impl Summary {
    /// Returns the figures of connections with their names: those of guards, and `rtt_min`.
    pub fn figures(&self) -> [(&'static str, Option<Estimate>); 6] {
        [
            ("retransmits", self.retransmits),
            ("rtt", self.rtt),
            ("rtt_min", self.rtt_min),
            ("delivery_rate", self.delivery_rate),
            ("completion", self.completion),
            ("completion_p99", self.completion_p99),
        ]
    }

    /// Returns the figure that a guard watches.
    pub fn estimate(&self, metric: GuardMetric) -> Option<Estimate> {
        match metric {
            GuardMetric::Retransmits => self.retransmits,
            GuardMetric::Rtt => self.rtt,
            GuardMetric::DeliveryRate => self.delivery_rate,
            GuardMetric::Completion => self.completion,
            GuardMetric::CompletionP99 => self.completion_p99,
            GuardMetric::Cpu => self.cpu,
        }
    }
}
