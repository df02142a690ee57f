//! The detector `size-class`: compares streams of like size, by the time for which the network is
//! responsible, and believes them only together with round trips.
//!
//! - **Like with like.** Streams are in classes by powers of 4 of their bytes; each class has an
//!   average of its own. A change of the task sizes changes no average.
//! - **The network's time** of a stream is one round trip, as the path measured it while the stream
//!   waited, and the time from the first byte of the response to the last. What is left of the
//!   wait for the first byte is the server's, or that of a retransmission.
//! - **Round trips** carry most of the weight: acknowledgments do not wait for an application. An
//!   alarm needs several slow ones in sequence (`round_trips.rs`) *and* a stream that suffers: one
//!   that was slow for its class since, or whose response is overdue against the long-term average
//!   of waits.
//! - **Streams alone** raise an alarm when more than half of the last `short_window` were slow for
//!   their class: a path that drops packets or has lost most of its rate.

use weir_units::{ByteSize, Duration, Time};

use super::SizeClassParameters;
use super::baseline::{Baseline, BaselineRule, ratio};
use super::decision::{Cause, RoundTrips, Streams};
use super::round_trips::RoundTripHistory;
use super::table::{StreamRecord, StreamTable};
use crate::PathId;

/// Classes by powers of 4: the last one has all streams of 1 GiB and more.
const CLASSES: usize = 16;

/// Averages by class, and the verdicts on the last streams.
#[derive(Debug)]
pub(super) struct SizeClassDetector {
    parameters: SizeClassParameters,
    judgement: BaselineRule,
    round_trips: RoundTripHistory,
    /// The network's time of streams, by class.
    classes: [Baseline; CLASSES],
    /// The time from the end of the request to the first byte of the response.
    waits: Baseline,
    /// A bit for each stream judged, the newest lowest: whether it was slow.
    verdicts: u64,
    /// How many were judged, as far as it matters.
    judged: u32,
    newest_slow: Option<SlowStream>,
    /// Streams that were slow since the first slow round trip.
    slow_in_run: u32,
}

/// A stream that was slow for its class.
#[derive(Clone, Copy, Debug)]
struct SlowStream {
    class: usize,
    time: Duration,
    long_term: Duration,
}

impl SizeClassDetector {
    pub(super) fn new(parameters: SizeClassParameters, min_increase: Duration) -> Self {
        Self {
            parameters,
            judgement: BaselineRule {
                long_window: parameters.long_window,
                short_window: parameters.short_window,
                alpha: parameters.alpha,
                min_increase,
            },
            round_trips: RoundTripHistory::default(),
            classes: [Baseline::default(); CLASSES],
            waits: Baseline::default(),
            verdicts: 0,
            judged: 0,
            newest_slow: None,
            slow_in_run: 0,
        }
    }

    /// A round trip of the path in use was measured.
    pub(super) fn on_rtt_sample(&mut self, now: Time, rtt: Duration) {
        self.round_trips.on_sample(now, rtt, &self.judgement);
        if self.round_trips.slow_since().is_none() {
            self.slow_in_run = 0;
        }
    }

    /// All of a stream's response has come, over the path in use.
    pub(super) fn on_finished(&mut self, now: Time, stream: &StreamRecord) {
        let Some(first_byte) = stream.first_byte else {
            return;
        };
        let Some(rtt) = self.round_trips.latest else {
            return;
        };
        let wait = stream.request_sent.map(|sent| first_byte.since(sent));
        if let Some(wait) = wait {
            self.waits.record(wait, &self.judgement);
        }
        let round_trip = wait.map_or(Duration::ZERO, |wait| wait.min(rtt));
        self.judge(
            size_class(stream.total_bytes),
            round_trip + now.since(first_byte),
        );
    }

    fn judge(&mut self, class: usize, time: Duration) {
        let baseline = &mut self.classes[class];
        if let Some(limit) = baseline.limit(&self.judgement) {
            let slow = time > limit;
            self.verdicts = self.verdicts << 1 | u64::from(slow);
            self.judged = (self.judged + 1).min(self.parameters.short_window);
            if slow {
                self.newest_slow = Some(SlowStream {
                    class,
                    time,
                    long_term: baseline.mean(&self.judgement).unwrap_or_default(),
                });
                let in_run = self.round_trips.slow_since().is_some();
                self.slow_in_run = self.slow_in_run.saturating_add(u32::from(in_run));
            }
        }
        baseline.record(time, &self.judgement);
    }

    /// Why the path is to be left, where it is.
    pub(super) fn alarm(&self, now: Time, path: PathId, streams: &StreamTable) -> Option<Cause> {
        self.slow_round_trips(now, path, streams)
            .map(Cause::RoundTrips)
            .or_else(|| self.slow_streams().map(Cause::Streams))
    }

    fn slow_round_trips(
        &self,
        now: Time,
        path: PathId,
        streams: &StreamTable,
    ) -> Option<RoundTrips> {
        let run = self.round_trips.confirmed(self.parameters.confirmations)?;
        let overdue_streams = self.overdue(now, path, streams);
        if self.slow_in_run == 0 && overdue_streams == 0 {
            return None;
        }
        Some(RoundTrips {
            samples: run.samples,
            long_term: run.long_term,
            short_term: run.short_term(),
            ratio: ratio(run.short_term(), run.long_term),
            alpha: self.parameters.alpha,
            slow_streams: self.slow_in_run,
            overdue_streams,
        })
    }

    /// How many responses have not begun for longer than the long-term average allows. Looks at
    /// all streams: asked only where round trips are slow already.
    fn overdue(&self, now: Time, path: PathId, streams: &StreamTable) -> u32 {
        let Some(limit) = self.waits.limit(&self.judgement) else {
            return 0;
        };
        let overdue = streams.iter().filter(|stream| {
            stream.path == path
                && stream.first_byte.is_none()
                && stream
                    .request_sent
                    .is_some_and(|sent| now.since(sent) > limit)
        });
        overdue.count() as u32
    }

    fn slow_streams(&self) -> Option<Streams> {
        let of = self.parameters.short_window;
        let slow = (self.verdicts & (u64::MAX >> (u64::BITS - of))).count_ones();
        if self.judged < of || slow * 2 <= of {
            return None;
        }
        let newest = self.newest_slow?;
        Some(Streams {
            slow,
            of,
            class: largest_of(newest.class),
            long_term: newest.long_term,
            short_term: newest.time,
            ratio: ratio(newest.time, newest.long_term),
            alpha: self.parameters.alpha,
        })
    }

    /// The long-term average of the time to the first byte of a response.
    pub(super) fn usual_wait(&self) -> Option<Duration> {
        self.waits.mean(&self.judgement)
    }

    /// Forgets everything: another path has other round trips, rates and losses.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.parameters, self.judgement.min_increase);
    }
}

/// The class of streams of 4ᵏ to 4ᵏ⁺¹ − 1 bytes is k.
fn size_class(bytes: u64) -> usize {
    (bytes.max(1).ilog2() as usize / 2).min(CLASSES - 1)
}

fn largest_of(class: usize) -> ByteSize {
    match class {
        class if class >= CLASSES - 1 => ByteSize::MAX,
        class => ByteSize::from_bytes((4 << (2 * class)) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_four() {
        let sizes = [0, 1, 3, 4, 15, 16, 100, 10_000, 100_000];
        let classes = sizes.map(size_class);
        assert_eq!(classes, [0, 0, 0, 1, 1, 2, 3, 6, 8]);
        assert_eq!(size_class((1 << 30) - 1), 14);
        assert_eq!(size_class(1 << 30), 15);
        assert_eq!(size_class(u64::MAX), 15);
        for class in 0..CLASSES - 1 {
            let largest = largest_of(class).bytes();
            assert_eq!(
                (size_class(largest), size_class(largest + 1)),
                (class, class + 1)
            );
        }
    }
}
