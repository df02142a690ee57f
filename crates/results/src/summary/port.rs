//! What went through a port.

use serde::{Deserialize, Serialize};
use weir_units::ByteSize;

use crate::Ratio;
use crate::serialized::bytes;

/// What went through a port of a switch or host after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortSummary {
    /// Packets that left.
    pub packets: u64,
    /// Their IP lengths, summed.
    #[serde(with = "bytes")]
    pub bytes: ByteSize,
    /// Packets that the port's queue marked with CE.
    pub marks: u64,
    /// Packets that were dropped, by reason.
    pub drops: Drops,
    /// The queue's length in IP bytes, averaged over time.
    #[serde(rename = "queue_mean_bytes", with = "bytes")]
    pub queue_mean: ByteSize,
    /// Half of the time the queue was this long or shorter.
    #[serde(rename = "queue_p50_bytes", with = "bytes")]
    pub queue_p50: ByteSize,
    /// 99 % of the time the queue was this long or shorter.
    #[serde(rename = "queue_p99_bytes", with = "bytes")]
    pub queue_p99: ByteSize,
    /// The longest queue.
    #[serde(rename = "queue_max_bytes", with = "bytes")]
    pub queue_max: ByteSize,
    /// The part of the time in which the link was sending, between 0 and 1.
    pub utilization: Ratio,
}

/// Dropped packets by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Random early detection.
    pub red: u64,
    /// Above the class's drop-tail threshold.
    pub tail: u64,
    /// The buffer was full.
    pub buffer: u64,
    /// Longer than the link's MTU.
    pub mtu: u64,
    /// Lost at random on the link.
    pub loss: u64,
    /// The link was down.
    pub down: u64,
    /// Damaged on the link.
    pub corruption: u64,
    /// By an element in the switch's path.
    pub element: u64,
}

impl Drops {
    /// Each reason's name, as it is written, with its count.
    pub const fn by_reason(&self) -> [(&'static str, u64); 8] {
        [
            ("red", self.red),
            ("tail", self.tail),
            ("buffer", self.buffer),
            ("mtu", self.mtu),
            ("loss", self.loss),
            ("down", self.down),
            ("corruption", self.corruption),
            ("element", self.element),
        ]
    }

    /// For any reason.
    pub fn total(&self) -> u64 {
        let counts = self.by_reason().map(|(_, count)| count);
        counts.into_iter().fold(0, u64::saturating_add)
    }
}
