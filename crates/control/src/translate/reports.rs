//! Conversion of an agent's reports.

use weir_sed::SwitchReport;
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
    };
    v1::Report { report: Some(kind) }
}
