//! The detector `paper`: equations 1 to 4 of the DCQUIC paper (section 3.4.1).
//!
//! Our interpretation:
//! - A stream's number in equations 3 and 4 is its rank in the order of completion: waiting for the
//!   IDs of open streams is not possible.
//! - Equation 3 adds up the `n − m + 1` streams from `m` to `n` and divides by `n − m`. We
//!   implement it literally. Each average is thus too large, by `1/w` and `1/(W − w)`. With 50, 10,
//!   2 an unchanged path has a ratio of (11/10)/(41/40) = 1.073, and the actual trigger is 1.86
//!   times the long-term average.
//! - Stream `n − w` belongs to both averages, as in equation 4.
//! - A stream without bytes has no time per byte and is ignored.
//! - Nothing is evaluated before stream `n − W` exists, nor from streams of another path.

use std::collections::VecDeque;

use super::PaperParameters;
use super::decision::Equation4;
use super::table::StreamRecord;

/// Times per byte are integers in units of 2⁻¹⁶ ns: sums stay exact over any run time.
const FRACTION_BITS: u32 = 16;

/// The windows of equation 4.
#[derive(Debug)]
pub(super) struct PaperDetector {
    parameters: PaperParameters,
    /// Equation 2 for the last W + 1 streams, the newest at the back.
    pub(super) times: VecDeque<u64>,
    /// The sum of the newest w + 1.
    short_sum: u128,
    /// The sum of the oldest W − w + 1, once there are W + 1.
    long_sum: u128,
}

impl PaperDetector {
    pub(super) fn new(parameters: PaperParameters) -> Self {
        Self {
            parameters,
            times: VecDeque::new(),
            short_sum: 0,
            long_sum: 0,
        }
    }

    /// Records the EndTime and TotalBytes of a stream of the path in use.
    pub(super) fn on_ended(&mut self, stream: &StreamRecord) {
        if let Some(time) = time_per_byte(stream) {
            self.push(time);
        }
    }

    fn push(&mut self, time: u64) {
        let short = self.parameters.short_window as usize;
        let long = self.parameters.long_window as usize;
        self.times.push_back(time);
        let newest = self.times.len() - 1;
        self.short_sum += u128::from(time);
        if newest > short {
            self.short_sum -= u128::from(self.times[newest - short - 1]);
        }
        if newest >= short {
            self.long_sum += u128::from(self.times[newest - short]);
        }
        if newest > long {
            let oldest = self.times.pop_front().unwrap_or_default();
            self.long_sum -= u128::from(oldest);
        }
    }

    /// Returns the metrics of equation 4; `None` before there are W + 1 streams.
    pub(super) fn figures(&self) -> Option<Equation4> {
        let PaperParameters {
            long_window,
            short_window,
            alpha,
        } = self.parameters;
        if self.times.len() <= long_window as usize || self.long_sum == 0 {
            return None;
        }
        let unit = f64::from(1u32 << FRACTION_BITS);
        let short_term = self.short_sum as f64 / unit / f64::from(short_window);
        let long_term = self.long_sum as f64 / unit / f64::from(long_window - short_window);
        Some(Equation4 {
            long_term,
            short_term,
            ratio: short_term / long_term,
            alpha,
        })
    }

    /// Returns the metrics, if equation 4 holds.
    pub(super) fn alarm(&self) -> Option<Equation4> {
        self.figures()
            .filter(|figures| figures.ratio > figures.alpha)
    }

    /// Discards all streams.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.parameters);
    }
}

/// Equation 1: TotalBytes from the frame that ends a stream.
pub(super) fn total_bytes(offset: u64, length: u64) -> u64 {
    offset.saturating_add(length)
}

/// Equation 2, in units of 2⁻¹⁶ ns.
fn time_per_byte(stream: &StreamRecord) -> Option<u64> {
    let completion = u128::from(stream.ended?.since(stream.established).as_nanos());
    let time = (completion << FRACTION_BITS).checked_div(u128::from(stream.total_bytes))?;
    Some(u64::try_from(time).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use weir_units::{Duration, Time};

    use super::*;
    use crate::{Direction, PathId, Side, StreamId};

    fn stream(completion: Duration, total_bytes: u64) -> StreamRecord {
        StreamRecord {
            id: StreamId::new(Side::Client, Direction::Bidirectional, 0),
            path: PathId::FIRST,
            established: Time::from_nanos(500),
            request_sent: None,
            first_byte: None,
            ended: Some(Time::from_nanos(500) + completion),
            total_bytes,
        }
    }

    /// W = 4, w = 2, α = 2.
    fn small() -> PaperDetector {
        PaperDetector::new(PaperParameters {
            long_window: 4,
            short_window: 2,
            alpha: 2.0,
        })
    }

    /// Completes streams that take this many microseconds for 1000 bytes, i.e. nanoseconds per
    /// byte.
    fn complete(detector: &mut PaperDetector, micros: &[u64]) {
        for &micros in micros {
            detector.on_ended(&stream(Duration::from_micros(micros), 1000));
        }
    }

    #[test]
    fn equation_1() {
        assert_eq!(total_bytes(98_600, 1_400), 100_000);
        assert_eq!(total_bytes(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn equation_2() {
        let per_byte = |completion, bytes| time_per_byte(&stream(completion, bytes));
        // 1 ms for 100 KB are 10 ns per byte; 100 µs for 100 B are 1000.
        assert_eq!(
            per_byte(Duration::from_millis(1), 100_000),
            Some(10 << FRACTION_BITS)
        );
        assert_eq!(
            per_byte(Duration::from_micros(100), 100),
            Some(1000 << FRACTION_BITS)
        );
        assert_eq!(per_byte(Duration::from_micros(100), 0), None);
        assert_eq!(per_byte(Duration::MAX, 1), Some(u64::MAX));
    }

    #[test]
    fn equations_3_and_4_by_hand() {
        let mut detector = small();
        complete(&mut detector, &[1, 2, 3, 4]);
        assert_eq!(detector.figures(), None, "n − W does not exist yet");
        complete(&mut detector, &[5]);
        // Times 1 2 3 4 5. Short: (3 + 4 + 5) / 2 = 6; long: (1 + 2 + 3) / 2 = 3; ratio 2, which
        // is not above 2.
        let figures = detector.figures().unwrap();
        assert_eq!((figures.short_term, figures.long_term), (6.0, 3.0));
        assert_eq!(figures.ratio, 2.0);
        assert_eq!(detector.alarm(), None);
        complete(&mut detector, &[11]);
        // Times 2 3 4 5 11. Short: (4 + 5 + 11) / 2 = 10; long: (2 + 3 + 4) / 2 = 4.5.
        let figures = detector.alarm().unwrap();
        assert_eq!((figures.short_term, figures.long_term), (10.0, 4.5));
    }

    #[test]
    fn the_windows_discard_old_samples() {
        let mut detector = small();
        complete(&mut detector, &[900, 17, 400, 3, 80, 6, 250]);
        complete(&mut detector, &[1, 2, 3, 4, 5]);
        let figures = detector.figures().unwrap();
        assert_eq!((figures.short_term, figures.long_term), (6.0, 3.0));
        assert_eq!(detector.times.len(), 5);
    }

    #[test]
    fn dividing_by_window_minus_one_shifts_the_trigger() {
        let mut detector = PaperDetector::new(PaperParameters::default());
        complete(&mut detector, &[100; 51]);
        let ratio = detector.figures().unwrap().ratio;
        assert!((ratio - 1.1 / 1.025).abs() < 1e-12, "{ratio}");
    }

    #[test]
    fn empty_streams_are_ignored() {
        let mut detector = small();
        complete(&mut detector, &[1, 2, 3, 4, 5]);
        detector.on_ended(&stream(Duration::from_secs(1), 0));
        assert_eq!(detector.figures().unwrap().ratio, 2.0);
        detector.restart();
        assert_eq!(detector.figures(), None);
    }
}
