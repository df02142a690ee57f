//! Conversion of a controller's orders and settings.

use weir_sed::{AgentConfig, WindowOrder};
use weir_units::{ByteSize, Duration};
use weir_wire::tcp::Sequence;

use super::{DecodeError, demand, flow, to_demand, to_flow};
use crate::v1;
use crate::v1::order::Order as Kind;

pub(crate) fn order(order: v1::Order) -> Result<WindowOrder, DecodeError> {
    Ok(match order.order.ok_or(DecodeError::Missing("order"))? {
        Kind::Allow(allow) => WindowOrder::Allow {
            flow: flow(allow.flow)?,
            window: allow.window_bytes,
        },
        Kind::Release(released) => WindowOrder::Release {
            flow: flow(Some(released))?,
        },
        Kind::Retransmit(packet) => WindowOrder::Retransmit {
            flow: flow(packet.flow)?,
            sequence: Sequence::new(packet.sequence),
        },
        Kind::Renew(_) => WindowOrder::Renew,
        Kind::Describe(_) => WindowOrder::Describe,
        Kind::Remember(remember) => WindowOrder::Remember {
            flow: flow(remember.flow)?,
            demand: demand(remember.demand)?,
        },
    })
}

pub(crate) fn to_order(order: &WindowOrder) -> v1::Order {
    let kind = match order {
        WindowOrder::Allow { flow, window } => Kind::Allow(v1::Allow {
            flow: Some(to_flow(flow)),
            window_bytes: *window,
        }),
        WindowOrder::Release { flow } => Kind::Release(to_flow(flow)),
        WindowOrder::Retransmit { flow, sequence } => Kind::Retransmit(v1::Packet {
            flow: Some(to_flow(flow)),
            sequence: sequence.number(),
        }),
        WindowOrder::Renew => Kind::Renew(v1::Nothing {}),
        WindowOrder::Describe => Kind::Describe(v1::Nothing {}),
        WindowOrder::Remember { flow, demand } => Kind::Remember(v1::Remember {
            flow: Some(to_flow(flow)),
            demand: Some(to_demand(demand)),
        }),
    };
    v1::Order { order: Some(kind) }
}

/// Converts the settings of agents to the wire format.
pub(crate) fn to_settings(config: &AgentConfig) -> v1::AgentSettings {
    v1::AgentSettings {
        threshold_bytes: config.threshold.bytes(),
        recovery_bytes: config.recovery.bytes(),
        packet_bytes: config.packet.bytes(),
        counters_interval_nanoseconds: config.counters_interval.as_nanos(),
        retransmit: config.retransmit,
        gentle_above: config.single_segment_above,
        never_stops: config.never_stops,
    }
}

/// Lower bound of the counters interval, whatever a controller requests.
const SHORTEST_INTERVAL: Duration = Duration::from_micros(100);

pub(crate) fn settings(
    settings: Option<v1::AgentSettings>,
    lease: Duration,
) -> Result<AgentConfig, DecodeError> {
    let settings = settings.ok_or(DecodeError::Missing("settings"))?;
    let interval = Duration::from_nanos(settings.counters_interval_nanoseconds);
    Ok(AgentConfig {
        threshold: ByteSize::from_bytes(settings.threshold_bytes.max(1)),
        recovery: ByteSize::from_bytes(settings.recovery_bytes),
        packet: ByteSize::from_bytes(settings.packet_bytes.max(1)),
        counters_interval: interval.max(SHORTEST_INTERVAL),
        retransmit: settings.retransmit,
        single_segment_above: settings.gentle_above,
        never_stops: settings.never_stops,
        lease,
        ..AgentConfig::paper()
    })
}
