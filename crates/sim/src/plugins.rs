//! Failures of plug-ins' controllers.

use weir_congestion::PluginFailure;
use weir_network::{RngStream, Seeds};
use weir_scenario::Scenario;

use crate::error::ControllerFailure;
use crate::flows::{Flow, FlowTable};

/// Whether a scenario has plug-ins.
pub(crate) fn has_any(scenario: &Scenario) -> bool {
    scenario
        .congestion()
        .any(|(_, spec)| spec.plugin().is_some())
}

/// Returns the first failure of a plug-in, if one has failed.
pub(crate) fn failure(
    scenario: &Scenario,
    seeds: Seeds,
    flows: &FlowTable,
) -> Option<ControllerFailure> {
    let mut failed = scenario.congestion().filter_map(|(user, spec)| {
        let plugin = spec.plugin()?;
        Some((user, plugin, plugin.failure()?))
    });
    let (user, plugin, failure) = failed.next()?;
    let flow = flow_of(failure, seeds, flows);
    let group = flow.and_then(|flow| scenario.groups.get(flow.group as usize));
    Some(ControllerFailure {
        plugin: plugin.reference().to_string(),
        user: group.map_or(user, |group| &group.name[..]).to_owned(),
        flow: flow.map(|flow| flow.index),
        at: failure.at,
        message: failure.message.clone(),
    })
}

/// Returns the flow whose controller failed, if it is open, over TCP.
fn flow_of<'f>(failure: &PluginFailure, seeds: Seeds, flows: &'f FlowTable) -> Option<&'f Flow> {
    let mut open = flows.open.iter();
    let seed = |number: u32| seeds.of(RngStream::Congestion, number as usize);
    let found = open.find(|(id, _)| seed(id.number) == failure.seed);
    found.map(|(_, flow)| flow)
}
