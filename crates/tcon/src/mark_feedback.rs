//! How the receiver's echoes of CE marks are read, and the CWR that ends them (RFC 3168, sections 6.1.2 and
//! 6.1.3).
//!
//! A receiver echoes a mark in all its acknowledgments until a segment with CWR arrives.

use weir_units::{Duration, Time};
use weir_wire::tcp::Sequence;

/// Under DCTCP the marks of a full path recur after sqrt(W / 2) round trips, W being the window in packets
/// (Alizadeh et al., DCTCP, section 3.3). These are enough for 8,192 packets.
const ROUND_TRIPS: u64 = 64;

/// The feedback about the marks of one direction's data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkFeedback {
    /// The data is not ECN-capable.
    None,
    /// Each segment carries CWR, so that an echo covers the segments that its acknowledgment delivers.
    EachSegment {
        /// When the last echo came.
        echoed_at: Option<Time>,
    },
    /// One segment per round trip with echoes carries CWR, as a sender's own TCP sets it.
    EachRoundTrip(Reaction),
}

/// The state between an echo and the end of its repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// No echo is open.
    Idle,
    /// The next new segment is to carry CWR.
    Due,
    /// The segment that begins here carried CWR. The acknowledgments before it repeat the echo.
    Sent(Sequence),
}

impl MarkFeedback {
    /// Creates the state of data that may be marked or may not. `counts_marks`: the controller uses the
    /// fraction of marked bytes, so that each echo counts.
    pub(crate) fn new(is_marked: bool, counts_marks: bool) -> Self {
        match (is_marked, counts_marks) {
            (false, _) => Self::None,
            (true, true) => Self::EachSegment { echoed_at: None },
            (true, false) => Self::EachRoundTrip(Reaction::Idle),
        }
    }

    /// Whether the data is sent as ECN-capable.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Notes an acknowledgment of the data up to `number` with an echo. Returns whether the echo tells of a
    /// mark that no echo has told of yet.
    pub(crate) fn on_echo(&mut self, now: Time, number: Sequence) -> bool {
        match self {
            Self::None => false,
            Self::EachSegment { echoed_at } => {
                *echoed_at = Some(now);
                true
            }
            Self::EachRoundTrip(reaction) => {
                let is_new = match *reaction {
                    Reaction::Idle => true,
                    Reaction::Due => false,
                    Reaction::Sent(start) => start.precedes(number),
                };
                if is_new {
                    *reaction = Reaction::Due;
                }
                is_new
            }
        }
    }

    /// Returns whether the new segment that begins at `start` carries CWR.
    pub(crate) fn take_cwr(&mut self, start: Sequence) -> bool {
        match self {
            Self::None => false,
            Self::EachSegment { .. } => true,
            Self::EachRoundTrip(reaction) => {
                let is_due = *reaction == Reaction::Due;
                if is_due {
                    *reaction = Reaction::Sent(start);
                }
                is_due
            }
        }
    }

    /// Returns whether each segment has to reach the network in a frame of its own. A network card that splits
    /// a super-packet leaves CWR to its first segment, and an echo would cover the others too. That matters as
    /// long as marks are to be expected.
    pub(crate) fn needs_own_frames(&self, now: Time, rtt: Duration) -> bool {
        match self {
            Self::EachSegment { echoed_at } => {
                echoed_at.is_some_and(|time| now.since(time) < rtt * ROUND_TRIPS)
            }
            Self::None | Self::EachRoundTrip(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(1);

    fn at(number: u32) -> Sequence {
        Sequence::new(number)
    }

    #[test]
    fn one_cwr_answers_the_echoes_of_a_round_trip() {
        let mut feedback = MarkFeedback::new(true, false);
        let now = Time::ZERO;
        assert!(!feedback.take_cwr(at(0)), "no mark has been echoed");
        assert!(feedback.on_echo(now, at(1_000)));
        assert!(!feedback.on_echo(now, at(2_000)), "CWR has not been sent");
        assert!(feedback.take_cwr(at(5_000)));
        assert!(!feedback.take_cwr(at(6_000)));
        // All that was sent before CWR repeats the echo, and what came with it or after it does not.
        assert!(!feedback.on_echo(now, at(5_000)));
        assert!(feedback.on_echo(now, at(6_000)));
        assert!(feedback.take_cwr(at(9_000)));
        assert!(!feedback.needs_own_frames(now, RTT));
    }

    #[test]
    fn each_echo_counts_if_each_segment_carries_cwr() {
        let mut feedback = MarkFeedback::new(true, true);
        let mut now = Time::ZERO + RTT;
        assert!(feedback.take_cwr(at(0)) && feedback.take_cwr(at(1_000)));
        assert!(!feedback.needs_own_frames(now, RTT));
        for number in [1_000, 2_000] {
            assert!(feedback.on_echo(now, at(number)));
        }
        now += RTT * (ROUND_TRIPS - 1);
        assert!(feedback.needs_own_frames(now, RTT));
        now += RTT;
        assert!(!feedback.needs_own_frames(now, RTT));
    }

    #[test]
    fn data_that_cannot_be_marked_has_no_feedback() {
        let mut feedback = MarkFeedback::new(false, true);
        assert!(!feedback.is_active() && !feedback.take_cwr(at(0)));
        assert!(!feedback.on_echo(Time::ZERO, at(1)));
    }
}
