//! The time that a transfer takes on the empty network.

use std::collections::HashMap;

use indexmap::IndexSet;
use weir_scenario::{HostIndex, Packetization, PathLink, Routes, Scenario};
use weir_units::{ByteSize, Duration};

/// The paths of pairs of hosts, as they are asked for.
#[derive(Debug)]
pub struct IdealTimes {
    mtu: ByteSize,
    /// The different sets of paths: many pairs have equal ones.
    different: IndexSet<Vec<Vec<PathLink>>>,
    /// The number of the set, by group, sender and receiver.
    paths: HashMap<(usize, HostIndex, HostIndex), usize>,
}

impl IdealTimes {
    /// Creates it for a scenario's network.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            mtu: scenario.topology.smallest_mtu(),
            different: IndexSet::new(),
            paths: HashMap::new(),
        }
    }

    /// Returns the least time from the first bit of a transfer of a group until the last one's arrival, if the network
    /// carries nothing else and the sender sends without pause: [`TransferPackets::ideal_time`] on the fastest of the
    /// paths. Handshakes, windows, acknowledgments and the hosts' own time are not in it. `None` without a path.
    ///
    /// [`TransferPackets::ideal_time`]: weir_scenario::TransferPackets::ideal_time
    pub fn of(
        &mut self,
        scenario: &Scenario,
        routes: &Routes,
        group: usize,
        (from, to): (HostIndex, HostIndex),
        size: ByteSize,
    ) -> Option<Duration> {
        let settings = scenario.groups.get(group)?;
        let different = &mut self.different;
        let number = *self.paths.entry((group, from, to)).or_insert_with(|| {
            let first = settings.first_ports(&scenario.topology, routes, (from, to));
            let mut paths: Vec<_> = (first.into_iter())
                .flat_map(|port| routes.paths(&scenario.topology, port, to))
                .collect();
            paths.sort_unstable();
            paths.dedup();
            different.insert_full(paths).0
        });
        let packets = Packetization::of(&settings.transport, self.mtu, size).packets(size);
        let paths = self.different.get_index(number)?.iter();
        paths.map(|path| packets.ideal_time(path)).min()
    }
}
