//! The fidelity of the emulation: how late packets were, and whether busy links kept their rates.

use weir_fabric::PacketCount;
use weir_results::{AchievedRate, Emulation};
use weir_scenario::{PortIndex, Topology};
use weir_units::{ByteSize, Duration, Rate, Time};

use super::distribution::Distribution;
use super::losses::Losses;

/// The allowed error of a busy link's rate, as a fraction.
const RATE_ERROR: f64 = 0.01;
/// A link is busy when it has sent for this long without a gap.
const BUSY: Duration = Duration::from_millis(20);

/// The fidelity statistics of one switch.
#[derive(Debug)]
pub(super) struct Fidelity {
    lateness: Distribution,
    error: Distribution,
    /// The limit on the 99th percentile of the delay error.
    latest: Duration,
    /// For each port of the topology.
    paces: Vec<LinkPace>,
}

/// The rate of a link while it was busy.
#[derive(Clone, Debug)]
struct LinkPace {
    rate: Rate,
    framing: ByteSize,
    /// Its delivered total at the last update, and when that was due.
    seen: PacketCount,
    due: Time,
    /// The current train.
    train: Option<PacketTrain>,
    /// The sum of all trains that were long enough.
    busy: BusyPeriod,
}

/// Packets that followed each other without a gap.
#[derive(Clone, Copy, Debug)]
struct PacketTrain {
    /// When the first packet was handed over.
    begin: Time,
    /// When the last packet was handed over.
    end: Time,
    /// The bytes on the wire, without those of the first packet.
    size: ByteSize,
}

#[derive(Clone, Copy, Debug, Default)]
struct BusyPeriod {
    size: ByteSize,
    /// The time that they take at the link's rate.
    asked: Duration,
    /// The time that they took.
    took: Duration,
}

impl Fidelity {
    /// Creates empty statistics. Results with a 99th percentile of the delay error above `latest` are not
    /// faithful.
    pub(super) fn new(topology: &Topology, latest: Duration) -> Self {
        let pace = |port: &weir_scenario::Port| LinkPace {
            rate: port.rate,
            framing: port.framing,
            seen: PacketCount::ZERO,
            due: Time::ZERO,
            train: None,
            busy: BusyPeriod::default(),
        };
        Self {
            lateness: Distribution::new(),
            error: Distribution::new(),
            latest,
            paces: topology.ports.iter().map(pace).collect(),
        }
    }

    /// Resets the statistics at the end of the warm-up.
    pub(super) fn begin(&mut self) {
        (self.lateness, self.error) = (Distribution::new(), Distribution::new());
        for pace in &mut self.paces {
            (pace.train, pace.busy) = (None, BusyPeriod::default());
        }
    }

    /// Records that a host received `count` packets at `now`. The first and the last were due at these
    /// times, those between at equal intervals; they may have waited `unread` before they were read.
    #[inline]
    pub(super) fn handed_over(
        &mut self,
        now: Time,
        (first, last): (Time, Time),
        count: u64,
        unread: Duration,
    ) {
        let span = last.since(first).as_nanos();
        let interval = span.checked_div(count.saturating_sub(1)).unwrap_or(0);
        for position in 0..count {
            let due = first + Duration::from_nanos(interval * position);
            let late = now.since(due);
            self.lateness.record(late);
            self.error.record(late + unread);
        }
    }

    /// Records that a port's link delivered a packet that was `due`; `delivered` is the link's total.
    #[inline]
    pub(super) fn link_delivered(
        &mut self,
        port: usize,
        due: Time,
        now: Time,
        delivered: PacketCount,
    ) {
        if let Some(pace) = self.paces.get_mut(port)
            && pace.rate < Rate::MAX
            && !pace.rate.is_zero()
        {
            pace.advance(due, now, delivered);
        }
    }

    /// Sets the link's rate.
    pub(super) fn set_rate(&mut self, port: PortIndex, rate: Rate) {
        if let Some(pace) = self.paces.get_mut(port.index()) {
            pace.close();
            pace.rate = rate;
        }
    }

    /// Returns the statistics, with the reasons why the emulation is not faithful.
    pub(super) fn emulation(
        &mut self,
        topology: &Topology,
        losses: Losses,
        switch_cpu: Duration,
    ) -> Emulation {
        let mut emulation = Emulation {
            lateness_p50: self.lateness.percentile(0.5),
            lateness_p99: self.lateness.percentile(0.99),
            lateness_max: self.lateness.maximum,
            delay_error_p50: self.error.percentile(0.5),
            delay_error_p99: self.error.percentile(0.99),
            switch_cpu,
            ..Emulation::default()
        };
        let mut reasons = Vec::new();
        if emulation.delay_error_p99 > self.latest {
            let (error, limit) = (emulation.delay_error_p99, self.latest);
            reasons.push(format!(
                "the machine is too slow: 1 % of the packets came more than {error} late, and {limit} is \
                 the limit"
            ));
        }
        if losses.full > 0 {
            let full = losses.full;
            reasons.push(format!("hosts had no room for {full} frames"));
        }
        for (pace, port) in self.paces.iter_mut().zip(&topology.ports) {
            pace.close();
            let Some(rate) = pace.busy.rate() else {
                continue;
            };
            let (asked, achieved) = (rate.asked, rate.achieved);
            let error = achieved.bits_per_second() as f64 / asked.bits_per_second() as f64 - 1.0;
            if error.abs() > RATE_ERROR {
                let name = &port.name;
                reasons.push(format!("`{name}` sent at {achieved} instead of {asked}"));
            }
            emulation.rates.insert(port.name.clone(), rate);
        }
        emulation.faithful = reasons.is_empty();
        emulation.reasons = reasons;
        emulation
    }
}

impl LinkPace {
    fn advance(&mut self, due: Time, now: Time, delivered: PacketCount) {
        let new = delivered - self.seen;
        if new.packets == 0 {
            // The link has taken a packet from a scheduler, or a delayed packet has come out.
            return;
        }
        let size = new.size + self.framing * new.packets;
        // Back-to-back transmissions end as far apart as the later ones take, to a nanosecond.
        let gap = due.checked_since(self.due).unwrap_or(Duration::ZERO);
        let follows = gap <= self.rate.time_for(size) + Duration::from_nanos(1);
        (self.seen, self.due) = (delivered, due);
        match &mut self.train {
            Some(stretch) if follows => {
                stretch.size += size;
                stretch.end = now;
            }
            _ => {
                self.close();
                self.train = Some(PacketTrain {
                    begin: now,
                    end: now,
                    size: ByteSize::ZERO,
                });
            }
        }
    }

    /// Ends the current train.
    fn close(&mut self) {
        let Some(stretch) = self.train.take() else {
            return;
        };
        let took = stretch.end.since(stretch.begin);
        if took >= BUSY {
            self.busy.size += stretch.size;
            self.busy.took += took;
            self.busy.asked += self.rate.time_for(stretch.size);
        }
    }
}

impl BusyPeriod {
    fn rate(&self) -> Option<AchievedRate> {
        (!self.took.is_zero() && !self.asked.is_zero()).then(|| AchievedRate {
            asked: Rate::from_size_over(self.size, self.asked),
            achieved: Rate::from_size_over(self.size, self.took),
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::Scenario;

    use super::*;

    const SCENARIO: &str = r#"
        title = "t"
        source = "t"
        duration = "1s"
        [star]
        rate = "1Gbps"
        delay = "1us"
        queue = "unlimited"
        framing = "0B"
        [star.hosts.a]
        [star.hosts.b]
        [groups.g]
        from = "a"
        to = "b"
        workload = "bulk"
    "#;

    fn topology() -> Topology {
        let loaded = Scenario::parse("test", SCENARIO, &[]).unwrap();
        loaded.scenario.topology
    }

    /// Delivers packets of 1000 bytes (8 us each) from port 0 back to back. The actual times are
    /// stretched by `stretched` thousandths.
    fn after(count: u64, stretched: u64) -> Emulation {
        let topology = topology();
        let mut fidelity = Fidelity::new(&topology, Duration::from_micros(250));
        let mut delivered = PacketCount::ZERO;
        for number in 1..=count {
            let due = Time::from_nanos(8000 * number);
            let now = due + Duration::from_nanos(8 * number * stretched);
            // A poll that delivers nothing ends no train.
            fidelity.link_delivered(0, due - Duration::from_micros(1), now, delivered);
            delivered.record(ByteSize::from_bytes(1000));
            fidelity.link_delivered(0, due, now, delivered);
        }
        fidelity.emulation(&topology, Losses::default(), Duration::ZERO)
    }

    #[test]
    fn a_busy_link_is_timed() {
        let emulation = after(10_000, 0);
        assert!(emulation.faithful, "{:?}", emulation.reasons);
        let [rate] = emulation.rates.values().copied().collect::<Vec<_>>()[..] else {
            panic!("{:?}", emulation.rates);
        };
        assert_eq!(rate.asked, Rate::from_gbps(1));
        assert_eq!(rate.achieved, Rate::from_gbps(1));
        assert!(after(10_000, 9).faithful);
        let slow = after(10_000, 20);
        assert!(!slow.faithful && slow.reasons[0].contains("instead of 1Gbps"));
    }

    #[test]
    fn a_short_busy_period_gives_no_rate() {
        assert!(after(2000, 100).rates.is_empty());
    }

    #[test]
    fn late_packets_and_lost_frames_make_a_run_unfaithful() {
        let topology = topology();
        let mut fidelity = Fidelity::new(&topology, Duration::from_micros(250));
        let at = Time::from_nanos;
        // Due at 0, 1, 2 and 3 us.
        fidelity.handed_over(at(3000), (at(0), at(3000)), 4, Duration::ZERO);
        let fine = fidelity.emulation(&topology, Losses::default(), Duration::ZERO);
        assert!(fine.faithful);
        assert_eq!(fine.lateness_max, Duration::from_micros(3));
        assert_eq!(fine.lateness_p50.as_nanos() / 100, 10);

        fidelity.handed_over(at(3000), (at(3000), at(3000)), 1, Duration::from_millis(1));
        let losses = Losses { full: 2, down: 5 };
        let bad = fidelity.emulation(&topology, losses, Duration::ZERO);
        assert_eq!(bad.reasons.len(), 2, "{:?}", bad.reasons);
        assert_eq!(bad.lateness_max, Duration::from_micros(3));
        fidelity.begin();
        let anew = fidelity.emulation(&topology, Losses::default(), Duration::ZERO);
        assert!(anew.faithful && anew.lateness_max.is_zero());
    }
}
