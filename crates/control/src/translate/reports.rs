//! What an agent tells.

use weir_sed::Report;
use weir_units::Duration;
use weir_wire::tcp::Sequence;

use super::{Garbled, demand, flow, to_demand, to_flow};
use crate::v1;
use crate::v1::report::Report as Kind;

pub(crate) fn report(report: v1::Report) -> Result<Report, Garbled> {
    Ok(match report.report.ok_or(Garbled::Missing("report"))? {
        Kind::Opened(opened) => Report::Opened {
            flow: flow(opened.flow)?,
            port: opened.port,
            age: Duration::from_nanos(opened.age_nanoseconds),
            demand: opened.demand.map(|told| demand(Some(told))).transpose()?,
        },
        Kind::Accepted(accepted) => Report::Accepted {
            flow: flow(accepted.flow)?,
            segment: accepted.segment_bytes,
            reverse_port: accepted.reverse_port,
        },
        Kind::Closed(closed) => Report::Closed {
            flow: flow(Some(closed))?,
        },
        Kind::Congested(port) => Report::Congested { port },
        Kind::Recovered(port) => Report::Recovered { port },
        Kind::Counters(counters) => {
            let told = counters.acknowledged.into_iter();
            let acknowledged = told.map(|told| Ok((flow(told.flow)?, told.bytes)));
            Report::Counters {
                acknowledged: acknowledged.collect::<Result<_, Garbled>>()?,
            }
        }
        Kind::Dropped(packet) => Report::Dropped {
            flow: flow(packet.flow)?,
            sequence: Sequence::new(packet.sequence),
        },
    })
}

pub(crate) fn to_report(report: &Report) -> v1::Report {
    let kind = match report {
        Report::Opened {
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
        Report::Accepted {
            flow,
            segment,
            reverse_port,
        } => Kind::Accepted(v1::Accepted {
            flow: Some(to_flow(flow)),
            segment_bytes: *segment,
            reverse_port: *reverse_port,
        }),
        Report::Closed { flow } => Kind::Closed(to_flow(flow)),
        Report::Congested { port } => Kind::Congested(*port),
        Report::Recovered { port } => Kind::Recovered(*port),
        Report::Counters { acknowledged } => {
            let told = acknowledged.iter().map(|(flow, bytes)| v1::Acknowledged {
                flow: Some(to_flow(flow)),
                bytes: *bytes,
            });
            let acknowledged = told.collect();
            Kind::Counters(v1::Counters { acknowledged })
        }
        Report::Dropped { flow, sequence } => Kind::Dropped(v1::Packet {
            flow: Some(to_flow(flow)),
            sequence: sequence.number(),
        }),
    };
    v1::Report { report: Some(kind) }
}
