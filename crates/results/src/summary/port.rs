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

/// Declares the reasons for drops, in the order in which they are written.
macro_rules! drops {
    ($($(#[$doc:meta])+ $reason:ident,)+) => {
        /// Dropped packets by reason.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Drops {
            $($(#[$doc])+ pub $reason: u64,)+
        }

        impl Drops {
            /// Each reason's name, as it is written, with its count.
            pub const fn by_reason(&self) -> [(&'static str, u64); [$(stringify!($reason)),+].len()] {
                [$((stringify!($reason), self.$reason)),+]
            }

            /// For each reason, the `count` that these and others come to.
            #[must_use]
            pub fn with(self, other: Self, count: impl Fn(u64, u64) -> u64) -> Self {
                Self { $($reason: count(self.$reason, other.$reason),)+ }
            }
        }
    };
}

drops! {
    /// Random early detection.
    red,
    /// Above the class's drop-tail threshold.
    tail,
    /// The buffer was full.
    buffer,
    /// Longer than the link's MTU.
    mtu,
    /// Lost at random on the link.
    loss,
    /// The link was down.
    down,
    /// Damaged on the link.
    corruption,
    /// By an element in the switch's path.
    element,
}

impl Drops {
    /// For any reason.
    pub fn total(&self) -> u64 {
        let counts = self.by_reason().map(|(_, count)| count);
        counts.into_iter().fold(0, u64::saturating_add)
    }
}
