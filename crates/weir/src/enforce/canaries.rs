//! The figures of rules that are tried, as text.

use std::fmt::Write as _;
use std::time::Duration;

use weir_canary::figure_text;
use weir_enforce::operation::{CanaryStatus, GroupStatus, IntervalStatus, PeriodStatus};
use weir_policy::GuardMetric;

/// The figures, in the order in which they are shown, and how their values are written.
const FIGURES: [(&str, GuardMetric); 6] = [
    ("retransmits", GuardMetric::Retransmits),
    ("rtt", GuardMetric::Rtt),
    ("rtt_min", GuardMetric::Rtt),
    ("delivery_rate", GuardMetric::DeliveryRate),
    ("completion", GuardMetric::Completion),
    ("completion_p99", GuardMetric::CompletionP99),
];

/// Formats the figures of both groups of each rule.
pub(super) fn text(canaries: &[CanaryStatus]) -> String {
    canaries.iter().map(of_rule).collect()
}

fn of_rule(canary: &CanaryStatus) -> String {
    let share = match canary.share {
        1.0 => "all connections".to_owned(),
        share => format!("a share of {share}"),
    };
    let mut out = format!("\nrule {}: {share}", canary.line);
    if let Some(undone) = &canary.undone {
        let ago = Duration::from_secs(undone.ms_ago / 1000);
        let ago = humantime::format_duration(ago);
        let _ = write!(out, ", taken back {ago} ago: {}", undone.reason);
    }
    out.push('\n');
    out.push_str(&of_period(&canary.recent, canary.is_compared));
    out.push_str(&of_period(&canary.total, canary.is_compared));
    out
}

fn of_period(period: &PeriodStatus, is_compared: bool) -> String {
    let title = match period.seconds {
        Some(seconds) => format!("last {seconds} s"),
        None => "in all".to_owned(),
    };
    let PeriodStatus {
        treated, control, ..
    } = period;
    let mut out = String::new();
    let mut row = |name: &str, treated: &str, control: &str, difference: &str| {
        let row = if is_compared {
            format!("  {name:15} {treated:30} {control:30} {difference}")
        } else {
            format!("  {name:15} {treated}")
        };
        let _ = writeln!(out, "{}", row.trim_end());
    };
    row(&title, "treated", "control", "difference");
    let count = |group: &GroupStatus| group.connections.to_string();
    row("connections", &count(treated), &count(control), "");
    for (name, metric) in FIGURES {
        let of = |group: &GroupStatus| group.figures.get(name).copied();
        if of(treated).is_none() && of(control).is_none() {
            continue;
        }
        let shown = |figure: Option<IntervalStatus>| {
            figure.map_or_else(String::new, |figure| interval(metric, figure))
        };
        let difference = period.differences.get(name).copied();
        row(
            name,
            &shown(of(treated)),
            &shown(of(control)),
            &shown(difference),
        );
    }
    out
}

/// Formats an estimate with its interval, of which an end may be missing.
fn interval(metric: GuardMetric, figure: IntervalStatus) -> String {
    let end = |end: Option<f64>| end.map_or("?".to_owned(), |end| figure_text(metric, end));
    let value = figure_text(metric, figure.value);
    format!("{value} ({} to {})", end(figure.low), end(figure.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_groups_and_their_difference_are_shown() {
        let figure = |value: f64, high| IntervalStatus {
            value,
            low: Some(value / 2.0),
            high,
        };
        let mut canary = CanaryStatus {
            line: 4,
            share: 0.1,
            is_compared: true,
            ..CanaryStatus::default()
        };
        let period = &mut canary.recent;
        (period.seconds, period.treated.connections) = (Some(30), 120);
        let named = |figure| [("retransmits".to_owned(), figure)].into_iter().collect();
        period.treated.figures = named(figure(0.05, Some(0.06)));
        period.control.figures = named(figure(0.004, None));
        period.differences = named(figure(-0.01, Some(0.002)));
        let shown = text(std::slice::from_ref(&canary));
        let lines: Vec<_> = shown
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines[1..5],
            [
                "rule 4: a share of 0.1",
                "last 30 s treated control difference",
                "connections 120 0",
                "retransmits 5% (2.5% to 6%) 0.4% (0.2% to ?) -1% (-0.5% to 0.2%)",
            ]
        );
    }
}
