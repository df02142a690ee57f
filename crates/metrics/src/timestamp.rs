//! When something happened last.

use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::gauge::Gauge;

use crate::registration::Registration;

/// A gauge with the time of an event, in seconds since 1970, as Prometheus' own metrics have it:
/// `time() - NAME` is how long ago that was, also while nothing updates the gauge. Zero before the first
/// event.
#[derive(Clone, Debug)]
pub struct Timestamp(Gauge<f64, AtomicU64>);

impl Timestamp {
    /// Registers the gauge; its name has `_timestamp_seconds` added.
    pub fn register(registration: &mut Registration<'_>, name: &str, help: &str) -> Self {
        let gauge = Gauge::default();
        let name = format!("{name}_timestamp_seconds");
        registration.register(&name, help, &[], gauge.clone());
        Self(gauge)
    }

    /// Notes that it happens now.
    pub fn set_now(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.0.set(now.unwrap_or_default().as_secs_f64());
    }
}
