//! Transparent congestion control in the path of a scenario's switches.

use std::fmt;
use std::net::IpAddr;

use weir_fabric::Packet as FabricPacket;
use weir_policy::first_match;
use weir_results::TconSummary;
use weir_scenario::{HostIndex, SwitchIndex, TconRule, Topology};
use weir_tcon::{FlowInfo, FlowPolicy, Limits, PolicyLookup, Tcon};

use crate::network::Network;
use crate::seeds::{RngStream, Seeds};

/// A map from addresses to hosts.
pub trait AddressMap: fmt::Debug + Clone + Send + 'static {
    /// Returns the host with this address, if there is one.
    fn host(&self, address: IpAddr) -> Option<HostIndex>;
}

/// The rules of a switch.
#[derive(Debug)]
struct TconRules<W> {
    rules: Vec<(TconRule, Option<FlowPolicy>)>,
    owner: W,
}

impl<W: AddressMap> TconRules<W> {
    fn new(rules: &[TconRule], owner: W) -> Self {
        let policy = |rule: &TconRule| Some(FlowPolicy::by(rule.control.as_ref()?, 0));
        Self {
            rules: (rules.iter())
                .map(|rule| (rule.clone(), policy(rule)))
                .collect(),
            owner,
        }
    }
}

impl<W: AddressMap> PolicyLookup for TconRules<W> {
    fn policy_for(&self, flow: &FlowInfo) -> Option<&FlowPolicy> {
        let (from, to) = (
            self.owner.host(flow.key.source)?,
            self.owner.host(flow.key.destination)?,
        );
        let (_, policy) = first_match(&self.rules, &(from, to))?;
        policy.as_ref()
    }
}

/// Transparent congestion control in a network of any kind of packets.
impl<P: FabricPacket + Clone + fmt::Debug + Send + 'static> Network<P> {
    /// Adds it to the switches that have it in the topology. `owner` maps a flow's addresses to hosts.
    pub fn add_tcon(&mut self, topology: &Topology, seeds: Seeds, owner: &impl AddressMap) {
        for (index, switch) in topology.switch_indices().zip(&topology.switches) {
            if !switch.tcon.is_empty() {
                let rules = Box::new(TconRules::new(&switch.tcon, owner.clone()));
                let seed = seeds.of(RngStream::Tcon, index.index());
                let tcon: Tcon<P> = Tcon::new(Limits::default(), rules, seed);
                self.add_element(index, tcon);
            }
        }
    }

    /// Returns its counters by the name of each switch that has it.
    pub fn tcon_summaries(&self, topology: &Topology) -> Vec<(String, TconSummary)> {
        let switches = topology.switch_indices().zip(&topology.switches);
        let summaries = switches
            .filter_map(|(index, switch)| Some((switch.name.clone(), self.tcon_summary(index)?)));
        summaries.collect()
    }

    fn tcon_summary(&self, switch: SwitchIndex) -> Option<TconSummary> {
        let tcon = self.element::<Tcon<P>>(switch)?;
        let (counters, most) = (tcon.counters(), tcon.most_kept());
        Some(TconSummary {
            flows: counters.flows,
            masked_losses: counters.retransmissions,
            timeouts: counters.timeouts,
            lowered_windows: counters.lowered,
            withheld_acks: counters.withheld,
            echoes: counters.echoes,
            repeated: counters.repeated,
            unkept: counters.unkept,
            unknown: tcon.connections().unknown,
            kept_max_packets: most.packets,
            kept_max_bytes: most.size,
        })
    }
}
