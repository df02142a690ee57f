//! Transparent congestion control in the path of a switch, as a scenario asks for it.

use std::net::IpAddr;

use weir_results::TconSummary;
use weir_scenario::{HostIndex, SwitchIndex, TconRule, Topology};
use weir_tcon::{Choose, Limits, Tcon, Treatment};
use weir_wire::FlowKey;

use crate::network::Network;
use crate::packet::{Location, Packet};
use crate::seeds::{Drawer, Seeds};

/// The rules of a switch.
#[derive(Debug)]
struct Rules {
    rules: Vec<(TconRule, Option<Treatment>)>,
    /// Whose a destination is: those of hosts, and behind these those of ports.
    hosts: Vec<Option<HostIndex>>,
}

impl Rules {
    fn new(topology: &Topology, rules: &[TconRule]) -> Self {
        let hosts = topology.host_indices().map(Some);
        let ports = topology.port_indices();
        let ports = ports.map(|index| topology.port(index).from.host());
        let treatment = |rule: &TconRule| {
            let control = rule.control.as_ref()?;
            let treatment = Treatment::new(control.congestion.clone());
            Some(Treatment {
                ecn: control.ecn.unwrap_or(treatment.ecn),
                buffer: control.buffer,
                ..treatment
            })
        };
        Self {
            rules: (rules.iter())
                .map(|rule| (rule.clone(), treatment(rule)))
                .collect(),
            hosts: hosts.chain(ports).collect(),
        }
    }

    fn host(&self, address: IpAddr) -> Option<HostIndex> {
        let number = Location::of(address)?.number;
        self.hosts.get(number as usize).copied().flatten()
    }
}

impl Choose for Rules {
    fn choose(&self, flow: &FlowKey) -> Option<&Treatment> {
        let (from, to) = (self.host(flow.source)?, self.host(flow.destination)?);
        let (_, treatment) = self.rules.iter().find(|(rule, _)| rule.fits(from, to))?;
        treatment.as_ref()
    }
}

/// Puts it where the topology wants it.
pub(crate) fn install(network: &mut Network, topology: &Topology, seeds: Seeds) {
    for (index, switch) in topology.switch_indices().zip(&topology.switches) {
        if !switch.tcon.is_empty() {
            let rules = Box::new(Rules::new(topology, &switch.tcon));
            let seed = seeds.of(Drawer::Tcon, index.index());
            let tcon: Tcon<Packet> = Tcon::new(Limits::default(), rules, seed);
            network.add_element(index, tcon);
        }
    }
}

/// What it did at one switch, if it is there.
pub(crate) fn summary(network: &Network, switch: SwitchIndex) -> Option<TconSummary> {
    let tcon = network.element::<Tcon<Packet>>(switch)?;
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
