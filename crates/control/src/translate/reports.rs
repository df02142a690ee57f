//! Conversion of an agent's reports.

use weir_sed::{FlowProgress, QueueState, SwitchReport};
use weir_units::Duration;
use weir_wire::tcp::Sequence;

use super::{DecodeError, demand, flow, to_demand, to_flow};
use crate::v1;
use crate::v1::report::Report as Kind;

pub(crate) fn report(report: v1::Report) -> Result<SwitchReport, DecodeError> {
    Ok(match report.report.ok_or(DecodeError::Missing("report"))? {
        Kind::Opened(opened) => SwitchReport::Opened {
            flow: flow(opened.flow)?,
            port: opened.port,
            age: Duration::from_nanos(opened.age_nanoseconds),
            demand: opened
                .demand
                .map(|reported| demand(Some(reported)))
                .transpose()?,
        },
        Kind::Accepted(accepted) => SwitchReport::Accepted {
            flow: flow(accepted.flow)?,
            segment: accepted.segment_bytes,
            reverse_port: accepted.reverse_port,
        },
        Kind::Closed(closed) => SwitchReport::Closed {
            flow: flow(Some(closed))?,
        },
        Kind::Congested(port) => SwitchReport::Congested { port },
        Kind::Recovered(port) => SwitchReport::Recovered { port },
        Kind::Counters(counters) => {
            let reported = counters.acknowledged.into_iter();
            let acknowledged = reported.map(|reported| Ok((flow(reported.flow)?, reported.bytes)));
            SwitchReport::Counters {
                acknowledged: acknowledged.collect::<Result<_, DecodeError>>()?,
            }
        }
        Kind::Dropped(packet) => SwitchReport::Dropped {
            flow: flow(packet.flow)?,
            sequence: Sequence::new(packet.sequence),
        },
        Kind::Active(active) => SwitchReport::Active {
            flow: flow(active.flow)?,
            port: active.port,
            segment: active.segment_bytes,
            age: Duration::from_nanos(active.age_nanoseconds),
            acknowledged: active.acknowledged_bytes,
            demand: active
                .demand
                .map(|reported| demand(Some(reported)))
                .transpose()?,
        },
        Kind::Progress(progress) => {
            let flows = progress.flows.into_iter().map(|reported| {
                Ok(FlowProgress {
                    flow: flow(reported.flow)?,
                    acknowledged: reported.acknowledged_bytes,
                    in_flight: reported.in_flight_bytes,
                    is_idle: reported.idle,
                })
            });
            let queues = progress.queues.into_iter().map(|queue| QueueState {
                port: queue.port,
                backlog: queue.backlog_bytes,
                idle: Duration::from_nanos(queue.idle_nanoseconds),
                in_flight: queue.in_flight_bytes,
                is_window_limited: queue.window_limited,
            });
            SwitchReport::Progress {
                flows: flows.collect::<Result<_, DecodeError>>()?,
                queues: queues.collect(),
            }
        }
    })
}

pub(crate) fn to_report(report: &SwitchReport) -> v1::Report {
    let kind = match report {
        SwitchReport::Opened {
            flow,
            port,
            age,
            demand,
        } => Kind::Opened(v1::Opened {
            flow: Some(to_flow(flow)),
            port: *port,
            age_nanoseconds: age.as_nanos(),
            demand: demand.as_ref().map(to_demand),
        }),
        SwitchReport::Accepted {
            flow,
            segment,
            reverse_port,
        } => Kind::Accepted(v1::Accepted {
            flow: Some(to_flow(flow)),
            segment_bytes: *segment,
            reverse_port: *reverse_port,
        }),
        SwitchReport::Closed { flow } => Kind::Closed(to_flow(flow)),
        SwitchReport::Congested { port } => Kind::Congested(*port),
        SwitchReport::Recovered { port } => Kind::Recovered(*port),
        SwitchReport::Counters { acknowledged } => {
            let reported = acknowledged.iter().map(|(flow, bytes)| v1::Acknowledged {
                flow: Some(to_flow(flow)),
                bytes: *bytes,
            });
            let acknowledged = reported.collect();
            Kind::Counters(v1::Counters { acknowledged })
        }
        SwitchReport::Dropped { flow, sequence } => Kind::Dropped(v1::Packet {
            flow: Some(to_flow(flow)),
            sequence: sequence.number(),
        }),
        SwitchReport::Active {
            flow,
            port,
            segment,
            age,
            acknowledged,
            demand,
        } => Kind::Active(v1::Active {
            flow: Some(to_flow(flow)),
            port: *port,
            segment_bytes: *segment,
            age_nanoseconds: age.as_nanos(),
            acknowledged_bytes: *acknowledged,
            demand: demand.as_ref().map(to_demand),
        }),
        SwitchReport::Progress { flows, queues } => {
            let flows = flows.iter().map(|reported| v1::FlowProgress {
                flow: Some(to_flow(&reported.flow)),
                acknowledged_bytes: reported.acknowledged,
                in_flight_bytes: reported.in_flight,
                idle: reported.is_idle,
            });
            let queues = queues.iter().map(|queue| v1::QueueState {
                port: queue.port,
                backlog_bytes: queue.backlog,
                idle_nanoseconds: queue.idle.as_nanos(),
                in_flight_bytes: queue.in_flight,
                window_limited: queue.is_window_limited,
            });
            Kind::Progress(v1::Progress {
                flows: flows.collect(),
                queues: queues.collect(),
            })
        }
    };
    v1::Report { report: Some(kind) }
}
