//! The part of the segments that were retransmissions.

use crate::Estimate;

/// The number of batches.
pub(crate) const BATCHES: usize = 32;

/// Counts of segments, in batches of connections.
///
/// Segments of one connection are lost together, so that the connection and not the segment is what varies
/// independently. All counts of a connection go to the same batch, whatever time they are of; the variance
/// is that of a ratio of sums between the batches (the random-group method: Wolter, "Introduction to
/// Variance Estimation", chapter 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentCounts {
    batches: [Batch; BATCHES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Batch {
    sent: u64,
    retransmitted: u64,
}

impl SegmentCounts {
    /// Adds segments of a connection.
    pub(crate) fn add(&mut self, connection: u64, sent: u64, retransmitted: u64) {
        // Fibonacci hashing: successive numbers go to different batches.
        let batch = connection.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BATCHES.ilog2());
        let batch = &mut self.batches[batch as usize];
        batch.sent = batch.sent.saturating_add(sent);
        batch.retransmitted = batch.retransmitted.saturating_add(retransmitted);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (batch, other) in self.batches.iter_mut().zip(&other.batches) {
            batch.sent = batch.sent.saturating_add(other.sent);
            batch.retransmitted = batch.retransmitted.saturating_add(other.retransmitted);
        }
    }

    /// Returns the segments sent and retransmitted of each batch.
    pub(crate) fn batches(&self) -> impl Iterator<Item = (u64, u64)> {
        let batches = self.batches.iter();
        batches.map(|batch| (batch.sent, batch.retransmitted))
    }

    /// Creates counts from their batches; `None` if there are too many.
    pub(crate) fn of_batches(batches: &[(u64, u64)]) -> Option<Self> {
        let mut counts = Self::default();
        if batches.len() > BATCHES {
            return None;
        }
        for (own, (sent, retransmitted)) in counts.batches.iter_mut().zip(batches) {
            (own.sent, own.retransmitted) = (*sent, *retransmitted);
        }
        Some(counts)
    }

    /// Returns the segments sent, and the retransmissions among them.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let batches = self.batches.iter();
        batches.fold((0, 0), |(sent, retransmitted), batch| {
            let sent = batch.sent.saturating_add(sent);
            (sent, batch.retransmitted.saturating_add(retransmitted))
        })
    }

    /// Returns the part that were retransmissions, of this many connections; `None` without segments in two
    /// batches.
    ///
    /// The interval is Wilson's, for as many independent segments as have the estimated variance (Korn and
    /// Graubard, "Confidence intervals for proportions with small expected number of positive counts",
    /// Survey Methodology 24, 1998), with the quantile of Student's t distribution. Without
    /// retransmissions, the variance cannot be estimated: each connection then counts as one segment.
    pub(crate) fn estimate(&self, connections: u64) -> Option<Estimate> {
        let used: Vec<_> = { self.batches.iter() }
            .filter(|batch| batch.sent > 0)
            .collect();
        let (sent, retransmitted) = self.totals();
        let sent = sent as f64;
        let part = (retransmitted as f64 / sent).min(1.0);
        let degrees_of_freedom = used.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
        let residuals = used.iter().map(|batch| {
            let residual = batch.retransmitted as f64 - part * batch.sent as f64;
            residual * residual
        });
        let scale = used.len() as f64 / degrees_of_freedom as f64;
        let variance = scale * residuals.sum::<f64>() / (sent * sent);
        let independent = part * (1.0 - part) / sent;
        let segments = if independent > 0.0 {
            sent / (variance / independent).max(1.0)
        } else {
            (connections as f64).min(sent)
        };
        let (low, high) = wilson(part, segments, student(degrees_of_freedom));
        Some(Estimate {
            value: part,
            low,
            high,
            connections,
        })
    }
}

/// Wilson's score interval of a part of `count` trials, for a two-sided quantile.
fn wilson(part: f64, count: f64, quantile: f64) -> (f64, f64) {
    let square = quantile * quantile / count;
    let center = (part + square / 2.0) / (1.0 + square);
    let half =
        quantile * (part * (1.0 - part) / count + square / (4.0 * count)).sqrt() / (1.0 + square);
    ((center - half).max(0.0), (center + half).min(1.0))
}

/// Returns the 97.5 % quantile of Student's t distribution with 1 to 31 degrees of freedom.
fn student(degrees_of_freedom: usize) -> f64 {
    const QUANTILES: [f64; BATCHES - 1] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042, 2.040,
    ];
    QUANTILES[degrees_of_freedom.clamp(1, QUANTILES.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_retransmissions_the_upper_end_falls_with_the_connections() {
        let of = |connections: u64| {
            let mut counts = SegmentCounts::default();
            for connection in 0..connections {
                counts.add(connection, 1000, 0);
            }
            counts.estimate(connections).unwrap()
        };
        let (few, many) = (of(20), of(2000));
        assert_eq!((few.value, few.low, many.low), (0.0, 0.0, 0.0));
        assert!(few.high > 0.15 && few.high < 0.25, "{few:?}");
        assert!(many.high > 0.0015 && many.high < 0.0025, "{many:?}");
    }

    #[test]
    fn one_connection_has_no_interval() {
        let mut counts = SegmentCounts::default();
        counts.add(7, 1000, 10);
        assert_eq!(counts.estimate(1), None);
        assert_eq!(SegmentCounts::default().estimate(0), None);
    }

    #[test]
    fn losses_of_one_connection_are_less_certain_than_the_same_of_many() {
        let of = |lost: &dyn Fn(u64) -> u64| {
            let mut counts = SegmentCounts::default();
            for connection in 0..100 {
                counts.add(connection, 100, lost(connection));
            }
            counts.estimate(100).unwrap()
        };
        let (together, apart) = (
            of(&|connection| u64::from(connection == 3) * 100),
            of(&|_| 1),
        );
        assert_eq!(together.value, apart.value);
        assert!(together.high > 3.0 * apart.high, "{together:?} {apart:?}");
        assert!(together.low < apart.low);
    }

    #[test]
    fn more_retransmissions_than_segments_are_all_of_them() {
        let mut counts = SegmentCounts::default();
        for connection in 0..40 {
            counts.add(connection, 1, u64::MAX);
        }
        let estimate = counts.estimate(40).unwrap();
        assert_eq!((estimate.value, estimate.high), (1.0, 1.0));
        assert!(estimate.low > 0.0 && estimate.low < 1.0);
    }
}
