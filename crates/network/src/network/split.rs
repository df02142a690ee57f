//! The shards of a network, each of which one thread runs.
//!
//! A port belongs to the shard of its sender. A packet on a link between two shards is no event of the
//! sender's shard: it waits on the link's list until it is exported. The receiver's shard imports it onto
//! its own list of the same port, and it arrives there. So each shard has one part of the events of the
//! whole network, under the same numbers of ports and in the same order.

use weir_fabric as fabric;
use weir_scenario::Topology;
use weir_units::Time;

use super::lookahead::NOTHING_AHEAD;
use super::running_ahead::Ahead;
use super::{Network, PortLocation, Receiver, Sender};
use crate::event_queue::EventQueue;
use crate::packets_in_flight::PacketsInFlight;
use crate::partition::Partition;

/// A packet on a link between two shards.
#[derive(Clone, Debug)]
pub struct Export<P> {
    /// The port of its link.
    pub port: u32,
    /// When it arrives at the far end.
    pub arrival: Time,
    /// The packet.
    pub packet: P,
}

/// The index of what another shard owns.
const ELSEWHERE: u32 = u32::MAX;

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Divides a network without packets into the shards of a partition of its topology. After
    /// [`Self::set_traffic`]. It must have no elements, and no port that holds its packets.
    pub fn split(self, topology: &Topology, partition: &Partition) -> Vec<Self> {
        let mut shards: Vec<Self> = (0..partition.shards())
            .map(|shard| self.empty_shard(topology, partition, shard as u32))
            .collect();
        // The same order as in the whole network gives each a position in its shard.
        let hosts = topology.ports.iter().filter_map(|port| port.from.host());
        let mut uplinks = vec![ELSEWHERE; self.uplinks.len()];
        for ((uplink, host), index) in self.uplinks.into_iter().zip(hosts).zip(&mut uplinks) {
            let own = &mut shards[partition.of_host(host)].uplinks;
            *index = own.len() as u32;
            own.push(uplink);
        }
        let indices = topology.switch_indices();
        let mut switches = vec![ELSEWHERE; self.switches.len()];
        for ((node, switch), index) in self.switches.into_iter().zip(indices).zip(&mut switches) {
            let own = &mut shards[partition.of_switch(switch)].switches;
            *index = own.len() as u32;
            own.push(node);
        }
        for (shard, network) in (0..).zip(&mut shards) {
            for (location, port) in network.locations.iter_mut().zip(topology.port_indices()) {
                location.enter(
                    shard == partition.of_sender(topology, port),
                    shard == partition.of_receiver(topology, port),
                    (&uplinks, &switches),
                );
            }
        }
        shards
    }

    /// Creates a shard that has no uplinks and no switches yet.
    fn empty_shard(&self, topology: &Topology, partition: &Partition, shard: u32) -> Self {
        let count = |shards: &[u32]| shards.iter().filter(|other| **other == shard).count();
        let ports = topology.ports.len();
        Self {
            uplinks: Vec::with_capacity(count(partition.hosts())),
            switches: Vec::with_capacity(count(partition.switches())),
            locations: self.locations.clone(),
            in_flight: PacketsInFlight::new(ports),
            event_queue: EventQueue::new(ports + topology.switches.len()),
            lookahead: NOTHING_AHEAD,
            runs_ahead: false,
            run_ahead_before: self.run_ahead_before,
            ahead: Ahead::new(),
            exported: Vec::new(),
            measured: self.measured.clone(),
            is_tapped: self.is_tapped,
            tapped: Vec::new(),
            seeds: self.seeds,
        }
    }

    /// Records that the link of a port has packets for another shard.
    #[cold]
    pub(super) fn note_export(&mut self, port: u32) {
        self.exported.push(port);
    }

    /// Takes the packets that this shard has sent to others: those of each port in order.
    pub fn take_exports(&mut self, mut export: impl FnMut(Export<P>)) {
        for port in self.exported.drain(..) {
            while let Some((slot, arrival)) = self.in_flight.first(port) {
                self.in_flight.pop(port);
                let packet = self.in_flight.packet(slot).clone();
                self.in_flight.release(slot);
                export(Export {
                    port,
                    arrival,
                    packet,
                });
            }
        }
    }

    /// Puts a packet of another shard on the link by which it comes.
    pub fn import(&mut self, export: Export<P>) {
        let Export {
            port,
            arrival,
            packet,
        } = export;
        let slot = self.in_flight.store(packet);
        self.put_on_link(port, slot, arrival);
    }
}

impl PortLocation {
    /// Adapts the location to a shard that owns its sender or not, its receiver or not. `local` has the
    /// positions of uplinks and of switches in their own shards.
    fn enter(&mut self, owns_sender: bool, owns_receiver: bool, local: (&[u32], &[u32])) {
        let (uplinks, switches) = local;
        let position = |owned: bool, positions: &[u32], index: u32| {
            if owned {
                positions[index as usize]
            } else {
                ELSEWHERE
            }
        };
        match &mut self.sender {
            Sender::Host(uplink) => *uplink = position(owns_sender, uplinks, *uplink),
            Sender::Switch { switch, .. } => *switch = position(owns_sender, switches, *switch),
        }
        if let Receiver::Switch { switch, .. } = &mut self.receiver {
            *switch = position(owns_receiver, switches, *switch);
        }
        self.leads_on &= owns_sender && owns_receiver;
        self.leads_out = owns_sender && !owns_receiver;
    }
}
