//! The metrics of an agent's channel.

use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::{Registration, Registry, Timestamp};

/// The metrics of an agent's channel to its controller.
#[derive(Clone, Debug)]
pub(super) struct ChannelMetrics {
    attached: Gauge,
    heard: Timestamp,
}

/// Registers the metrics of an agent's channel, as a channel with this registry does.
pub fn register_agent_metrics(registry: &Registry) {
    registry.shared(ChannelMetrics::register);
}

impl ChannelMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        registry.shared(Self::register)
    }

    fn register(registration: &mut Registration<'_>) -> Self {
        let mut registration = registration.with_prefix("weir_sed_agent");
        let attached = Gauge::default();
        let help = "Whether a controller has accepted the agent: 1 or 0";
        registration.register("attached", help, &[], attached.clone());
        let help = "When a controller was last heard, by an order or a beat";
        let heard = Timestamp::register(&mut registration, "controller_heard", help);
        Self { attached, heard }
    }

    pub(super) fn set_attached(&self, attached: bool) {
        self.attached.set(attached.into());
    }

    /// Notes a message of the controller.
    pub(super) fn heard(&self) {
        self.heard.set_now();
    }
}
