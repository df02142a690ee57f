//! The metrics of the policy file of an enforcer.

use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::family::Family;
use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::{Registration, Registry, Timestamp};

type Result = [(&'static str, &'static str); 1];

/// The metrics of the policy in force, and of attempts to load another one.
#[derive(Clone, Debug)]
pub struct PolicyMetrics {
    rules: Gauge,
    reloads: Family<Result, Counter>,
    loaded: Timestamp,
}

impl PolicyMetrics {
    /// Registers the metrics.
    pub fn register(registry: &Registry) -> Self {
        registry.shared(Self::registered)
    }

    fn registered(registration: &mut Registration<'_>) -> Self {
        let mut registration = registration.with_prefix("weir_enforce_policy");
        let (rules, reloads) = (Gauge::default(), Family::default());
        registration.register("rules", "Rules in force", &[], rules.clone());
        let help = "Times that the policy file was read again, by result: loaded or refused";
        registration.register("reloads", help, &["result"], reloads.clone());
        for result in ["loaded", "refused"] {
            drop(reloads.get_or_create(&[("result", result)]));
        }
        let help = "When the policy in force was read";
        let loaded = Timestamp::register(&mut registration, "loaded", help);
        Self {
            rules,
            reloads,
            loaded,
        }
    }

    /// Notes that a policy with this many rules is in force.
    pub fn set_rules(&self, rules: usize) {
        self.rules.set(i64::try_from(rules).unwrap_or(i64::MAX));
        self.loaded.set_now();
    }

    /// Notes an attempt to load another policy, and whether it is in force now.
    pub fn reloaded(&self, is_loaded: bool) {
        let result = if is_loaded { "loaded" } else { "refused" };
        self.reloads.get_or_create(&[("result", result)]).inc();
    }
}
