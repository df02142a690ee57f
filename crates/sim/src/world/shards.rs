//! The shards of the world: which one has a host, a port, an endpoint.

use weir_fabric::EgressPort;
use weir_network::Partition;
use weir_scenario::PortIndex;
use weir_units::{Duration, Time};

use super::{Division, Positions, Side, World, new_hosts};
use crate::flows::{Flow, HostPair};
use crate::hosts::Hosts;
use crate::packet::Packet;
use crate::shard::Shard;
use crate::windows::Windows;

impl World {
    /// Divides the network and its hosts, which have done nothing yet, into shards.
    pub(crate) fn divide(self, partition: Partition) -> Self {
        let ports = self.scenario.topology.port_indices();
        let receivers =
            ports.map(|port| partition.of_receiver(&self.scenario.topology, port) as u32);
        let windows = Windows::new(partition.lookahead(), receivers.collect());
        let shards = self
            .shard
            .network
            .split(&self.scenario.topology, &partition);
        let shards = shards.into_iter().map(|network| Shard {
            network,
            hosts: new_hosts(&self.scenario),
        });
        let mut shards: Vec<_> = shards.collect();
        Self {
            shard: shards.remove(0),
            others: shards,
            division: Some(Division { partition, windows }),
            ..self
        }
    }

    /// Returns the number of shards.
    pub(crate) fn shards(&self) -> usize {
        1 + self.others.len()
    }

    /// Whether the network is divided.
    #[inline]
    pub(crate) fn is_divided(&self) -> bool {
        self.division.is_some()
    }

    /// Handles the events of all shards before `end`. Packets may run ahead before `ahead`.
    pub(crate) fn run_before(&mut self, end: Time, ahead: Time) {
        if let Some(Division { windows, .. }) = &mut self.division {
            let shards = std::iter::once(&mut self.shard).chain(&mut self.others);
            windows.run_before(end, ahead, &mut shards.collect::<Vec<_>>());
        }
    }

    /// Sets the clock of the CPU time of other threads.
    pub(crate) fn set_thread_time(&mut self, thread_time: fn() -> Duration) {
        if let Some(Division { windows, .. }) = &mut self.division {
            windows.set_thread_time(thread_time);
        }
    }

    /// Returns the CPU time of other threads than the caller's.
    pub(crate) fn others_time(&self) -> Duration {
        let division = self.division.as_ref();
        division.map_or(Duration::ZERO, |division| division.windows.others_time())
    }

    /// Sets whether packets that leave measured ports are kept.
    pub(crate) fn set_tapped(&mut self, is_tapped: bool) {
        self.shard.network.set_tapped(is_tapped);
        for shard in &mut self.others {
            shard.network.set_tapped(is_tapped);
        }
    }

    /// Returns the packets that have left measured ports since the last call, in the order of their events.
    pub(crate) fn take_tapped(&mut self) -> Vec<(Time, usize, Packet)> {
        let mut tapped = self.shard.network.take_tapped();
        if self.others.is_empty() {
            return tapped;
        }
        for shard in &mut self.others {
            tapped.append(&mut shard.network.take_tapped());
        }
        // Events of the same time go by port. A port's packets stay in order.
        let ports = &self.measured;
        tapped.sort_by_key(|(time, position, _)| (*time, ports[*position]));
        tapped
    }

    /// Returns how many packets have left a port.
    pub(crate) fn sent(&self, port: PortIndex) -> u64 {
        self.shard_at(self.shard_of_port(port)).network.sent(port)
    }

    /// Returns a port, up to date.
    pub(crate) fn advance_port(
        &mut self,
        now: Time,
        port: PortIndex,
    ) -> Option<&EgressPort<Packet>> {
        let shard = self.shard_of_port(port);
        self.shard_mut(shard).network.advance(now, port)
    }

    /// Restarts the statistics of a queue's length.
    pub(crate) fn reset_occupancy(&mut self, now: Time, port: PortIndex) {
        let shard = self.shard_of_port(port);
        self.shard_mut(shard).network.reset_occupancy(now, port);
    }

    /// Allocates a position for an endpoint.
    pub(super) fn allocate(&mut self) -> u32 {
        let Positions { next, free } = &mut self.positions;
        if let Some(position) = free.pop() {
            return position;
        }
        *next += 1;
        let count = *next;
        self.shard.hosts.make_room(count);
        for shard in &mut self.others {
            shard.hosts.make_room(count);
        }
        count - 1
    }

    /// Removes an endpoint.
    pub(super) fn close(&mut self, position: u32) {
        let mut others = self.others.iter_mut();
        if self.shard.hosts.close(position) || others.any(|shard| shard.hosts.close(position)) {
            self.positions.free.push(position);
        }
    }

    /// Returns the position of both ends of a flow, the initiator first, with the hosts of their shard.
    pub(super) fn ends(&self, flow: &Flow) -> [(&Hosts, u32); 2] {
        let end = |side, position| {
            let shard = self.shard_at(self.shard_of(flow.pair, side));
            (&shard.hosts, position)
        };
        [
            end(Side::Initiator, flow.initiator),
            end(Side::Responder, flow.responder),
        ]
    }

    /// Returns the shard of one end of a flow.
    pub(super) fn shard_of(&self, pair: HostPair, side: Side) -> usize {
        let host = match side {
            Side::Initiator => pair.from,
            Side::Responder => pair.to,
        };
        let division = self.division.as_ref();
        division.map_or(0, |division| division.partition.of_host(host))
    }

    /// Returns the shard that owns a port.
    pub(super) fn shard_of_port(&self, port: PortIndex) -> usize {
        self.division.as_ref().map_or(0, |division| {
            division.partition.of_sender(&self.scenario.topology, port)
        })
    }

    fn shard_at(&self, shard: usize) -> &Shard {
        match shard.checked_sub(1) {
            None => &self.shard,
            Some(other) => &self.others[other],
        }
    }

    pub(super) fn shard_mut(&mut self, shard: usize) -> &mut Shard {
        match shard.checked_sub(1) {
            None => &mut self.shard,
            Some(other) => &mut self.others[other],
        }
    }
}
