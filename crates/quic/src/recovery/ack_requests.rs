//! Requests for the peer's ACK frequency (draft-ietf-quic-ack-frequency-14, sections 7 to 9).
//!
//! Eight ACKs per RTT serve a congestion controller as well as more do, and are cheap with a large
//! window. The threshold is an eighth of the window in packets, the delay an eighth of the smoothed
//! RTT. (With four, transfers took up to 7 % longer in the tests' simulated networks; with eight,
//! 0.4 % in the wide area.) The delay is never longer than the peer's own choice, nor shorter than
//! its minimum. A new request is sent when one of the two should be half or double the last
//! request, at most once per RTT.
//!
//! At the receiver a request replaces [`AckAggregation`](super::gathering): it need not guess the window
//! any more.

use smallvec::SmallVec;
use weir_units::{Duration, Time};

use crate::frame::AckFrequency;
use crate::path::Path;

/// The ACKs wanted per RTT.
const ACKS_PER_ROUND: u64 = 8;
/// The largest threshold.
const LARGEST_THRESHOLD: u64 = 128;

/// The requested ACK pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AckPattern {
    threshold: u64,
    delay: Duration,
}

/// The requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct AckRequests {
    /// The peer's minimum delay and its own choice; `None` if nothing is requested.
    range: Option<(Duration, Duration)>,
    reordering: u64,
    /// The last request.
    asked: Option<AckPattern>,
    asked_at: Time,
    /// Whether the last request is still to be sent.
    due: bool,
    /// The sequence number of the next request.
    next_sequence: u64,
    /// The delay that the peer certainly applies: that of the newest acknowledged request.
    delay: Duration,
    /// Requests in flight, with their delays.
    in_flight: SmallVec<[(u64, Duration); 2]>,
}

impl AckRequests {
    /// Enables requests: the peer supports delays from `least` on, and its own is `own`.
    /// `reordering` is the packet reordering threshold of loss detection.
    pub(crate) fn enable(&mut self, least: Duration, own: Duration, reordering: u64) {
        self.range = Some((least, own.max(least)));
        self.delay = own;
        self.reordering = reordering;
    }

    /// Considers a new request after an ACK.
    pub(crate) fn consider(&mut self, now: Time, path: &Path) {
        let Some((least, own)) = self.range else {
            return;
        };
        let round = path.rtt.smoothed;
        if !path.rtt.has_sample() || self.asked.is_some() && now < self.asked_at + round {
            return;
        }
        let packets = path.window().bytes() / (path.mtu as u64).max(1);
        let wish = AckPattern {
            threshold: (packets / ACKS_PER_ROUND).clamp(1, LARGEST_THRESHOLD),
            delay: (round / ACKS_PER_ROUND).clamp(least, own),
        };
        if self.asked.is_none_or(|asked| wish.differs(asked)) {
            self.asked = Some(wish);
            self.asked_at = now;
            self.due = true;
        }
    }

    /// Whether the receiver's ACKs follow a request.
    pub(crate) fn is_active(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether a request is to be sent.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Returns the request to send now; it counts as sent.
    pub(crate) fn take(&mut self) -> Option<AckFrequency> {
        let wish = self.asked.filter(|_| self.due)?;
        self.due = false;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.in_flight.push((sequence, wish.delay));
        Some(AckFrequency {
            sequence,
            threshold: wish.threshold,
            max_ack_delay: wish.delay.as_micros(),
            reordering_threshold: self.reordering,
        })
    }

    /// Handles the ACK of a request; earlier requests are obsolete.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        let Some(position) = self.position(sequence) else {
            return;
        };
        self.delay = self.in_flight[position].1;
        self.in_flight.drain(..=position);
    }

    /// Handles the loss of a request: the newest one is sent again.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if let Some(position) = self.position(sequence) {
            self.in_flight.remove(position);
            self.due |= sequence + 1 == self.next_sequence;
        }
    }

    /// Returns the longest ACK delay that requests may cause now; `None` if there was no request
    /// (section 7).
    pub(crate) fn longest_delay(&self) -> Option<Duration> {
        // A pending request may repeat one that did arrive.
        let newest = self.asked?.delay;
        let in_flight = self.in_flight.iter().map(|(_, delay)| *delay);
        Some(if self.due || !self.in_flight.is_empty() {
            in_flight.fold(self.delay.max(newest), Duration::max)
        } else {
            self.delay
        })
    }

    fn position(&self, sequence: u64) -> Option<usize> {
        self.in_flight
            .iter()
            .position(|(sent, _)| *sent == sequence)
    }
}

impl AckPattern {
    fn differs(self, asked: Self) -> bool {
        let much = |now: u64, before: u64| {
            now != before && (now >= before.saturating_mul(2) || now <= before / 2)
        };
        much(self.threshold, asked.threshold) || much(self.delay.as_nanos(), asked.delay.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use proptest::prelude::*;
    use weir_congestion::{AlgorithmSpec, Context};
    use weir_units::ByteSize;

    use super::*;
    use crate::path::PathConfig;

    const OWN: Duration = Duration::from_millis(25);
    const LEAST: Duration = Duration::from_millis(1);

    /// Creates a path with a window of ten packets.
    fn path(rtt: Option<Duration>) -> Path {
        let controller = AlgorithmSpec::default().build(&Context {
            packet_size: ByteSize::from_bytes(1_200),
            seed: 0,
            is_paced: true,
        });
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let config = PathConfig {
            mtu: 1_200,
            initial_rtt: Duration::from_millis(333),
            granularity: LEAST,
            ecn: false,
            validated: true,
        };
        let mut path = Path::new(crate::PathId::FIRST, remote, None, controller, &config);
        if let Some(rtt) = rtt {
            path.rtt.on_sample(Time::ZERO, rtt, Duration::ZERO);
        }
        path
    }

    fn enabled() -> AckRequests {
        let mut requests = AckRequests::default();
        requests.enable(LEAST, OWN, 3);
        requests
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn no_request_is_sent_without_peer_support_or_an_rtt_sample() {
        let mut requests = AckRequests::default();
        requests.consider(at(0), &path(Some(OWN)));
        assert!(!requests.is_due() && requests.take().is_none());
        let mut requests = enabled();
        requests.consider(at(0), &path(None));
        assert!(!requests.is_due() && requests.longest_delay().is_none());
    }

    #[test]
    fn requests_ask_for_an_eighth_of_the_window_and_round_trip() {
        let mut requests = enabled();
        requests.consider(at(0), &path(Some(Duration::from_millis(40))));
        assert!(requests.is_due());
        let request = requests.take().unwrap();
        let asked = AckFrequency {
            sequence: 0,
            threshold: 1,
            max_ack_delay: 5_000,
            reordering_threshold: 3,
        };
        assert_eq!(request, asked);
        assert!(!requests.is_due());
        // At least the peer's minimum, at most its own choice.
        for (rtt, micros) in [(1, 1_000), (1_000, 25_000)] {
            let mut requests = enabled();
            requests.consider(at(0), &path(Some(Duration::from_millis(rtt))));
            assert_eq!(requests.take().unwrap().max_ack_delay, micros);
        }
    }

    #[test]
    fn requests_follow_large_changes_at_most_once_per_round_trip() {
        let mut requests = enabled();
        requests.consider(at(0), &path(Some(Duration::from_millis(40))));
        requests.take();
        requests.consider(at(100), &path(Some(Duration::from_millis(60))));
        assert!(!requests.is_due());
        requests.consider(at(10), &path(Some(Duration::from_millis(20))));
        assert!(!requests.is_due(), "not within the round trip");
        requests.consider(at(200), &path(Some(Duration::from_millis(20))));
        assert_eq!(requests.take().unwrap().sequence, 1);
    }

    #[test]
    fn the_longest_unacknowledged_delay_applies() {
        let mut requests = enabled();
        let longest = |requests: &AckRequests| requests.longest_delay().unwrap().as_micros();
        requests.consider(at(0), &path(Some(Duration::from_millis(40))));
        requests.take();
        assert_eq!(longest(&requests), 25_000);
        requests.on_acked(0);
        assert_eq!(longest(&requests), 5_000);
        requests.consider(at(500), &path(Some(Duration::from_millis(80))));
        requests.take();
        assert_eq!(longest(&requests), 10_000);
        requests.on_lost(1);
        assert!(requests.is_due());
        assert_eq!(longest(&requests), 10_000);
        assert_eq!(requests.take().unwrap().sequence, 2);
        // Old or repeated reports change nothing.
        requests.on_lost(1);
        requests.on_acked(1);
        assert!(!requests.is_due());
        requests.on_acked(2);
        assert_eq!(longest(&requests), 10_000);
        requests.on_lost(2);
        assert!(!requests.is_due());
    }

    proptest! {
        /// Any order of ACKs and losses: sequence numbers grow, settled requests are dropped, and
        /// once the newest request is acknowledged its delay applies.
        #[test]
        fn the_newest_request_takes_effect_eventually(
            steps in prop::collection::vec(
                (1..2_000_u64, 0..3_u8, any::<prop::sample::Index>()),
                1..60,
            ),
        ) {
            let mut requests = enabled();
            let mut sent: Vec<AckFrequency> = Vec::new();
            for (step, (rtt, fate, which)) in steps.into_iter().enumerate() {
                let now = at(step as u64 * 10_000);
                requests.consider(now, &path(Some(Duration::from_millis(rtt))));
                if let Some(request) = requests.take() {
                    prop_assert!(sent.last().is_none_or(|last| last.sequence < request.sequence));
                    sent.push(request);
                }
                let request = sent[which.index(sent.len())];
                match fate {
                    0 => {}
                    1 => requests.on_lost(request.sequence),
                    _ => requests.on_acked(request.sequence),
                }
                prop_assert!(requests.longest_delay() >= Some(requests.delay));
            }
            sent.extend(requests.take());
            let newest = sent[sent.len() - 1];
            requests.on_acked(newest.sequence);
            prop_assert!(requests.in_flight.is_empty() && !requests.is_due());
            let delay = Duration::from_micros(newest.max_ack_delay);
            prop_assert_eq!(requests.longest_delay(), Some(delay));
        }
    }
}
