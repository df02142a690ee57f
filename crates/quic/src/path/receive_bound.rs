//! The bound on bytes in flight by the peer's receive buffer.
//!
//! While the peer does not read, everything in flight ends up in the buffer of its socket, and what does
//! not fit is lost. So at most as much is in flight as that buffer takes, and as much more as the network
//! itself holds: the highest delivery rate so far times the smallest RTT. A first flight, without a
//! sample, has the buffer alone. Each round trip may add another buffer to it, so that long paths fill.

use weir_units::{ByteSize, Duration, Rate};

/// The smallest bound: the initial window that every receiver must be able to take (RFC 9002, section
/// 7.2).
const SMALLEST: ByteSize = ByteSize::from_bytes(14_720);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveBound {
    /// What the peer's buffer takes; `None` where the peer does not say.
    buffer: Option<ByteSize>,
    /// What the network holds.
    carried: ByteSize,
}

impl ReceiveBound {
    pub(crate) fn of(buffer: Option<u64>) -> Self {
        Self {
            buffer: buffer.map(|bytes| ByteSize::from_bytes(bytes).max(SMALLEST)),
            carried: ByteSize::ZERO,
        }
    }

    /// Returns the most bytes in flight.
    pub(crate) fn limit(&self) -> Option<ByteSize> {
        let buffer = self.buffer?;
        let limit = buffer.bytes().saturating_add(self.carried.bytes());
        Some(ByteSize::from_bytes(limit))
    }

    /// Takes a sample of the delivery rate.
    pub(crate) fn on_delivery(&mut self, rate: Rate, smallest_rtt: Duration) {
        if self.buffer.is_some() {
            self.carried = self.carried.max(rate.size_in(smallest_rtt));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_flight_fits_the_buffer_and_later_ones_what_the_network_holds_too() {
        let buffer = ByteSize::from_bytes(100_000);
        let mut bound = ReceiveBound::of(Some(buffer.bytes()));
        assert_eq!(bound.limit(), Some(buffer));
        let sample = (Rate::from_gbps(8), Duration::from_micros(50));
        bound.on_delivery(sample.0, sample.1);
        assert_eq!(bound.limit(), Some(ByteSize::from_bytes(150_000)));
        bound.on_delivery(Rate::from_gbps(1), sample.1);
        assert_eq!(bound.limit(), Some(ByteSize::from_bytes(150_000)));
    }

    #[test]
    fn no_peer_stops_the_sender_and_one_that_says_nothing_is_no_bound() {
        assert_eq!(ReceiveBound::of(Some(0)).limit(), Some(SMALLEST));
        let mut largest = ReceiveBound::of(Some(u64::MAX));
        largest.on_delivery(Rate::MAX, Duration::from_secs(1));
        assert_eq!(largest.limit(), Some(ByteSize::from_bytes(u64::MAX)));
        assert_eq!(ReceiveBound::of(None).limit(), None);
    }
}
