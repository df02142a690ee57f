//! Whether an acknowledgment may wait for more packets than one receive batch.
//!
//! An ACK costs both ends a system call and the sender a wake-up, so a sender with a large window
//! is better off with few of them. One with a small window stalls without them, and a receiver
//! does not know the window. So it tries: at the beginning every batch is acknowledged; then ACKs
//! gather for a while. If the packets that were hoped for do not come in time, the sender probably
//! waits, and batches are acknowledged at once again for so many packets, twice as many after each
//! such failure, so that the stalls stay rare.
//!
//! Where packets are marked, nothing gathers: a mark is acknowledged at once, so that among few ACKs
//! marks would choose where a controller's observation windows end, and bias its CE fraction.

use weir_units::Time;

/// Packets at the beginning, while the sender's window opens, whose batches are acknowledged.
const BEGINNING: u64 = 128;
/// The smallest and the largest number of packets for which a failure has that repeated.
const PENALTY: std::ops::RangeInclusive<u64> = 256..=65_536;
/// Packets after a CE mark whose batches are acknowledged at once.
const MARKED: u64 = 1024;
/// Bytes for which an ACK waits at most.
const MOST_BYTES: u64 = 128 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Gathering {
    /// For how many more packets batches are acknowledged at once.
    eager_for: u64,
    penalty: u64,
    /// Bytes since the last ACK.
    bytes: u64,
    /// An ACK waits for packets that are hoped for.
    pub(super) hoping: bool,
}

impl Gathering {
    pub(super) fn new() -> Self {
        Self {
            eager_for: BEGINNING,
            penalty: *PENALTY.start(),
            bytes: 0,
            hoping: false,
        }
    }

    /// An ack-eliciting packet came.
    pub(super) fn on_received(&mut self) {
        self.eager_for = self.eager_for.saturating_sub(1);
    }

    /// A packet with a CE mark came.
    pub(super) fn on_marked(&mut self) {
        self.eager_for = self.eager_for.max(MARKED);
    }

    /// A batch with this many bytes ended, and more may follow. `true` where it has to be
    /// acknowledged at once.
    pub(super) fn on_batch(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.bytes >= MOST_BYTES {
            self.succeeded();
            return true;
        }
        self.hoping = self.eager_for == 0;
        !self.hoping
    }

    /// The packets that were hoped for came.
    pub(super) fn succeeded(&mut self) {
        if std::mem::take(&mut self.hoping) {
            self.penalty = (self.penalty / 2).max(*PENALTY.start());
        }
    }

    /// An ACK is written; `deadline` is when it had to be at the latest.
    pub(super) fn on_ack_written(&mut self, now: Time, deadline: Option<Time>) {
        self.bytes = 0;
        let late = deadline.is_some_and(|deadline| deadline <= now);
        if std::mem::take(&mut self.hoping) && late {
            self.eager_for = self.penalty;
            self.penalty = (self.penalty * 2).min(*PENALTY.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: (Time, Option<Time>) = (Time::from_nanos(9), Some(Time::from_nanos(5)));

    fn receive(gathering: &mut Gathering, packets: u64) -> bool {
        (0..packets).for_each(|_| gathering.on_received());
        gathering.on_batch(packets * 1452)
    }

    #[test]
    fn batches_are_acknowledged_at_the_beginning_and_gather_later() {
        let mut gathering = Gathering::new();
        for _ in 0..12 {
            assert!(receive(&mut gathering, 10));
            gathering.on_ack_written(Time::ZERO, None);
        }
        assert!(!receive(&mut gathering, 10));
        assert!(gathering.hoping);
        assert!(receive(&mut gathering, 90), "128 KiB are enough");
        assert!(!gathering.hoping);
    }

    #[test]
    fn nothing_gathers_where_packets_are_marked() {
        let mut gathering = Gathering::new();
        receive(&mut gathering, BEGINNING);
        gathering.on_ack_written(Time::ZERO, None);
        gathering.on_marked();
        assert!(receive(&mut gathering, 10));
        (10..MARKED).for_each(|_| gathering.on_received());
        assert!(!receive(&mut gathering, 10));
    }

    #[test]
    fn a_sender_that_waits_is_acknowledged_at_once_for_longer_and_longer() {
        let mut gathering = Gathering::new();
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
