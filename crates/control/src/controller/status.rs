//! The status for operators.

use weir_sed::{Controller as Logic, Entry, PortId, Slack};
use weir_units::{Duration, Time};

use super::clock::Clock;
use super::switches::{Port, Switch, Switches};
use crate::leader_epoch::LeaderEpoch;
use crate::translate::{to_address, to_demand, to_flow};
use crate::v1;

/// The most flows in a status, and the default.
const MOST_FLOWS: usize = 10_000;
const USUAL_FLOWS: usize = 1000;

pub(super) fn of(
    logic: &Logic,
    switches: &Switches,
    leader_epoch: &LeaderEpoch,
    clock: &Clock,
    flows: usize,
) -> v1::Status {
    let limit = match flows {
        0 => USUAL_FLOWS,
        flows => flows.min(MOST_FLOWS),
    };
    v1::Status {
        leader_epoch: Some(v1::LeaderEpoch {
            name: leader_epoch.name.clone(),
            term: leader_epoch.term,
        }),
        up_nanoseconds: clock.age().as_nanos(),
        switches: switches
            .iter()
            .map(|(number, switch)| switch_status(logic, number, switch))
            .collect(),
        flows: flow_statuses(logic, switches, clock.now(), limit),
        all_flows: logic.flow_count() as u64,
        registrations: logic.demands().registered() as u64,
        senders: 0,
    }
}

fn switch_status(logic: &Logic, number: u32, switch: &Switch) -> v1::SwitchStatus {
    let ports = switch.ports.iter().map(|port| {
        let id = PortId {
            switch: number,
            port: port.number,
        };
        let state = logic.port(id).unwrap_or_default();
        v1::PortStatus {
            port: Some(port_description(port)),
            congested: state.congested,
            governed: state.governed,
            flows: logic.flows(id).count() as u64,
        }
    });
    v1::SwitchStatus {
        name: switch.name.clone(),
        attached: switch.session.is_some(),
        ports: ports.collect(),
    }
}

fn port_description(port: &Port) -> v1::Port {
    let behind = port.behind.iter().map(|(address, bits)| v1::Prefix {
        address: to_address(*address),
        bits: (*bits).into(),
    });
    v1::Port {
        number: port.number,
        name: port.name.clone(),
        rate_bits_per_second: port.rate.bits_per_second(),
        behind: behind.collect(),
        buffer_bytes: port.buffer.map_or(0, |size| size.bytes()),
    }
}

/// Returns the most urgent flows of all ports.
fn flow_statuses(
    logic: &Logic,
    switches: &Switches,
    now: Time,
    limit: usize,
) -> Vec<v1::FlowStatus> {
    let rtt = logic.config().rtt;
    let mut flows: Vec<_> = logic
        .ports()
        .flat_map(|(id, _)| {
            let flows = logic.flows(id).take(limit);
            flows.map(move |entry| (id, entry))
        })
        .collect();
    flows.sort_by_key(|(id, entry)| (entry.deadline(), entry.started, *id));
    flows.truncate(limit);
    let name = |number| {
        let named = switches.iter().find(|(other, _)| *other == number);
        named.map_or_else(String::new, |(_, switch)| switch.name.clone())
    };
    let status = |(id, entry): (PortId, &Entry)| v1::FlowStatus {
        flow: Some(to_flow(&entry.flow)),
        switch: name(id.switch),
        port: id.port,
        acknowledged_bytes: entry.acknowledged,
        demand: entry.demand.as_ref().map(to_demand),
        age_nanoseconds: now
            .checked_since(entry.started)
            .map_or(0, Duration::as_nanos),
        window_bytes: entry.window_size().map(|size| size.bytes()),
        slack_nanoseconds: entry.slack(now, rtt).map(slack),
    };
    flows.into_iter().map(status).collect()
}

fn slack(slack: Slack) -> i64 {
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    match slack {
        Slack::Early(span) => nanos(span),
        Slack::Late(span) => -nanos(span),
    }
}
