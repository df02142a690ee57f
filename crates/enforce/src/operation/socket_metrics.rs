//! The metrics of an enforcer at sockets, by rule and algorithm.

use weir_metrics::{Registration, Registry, SeriesRow, SeriesTable, Timestamp};

use super::canary_metrics::CanaryMetrics;
use super::status::{RuleStatus, SocketStatus};

/// The metrics of an enforcer at the sockets of a control group. Clones are handles to the same metrics.
#[derive(Clone, Debug)]
pub struct SocketMetrics {
    rules: SeriesTable<RuleStatus>,
    step: Timestamp,
    canaries: CanaryMetrics,
}

/// The labels of sockets. A rule is named by its line in the policy file.
const LABELS: [&str; 2] = ["rule", "algorithm"];

static ROWS: [SeriesRow<RuleStatus>; 10] = [
    SeriesRow::gauge("flows", "Open connections that belong to the rule", |of| {
        of.flows
    }),
    SeriesRow::gauge(
        "control_flows",
        "Open connections that are left alone for comparison, or because the rule was taken back",
        |of| of.control_flows,
    ),
    SeriesRow::gauge(
        "overridden_flows",
        "Open connections whose application has set an option itself afterwards",
        |of| of.overridden_flows,
    ),
    SeriesRow::counter(
        "matched_connections",
        "Connections that matched the rule",
        |of| of.matched,
    ),
    SeriesRow::counter(
        "applied_connections",
        "Connections that got all that the rule says",
        |of| of.applied,
    ),
    SeriesRow::counter(
        "no_ecn_connections",
        "Connections that got Reno, because they have no ECN, which the algorithm needs",
        |of| of.without_ecn,
    ),
    SeriesRow::counter("refused_options", "Options that the kernel refused", |of| {
        of.refused.values().sum()
    }),
    SeriesRow::counter(
        "overridden_options",
        "Options that applications have set themselves afterwards, which then hold",
        |of| of.overridden,
    ),
    SeriesRow::counter(
        "undone_connections",
        "Connections that got back what they had",
        |of| of.undone,
    ),
    SeriesRow::counter(
        "not_undone_connections",
        "Connections for which the kernel refused what they had",
        |of| of.not_undone,
    ),
];

impl SocketMetrics {
    /// Registers the metrics.
    pub fn register(registry: &Registry) -> Self {
        registry.shared(Self::registered)
    }

    fn registered(registration: &mut Registration<'_>) -> Self {
        let canaries = CanaryMetrics::register(registration);
        let mut registration = registration.with_prefix("weir_enforce_socket");
        let label_values = |of: &RuleStatus| {
            let former = if of.is_current { "" } else { " before" };
            [format!("{}{former}", of.line), of.algorithm.clone()]
        };
        let rules = SeriesTable::register(&mut registration, &LABELS, label_values, &ROWS);
        let help = "When the enforcer last counted the sockets";
        let step = Timestamp::register(&mut registration, "last_step", help);
        Self {
            rules,
            step,
            canaries,
        }
    }

    /// Updates the metrics.
    pub(crate) fn set(&self, status: &SocketStatus) {
        // Former rules may have stood in the same line.
        let mut rules: Vec<RuleStatus> = Vec::new();
        for rule in &status.rules {
            let same = |other: &&mut RuleStatus| {
                (other.line, &other.algorithm, other.is_current)
                    == (rule.line, &rule.algorithm, rule.is_current)
            };
            match rules.iter_mut().find(same) {
                Some(other) => add(other, rule),
                None => rules.push(rule.clone()),
            }
        }
        self.rules.set(rules);
        self.canaries.set(&status.canaries);
        self.step.set_now();
    }
}

fn add(sum: &mut RuleStatus, other: &RuleStatus) {
    let pairs = [
        (&mut sum.flows, other.flows),
        (&mut sum.control_flows, other.control_flows),
        (&mut sum.flows_without_ecn, other.flows_without_ecn),
        (&mut sum.overridden_flows, other.overridden_flows),
        (&mut sum.matched, other.matched),
        (&mut sum.applied, other.applied),
        (&mut sum.without_ecn, other.without_ecn),
        (&mut sum.overridden, other.overridden),
        (&mut sum.undone, other.undone),
        (&mut sum.not_undone, other.not_undone),
    ];
    for (sum, count) in pairs {
        *sum += count;
    }
    for (key, count) in &other.refused {
        *sum.refused.entry(key.clone()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_rules_of_one_line_are_one_series() {
        let registry = Registry::new();
        let metrics = SocketMetrics::register(&registry);
        let rule = |is_current, flows| RuleStatus {
            line: 3,
            algorithm: "cubic".to_owned(),
            is_current,
            flows,
            ..RuleStatus::default()
        };
        metrics.set(&SocketStatus {
            rules: vec![rule(true, 1), rule(false, 2), rule(false, 4)],
            ..SocketStatus::default()
        });
        let text = registry.encode();
        for line in [
            "weir_enforce_socket_flows{rule=\"3\",algorithm=\"cubic\"} 1\n",
            "weir_enforce_socket_flows{rule=\"3 before\",algorithm=\"cubic\"} 6\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
