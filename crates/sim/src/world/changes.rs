//! Changes of settings while the world runs.

use weir_congestion::AlgorithmSpec;
use weir_scenario::{Port, PortIndex, SharedBuffer, SwitchIndex};
use weir_units::Time;

use super::{Setup, Side, World};
use crate::shard::Shard;

impl World {
    /// Changes the thresholds of a port's queue.
    pub(crate) fn change_queue(&mut self, now: Time, port: PortIndex, settings: &Port) {
        let shard = self.shard_of_port(port);
        let network = &mut self.shard_mut(shard).network;
        network.change_queue(now, port, settings);
    }

    /// Changes the shared buffer of a switch.
    pub(crate) fn change_shared_buffer(&mut self, switch: SwitchIndex, buffer: &SharedBuffer) {
        let shards = std::iter::once(&mut self.shard).chain(&mut self.others);
        for shard in shards {
            // The reader of the scenario has checked it.
            let changed = shard.network.change_shared_buffer(switch, buffer);
            debug_assert!(changed.is_ok());
        }
    }

    /// Changes parameters of the congestion control of a group, of its open flows and of those to come.
    pub(crate) fn change_congestion(&mut self, now: Time, group: u32, spec: &AlgorithmSpec) {
        match &mut self.setups[group as usize] {
            Setup::Tcp(setup) => setup.set_congestion(spec),
            Setup::Quic(setup) => setup.set_congestion(spec),
            Setup::Dcudp(setup) => setup.set_congestion(spec),
            Setup::Udp(_) => {}
        }
        let flows = self.flows.open.iter();
        let flows = flows.filter(|(_, flow)| flow.group == group);
        let ends = flows.flat_map(|(_, flow)| {
            [Side::Initiator, Side::Responder].map(|side| (flow.pair, side, flow.endpoint(side)))
        });
        let ends: Vec<_> = ends.collect();
        for (pair, side, position) in ends {
            let shard = self.shard_of(pair, side);
            let Shard { network, hosts } = self.shard_mut(shard);
            let notice = hosts.set_congestion_parameters(now, position, network, spec);
            self.notices.extend(notice);
        }
    }
}
