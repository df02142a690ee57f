//! Results of a port.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::ByteSize;

use crate::Ratio;
use crate::serialized::bytes;

/// The results of a port of a switch or host after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortSummary {
    /// Packets sent.
    pub packets: u64,
    /// The sum of their IP lengths.
    #[serde(with = "bytes")]
    pub bytes: ByteSize,
    /// Packets that the port's queue marked with CE.
    pub marks: u64,
    /// Packets that were dropped, by reason.
    pub drops: Drops,
    /// The time average of the queue's length in IP bytes.
    #[serde(rename = "queue_mean_bytes", with = "bytes")]
    pub queue_mean: ByteSize,
    /// The queue's length in IP bytes: median over time.
    #[serde(rename = "queue_p50_bytes", with = "bytes")]
    pub queue_p50: ByteSize,
    /// The queue's length in IP bytes: 99th percentile over time.
    #[serde(rename = "queue_p99_bytes", with = "bytes")]
    pub queue_p99: ByteSize,
    /// The queue's length in IP bytes: maximum.
    #[serde(rename = "queue_max_bytes", with = "bytes")]
    pub queue_max: ByteSize,
    /// The fraction of the time in which the link was sending, between 0 and 1.
    pub utilization: Ratio,
}

/// Declares the drop reasons, in the order in which they are written.
macro_rules! drops {
    ($($(#[$doc:meta])+ $reason:ident,)+) => {
        /// Dropped packets by reason.
        #[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Drops {
            $($(#[$doc])+ pub $reason: u64,)+
        }

        impl Drops {
            /// Returns each reason's name, as written, and its count.
            pub const fn by_reason(&self) -> [(&'static str, u64); [$(stringify!($reason)),+].len()] {
                [$((stringify!($reason), self.$reason)),+]
            }

            /// Combines these counts with others, reason by reason, with `count`.
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
    /// CoDel, as the packet left the queue.
    #[serde(default, skip_serializing_if = "is_zero")]
    codel,
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
    /// Dropped by an element in the switch's path.
    element,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The reason `codel` is left out where nothing was dropped for it, as in files: few networks have CoDel, and
/// what is written about the others stays as it is.
impl fmt::Debug for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut drops = f.debug_struct("Drops");
        for (reason, count) in self.by_reason() {
            if reason != "codel" || count > 0 {
                drops.field(reason, &count);
            }
        }
        drops.finish()
    }
}

impl Drops {
    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        let counts = self.by_reason().map(|(_, count)| count);
        counts.into_iter().fold(0, u64::saturating_add)
    }
}
