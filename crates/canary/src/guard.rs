//! Guards: when a rule is taken back.

use std::fmt;

use weir_policy::{Comparison, GuardCondition, GuardMetric, GuardThreshold};
use weir_units::{Duration, Time};

use crate::{Estimate, Summary};

/// The fewest connections on which a guard decides, in each of the groups that it looks at.
pub const LEAST_CONNECTIONS: u64 = 20;

/// The longest pause between two evaluations in which a condition counts as holding.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The shortest span of the figures: open connections are reported every few seconds only.
const SHORTEST_SPAN: Duration = Duration::from_secs(10);

/// Evaluates a condition, until it has held for its duration.
///
/// The figures are those of the last so many seconds as the condition must hold, and of at least ten: from ten
/// seconds on, a single burst is in them for no longer than that, and is not enough. A condition holds if the whole 95 % interval is beyond the
/// threshold: against a control group, that of the difference from so many times its figure. Less than
/// [`LEAST_CONNECTIONS`] decide nothing.
#[derive(Clone, Debug)]
pub struct Guard {
    condition: GuardCondition,
    held_since: Option<Time>,
    evaluated_at: Time,
    has_fired: bool,
}

/// Why a guard has fired.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The condition.
    pub condition: GuardCondition,
    /// The figure of the treated connections.
    pub treated: Estimate,
    /// The figure of the control group, if the condition compares with it.
    pub control: Option<Estimate>,
    /// How long the condition has held.
    pub held: Duration,
}

impl Guard {
    /// Creates a guard that has not fired.
    pub fn new(condition: GuardCondition) -> Self {
        Self {
            condition,
            held_since: None,
            evaluated_at: Time::ZERO,
            has_fired: false,
        }
    }

    /// Returns the span of which the figures for [`Self::evaluate`] are to be.
    pub fn span(&self) -> Duration {
        self.condition.duration.max(SHORTEST_SPAN)
    }

    /// Evaluates the condition, about once a second. Returns the evidence when it has held for its duration,
    /// once.
    pub fn evaluate(
        &mut self,
        now: Time,
        treated: &Summary,
        control: &Summary,
    ) -> Option<Evidence> {
        let pause = now.since(self.evaluated_at);
        self.evaluated_at = now;
        let Some((treated, control)) = self.figures(treated, control) else {
            self.held_since = None;
            return None;
        };
        let held_before = self.held_since.filter(|_| pause <= LONGEST_PAUSE);
        let held_since = held_before.unwrap_or(now);
        self.held_since = Some(held_since);
        let held = now.since(held_since);
        if self.has_fired || held < self.condition.duration {
            return None;
        }
        self.has_fired = true;
        Some(Evidence {
            condition: self.condition.clone(),
            treated,
            control,
            held,
        })
    }

    /// Returns the figures if they are beyond the threshold.
    fn figures(
        &self,
        treated: &Summary,
        control: &Summary,
    ) -> Option<(Estimate, Option<Estimate>)> {
        let GuardCondition {
            metric,
            comparison,
            threshold,
            ..
        } = self.condition;
        let decisive = |summary: &Summary| {
            let estimate = summary.estimate(metric)?;
            (estimate.connections >= LEAST_CONNECTIONS).then_some(estimate)
        };
        let treated = decisive(treated)?;
        let (low, high, control) = match absolute(threshold) {
            Ok(value) => (treated.low - value, treated.high - value, None),
            Err(factor) => {
                let control = decisive(control)?;
                let difference = treated.minus(factor, &control);
                (difference.low, difference.high, Some(control))
            }
        };
        let is_beyond = match comparison {
            Comparison::Above => low > 0.0,
            Comparison::Below => high < 0.0,
        };
        is_beyond.then_some((treated, control))
    }
}

/// Returns an absolute threshold in the unit of estimates, or else the factor against the control group.
fn absolute(threshold: GuardThreshold) -> Result<f64, f64> {
    match threshold {
        GuardThreshold::Factor(factor) => Err(factor),
        GuardThreshold::Percentage(percentage) => Ok(percentage / 100.0),
        GuardThreshold::Duration(duration) => Ok(duration.as_secs_f64()),
        GuardThreshold::Rate(rate) => Ok(rate.bits_per_second() as f64),
    }
}

impl fmt::Display for Evidence {
    /// Formats the condition and the figures: `retransmits > 2x for 30s: 5.12% (4.2% to 6.1%) of 830
    /// connections, control group 0.4% (0.21% to 0.72%) of 7510`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |estimate: &Estimate| {
            let text = |value| figure_text(self.condition.metric, value);
            let (value, low, high) = (estimate.value, estimate.low, estimate.high);
            format!("{} ({} to {})", text(value), text(low), text(high))
        };
        let Self {
            condition, treated, ..
        } = self;
        let (shown, count) = (figure(treated), treated.connections);
        let units = match condition.metric {
            GuardMetric::Cpu => "hosts",
            _ => "connections",
        };
        write!(f, "{condition}: {shown} of {count} {units}")?;
        if let Some(control) = &self.control {
            let (shown, connections) = (figure(control), control.connections);
            write!(f, ", control group {shown} of {connections}")?;
        }
        Ok(())
    }
}

/// Formats a figure in the unit of its metric, with three digits: `5.12%`, `1.2ms`, `-98.7Mbps`.
pub fn figure_text(metric: GuardMetric, value: f64) -> String {
    if value < 0.0 {
        return format!("-{}", figure_text(metric, -value));
    }
    if value.is_infinite() {
        return "unlimited".to_owned();
    }
    match metric {
        GuardMetric::Retransmits | GuardMetric::Cpu => {
            format!("{}%", three_digits(value * 100.0))
        }
        GuardMetric::Rtt | GuardMetric::Completion | GuardMetric::CompletionP99 => {
            scaled(value, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")])
        }
        GuardMetric::DeliveryRate => scaled(
            value,
            &[(1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1.0, "bps")],
        ),
    }
}

/// Formats in the largest unit of which there is one, or else the last.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(unit, _)| value >= *unit);
    let (unit, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    format!("{}{name}", three_digits(value / unit))
}

/// Formats with three digits, but no less than those before the decimal point, and without trailing zeros.
fn three_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 8);
    let text = format!("{value:.*}", decimals as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
