//! In place of metrics in a build without the feature `metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_quic::observe::Observer;

use crate::dcquic::Shared;

/// Where counters would go: there is no such place.
#[derive(Clone, Debug)]
pub(crate) enum Registry {}

/// An endpoint's counters: there are none.
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
