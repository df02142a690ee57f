//! How the receiver sees that a congestion is over (section IV-C).

use std::collections::VecDeque;

use weir_units::Duration;

/// How Condition 1 compares the trends with their thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConditionReading {
    /// Above: most of the latest values were no larger than those before them.
    #[default]
    Above,
    /// Below, as printed. Condition 2 then asks for the contrary, so that Condition 1 must have held
    /// some time before.
    Below,
}

/// Which round-trip time is kept for the trend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RttReading {
    /// The smoothed one, which the paper calls RTT.
    #[default]
    Smoothed,
    /// The latest sample, which it calls RTT_current.
    Current,
}

/// When Congestion Mode ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuitConfig {
    /// K: how many values each window keeps, and of how many packets a marked portion is taken. 2 to
    /// 1024.
    pub window: u16,
    /// θ_ecn, in 0 to 1.
    pub ecn_threshold: f64,
    /// θ_RTT, in 0 to 1.
    pub rtt_threshold: f64,
    /// β: how many times `RTT_idle` the ACK interval is once Condition 1 holds; 1 to 1000.
    pub beta: f64,
    /// How Condition 1 is read.
    pub condition: ConditionReading,
    /// Which round-trip time counts.
    pub rtt: RttReading,
    /// A round-trip time this much above the one before still counts as no larger: what clocks and
    /// schedulers make of equal ones.
    pub rtt_tolerance: Duration,
}

impl Default for QuitConfig {
    /// The paper's thresholds; K = 8.
    fn default() -> Self {
        Self {
            window: 8,
            ecn_threshold: 0.5,
            rtt_threshold: 0.2,
            beta: 2.0,
            condition: ConditionReading::default(),
            rtt: RttReading::default(),
            rtt_tolerance: Duration::from_micros(1),
        }
    }
}

/// What the receiver makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is congestion: ACKs once per round trip.
    Congested,
    /// Condition 1 has held: ACKs every β RTT_idle.
    Easing,
    /// Condition 2 holds too: Congestion Mode may end.
    Ended,
}

/// The windows of recent values.
#[derive(Clone, Debug)]
pub struct CongestionObserver {
    config: QuitConfig,
    rtts: VecDeque<Duration>,
    /// How many of each K packets in a row were marked.
    portions: VecDeque<u16>,
    packets: u16,
    marked: u16,
    easing: bool,
}

impl CongestionObserver {
    /// Empty windows.
    pub fn new(config: QuitConfig) -> Self {
        let capacity = usize::from(config.window);
        Self {
            config,
            rtts: VecDeque::with_capacity(capacity),
            portions: VecDeque::with_capacity(capacity),
            packets: 0,
            marked: 0,
            easing: false,
        }
    }

    /// Forgets everything: a congestion begins.
    pub fn clear(&mut self) {
        self.rtts.clear();
        self.portions.clear();
        (self.packets, self.marked) = (0, 0);
        self.easing = false;
    }

    /// A data packet came. A mark ends what Condition 1 began.
    pub fn on_data(&mut self, is_marked: bool) {
        self.packets += 1;
        self.marked += u16::from(is_marked);
        self.easing &= !is_marked;
        if self.packets == self.config.window {
            push(&mut self.portions, self.marked, self.config.window);
            (self.packets, self.marked) = (0, 0);
        }
    }

    /// An ACK2 came, which measured this round-trip time.
    pub fn on_rtt(&mut self, rtt: Duration) -> Verdict {
        push(&mut self.rtts, rtt, self.config.window);
        let (Some(ecn), Some(delay)) = (self.ecn_trend(), self.delay_trend()) else {
            return Verdict::Congested;
        };
        let calm = self.latest_portion() == Some(0.0);
        let passes = |trend: f64, threshold: f64| match self.config.condition {
            ConditionReading::Above => trend > threshold,
            ConditionReading::Below => trend < threshold,
        };
        let first = passes(ecn, self.config.ecn_threshold)
            && passes(delay, self.config.rtt_threshold)
            && calm;
        self.easing |= first;
        if !self.easing {
            return Verdict::Congested;
        }
        if ecn == 1.0 && delay == 1.0 && calm {
            Verdict::Ended
        } else {
            Verdict::Easing
        }
    }

    /// Whether Condition 1 has held since the last mark.
    pub fn is_easing(&self) -> bool {
        self.easing
    }

    /// Equation (3): the share of round-trip times that are no larger than the one before; `None`
    /// until the window is full. K values have K − 1 such pairs.
    pub fn delay_trend(&self) -> Option<f64> {
        let tolerance = self.config.rtt_tolerance;
        self.trend(&self.rtts, |before, after| after <= before + tolerance)
    }

    /// Equation (4): the same for the portions of marked packets.
    pub fn ecn_trend(&self) -> Option<f64> {
        self.trend(&self.portions, |before, after| after <= before)
    }

    /// The portion of marked packets among the latest K that are complete.
    pub fn latest_portion(&self) -> Option<f64> {
        let latest = self.portions.back()?;
        Some(f64::from(*latest) / f64::from(self.config.window))
    }

    fn trend<T: Copy>(&self, values: &VecDeque<T>, falls: impl Fn(T, T) -> bool) -> Option<f64> {
        if values.len() < usize::from(self.config.window) {
            return None;
        }
        let pairs = values.iter().zip(values.iter().skip(1));
        let falling = pairs.filter(|(before, after)| falls(**before, **after));
        Some(falling.count() as f64 / (values.len() - 1) as f64)
    }
}

fn push<T>(values: &mut VecDeque<T>, value: T, capacity: u16) {
    if values.len() == usize::from(capacity) {
        values.pop_front();
    }
    values.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: QuitConfig = QuitConfig {
        window: 5,
        ecn_threshold: 0.5,
        rtt_threshold: 0.2,
        beta: 2.0,
        condition: ConditionReading::Above,
        rtt: RttReading::Current,
        rtt_tolerance: Duration::ZERO,
    };

    /// Five packets of which `marked` are.
    fn five(observer: &mut CongestionObserver, marked: u16) {
        for index in 0..5 {
            observer.on_data(index < marked);
        }
    }

    fn rtt(observer: &mut CongestionObserver, micros: u64) -> Verdict {
        observer.on_rtt(Duration::from_micros(micros))
    }

    #[test]
    fn the_trends_are_shares_of_a_full_window() {
        let mut observer = CongestionObserver::new(FIVE);
        for micros in [100, 120, 120, 90] {
            rtt(&mut observer, micros);
            assert_eq!(observer.delay_trend(), None);
        }
        rtt(&mut observer, 95);
        // Not 100→120, but 120→120 and 120→90; not 90→95.
        assert_eq!(observer.delay_trend(), Some(0.5));
        rtt(&mut observer, 95);
        // The oldest has gone.
        assert_eq!(observer.delay_trend(), Some(0.75));
        for marked in [5, 4, 4, 5] {
            five(&mut observer, marked);
        }
        assert_eq!(observer.ecn_trend(), None);
        five(&mut observer, 1);
        assert_eq!(observer.ecn_trend(), Some(0.75));
        assert_eq!(observer.latest_portion(), Some(0.2));
        observer.clear();
        assert_eq!(observer.latest_portion(), None);
    }

    #[test]
    fn a_congestion_eases_and_ends() {
        let mut observer = CongestionObserver::new(FIVE);
        for marked in [2, 3, 1, 0] {
            five(&mut observer, marked);
            assert_eq!(rtt(&mut observer, 200), Verdict::Congested);
        }
        five(&mut observer, 0);
        // Portions 2, 3, 1, 0, 0: three pairs of four fall.
        assert_eq!(rtt(&mut observer, 150), Verdict::Easing);
        five(&mut observer, 0);
        five(&mut observer, 0);
        // A longer round trip: only once it has left the window is Condition 2 met.
        assert_eq!(rtt(&mut observer, 160), Verdict::Easing);
        for _ in 0..3 {
            assert_eq!(rtt(&mut observer, 100), Verdict::Easing);
        }
        assert_eq!(rtt(&mut observer, 100), Verdict::Ended);
        observer.on_data(true);
        assert!(!observer.is_easing());
    }

    #[test]
    fn as_printed_condition_1_wants_rising_trends_first() {
        let printed = QuitConfig {
            condition: ConditionReading::Below,
            ..FIVE
        };
        let mut observer = CongestionObserver::new(printed);
        for (marked, micros) in [(0, 100), (1, 110), (2, 120), (3, 130)] {
            five(&mut observer, marked);
            rtt(&mut observer, micros);
        }
        five(&mut observer, 0);
        assert_eq!(rtt(&mut observer, 140), Verdict::Easing);
        for _ in 0..5 {
            five(&mut observer, 0);
            rtt(&mut observer, 100);
        }
        assert_eq!(rtt(&mut observer, 100), Verdict::Ended);
        // A path that was always calm never eases in this reading.
        observer.clear();
        for _ in 0..50 {
            five(&mut observer, 0);
            assert_eq!(rtt(&mut observer, 100), Verdict::Congested);
        }
    }

    #[test]
    fn jitter_within_the_tolerance_is_no_rise() {
        let tolerant = QuitConfig {
            rtt_tolerance: Duration::from_micros(3),
            ..FIVE
        };
        let mut observer = CongestionObserver::new(tolerant);
        for micros in [100, 102, 101, 103, 100] {
            rtt(&mut observer, micros);
        }
        assert_eq!(observer.delay_trend(), Some(1.0));
    }
}
