//! The upper bound of `th_max` (section IV-A.1), for which the packets that senders in UDP Mode
//! send before the first feedback still fit into the switch's buffer:
//!
//! th_max + N (RTT_idle + th_max Delay) / Interval − (RTT_idle + th_max Delay) / Delay ≤ Max_qsize
//!
//! All queues are in packets. `N / Interval` is the arrival rate, `1 / Delay` the departure rate.
//! Both apply while a mark travels to the sender and its effect back: an idle RTT plus the queueing
//! delay of `th_max` packets. This interprets *Delay* as the service time of a packet at the
//! bottleneck. The paper calls it "the average link delay", which as a propagation delay gives a
//! different inequality.

use weir_units::{ByteSize, Duration, Rate};

/// The interpretation of *Delay*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DelayKind {
    /// The service time of a packet at the bottleneck.
    Service,
    /// The propagation delay of a link: a quarter of the idle RTT, for one switch with a link on
    /// either side.
    Propagation,
}

/// A switch and its senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// The rate of the bottleneck link, C.
    pub capacity: Rate,
    /// The buffer of its egress port, Max_qsize.
    pub buffer: ByteSize,
    /// The number of concurrent senders, N.
    pub senders: u32,
    /// The RTT without a queue, RTT_idle.
    pub idle_rtt: Duration,
    /// The rate of each sender in UDP Mode.
    pub sending_rate: Rate,
    /// The packet size, PktSize.
    pub packet_size: ByteSize,
}

/// The solution of the inequality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Any `th_max` up to this many packets, at least one.
    UpTo(u64),
    /// Any `th_max` up to the buffer: the senders together do not exceed the link rate.
    Unlimited,
    /// None: even at a `th_max` of one packet the buffer overflows.
    None,
}

/// An input of the inequality is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` must be above zero")]
pub struct ThresholdError(pub &'static str);

impl Bottleneck {
    /// Returns the largest `th_max` for which the inequality holds.
    ///
    /// # Errors
    /// [`ThresholdError`] if an input is zero.
    pub fn threshold(&self, reading: DelayKind) -> Result<Threshold, ThresholdError> {
        self.validate()?;
        let buffer = self.buffer_packets();
        if self.queue(1, reading)? > buffer {
            return Ok(Threshold::None);
        }
        // The left side is linear in th_max: it holds up to a point, or everywhere.
        let whole = (buffer.floor().max(1.0)) as u64;
        if self.queue(whole, reading)? <= buffer {
            return Ok(Threshold::Unlimited);
        }
        let (mut good, mut bad) = (1, whole);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if self.queue(middle, reading)? <= buffer {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(Threshold::UpTo(good))
    }

    /// Returns the left side: the maximum queue in packets with a threshold of `th_max` packets.
    ///
    /// # Errors
    /// [`ThresholdError`] if an input is zero.
    pub fn queue(&self, th_max: u64, reading: DelayKind) -> Result<f64, ThresholdError> {
        self.validate()?;
        let delay = self.delay(reading).as_secs_f64();
        let interval = self.sending_rate.time_for(self.packet_size).as_secs_f64();
        let deaf = self.idle_rtt.as_secs_f64() + th_max as f64 * delay;
        let arriving = f64::from(self.senders) * deaf / interval;
        Ok(th_max as f64 + arriving - deaf / delay)
    }

    /// Returns *Delay* in this interpretation.
    pub fn delay(&self, reading: DelayKind) -> Duration {
        match reading {
            DelayKind::Service => self.capacity.time_for(self.packet_size),
            DelayKind::Propagation => self.idle_rtt / 4,
        }
    }

    /// Returns the buffer size in packets.
    pub fn buffer_packets(&self) -> f64 {
        self.buffer.bytes() as f64 / self.packet_size.bytes() as f64
    }

    fn validate(&self) -> Result<(), ThresholdError> {
        let quarter = self.idle_rtt / 4;
        let checks = [
            (self.capacity.is_zero(), "capacity"),
            (self.buffer.is_zero(), "buffer"),
            (self.senders == 0, "senders"),
            (quarter.is_zero(), "rtt"),
            (self.sending_rate.is_zero(), "sending-rate"),
            (self.packet_size.is_zero(), "packet-size"),
        ];
        match checks.into_iter().find(|(is_zero, _)| *is_zero) {
            Some((_, name)) => Err(ThresholdError(name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Section V-A.
    const PAPER: Bottleneck = Bottleneck {
        capacity: Rate::from_gbps(1),
        buffer: ByteSize::from_bytes(4_000_000),
        senders: 20,
        idle_rtt: Duration::from_micros(100),
        sending_rate: Rate::from_mbps(1600),
        packet_size: ByteSize::from_bytes(1500),
    };

    #[test]
    fn the_papers_example_matches_a_hand_calculation() {
        // By hand: Delay = 12 us, Interval = 7.5 us, so th + 20 (100 + 12 th) / 7.5 − (100 + 12 th)
        // / 12 = 32 th + 258.33 ≤ 2666.67, and th ≤ 75.26.
        let queue = PAPER.queue(15, DelayKind::Service).unwrap();
        assert!((queue - (32.0 * 15.0 + 258.333_333)).abs() < 1e-3);
        assert_eq!(PAPER.threshold(DelayKind::Service), Ok(Threshold::UpTo(75)));
        // Delay = 25 us: th + 20 (100 + 25 th) / 7.5 − (4 + th) = 66.67 th + 262.67: th ≤ 36.06.
        assert_eq!(
            PAPER.threshold(DelayKind::Propagation),
            Ok(Threshold::UpTo(36))
        );
    }

    #[test]
    fn the_threshold_is_unlimited_for_slow_senders_none_for_small_buffers() {
        let slow = Bottleneck {
            sending_rate: Rate::from_mbps(40),
            ..PAPER
        };
        assert_eq!(slow.threshold(DelayKind::Service), Ok(Threshold::Unlimited));
        let small = Bottleneck {
            buffer: ByteSize::from_bytes(100_000),
            ..PAPER
        };
        assert_eq!(small.threshold(DelayKind::Service), Ok(Threshold::None));
        let nothing = Bottleneck {
            packet_size: ByteSize::ZERO,
            ..PAPER
        };
        assert_eq!(
            nothing.threshold(DelayKind::Service),
            Err(ThresholdError("packet-size"))
        );
    }

    proptest! {
        #[test]
        fn the_threshold_found_is_the_largest_valid_one(
            capacity in 1_u64..400_000, buffer in 1_u64..1 << 32, senders in 1_u32..10_000,
            rtt in 4_u64..1 << 32, sending in 1_u64..400_000, packet in 1_u64..70_000,
            propagation: bool,
        ) {
            let bottleneck = Bottleneck {
                capacity: Rate::from_mbps(capacity),
                buffer: ByteSize::from_bytes(buffer),
                senders,
                idle_rtt: Duration::from_nanos(rtt),
                sending_rate: Rate::from_mbps(sending),
                packet_size: ByteSize::from_bytes(packet),
            };
            let reading = if propagation { DelayKind::Propagation } else { DelayKind::Service };
            let fits = |th_max| {
                bottleneck.queue(th_max, reading).unwrap() <= bottleneck.buffer_packets()
            };
            match bottleneck.threshold(reading).unwrap() {
                Threshold::UpTo(th_max) => prop_assert!(fits(th_max) && !fits(th_max + 1)),
                Threshold::None => prop_assert!(!fits(1)),
                Threshold::Unlimited => prop_assert!(fits(1)),
            }
        }
    }
}
