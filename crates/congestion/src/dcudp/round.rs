//! What the acknowledgments of a round trip say, put together: DCUDP's receiver reports once in each, and
//! transports that acknowledge more often are read as if they did not.

use weir_units::{ByteSize, Time};

use crate::AckSample;

/// A round trip so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTripCounts {
    /// When the one before ended; unknown for the first.
    pub(super) began: Option<Time>,
    pub(super) acked: ByteSize,
    marked: ByteSize,
    echo: bool,
    pub(super) app_limited: bool,
}

impl RoundTripCounts {
    /// Takes an acknowledgment in. The whole round trip, if it has ended.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> Option<Self> {
        self.acked += ack.acked;
        self.marked += ack.ce_marked;
        self.echo |= ack.ece;
        self.app_limited |= ack.app_limited;
        if !ack.round_ended {
            return None;
        }
        let next = Self {
            began: Some(ack.now),
            ..Self::default()
        };
        Some(std::mem::replace(self, next))
    }

    /// Whether anything was marked.
    pub(super) fn is_marked(&self) -> bool {
        self.echo || !self.marked.is_zero()
    }

    /// The marked fraction. With an echo instead of a count it is the whole.
    pub(super) fn fraction(&self) -> f64 {
        if self.echo || self.acked.is_zero() {
            return f64::from(u8::from(self.is_marked()));
        }
        (self.marked.bytes() as f64 / self.acked.bytes() as f64).min(1.0)
    }
}
