//! Conditions under which a rule is taken back: `retransmits > 2x for 30s`.

use std::fmt;
use std::str::FromStr;

use weir_units::{Duration, Rate};

/// What must hold of a rule's treated connections, and for how long, before the rule is taken back.
///
/// ```
/// use weir_policy::{GuardCondition, GuardMetric};
///
/// let condition: GuardCondition = "retransmits > 2x for 30s".parse()?;
/// assert_eq!(condition.metric, GuardMetric::Retransmits);
/// assert!(condition.needs_control_group());
/// assert_eq!(condition.to_string(), "retransmits > 2x for 30s");
/// let error = "rtt > 20% for 10s".parse::<GuardCondition>().unwrap_err().to_string();
/// assert!(error.contains("a duration such as 20ms"), "{error}");
/// # Ok::<(), weir_policy::GuardConditionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GuardCondition {
    /// What is compared.
    pub metric: GuardMetric,
    /// On which side of the threshold it is bad.
    pub comparison: Comparison,
    /// The threshold.
    pub threshold: GuardThreshold,
    /// How long it must be beyond the threshold: from 1 s to 10 min.
    pub duration: Duration,
}

/// What a guard watches. Statistics of connections define these figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardMetric {
    /// The part of the segments that were retransmissions.
    Retransmits,
    /// The median of the connections' smoothed round-trip times.
    Rtt,
    /// The median of the connections' delivery rates.
    DeliveryRate,
    /// The median of the durations of short connections.
    Completion,
    /// The 99th percentile of the durations of short connections.
    CompletionP99,
    /// The median of the busy parts of the hosts' processors. Of hosts, not of a rule's connections: see
    /// [`GuardCondition::of_hosts`].
    Cpu,
}

/// On which side of a threshold a value is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Above it.
    Above,
    /// Below it.
    Below,
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GuardThreshold {
    /// This many times the value of the control group.
    Factor(f64),
    /// A part of all segments, or of the processors, in percent.
    Percentage(f64),
    /// A duration.
    Duration(Duration),
    /// A rate.
    Rate(Rate),
}

/// A text that is no condition of a guard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardConditionError {
    /// It has another form.
    #[error(
        "`{0}` is no condition: write METRIC > VALUE for DURATION, such as \"retransmits > 2x for 30s\" or \
         \"delivery_rate < 0.5x for 1min\""
    )]
    Form(String),
    /// It names no metric.
    #[error("there is no metric `{name}`; there is {known}")]
    Metric {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The value is not one of the metric.
    #[error(
        "`{value}` is no value of `{metric}`: write a factor against the control group such as {factor}, or {absolute}",
        factor = comparison.example_factor(), absolute = metric.absolute_values()
    )]
    Value {
        /// The value.
        value: String,
        /// The metric.
        metric: GuardMetric,
        /// The comparison.
        comparison: Comparison,
    },
    /// The factor is on the side of the control group where nothing is wrong.
    #[error(
        "`{comparison} {factor}x` holds where nothing is wrong: with `{comparison}` the factor is {right}, such as {}",
        comparison.example_factor(), right = comparison.right_factor()
    )]
    Factor {
        /// The factor.
        factor: String,
        /// The comparison.
        comparison: Comparison,
    },
    /// The duration is none, or out of its range.
    #[error("`{0}` is not how long it must hold: write a duration from 1s to 10min, such as 30s")]
    Duration(String),
}

impl GuardMetric {
    /// What hosts are compared by.
    pub const OF_HOSTS: [Self; 6] = [
        Self::Retransmits,
        Self::Rtt,
        Self::DeliveryRate,
        Self::Completion,
        Self::CompletionP99,
        Self::Cpu,
    ];

    /// What the connections of a rule are compared by.
    const OF_RULES: &[Self] = Self::OF_HOSTS.split_last().unwrap().1;

    /// Returns its name in a policy file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retransmits => "retransmits",
            Self::Rtt => "rtt",
            Self::DeliveryRate => "delivery_rate",
            Self::Completion => "completion",
            Self::CompletionP99 => "completion_p99",
            Self::Cpu => "cpu",
        }
    }

    fn names(metrics: &[Self]) -> String {
        let names = metrics.iter().map(|metric| format!("`{metric}`"));
        names.collect::<Vec<_>>().join(", ")
    }

    fn absolute_values(self) -> &'static str {
        match self {
            Self::Retransmits => "a part of the segments such as 1%",
            Self::Cpu => "a part of the processors such as 80%",
            Self::Rtt | Self::Completion | Self::CompletionP99 => "a duration such as 20ms",
            Self::DeliveryRate => "a rate such as 100Mbps",
        }
    }

    fn absolute(self, text: &str) -> Option<GuardThreshold> {
        match self {
            Self::Retransmits | Self::Cpu => {
                let percent = text.strip_suffix('%').and_then(decimal)?;
                (percent > 0.0 && percent < 100.0).then_some(GuardThreshold::Percentage(percent))
            }
            Self::Rtt | Self::Completion | Self::CompletionP99 => {
                let duration: Duration = text.parse().ok()?;
                (duration > Duration::ZERO).then_some(GuardThreshold::Duration(duration))
            }
            Self::DeliveryRate => {
                let rate: Rate = text.parse().ok()?;
                (rate.bits_per_second() > 0).then_some(GuardThreshold::Rate(rate))
            }
        }
    }
}

impl fmt::Display for GuardMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Comparison {
    const fn example_factor(self) -> &'static str {
        match self {
            Self::Above => "2x",
            Self::Below => "0.5x",
        }
    }

    const fn right_factor(self) -> &'static str {
        match self {
            Self::Above => "above 1",
            Self::Below => "below 1",
        }
    }

    /// Returns whether a factor tells worse connections from those of the control group.
    fn suits(self, factor: f64) -> bool {
        match self {
            Self::Above => factor > 1.0,
            Self::Below => factor < 1.0 && factor > 0.0,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Above => ">",
            Self::Below => "<",
        })
    }
}

impl fmt::Display for GuardThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factor(factor) => write!(f, "{factor}x"),
            Self::Percentage(percentage) => write!(f, "{percentage}%"),
            Self::Duration(duration) => write!(f, "{duration}"),
            Self::Rate(rate) => write!(f, "{rate}"),
        }
    }
}

impl GuardCondition {
    /// The shortest and the longest span for which a condition may have to hold.
    const DURATIONS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

    /// Returns whether the threshold is a factor against the control group.
    pub fn needs_control_group(&self) -> bool {
        matches!(self.threshold, GuardThreshold::Factor(_))
    }

    /// Reads a condition on hosts, which may watch their processors too.
    ///
    /// # Errors
    /// [`GuardConditionError`].
    pub fn of_hosts(text: &str) -> Result<Self, GuardConditionError> {
        Self::read(text, &GuardMetric::OF_HOSTS)
    }

    fn read(text: &str, metrics: &[GuardMetric]) -> Result<Self, GuardConditionError> {
        let form = || GuardConditionError::Form(text.to_owned());
        let (metric, comparison, rest) = match text.split_once(['>', '<']) {
            Some((metric, rest)) if text[metric.len()..].starts_with('>') => {
                (metric, Comparison::Above, rest)
            }
            Some((metric, rest)) => (metric, Comparison::Below, rest),
            None => return Err(form()),
        };
        let (value, duration) = rest.split_once(" for ").ok_or_else(form)?;
        let metric = metric.trim();
        let known = metrics.iter().find(|other| other.name() == metric);
        let metric = *known.ok_or_else(|| GuardConditionError::Metric {
            name: metric.to_owned(),
            known: GuardMetric::names(metrics),
        })?;
        Ok(Self {
            metric,
            comparison,
            threshold: threshold(value.trim(), metric, comparison)?,
            duration: span(duration.trim())?,
        })
    }
}

impl FromStr for GuardCondition {
    type Err = GuardConditionError;

    /// Reads a condition on the connections of a rule.
    fn from_str(text: &str) -> Result<Self, GuardConditionError> {
        Self::read(text, GuardMetric::OF_RULES)
    }
}

fn threshold(
    text: &str,
    metric: GuardMetric,
    comparison: Comparison,
) -> Result<GuardThreshold, GuardConditionError> {
    let wrong = || GuardConditionError::Value {
        value: text.to_owned(),
        metric,
        comparison,
    };
    let Some(factor) = text.strip_suffix('x') else {
        return metric.absolute(text).ok_or_else(wrong);
    };
    let number = decimal(factor).ok_or_else(wrong)?;
    if !comparison.suits(number) {
        return Err(GuardConditionError::Factor {
            factor: factor.to_owned(),
            comparison,
        });
    }
    Ok(GuardThreshold::Factor(number))
}

fn span(text: &str) -> Result<Duration, GuardConditionError> {
    let [shortest, longest] = GuardCondition::DURATIONS;
    let duration = text.parse::<Duration>().ok();
    duration
        .filter(|duration| (shortest..=longest).contains(duration))
        .ok_or_else(|| GuardConditionError::Duration(text.to_owned()))
}

/// Parses digits with at most one decimal point.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = is_plain.then(|| text.parse().ok())??;
    number.is_finite().then_some(number)
}

impl fmt::Display for GuardCondition {
    /// Formats it so that it is read as itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            metric,
            comparison,
            threshold,
            duration,
        } = self;
        write!(f, "{metric} {comparison} {threshold} for {duration}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mistake(text: &str) -> String {
        text.parse::<GuardCondition>().unwrap_err().to_string()
    }

    #[test]
    fn conditions_have_a_metric_a_threshold_and_a_duration() {
        for text in [
            "retransmits > 2x for 30s",
            "retransmits > 1% for 1min",
            "rtt > 1.5x for 5s",
            "rtt > 20ms for 10min",
            "delivery_rate < 0.5x for 1s",
            "delivery_rate < 10Mbps for 30s",
            "completion > 3x for 30s",
            "completion_p99 > 100ms for 30s",
        ] {
            assert_eq!(text.parse::<GuardCondition>().unwrap().to_string(), text);
        }
        let spaced: GuardCondition = "rtt>2x for  30s ".parse().unwrap();
        assert_eq!(spaced.to_string(), "rtt > 2x for 30s");
        let absolute: GuardCondition = "retransmits > 0.1% for 30s".parse().unwrap();
        assert_eq!(absolute.threshold, GuardThreshold::Percentage(0.1));
        assert!(!absolute.needs_control_group());
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        for (text, right) in [
            ("", "write METRIC > VALUE for DURATION"),
            (
                "retransmits 2x for 30s",
                "write METRIC > VALUE for DURATION",
            ),
            ("retransmits > 2x", "write METRIC > VALUE for DURATION"),
            (
                "losses > 2x for 30s",
                "there is `retransmits`, `rtt`, `delivery_rate`",
            ),
            (
                "retransmits > 2 for 30s",
                "such as 2x, or a part of the segments such as 1%",
            ),
            ("retransmits > 100% for 30s", "such as 1%"),
            ("retransmits > 20ms for 30s", "such as 1%"),
            ("rtt > 0ms for 30s", "a duration such as 20ms"),
            ("rtt > 1e3x for 30s", "a duration such as 20ms"),
            (
                "delivery_rate < 1% for 30s",
                "such as 0.5x, or a rate such as 100Mbps",
            ),
            (
                "rtt > 1x for 30s",
                "with `>` the factor is above 1, such as 2x",
            ),
            (
                "delivery_rate < 2x for 30s",
                "with `<` the factor is below 1, such as 0.5x",
            ),
            ("rtt > 2x for 30", "from 1s to 10min"),
            ("rtt > 2x for 999ms", "from 1s to 10min"),
            ("rtt > 2x for 11min", "from 1s to 10min"),
        ] {
            let said = mistake(text);
            assert!(said.contains(right), "{text}: {said}");
        }
    }

    fn conditions() -> impl Strategy<Value = GuardCondition> {
        let seconds = (1_u64..=600).prop_map(Duration::from_secs);
        let metric = proptest::sample::select(GuardMetric::OF_HOSTS.to_vec());
        (
            metric,
            any::<bool>(),
            1_u32..999_999,
            any::<bool>(),
            seconds,
        )
            .prop_map(|(metric, is_above, number, is_factor, duration)| {
                let comparison = if is_above {
                    Comparison::Above
                } else {
                    Comparison::Below
                };
                let threshold = match (is_factor, metric) {
                    (true, _) if is_above => GuardThreshold::Factor(1.0 + f64::from(number) / 7.0),
                    (true, _) => GuardThreshold::Factor(f64::from(number) / 1e6),
                    (_, GuardMetric::Retransmits | GuardMetric::Cpu) => {
                        GuardThreshold::Percentage(f64::from(number) / 1e4)
                    }
                    (_, GuardMetric::DeliveryRate) => {
                        GuardThreshold::Rate(Rate::from_bits_per_second(number.into()))
                    }
                    _ => GuardThreshold::Duration(Duration::from_nanos(number.into())),
                };
                GuardCondition {
                    metric,
                    comparison,
                    threshold,
                    duration,
                }
            })
    }

    proptest! {
        #[test]
        fn a_condition_is_read_as_it_is_written(condition in conditions()) {
            let text = condition.to_string();
            prop_assert_eq!(text.parse::<GuardCondition>().is_ok(), condition.metric != GuardMetric::Cpu);
            prop_assert_eq!(GuardCondition::of_hosts(&text), Ok(condition));
        }

        #[test]
        fn any_text_is_a_condition_or_a_mistake(text in "[a-z_]{0,11} ?[<>]? ?[0-9.]{0,4}[x%a-z]{0,3}( for )?[0-9]{0,3}[a-z]{0,3}|\\PC{0,20}") {
            if let Ok(condition) = text.parse::<GuardCondition>() {
                prop_assert_eq!(condition.to_string().parse(), Ok(condition));
            }
        }
    }
}
