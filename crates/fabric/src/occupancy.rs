//! Queue-length statistics: mean, maximum and percentiles over time.

use weir_units::{ByteSize, Duration, Time};

/// Bits of a length that its bin keeps below the leading one: 64 bins per doubling. The middle of a bin
/// is within 0.8 % of every length in it.
const PRECISION: u32 = 6;

/// The time that a queue spent at each length since the beginning or the last [`Self::reset`]. Mean and
/// maximum are exact; percentiles are within one percent.
///
/// A length that lasted less than a nanosecond is not recorded.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    length: ByteSize,
    since: Time,
    maximum: ByteSize,
    /// Nanoseconds in each bin, up to the bin of the longest queue so far.
    bins: Vec<u64>,
    /// Length times time, in byte nanoseconds.
    area: u128,
}

impl Occupancy {
    /// Starts at `now` with a queue of this length.
    pub fn new(now: Time, length: ByteSize) -> Self {
        Self {
            length,
            since: now,
            ..Self::default()
        }
    }

    /// Sets the length from `now` on. `now` must not run backwards.
    #[inline]
    pub fn set(&mut self, now: Time, length: ByteSize) {
        if now > self.since {
            self.settle(now);
        }
        self.length = length;
    }

    /// Includes the time until `now` in the statistics.
    pub fn advance(&mut self, now: Time) {
        self.set(now, self.length);
    }

    /// Discards everything before `now`: the end of a warm-up.
    pub fn reset(&mut self, now: Time) {
        *self = Self::new(now, self.length);
    }

    /// Returns the time that the statistics cover.
    pub fn span(&self) -> Duration {
        Duration::from_nanos(self.bins.iter().sum())
    }

    /// Returns the mean over time, to the nearest byte; zero while no time has passed.
    pub fn mean(&self) -> ByteSize {
        let span = u128::from(self.span().as_nanos());
        let mean = (self.area + span / 2).checked_div(span).unwrap_or(0);
        ByteSize::from_bytes(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the greatest length.
    pub fn maximum(&self) -> ByteSize {
        self.maximum
    }

    /// Returns the length that the queue did not exceed for this fraction of the time, to one percent:
    /// 0.99 gives the 99th percentile. Fractions below 0 count as 0, above 1 as 1.
    pub fn percentile(&self, fraction: f64) -> ByteSize {
        let span = self.span().as_nanos();
        let wanted = ((span as f64 * fraction).ceil() as u64).clamp(1, span.max(1));
        let mut passed = 0;
        let bin = self.bins.iter().position(|&nanos| {
            passed += nanos;
            passed >= wanted
        });
        let middle = bin.map_or(ByteSize::ZERO, middle_of);
        middle.min(self.maximum)
    }

    #[inline(always)]
    fn settle(&mut self, now: Time) {
        let nanos = now.since(self.since).as_nanos();
        self.since = now;
        self.area += u128::from(self.length.bytes()) * u128::from(nanos);
        let bin = bin_of(self.length);
        match self.bins.get_mut(bin) {
            Some(time) => *time += nanos,
            None => self.add_bin(bin, nanos),
        }
        self.maximum = self.maximum.max(self.length);
    }

    #[cold]
    fn add_bin(&mut self, bin: usize, nanos: u64) {
        self.bins.resize(bin, 0);
        self.bins.push(nanos);
    }
}

/// Lengths below 128 have bins of their own; above, each doubling has 64.
#[inline]
fn bin_of(length: ByteSize) -> usize {
    let bytes = length.bytes();
    // The doublings above 2^PRECISION, zero for lengths below.
    let shift = (bytes >> PRECISION).checked_ilog2().unwrap_or(0);
    ((shift as usize) << PRECISION) + (bytes >> shift) as usize
}

/// The middle of a bin's lengths.
fn middle_of(bin: usize) -> ByteSize {
    let lowest = |bin: usize| {
        let shift = (bin >> PRECISION).saturating_sub(1);
        let leading = (bin - (shift << PRECISION)) as u128;
        leading << shift
    };
    let (low, high) = (lowest(bin), lowest(bin + 1) - 1);
    ByteSize::from_bytes(u64::try_from(low.midpoint(high)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(count: u64) -> ByteSize {
        ByteSize::from_bytes(count)
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    proptest! {
        #[test]
        fn bins_are_in_order_and_narrow(length: u64) {
            let bin = bin_of(bytes(length));
            let middle = middle_of(bin).bytes();
            prop_assert_eq!(bin_of(bytes(middle)), bin);
            prop_assert!(middle.abs_diff(length) <= length / 128);
            if let Some(next) = length.checked_add(1) {
                let step = bin_of(bytes(next)) - bin;
                prop_assert!(step <= 1);
            }
        }

        #[test]
        fn statistics_match_the_recorded_lengths(
            warm_up in prop::collection::vec((0u64..50, 0u64..4_000_000), 0..20),
            changes in prop::collection::vec((0u64..50, 0u64..4_000_000), 1..200),
            fraction in 0.0..=1.0f64,
        ) {
            let mut now = 0;
            let mut occupancy = Occupancy::new(at(0), bytes(0));
            for (wait, length) in warm_up {
                now += wait;
                occupancy.set(at(now), bytes(length));
            }
            occupancy.reset(at(now));
            // One entry per nanosecond.
            let mut lengths = Vec::new();
            let mut current = occupancy.length.bytes();
            for (wait, length) in changes {
                lengths.extend((0..wait).map(|_| current));
                now += wait;
                occupancy.set(at(now), bytes(length));
                current = length;
            }
            lengths.extend([current; 7]);
            occupancy.advance(at(now + 7));

            prop_assert_eq!(occupancy.span().as_nanos(), lengths.len() as u64);
            lengths.sort_unstable();
            prop_assert_eq!(Some(&occupancy.maximum().bytes()), lengths.last());
            let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
            prop_assert!((occupancy.mean().bytes() as f64 - mean).abs() <= 0.5);
            let rank = ((lengths.len() as f64 * fraction).ceil() as usize).max(1);
            let percentile = occupancy.percentile(fraction).bytes();
            prop_assert!(percentile.abs_diff(lengths[rank - 1]) <= lengths[rank - 1] / 100);
        }
    }

    #[test]
    fn statistics_are_zero_before_time_passes() {
        let mut occupancy = Occupancy::default();
        occupancy.set(at(0), bytes(1000));
        occupancy.set(at(0), bytes(10));
        assert_eq!(occupancy.mean(), ByteSize::ZERO);
        assert_eq!(occupancy.percentile(0.5), ByteSize::ZERO);
        occupancy.advance(at(1));
        assert_eq!(occupancy.maximum(), bytes(10));
    }
}
