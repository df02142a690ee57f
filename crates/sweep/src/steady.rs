//! Steady-state detection: when a run may stop early, as its averages have converged and the rest of it
//! would change them little.
//!
//! The time after the warm-up is divided into batches of equal length. The window is the later half of the
//! batches so far. A run is steady when two conditions hold over the batches of the window, for each
//! group's share of the goodput and for each port's mean queue:
//!
//! - The half width of the 95 % confidence interval of the mean is within the tolerance. It is Student's t
//!   times the standard error, widened by `(1 + r) / (1 - r)` if successive batches correlate with `r`, the
//!   lag-1 autocorrelation (batch means as an AR(1) process: Fishman, "Principles of Discrete Event
//!   Simulation", 1978, section 5.10).
//! - The means of the window's halves differ by less than the tolerance: there is no trend.
//!
//! The results are those of the whole run if it had continued as in the window. Counters and averages are
//! [extrapolated](SteadyStateDetector::extrapolated); percentiles and maxima are those so far.

use serde::{Deserialize, Serialize};
use weir_results::{GroupSummary, PortSummary, Ratio, RunSummary};
use weir_units::{ByteSize, Duration, Rate};

/// The rule's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SteadyRule {
    /// The length of a batch.
    pub batch: Duration,
    /// The smallest number of batches in the window.
    pub batches: u32,
    /// The tolerance of shares.
    pub share: f64,
    /// The tolerance of mean queues.
    pub queue: ByteSize,
}

impl Default for SteadyRule {
    fn default() -> Self {
        Self {
            batch: Duration::from_millis(250),
            batches: 10,
            share: 0.005,
            queue: ByteSize::from_bytes(50_000),
        }
    }
}

impl SteadyRule {
    /// Checks the parameters.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.batch.is_zero() || self.batches < 4 {
            return Err("a rule needs batches longer than zero, and at least 4 of them".to_owned());
        }
        if !(self.share > 0.0 && self.share.is_finite()) || self.queue.is_zero() {
            return Err("the tolerances `share` and `queue` have to be above zero".to_owned());
        }
        Ok(())
    }
}

/// The detector for one run.
#[derive(Clone, Debug)]
pub struct SteadyStateDetector {
    rule: SteadyRule,
    /// The summary at the end of each batch.
    summaries: Vec<RunSummary>,
}

impl SteadyStateDetector {
    /// Creates a detector at the start of a run.
    pub fn new(rule: &SteadyRule) -> Self {
        Self {
            rule: rule.clone(),
            summaries: Vec::new(),
        }
    }

    /// Returns the length of a batch: call [`observe`](Self::observe) after each.
    pub fn batch(&self) -> Duration {
        self.rule.batch
    }

    /// Adds the summary at a batch's end, and returns whether the run is steady.
    pub fn observe(&mut self, summary: &RunSummary) -> bool {
        self.summaries.push(summary.clone());
        let begin = self.begin();
        let window = &self.summaries[begin..];
        if window.len() <= self.rule.batches as usize {
            return false;
        }
        let groups = summary.groups.keys().all(|name| {
            settled(
                &batches(window, |from, to| share(name, from, to)),
                self.rule.share,
            )
        });
        groups
            && summary.ports.keys().all(|name| {
                let queues = batches(window, |from, to| queue(name, from, to));
                settled(&queues, self.rule.queue.bytes() as f64)
            })
    }

    /// Returns the batch at whose end the window begins.
    fn begin(&self) -> usize {
        self.summaries.len() / 2
    }

    /// Returns the summary of the whole run if it continues as in the window.
    pub fn extrapolated(&self, mut summary: RunSummary, duration: Duration) -> RunSummary {
        let Some(before) = self.summaries.get(self.begin()) else {
            return summary;
        };
        let measured = measured(&summary);
        let window = measured.as_secs_f64() - self::measured(before).as_secs_f64();
        let left = duration.as_secs_f64() - summary.simulated.as_secs_f64();
        if window <= 0.0 || left <= 0.0 {
            return summary;
        }
        let ahead = Horizon {
            factor: left / window,
        };
        let whole = duration.as_secs_f64() - summary.warm_up.as_secs_f64();
        for (name, group) in &mut summary.groups {
            let before = before.groups.get(name).cloned().unwrap_or_default();
            ahead.group(group, &before, Duration::from_secs_f64(whole));
        }
        let all = summary
            .groups
            .values()
            .map(|group| group.delivered.bytes())
            .sum();
        for group in summary.groups.values_mut() {
            group.share = Ratio::of(group.delivered.bytes(), all);
        }
        for (name, port) in &mut summary.ports {
            let before_port = before.ports.get(name).copied().unwrap_or_default();
            let spans = (
                self::measured(before).as_secs_f64(),
                measured.as_secs_f64(),
                whole,
            );
            ahead.port(port, &before_port, spans);
        }
        summary.interrupted = false;
        summary
    }
}

/// Returns the time after the warm-up.
fn measured(summary: &RunSummary) -> Duration {
    Duration::from_nanos(
        summary
            .simulated
            .as_nanos()
            .saturating_sub(summary.warm_up.as_nanos()),
    )
}

/// The rest of the run, in multiples of the window.
struct Horizon {
    factor: f64,
}

impl Horizon {
    fn count(&self, now: u64, before: u64) -> u64 {
        let gained = now.saturating_sub(before) as f64;
        now.saturating_add((gained * self.factor).round() as u64)
    }

    fn group(&self, group: &mut GroupSummary, before: &GroupSummary, whole: Duration) {
        let delivered = self.count(group.delivered.bytes(), before.delivered.bytes());
        group.delivered = ByteSize::from_bytes(delivered);
        group.goodput = Rate::from_size_over(group.delivered, whole);
        group.retransmits = self.count(group.retransmits, before.retransmits);
        group.timeouts = self.count(group.timeouts, before.timeouts);
        group.marks = self.count(group.marks, before.marks);
        group.completed = self.count(group.completed, before.completed);
    }

    /// `spans`: the measured seconds at the window's start, now, and at the run's end.
    fn port(&self, port: &mut PortSummary, before: &PortSummary, spans: (f64, f64, f64)) {
        let (begin, now, whole) = spans;
        let average = |mean: f64, before: f64| {
            let rest = (mean * now - before * begin) * self.factor;
            (mean * now + rest) / whole
        };
        let queue = average(
            port.queue_mean.bytes() as f64,
            before.queue_mean.bytes() as f64,
        );
        port.queue_mean = ByteSize::from_bytes(queue.max(0.0).round() as u64);
        let utilization = average(port.utilization.value(), before.utilization.value());
        port.utilization = Ratio::new(utilization.clamp(0.0, 1.0)).unwrap_or(port.utilization);
        port.packets = self.count(port.packets, before.packets);
        port.bytes = ByteSize::from_bytes(self.count(port.bytes.bytes(), before.bytes.bytes()));
        port.marks = self.count(port.marks, before.marks);
        port.drops = (port.drops).with(before.drops, |now, before| self.count(now, before));
    }
}

/// Returns a group's share of the bytes delivered between the ends of two batches.
fn share(name: &str, from: &RunSummary, to: &RunSummary) -> Option<f64> {
    let delivered = |summary: &RunSummary| Some(summary.groups.get(name)?.delivered.bytes());
    let all = |summary: &RunSummary| -> u64 {
        summary
            .groups
            .values()
            .map(|group| group.delivered.bytes())
            .sum()
    };
    let total = all(to).checked_sub(all(from)).filter(|total| *total > 0)?;
    Some(delivered(to)?.checked_sub(delivered(from)?)? as f64 / total as f64)
}

/// Returns a port's mean queue between the ends of two batches, in bytes.
fn queue(name: &str, from: &RunSummary, to: &RunSummary) -> Option<f64> {
    let area = |summary: &RunSummary| {
        let mean = summary.ports.get(name)?.queue_mean.bytes() as f64;
        Some(mean * measured(summary).as_secs_f64())
    };
    let span = measured(to).as_secs_f64() - measured(from).as_secs_f64();
    (span > 0.0).then_some((area(to)? - area(from)?) / span)
}

/// Returns a value per batch, if every batch has one.
fn batches(
    window: &[RunSummary],
    value: impl Fn(&RunSummary, &RunSummary) -> Option<f64>,
) -> Vec<f64> {
    let pairs = window.windows(2);
    let values: Option<Vec<f64>> = pairs.map(|pair| value(&pair[0], &pair[1])).collect();
    values.unwrap_or_default()
}

/// Whether batch means have converged to within the tolerance.
fn settled(means: &[f64], tolerance: f64) -> bool {
    if means.len() < 4 {
        return false;
    }
    let (early, late) = means.split_at(means.len() / 2);
    (mean(early) - mean(late)).abs() <= tolerance && half_width(means) <= tolerance
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns half of the 95 % confidence interval of the mean.
fn half_width(means: &[f64]) -> f64 {
    let count = means.len() as f64;
    let centre = mean(means);
    let squares: f64 = means.iter().map(|value| (value - centre).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    let products = means
        .windows(2)
        .map(|pair| (pair[0] - centre) * (pair[1] - centre));
    // Almost fully correlated means carry little information, but some.
    let correlation = (products.sum::<f64>() / squares).clamp(0.0, 0.95);
    let variance = squares / (count - 1.0) / count * (1.0 + correlation) / (1.0 - correlation);
    student(count - 1.0) * variance.sqrt()
}

/// Returns the 97.5 % point of Student's t (Abramowitz and Stegun, 26.7.5), to 1 % from 5 degrees of
/// freedom on.
fn student(freedom: f64) -> f64 {
    const Z: f64 = 1.959_964;
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    Z + first / freedom + second / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the summary after batches of one second, in each of which a and b delivered these bytes.
    fn summary(delivered: &[(u64, u64)], queue: u64) -> RunSummary {
        let sum = |pick: fn(&(u64, u64)) -> u64| delivered.iter().map(pick).sum();
        let group = |bytes| GroupSummary {
            delivered: ByteSize::from_bytes(bytes),
            retransmits: delivered.len() as u64,
            ..GroupSummary::default()
        };
        let mut summary = RunSummary {
            simulated: Duration::from_secs(delivered.len() as u64),
            ..RunSummary::default()
        };
        summary
            .groups
            .insert("a".to_owned(), group(sum(|pair| pair.0)));
        summary
            .groups
            .insert("b".to_owned(), group(sum(|pair| pair.1)));
        let port = PortSummary {
            queue_mean: ByteSize::from_bytes(queue),
            ..PortSummary::default()
        };
        summary.ports.insert("p".to_owned(), port);
        summary
    }

    /// Returns after how many batches the run is steady.
    fn stops(batch: impl Fn(u64) -> (u64, u64)) -> Option<usize> {
        let mut steady = SteadyStateDetector::new(&SteadyRule::default());
        let mut delivered = Vec::new();
        for number in 0..120 {
            delivered.push(batch(number));
            if steady.observe(&summary(&delivered, 1000)) {
                return Some(delivered.len());
            }
        }
        None
    }

    #[test]
    fn a_constant_run_is_steady_once_the_window_is_full() {
        assert_eq!(stops(|_| (700, 300)), Some(21));
    }

    #[test]
    fn a_trend_is_not_steady() {
        assert_eq!(stops(|number| (500 + 4 * number, 500)), None);
    }

    #[test]
    fn noise_takes_longer_and_a_run_without_delivery_is_never_steady() {
        // A standard deviation of one percent.
        let noisy = stops(|number| (700 + 37 * number % 127, 300));
        assert!(noisy.is_some_and(|batches| batches > 21), "{noisy:?}");
        assert_eq!(stops(|_| (0, 0)), None);
    }

    #[test]
    fn the_rest_of_the_run_is_extrapolated_from_the_window() {
        let mut steady = SteadyStateDetector::new(&SteadyRule::default());
        let delivered: Vec<(u64, u64)> = (0..20)
            .map(|number| if number < 8 { (0, 1000) } else { (500, 500) })
            .collect();
        for count in 1..=delivered.len() {
            steady.observe(&summary(&delivered[..count], 1000));
        }
        let whole = steady.extrapolated(summary(&delivered, 1000), Duration::from_secs(120));
        // Group a delivers nothing for 8 s, then half of all bytes for 112 s.
        let share = 112.0 * 500.0 / 120_000.0;
        assert!((whole.groups["a"].share.value() - share).abs() < 1e-9);
        assert_eq!(whole.groups["a"].retransmits, 120);
        assert_eq!(whole.ports["p"].queue_mean, ByteSize::from_bytes(1000));
    }

    #[test]
    fn students_t_matches_the_tables() {
        for (freedom, expected) in [(5.0, 2.571), (9.0, 2.262), (19.0, 2.093), (59.0, 2.001)] {
            assert!(
                (student(freedom) / expected - 1.0).abs() < 0.01,
                "{freedom}"
            );
        }
    }
}
