//! The due times of packets at a constant rate.

use std::io;

use weir_network::Random;
use weir_scenario::Arrivals;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::clock::RunTimer;
use crate::control::{FlowOrder, LoadFactors};

/// The due times of packets, drawn as in the simulator.
#[derive(Debug)]
pub(super) struct PacketSchedule {
    interval: Duration,
    arrivals: Arrivals,
    random: Random,
    load: LoadFactors,
    next: Time,
}

impl PacketSchedule {
    /// Creates a schedule of packets of this IP length at this rate, the first at `start`.
    pub(super) fn new(
        start: Time,
        (rate, packet, arrivals): (Rate, ByteSize, Arrivals),
        order: &FlowOrder,
    ) -> Self {
        Self::with_load(start, (rate, packet, arrivals), &order.load, order.seed)
    }

    fn with_load(
        start: Time,
        (rate, packet, arrivals): (Rate, ByteSize, Arrivals),
        load: &LoadFactors,
        seed: u64,
    ) -> Self {
        Self {
            // At more than a packet per nanosecond the time would never advance.
            interval: rate.time_for(packet).max(Duration::from_nanos(1)),
            arrivals,
            random: Random::new(seed),
            load: load.clone(),
            next: start,
        }
    }

    /// Waits until packets are due, up to `quantum` longer if they follow each other faster than that.
    /// Returns their number.
    pub(super) async fn wait(
        &mut self,
        alarm: &mut RunTimer,
        quantum: Duration,
    ) -> io::Result<u64> {
        let wake = if self.interval < quantum {
            self.next + quantum
        } else {
            self.next
        };
        alarm.until(wake).await?;
        Ok(self.due(alarm.now()))
    }

    /// Returns the number of packets that have become due since the last call.
    fn due(&mut self, now: Time) -> u64 {
        let mut count = 0;
        while self.next <= now {
            count += 1;
            let interval = match self.arrivals {
                Arrivals::Regular => self.interval,
                Arrivals::Poisson => self.random.exponential(self.interval),
            };
            self.next = self.load.after(self.next, interval);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(arrivals: Arrivals) -> PacketSchedule {
        // 12 µs for 1500 bytes.
        let packet = ByteSize::from_bytes(1500);
        PacketSchedule::with_load(
            Time::from_nanos(500),
            (Rate::from_gbps(1), packet, arrivals),
            &LoadFactors::default(),
            7,
        )
    }

    #[test]
    fn each_packet_is_due_exactly_once() {
        let mut ticks = ticks(Arrivals::Regular);
        let counts = [499, 500, 12_499, 12_500, 120_500, 120_500]
            .map(|nanos| ticks.due(Time::from_nanos(nanos)));
        assert_eq!(counts, [0, 1, 0, 1, 9, 0]);
    }

    #[test]
    fn random_arrivals_have_the_rate_as_their_mean() {
        let mut ticks = ticks(Arrivals::Poisson);
        let count = ticks.due(Time::ZERO + Duration::from_millis(1_200));
        assert!((99_000..=101_000).contains(&count), "{count}");
    }
}
