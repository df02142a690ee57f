//! Counts s2n-quic's events per connection.

use s2n_quic::provider::event::events::{
    Congestion, CongestionSource, EcnState, EcnStateChanged, KeyType, KeyUpdate,
};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber};

/// The counters of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) key_updates: u64,
    pub(super) ecn_works: bool,
    pub(super) ecn_marks: u64,
}

pub(super) struct Events;

impl Subscriber for Events {
    type ConnectionContext = Counts;

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) -> Counts {
        Counts::default()
    }

    fn on_key_update(&mut self, counts: &mut Counts, _: &ConnectionMeta, event: &KeyUpdate) {
        if let KeyType::OneRtt { generation, .. } = event.key_type {
            counts.key_updates = generation.into();
        }
    }

    fn on_ecn_state_changed(
        &mut self,
        counts: &mut Counts,
        _: &ConnectionMeta,
        event: &EcnStateChanged<'_>,
    ) {
        counts.ecn_works = matches!(event.state, EcnState::Capable { .. });
    }

    fn on_congestion(&mut self, counts: &mut Counts, _: &ConnectionMeta, event: &Congestion<'_>) {
        if matches!(event.source, CongestionSource::Ecn { .. }) {
            counts.ecn_marks += 1;
        }
    }
}
