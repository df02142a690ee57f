//! The detector `size-class`: compares streams of similar size by the network's share of their
//! time, and raises an alarm only together with slow round trips.
//!
//! - **Similar sizes.** Streams are in classes by powers of 4 of their bytes; each class has its
//!   own average. A change of the task sizes changes no average.
//! - **The network's time** of a stream is one RTT, as measured while the stream waited, plus the
//!   time from the first byte of the response to the last. The rest of the wait for the first byte
//!   is the server's time, or that of a retransmission.
//! - **Round trips** carry most of the weight: ACKs do not wait for an application. An alarm needs
//!   several consecutive slow samples (`round_trips.rs`) *and* an affected stream: one that was
//!   slow for its class since then, or whose response is overdue compared with the long-term
//!   average wait.
//! - **Streams alone** raise an alarm when more than half of the last `short_window` were slow for
//!   their class: a path that drops packets or has lost most of its rate.

use weir_units::{ByteSize, Duration, Time};

use super::SizeClassParameters;
use super::baseline::{Baseline, BaselineRule, ratio};
use super::decision::{Cause, RoundTrips, Streams};
use super::round_trips::RoundTripHistory;
use super::table::{StreamRecord, StreamTable};
use crate::PathId;

/// Classes by powers of 4: the last one contains all streams of 1 GiB and more.
const CLASSES: usize = 16;

/// Averages by class, and the verdicts on the last streams.
#[derive(Debug)]
pub(super) struct SizeClassDetector {
    parameters: SizeClassParameters,
    rule: BaselineRule,
    round_trips: RoundTripHistory,
    /// The network's time of streams, by class.
    classes: [Baseline; CLASSES],
    /// The time from the end of the request to the first byte of the response.
    waits: Baseline,
    /// One bit per evaluated stream, the newest lowest: whether it was slow.
    verdicts: u64,
    /// The number of evaluated streams, up to the limit that matters.
    evaluated: u32,
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
            rule: BaselineRule {
                long_window: parameters.long_window,
                short_window: parameters.short_window,
                alpha: parameters.alpha,
                min_increase,
            },
            round_trips: RoundTripHistory::default(),
            classes: [Baseline::default(); CLASSES],
            waits: Baseline::default(),
            verdicts: 0,
            evaluated: 0,
            newest_slow: None,
            slow_in_run: 0,
        }
    }

    /// Adds an RTT sample of the path in use.
    pub(super) fn on_rtt_sample(&mut self, now: Time, rtt: Duration) {
        self.round_trips.on_sample(now, rtt, &self.rule);
        if self.round_trips.slow_since().is_none() {
            self.slow_in_run = 0;
        }
    }

    /// Evaluates a stream whose response has arrived completely over the path in use.
    pub(super) fn on_finished(&mut self, now: Time, stream: &StreamRecord) {
        let Some(first_byte) = stream.first_byte else {
            return;
        };
        let Some(rtt) = self.round_trips.latest else {
            return;
        };
        let wait = stream.request_sent.map(|sent| first_byte.since(sent));
        if let Some(wait) = wait {
            self.waits.record(wait, &self.rule);
        }
        let round_trip = wait.map_or(Duration::ZERO, |wait| wait.min(rtt));
        self.judge(
            size_class(stream.total_bytes),
            round_trip + now.since(first_byte),
        );
    }

    fn judge(&mut self, class: usize, time: Duration) {
        let baseline = &mut self.classes[class];
        if let Some(limit) = baseline.limit(&self.rule) {
            let slow = time > limit;
            self.verdicts = self.verdicts << 1 | u64::from(slow);
            self.evaluated = (self.evaluated + 1).min(self.parameters.short_window);
            if slow {
                self.newest_slow = Some(SlowStream {
                    class,
                    time,
                    long_term: baseline.mean(&self.rule).unwrap_or_default(),
                });
                let in_run = self.round_trips.slow_since().is_some();
                self.slow_in_run = self.slow_in_run.saturating_add(u32::from(in_run));
            }
        }
        baseline.record(time, &self.rule);
    }

    /// Returns the cause for leaving the path, if any.
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

    /// Returns the number of responses that have not started within the limit of waits. It scans
    /// all streams, and is called only when round trips are already slow.
    fn overdue(&self, now: Time, path: PathId, streams: &StreamTable) -> u32 {
        let Some(limit) = self.waits.limit(&self.rule) else {
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
        if self.evaluated < of || slow * 2 <= of {
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

    /// Returns the long-term average of the time to the first byte of a response.
    pub(super) fn usual_wait(&self) -> Option<Duration> {
        self.waits.mean(&self.rule)
    }

    /// Discards all state: another path has another RTT, rate and loss rate.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.parameters, self.rule.min_increase);
    }
}

/// Returns the class: streams of 4ᵏ to 4ᵏ⁺¹ − 1 bytes are in class k.
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
