//! The interarrival jitter of data packets (RFC 3550, section 6.4.1).

use weir_units::{Duration, Time};

use crate::packet::Timestamp;

/// The weight of a new difference is one in this many.
const WEIGHT: i64 = 16;

/// The mean deviation of the spacing of packets at the receiver from that at the sender. A batch has one
/// time at each end, so batching counts as jitter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InterarrivalJitter {
    last: Option<(Time, Timestamp)>,
    nanos: i64,
}

impl InterarrivalJitter {
    /// Records a data packet with its sender's timestamp.
    pub(crate) fn on_packet(&mut self, now: Time, sent: Timestamp) {
        let Some((last_now, last_sent)) = self.last.replace((now, sent)) else {
            return;
        };
        // Timestamps wrap around, and a retransmission or an overtaken packet may carry an older one.
        let sent_apart = i64::from(sent.0.wrapping_sub(last_sent.0).cast_signed()) * 1000;
        let arrived_apart = i64::try_from(now.since(last_now).as_nanos()).unwrap_or(i64::MAX);
        let difference = arrived_apart.saturating_sub(sent_apart).saturating_abs();
        self.nanos += (difference - self.nanos) / WEIGHT;
    }

    pub(crate) fn value(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter(packets: &[(u64, u32)]) -> u64 {
        let mut jitter = InterarrivalJitter::default();
        for (arrived, sent) in packets {
            let now = Time::ZERO + Duration::from_micros(*arrived);
            jitter.on_packet(now, Timestamp(*sent));
        }
        jitter.value().as_nanos()
    }

    #[test]
    fn equal_spacing_has_no_jitter_and_a_delay_counts_a_sixteenth() {
        assert_eq!(jitter(&[(0, 7), (100, 107), (250, 257)]), 0);
        assert_eq!(jitter(&[(0, 7), (132, 107)]), 2000);
        assert_eq!(jitter(&[(0, u32::MAX - 9), (100, 90)]), 0);
        // The second packet was sent before the first.
        assert_eq!(jitter(&[(0, 107), (10, 101)]), 1000);
    }
}
