//! A registry for several parts of a process, each of which registers once.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::encode;

use crate::description::Description;
use crate::registration::Registration;
use crate::text_format::{TextFormat, prometheus_text};

/// Metrics of a process. Clones are handles to the same registry.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<Mutex<Inner>>,
}

type Hook = Box<dyn Fn() -> bool + Send>;

#[derive(Default)]
struct Inner {
    metrics: prometheus_client::registry::Registry,
    descriptions: Vec<Description>,
    /// The metrics of each part, by their type.
    sets: HashMap<TypeId, Box<dyn Any + Send>>,
    hooks: Vec<Hook>,
}

impl Registry {
    /// Creates a registry without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the metrics of type `Set`, which `register` creates and registers on the first call.
    /// So a metric has one name, one help text and one type, however many objects it counts.
    /// `register` must not use this registry by another handle.
    pub fn shared<Set: Clone + Send + 'static>(
        &self,
        register: impl FnOnce(&mut Registration<'_>) -> Set,
    ) -> Set {
        let mut inner = self.lock();
        let Inner {
            metrics,
            descriptions,
            sets,
            ..
        } = &mut *inner;
        let key = TypeId::of::<Set>();
        if let Some(set) = sets.get(&key).and_then(|set| set.downcast_ref::<Set>()) {
            return set.clone();
        }
        let set = register(&mut Registration::new(metrics, descriptions));
        sets.insert(key, Box::new(set.clone()));
        set
    }

    /// Registers a `hook` that updates metrics before each scrape; after it returns `false` it is
    /// not called again. It must not use this registry.
    pub fn before_scrape(&self, hook: impl Fn() -> bool + Send + 'static) {
        self.lock().hooks.push(Box::new(hook));
    }

    /// Returns what is registered, with or without values, in the order of registration.
    pub fn descriptions(&self) -> Vec<Description> {
        self.lock().descriptions.clone()
    }

    /// Returns all metrics as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut inner = self.lock();
        inner.hooks.retain(|hook| hook());
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &inner.metrics) {
            // Writing to a string does not fail: a metric's own encoder did.
            tracing::error!(%error, "a metric cannot be written");
        }
        text
    }

    /// Returns all metrics in a format.
    pub fn encode_as(&self, format: TextFormat) -> String {
        match format {
            TextFormat::OpenMetrics => self.encode(),
            TextFormat::Prometheus => prometheus_text(&self.encode()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;

    use super::*;

    type Label = [(&'static str, &'static str); 1];

    #[derive(Clone)]
    struct Set(Family<Label, Counter>);

    fn set(registry: &Registry) -> Set {
        registry.shared(|registry| {
            let family = Family::default();
            let help = "Things that happened";
            registry.register("things", help, &["who"], family.clone());
            Set(family)
        })
    }

    #[test]
    fn two_users_of_a_set_share_its_metrics() {
        let registry = Registry::new();
        set(&registry).0.get_or_create(&[("who", "a")]).inc();
        set(&registry).0.get_or_create(&[("who", "b")]).inc_by(2);
        let text = registry.encode();
        assert_eq!(text.matches("# TYPE things counter").count(), 1, "{text}");
        assert!(text.contains("things_total{who=\"a\"} 1\n"), "{text}");
        assert!(text.contains("things_total{who=\"b\"} 2\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        let descriptions = registry.descriptions();
        assert_eq!(descriptions.len(), 1);
        assert_eq!(descriptions[0].name, "things_total");
    }

    #[test]
    fn hooks_run_before_a_scrape_until_they_are_done() {
        let registry = Registry::new();
        let counter = set(&registry).0.get_or_create_owned(&[("who", "hook")]);
        registry.before_scrape(move || counter.inc() + 1 < 2);
        for expected in ["} 1\n", "} 2\n", "} 2\n"] {
            assert!(registry.encode().contains(expected));
        }
    }
}
