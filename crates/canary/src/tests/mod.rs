//! Simulated connections with known figures, and what the statistics and the guards make of them.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_policy::Group;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::{ConnectionRecord, ConnectionState, RuleId};

mod coverage;
mod guards;
mod policies;
mod records;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// A short connection of the treated group that has completed, without losses.
fn record(connection: u64) -> ConnectionRecord {
    ConnectionRecord {
        rule: RuleId(0),
        group: Group::Treated,
        connection,
        segments_sent: 10,
        segments_retransmitted: 0,
        rtt_smoothed: Some(Duration::from_millis(1)),
        rtt_min: Some(Duration::from_micros(500)),
        delivery_rate: Some(Rate::from_mbps(100)),
        duration: Duration::from_millis(3),
        delivered: ByteSize::from_bytes(14_000),
        state: ConnectionState::Completed,
    }
}

/// Draws connections whose losses, round-trip times and durations are known on average.
struct Population {
    random: Pcg64Mcg,
    /// The mean part of the segments that are retransmitted.
    loss: f64,
    /// The median round-trip time.
    rtt: Duration,
}

impl Population {
    fn new(seed: u64, loss: f64, rtt: Duration) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self { random, loss, rtt }
    }

    /// Draws from 0 to below 1.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws with a mean of 1: most are small.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Draws a connection. Its loss rate is its own: segments of a connection are lost together. Its size does
    /// not depend on it, so that the part of all segments is the mean of the loss rates.
    fn connection(&mut self, number: u64) -> ConnectionRecord {
        let rate = self.loss * (self.exponential() + self.exponential()) / 2.0;
        let segments = 5 + (self.exponential() * 60.0) as u64;
        let lost = (0..segments).filter(|_| self.uniform() < rate).count() as u64;
        // The median of an exponential distribution is ln 2.
        let skewed = self.exponential() / 2_f64.ln();
        let duration = self.exponential();
        ConnectionRecord {
            segments_sent: segments,
            segments_retransmitted: lost,
            rtt_smoothed: Some(self.rtt.mul_f64(skewed)),
            duration: Duration::from_secs_f64(duration * 1e-3),
            ..record(number)
        }
    }
}
