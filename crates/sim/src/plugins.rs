//! Failures of plug-ins' controllers.

use weir_congestion::{AlgorithmSpec, PluginFailure};
use weir_network::{RngStream, Seeds};
use weir_scenario::{Scenario, Transport};

use crate::error::ControllerFailure;
use crate::flows::{Flow, FlowTable};

/// Whether a scenario has plug-ins.
pub(crate) fn has_any(scenario: &Scenario) -> bool {
    users(scenario).any(|(_, spec)| spec.plugin().is_some())
}

/// Returns the first failure of a plug-in, if one has failed.
pub(crate) fn failure(
    scenario: &Scenario,
    seeds: Seeds,
    flows: &FlowTable,
) -> Option<ControllerFailure> {
    let mut failed = users(scenario).filter_map(|(user, spec)| {
        let plugin = spec.plugin()?;
        Some((user, plugin, plugin.failure()?))
    });
    let (user, plugin, failure) = failed.next()?;
    let flow = flow_of(failure, seeds, flows);
    let group = flow.and_then(|flow| scenario.groups.get(flow.group as usize));
    Some(ControllerFailure {
        plugin: plugin.reference().to_string(),
        user: group.map_or(user, |group| &group.name).clone(),
        flow: flow.map(|flow| flow.index),
        at: failure.at,
        message: failure.message.clone(),
    })
}

/// Returns the congestion controls of a scenario's groups and switches, with their names.
fn users(scenario: &Scenario) -> impl Iterator<Item = (&String, &AlgorithmSpec)> {
    let groups = scenario.groups.iter();
    let of_groups = groups.filter_map(|group| Some((&group.name, congestion(&group.transport)?)));
    let switches = scenario.topology.switches.iter();
    let of_switches = switches.flat_map(|switch| {
        let controls = switch.tcon.iter().filter_map(|rule| rule.control.as_ref());
        controls.map(|control| (&switch.name, &control.congestion))
    });
    of_groups.chain(of_switches)
}

fn congestion(transport: &Transport) -> Option<&AlgorithmSpec> {
    match transport {
        Transport::Tcp { congestion, .. }
        | Transport::Tls { congestion, .. }
        | Transport::Quic { congestion, .. }
        | Transport::Dcudp { congestion, .. } => Some(congestion),
        Transport::Udp { .. } => None,
    }
}

/// Returns the flow whose controller failed, if it is open, over TCP.
fn flow_of<'f>(failure: &PluginFailure, seeds: Seeds, flows: &'f FlowTable) -> Option<&'f Flow> {
    let mut open = flows.open.iter();
    let seed = |number: u32| seeds.of(RngStream::Congestion, number as usize);
    let found = open.find(|(id, _)| seed(id.number) == failure.seed);
    found.map(|(_, flow)| flow)
}
