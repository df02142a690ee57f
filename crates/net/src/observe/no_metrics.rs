//! Replaces `metrics` in a build without that feature.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_quic::observe::Observer;

use crate::dcquic::Shared;

/// Uninhabited: there is no registry.
#[derive(Clone, Debug)]
pub(crate) enum Registry {}

/// Uninhabited: there are no metrics.
pub(super) enum EndpointMetrics {}

impl EndpointMetrics {
    pub(super) fn register(registry: &Registry, _: SocketAddr) -> Arc<Self> {
        match *registry {}
    }

    pub(super) fn follow(&self, _: &Registry, _: &Arc<Shared>) {
        match *self {}
    }

    pub(super) fn observer(metrics: &Arc<Self>) -> Box<dyn Observer> {
        match **metrics {}
    }
}
