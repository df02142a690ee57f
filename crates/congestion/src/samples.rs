//! Events for the algorithms' unit tests: times in microseconds, amounts in packets.

use weir_units::{ByteSize, Duration, Time};

use crate::{AckSample, AlgorithmSpec, Context, Controller, LossCause, LossSample, SpuriousLoss};

pub(crate) const PACKET: ByteSize = ByteSize::from_bytes(1_500);
pub(crate) const CONTEXT: Context = Context {
    packet_size: PACKET,
    seed: 1,
    is_paced: false,
};

pub(crate) fn build(spec: &str) -> Box<dyn Controller> {
    spec.parse::<AlgorithmSpec>().unwrap().build(&CONTEXT)
}

pub(crate) fn packets(count: u64) -> ByteSize {
    PACKET * count
}

pub(crate) fn micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// An acknowledgment at `now` whose newest packet was sent at `sent`; the RTT is the difference.
pub(crate) fn ack(now: u64, sent: u64, count: u64) -> AckSample {
    let rtt = Duration::from_micros(now - sent);
    AckSample {
        now: micros(now),
        acked: packets(count),
        ce_marked: ByteSize::ZERO,
        ece: false,
        rtt: Some(rtt),
        smoothed_rtt: rtt,
        min_rtt: rtt,
        prior_in_flight: packets(count),
        in_flight: ByteSize::ZERO,
        newest_sent: micros(sent),
        delivery: None,
        app_limited: false,
        is_recovering: false,
        round_ended: false,
    }
}

pub(crate) fn loss(now: u64, sent: u64, count: u64, cause: LossCause) -> LossSample {
    LossSample {
        now: micros(now),
        lost: packets(count),
        newest_sent: micros(sent),
        cause,
        in_flight: ByteSize::ZERO,
    }
}

pub(crate) fn spurious(now: u64, sent: u64, count: u64) -> SpuriousLoss {
    SpuriousLoss {
        now: micros(now),
        bytes: packets(count),
        newest_sent: micros(sent),
    }
}
