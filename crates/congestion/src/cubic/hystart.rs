//! HyStart as in Linux (`tcp_cubic.c`; Ha and Rhee 2011): leaves slow start before losses occur.
//!
//! Two signs end it. The ACKs of a round trip have come without a gap for so long that they fill the
//! path. Or the round-trip time has risen above the smallest one.

use weir_units::{ByteSize, Duration, Time};

use crate::AckSample;
use crate::round::RoundTripCounter;

/// Linux: `HYSTART_MIN_SAMPLES`, the samples of a round trip before its minimum counts.
const RTT_SAMPLES: u32 = 8;
/// Linux: the rise that counts is an eighth of the smallest round-trip time, within its limits.
const RTT_DIVISOR: u64 = 8;
/// Linux: `hystart_ack_delay`, the most that large segments may delay a train of ACKs.
const MOST_AGGREGATION: Duration = Duration::from_millis(1);
/// Linux: four segments of 64 KB. One is with the sender's interface, one with the receiver's; the
/// pacing rate of slow start is twice the real one.
const AGGREGATED: ByteSize = ByteSize::from_kib(4 * 64);

#[derive(Clone, Debug)]
pub(super) struct HyStart {
    limits: Limits,
    rounds: RoundTripCounter,
    round_start: Time,
    /// The time of the last ACK of the train.
    last_ack: Time,
    /// The smallest round-trip time of this round trip.
    this_round: Duration,
    samples: u32,
}

/// The parameters, with Linux's names as far as they have any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The limits of the rise of the round-trip time that ends slow start.
    pub(super) min_threshold: Duration,
    pub(super) max_threshold: Duration,
    /// `hystart_low_window`, in packets: smaller windows grow in any case.
    pub(super) low_window: u64,
    /// `hystart_ack_delta`: a longer gap between two ACKs ends a train.
    pub(super) ack_delta: Duration,
    /// Whether packets are paced, so that even a short train takes half of a round trip.
    pub(super) is_paced: bool,
}

impl HyStart {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            rounds: RoundTripCounter::default(),
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            this_round: Duration::MAX,
            samples: 0,
        }
    }

    /// Starts a new slow start without any round trip known.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Returns whether slow start ends with this acknowledgment, at a window of `cwnd`.
    pub(super) fn ends_slow_start(
        &mut self,
        ack: &AckSample,
        cwnd: ByteSize,
        packet: ByteSize,
    ) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        self.rounds.on_ack(ack);
        if self.rounds.is_start {
            (self.round_start, self.last_ack) = (ack.now, ack.now);
            (self.this_round, self.samples) = (Duration::MAX, 0);
        }
        if cwnd < packet * self.limits.low_window {
            return false;
        }
        let fills_the_path = self.train_fills_the_path(ack, cwnd);
        let has_risen = self.rtt_has_risen(rtt, ack.min_rtt);
        fills_the_path || has_risen
    }

    fn train_fills_the_path(&mut self, ack: &AckSample, cwnd: ByteSize) -> bool {
        if ack.now.since(self.last_ack) > self.limits.ack_delta {
            return false;
        }
        self.last_ack = ack.now;
        let twice_cwnd = cwnd.bytes().max(1) as f64 * 2.0;
        let aggregation = ack
            .smoothed_rtt
            .mul_f64(AGGREGATED.bytes() as f64 / twice_cwnd);
        let whole = ack.min_rtt + aggregation.min(MOST_AGGREGATION);
        let threshold = if self.limits.is_paced {
            whole
        } else {
            whole / 2
        };
        ack.now.since(self.round_start) > threshold
    }

    fn rtt_has_risen(&mut self, rtt: Duration, min_rtt: Duration) -> bool {
        self.this_round = self.this_round.min(rtt);
        if self.samples < RTT_SAMPLES {
            self.samples += 1;
            return false;
        }
        let Limits {
            min_threshold,
            max_threshold,
            ..
        } = self.limits;
        let rise = (min_rtt / RTT_DIVISOR).clamp(min_threshold, max_threshold);
        self.this_round > min_rtt + rise
    }
}
