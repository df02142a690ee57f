//! The receiver's detection of the end of congestion (section IV-C).

use std::collections::VecDeque;

use weir_units::Duration;

/// The interpretation of Condition 1: how it compares the trends with their thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConditionRule {
    /// Above: most of the latest values were no larger than the ones before.
    #[default]
    Above,
    /// Below, as printed. Condition 2 then requires the opposite, so Condition 1 must have held
    /// some time before.
    Below,
}

/// The RTT value used for the trend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RttSource {
    /// The smoothed RTT, called RTT in the paper.
    #[default]
    Smoothed,
    /// The latest sample, called RTT_current in the paper.
    Current,
}

/// The conditions that end Congestion Mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuitConfig {
    /// K: the number of values per window, and the number of packets per marked portion. 2 to 1024.
    pub window: u16,
    /// θ_ecn, in 0 to 1.
    pub ecn_threshold: f64,
    /// θ_RTT, in 0 to 1.
    pub rtt_threshold: f64,
    /// β: the ACK interval in units of `RTT_idle` once Condition 1 holds; 1 to 1000.
    pub beta: f64,
    /// The interpretation of Condition 1.
    pub condition: ConditionRule,
    /// The RTT value used for the trend.
    pub rtt: RttSource,
    /// The tolerance for RTT increases: clock and scheduling jitter makes equal RTTs differ.
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
            condition: ConditionRule::default(),
            rtt: RttSource::default(),
            rtt_tolerance: Duration::from_micros(1),
        }
    }
}

/// The observer's conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Congestion: ACKs once per round trip.
    Congested,
    /// Condition 1 has held: ACKs every β RTT_idle.
    Easing,
    /// Condition 2 holds too: Congestion Mode may end.
    Ended,
}

/// Detects the end of congestion from windows of recent values.
#[derive(Clone, Debug)]
pub struct CongestionObserver {
    config: QuitConfig,
    rtts: VecDeque<Duration>,
    /// Marked packets in each group of K consecutive packets.
    portions: VecDeque<u16>,
    packets: u16,
    marked: u16,
    easing: bool,
}

impl CongestionObserver {
    /// Creates an observer with empty windows.
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

    /// Resets all state at the start of congestion.
    pub fn clear(&mut self) {
        self.rtts.clear();
        self.portions.clear();
        (self.packets, self.marked) = (0, 0);
        self.easing = false;
    }

    /// Records a data packet. A mark resets Condition 1.
    pub fn on_data(&mut self, is_marked: bool) {
        self.packets += 1;
        self.marked += u16::from(is_marked);
        self.easing &= !is_marked;
        if self.packets == self.config.window {
            push(&mut self.portions, self.marked, self.config.window);
            (self.packets, self.marked) = (0, 0);
        }
    }

    /// Records the RTT measured by an ACK2.
    pub fn on_rtt(&mut self, rtt: Duration) -> Verdict {
        push(&mut self.rtts, rtt, self.config.window);
        let (Some(ecn), Some(delay)) = (self.ecn_trend(), self.delay_trend()) else {
            return Verdict::Congested;
        };
        let calm = self.latest_portion() == Some(0.0);
        let passes = |trend: f64, threshold: f64| match self.config.condition {
            ConditionRule::Above => trend > threshold,
            ConditionRule::Below => trend < threshold,
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

    /// Returns whether Condition 1 has held since the last mark.
    pub fn is_easing(&self) -> bool {
        self.easing
    }

    /// Equation (3): returns the fraction of RTTs that are no larger than the one before; `None`
    /// until the window is full. K values have K − 1 such pairs.
    pub fn delay_trend(&self) -> Option<f64> {
        let tolerance = self.config.rtt_tolerance;
        self.trend(&self.rtts, |before, after| after <= before + tolerance)
    }

    /// Equation (4): the same for the portions of marked packets.
    pub fn ecn_trend(&self) -> Option<f64> {
        self.trend(&self.portions, |before, after| after <= before)
    }

    /// Returns the portion of marked packets in the latest complete group of K.
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
        condition: ConditionRule::Above,
        rtt: RttSource::Current,
        rtt_tolerance: Duration::ZERO,
    };

    /// Adds five packets, `marked` of them marked.
    fn five(observer: &mut CongestionObserver, marked: u16) {
        for index in 0..5 {
            observer.on_data(index < marked);
        }
    }

    fn rtt(observer: &mut CongestionObserver, micros: u64) -> Verdict {
        observer.on_rtt(Duration::from_micros(micros))
    }

    #[test]
    fn trends_are_fractions_of_a_full_window() {
        let mut observer = CongestionObserver::new(FIVE);
        for micros in [100, 120, 120, 90] {
            rtt(&mut observer, micros);
            assert_eq!(observer.delay_trend(), None);
        }
        rtt(&mut observer, 95);
        // 100→120 rises; 120→120 and 120→90 do not; 90→95 rises.
        assert_eq!(observer.delay_trend(), Some(0.5));
        rtt(&mut observer, 95);
        // The oldest value has left the window.
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
    fn congestion_eases_and_ends() {
        let mut observer = CongestionObserver::new(FIVE);
        for marked in [2, 3, 1, 0] {
            five(&mut observer, marked);
            assert_eq!(rtt(&mut observer, 200), Verdict::Congested);
        }
        five(&mut observer, 0);
        // Portions 2, 3, 1, 0, 0: three of four pairs do not rise.
        assert_eq!(rtt(&mut observer, 150), Verdict::Easing);
        five(&mut observer, 0);
        five(&mut observer, 0);
        // A longer RTT: Condition 2 holds only once it has left the window.
        assert_eq!(rtt(&mut observer, 160), Verdict::Easing);
        for _ in 0..3 {
            assert_eq!(rtt(&mut observer, 100), Verdict::Easing);
        }
        assert_eq!(rtt(&mut observer, 100), Verdict::Ended);
        observer.on_data(true);
        assert!(!observer.is_easing());
    }

    #[test]
    fn printed_condition_1_requires_rising_trends_first() {
        let printed = QuitConfig {
            condition: ConditionRule::Below,
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
        // In this interpretation a path that never had congestion never reaches Condition 1.
        observer.clear();
        for _ in 0..50 {
            five(&mut observer, 0);
            assert_eq!(rtt(&mut observer, 100), Verdict::Congested);
        }
    }

    #[test]
    fn jitter_within_the_tolerance_is_not_a_rise() {
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
