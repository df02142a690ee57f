//! The rate at which a flow's data has been delivered.

use std::collections::VecDeque;

use weir_units::{ByteSize, Duration, Rate, Time};

/// The time that a measurement covers, at least; from the beginning for a younger flow.
const SPAN: Duration = Duration::from_secs(10);

/// The least time between two marks.
const STEP: Duration = Duration::from_secs(1);

/// Measures the rate of a flow over the last ten seconds.
#[derive(Clone, Debug)]
pub(crate) struct RateMeter {
    /// Times, with the bytes delivered by then, the oldest first. There is always one.
    marks: VecDeque<(Time, ByteSize)>,
}

impl RateMeter {
    /// Creates the meter of a flow that begins now.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            marks: VecDeque::from([(now, ByteSize::ZERO)]),
        }
    }

    /// Notes that `delivered` bytes have been delivered since the beginning.
    pub(crate) fn on_delivered(&mut self, now: Time, delivered: ByteSize) {
        let last = self.marks.back();
        if last.is_some_and(|(time, _)| now.since(*time) < STEP) {
            return;
        }
        self.marks.push_back((now, delivered));
        // The first mark stays as long as no later one is old enough to take its place.
        while self
            .marks
            .get(1)
            .is_some_and(|(time, _)| now.since(*time) >= SPAN)
        {
            self.marks.pop_front();
        }
    }

    /// Returns the rate up to now, when `delivered` bytes have been delivered; `None` for a flow that has
    /// just begun.
    pub(crate) fn rate(&self, now: Time, delivered: ByteSize) -> Option<Rate> {
        let is_old = |(time, _): &&(Time, ByteSize)| now.since(*time) >= SPAN;
        let from = self.marks.iter().rev().find(is_old);
        let (time, before) = from.or(self.marks.front())?;
        let span = now.since(*time);
        (!span.is_zero()).then(|| Rate::average(delivered - *before, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// The meter of a flow that delivers 1,000 bytes every 100 ms, and what it has delivered.
    fn steady(until: u64) -> (RateMeter, ByteSize) {
        let (mut meter, mut delivered) = (RateMeter::new(at(0)), ByteSize::ZERO);
        for millis in (100..=until).step_by(100) {
            delivered += ByteSize::from_bytes(1_000);
            meter.on_delivered(at(millis), delivered);
        }
        (meter, delivered)
    }

    #[test]
    fn a_steady_rate_is_measured_exactly() {
        assert_eq!(RateMeter::new(at(5)).rate(at(5), ByteSize::ZERO), None);
        for until in [100, 500, 1_000, 9_900, 10_000, 60_000] {
            let (meter, delivered) = steady(until);
            let rate = meter.rate(at(until), delivered);
            assert_eq!(
                rate,
                Some(Rate::from_bits_per_second(80_000)),
                "after {until} ms"
            );
        }
    }

    #[test]
    fn only_the_last_ten_seconds_count() {
        let (mut meter, mut delivered) = steady(60_000);
        assert!(meter.marks.len() <= 12);
        // Silence.
        let rate = meter.rate(at(65_000), delivered).unwrap();
        assert!(
            rate >= Rate::from_bits_per_second(40_000) && rate < Rate::from_bits_per_second(44_000),
            "{rate}"
        );
        assert_eq!(meter.rate(at(80_000), delivered), Some(Rate::ZERO));
        // Ten times the rate.
        for millis in (80_100..=95_000).step_by(100) {
            delivered += ByteSize::from_bytes(10_000);
            meter.on_delivered(at(millis), delivered);
        }
        assert_eq!(
            meter.rate(at(95_000), delivered),
            Some(Rate::from_bits_per_second(800_000))
        );
    }
}
