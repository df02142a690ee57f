//! Sums over the acknowledgments of a round trip. DCUDP's receiver reports once per round trip;
//! more frequent acknowledgments of other transports are combined.

use weir_units::{ByteSize, Time};

use crate::AckSample;

/// The counts of the current round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTripCounts {
    /// End of the previous round trip; unknown for the first.
    pub(crate) began: Option<Time>,
    pub(crate) acked: ByteSize,
    marked: ByteSize,
    echo: bool,
    pub(crate) app_limited: bool,
}

impl RoundTripCounts {
    /// Adds an acknowledgment. Returns the counts if it ends the round trip.
    pub(crate) fn on_ack(&mut self, ack: &AckSample) -> Option<Self> {
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

    /// Returns whether anything was marked.
    pub(crate) fn is_marked(&self) -> bool {
        self.echo || !self.marked.is_zero()
    }

    /// Returns the marked fraction; 1 with an echo instead of a count.
    pub(crate) fn fraction(&self) -> f64 {
        if self.echo || self.acked.is_zero() {
            return f64::from(u8::from(self.is_marked()));
        }
        (self.marked.bytes() as f64 / self.acked.bytes() as f64).min(1.0)
    }
}
