//! Decides whether an ACK may wait for more packets than one receive batch.
//!
//! An ACK costs both ends a system call and the sender a wake-up, so a sender with a large window
//! needs few of them. A sender with a small window stalls without them, and a receiver does not
//! know the window. A Weir peer asks for an ACK when its window is full. With others the receiver
//! probes: at first every batch is acknowledged, then ACKs wait for a while. If the expected packets
//! do not arrive in time, the sender is probably waiting. Batches are then acknowledged at once
//! again for a number of packets, which doubles after each such failure to keep stalls rare.
//!
//! With CE marks no ACK waits: each mark is acknowledged at once. With few ACKs, marks would
//! determine where a controller's observation windows end and bias its CE fraction.

use weir_units::Time;

/// The first packets, whose batches are acknowledged at once while the sender's window opens.
const BEGINNING: u64 = 128;
/// The smallest and the largest number of packets acknowledged at once after a failure.
const PENALTY: std::ops::RangeInclusive<u64> = 256..=65_536;
/// Packets after a CE mark whose batches are acknowledged at once.
const MARKED: u64 = 1024;
/// The most bytes for which an ACK waits.
const MOST_BYTES: u64 = 128 * 1024;

#[derive(Clone, Debug)]
pub(super) struct AckAggregation {
    /// For how many more packets batches are acknowledged at once.
    immediate_acks_left: u64,
    penalty: u64,
    /// Bytes since the last ACK.
    bytes: u64,
    /// An ACK waits for expected packets.
    pub(super) awaiting_packets: bool,
}

impl AckAggregation {
    pub(super) fn new() -> Self {
        Self {
            immediate_acks_left: BEGINNING,
            penalty: *PENALTY.start(),
            bytes: 0,
            awaiting_packets: false,
        }
    }

    /// Records an ack-eliciting packet.
    pub(super) fn on_received(&mut self) {
        self.immediate_acks_left = self.immediate_acks_left.saturating_sub(1);
    }

    /// Records a packet with a CE mark.
    pub(super) fn on_marked(&mut self) {
        self.immediate_acks_left = self.immediate_acks_left.max(MARKED);
    }

    /// Handles the end of a batch of this many bytes, when more may follow. `true`: acknowledge at
    /// once.
    pub(super) fn on_batch(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.bytes >= MOST_BYTES {
            self.succeeded();
            return true;
        }
        self.awaiting_packets = self.immediate_acks_left == 0;
        !self.awaiting_packets
    }

    /// Records that the expected packets arrived.
    pub(super) fn succeeded(&mut self) {
        if std::mem::take(&mut self.awaiting_packets) {
            self.penalty = (self.penalty / 2).max(*PENALTY.start());
        }
    }

    /// Records a written ACK; `deadline` was its latest time.
    pub(super) fn on_ack_written(&mut self, now: Time, deadline: Option<Time>) {
        self.bytes = 0;
        let late = deadline.is_some_and(|deadline| deadline <= now);
        if std::mem::take(&mut self.awaiting_packets) && late {
            self.immediate_acks_left = self.penalty;
            self.penalty = (self.penalty * 2).min(*PENALTY.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: (Time, Option<Time>) = (Time::from_nanos(9), Some(Time::from_nanos(5)));

    fn receive(gathering: &mut AckAggregation, packets: u64) -> bool {
        (0..packets).for_each(|_| gathering.on_received());
        gathering.on_batch(packets * 1452)
    }

    #[test]
    fn batches_are_acknowledged_at_once_initially_and_aggregated_later() {
        let mut gathering = AckAggregation::new();
        for _ in 0..12 {
            assert!(receive(&mut gathering, 10));
            gathering.on_ack_written(Time::ZERO, None);
        }
        assert!(!receive(&mut gathering, 10));
        assert!(gathering.awaiting_packets);
        assert!(receive(&mut gathering, 90), "128 KiB are enough");
        assert!(!gathering.awaiting_packets);
    }

    #[test]
    fn acks_are_not_aggregated_while_packets_are_marked() {
        let mut gathering = AckAggregation::new();
        receive(&mut gathering, BEGINNING);
        gathering.on_ack_written(Time::ZERO, None);
        gathering.on_marked();
        assert!(receive(&mut gathering, 10));
        (10..MARKED).for_each(|_| gathering.on_received());
        assert!(!receive(&mut gathering, 10));
    }

    #[test]
    fn late_acks_suspend_aggregation_for_doubling_periods() {
        let mut gathering = AckAggregation::new();
        receive(&mut gathering, BEGINNING);
        gathering.on_ack_written(Time::ZERO, None);
        let mut eager = Vec::new();
        for _ in 0..4 {
            assert!(!receive(&mut gathering, 10));
            gathering.on_ack_written(LATE.0, LATE.1);
            let mut packets = 0;
            while receive(&mut gathering, 8) {
                gathering.on_ack_written(Time::ZERO, None);
                packets += 8;
            }
            eager.push(packets + 8);
        }
        assert_eq!(eager, [256, 512, 1024, 2048]);
    }
}
