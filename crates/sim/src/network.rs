//! Everything between the hosts: ports with their links, switches, and who sends next.

use weir_fabric::{
    self as fabric, Change, Faults, Link, Packet as _, Pipe, Queue, SharedBuffer, Switch,
};
use weir_scenario::{Node, PortIndex, SharedLimit, SwitchIndex, Topology};
use weir_units::Time;

use crate::calendar::Calendar;
use crate::packet::Packet;
use crate::queues::rules;
use crate::seeds::{Drawer, Seeds};

/// The network of a scenario. Its links are the sources of its events: each delivers the packets that
/// it carries in order, to a host or to a switch, which sends them on at once.
#[derive(Debug)]
pub(crate) struct Network {
    /// The links that hosts send on.
    uplinks: Vec<Pipe<Packet>>,
    switches: Vec<Junction>,
    /// For each port of the topology.
    places: Vec<Place>,
    /// When each port's link delivers next.
    calendar: Calendar,
}

/// A switch, and which ports of the topology its own are.
#[derive(Debug)]
struct Junction {
    switch: Switch<Packet>,
    ports: Vec<u32>,
}

/// Where a port is, and where its link ends.
#[derive(Clone, Copy, Debug)]
struct Place {
    sender: Sender,
    receiver: Receiver,
}

#[derive(Clone, Copy, Debug)]
enum Sender {
    /// A position in `uplinks`.
    Host(u32),
    Switch {
        switch: u32,
        port: fabric::PortIndex,
    },
}

#[derive(Clone, Copy, Debug)]
enum Receiver {
    /// Whichever host the packet is for.
    Host,
    Switch {
        switch: u32,
        ingress: fabric::PortIndex,
    },
}

impl Network {
    /// Idle links and empty queues.
    pub(crate) fn new(topology: &Topology, seeds: Seeds) -> Result<Self, fabric::SwitchError> {
        let pipe = |index: PortIndex| new_pipe(topology, index, seeds);
        let routes = topology.routes();
        let mut own_ports: Vec<Vec<PortIndex>> = vec![Vec::new(); topology.switches.len()];
        let mut uplinks = Vec::new();
        let mut senders = Vec::with_capacity(topology.ports.len());
        for index in topology.port_indices() {
            senders.push(match topology.port(index).from {
                Node::Host(_) => {
                    uplinks.push(pipe(index));
                    Sender::Host(uplinks.len() as u32 - 1)
                }
                Node::Switch(switch) => {
                    let own = &mut own_ports[switch.index()];
                    own.push(index);
                    Sender::Switch {
                        switch: switch.index() as u32,
                        port: fabric::PortIndex::new(own.len() as u32 - 1),
                    }
                }
            });
        }
        let place = |index: PortIndex| Place {
            sender: senders[index.index()],
            receiver: match senders[index.reverse().index()] {
                Sender::Host(_) => Receiver::Host,
                Sender::Switch { switch, port } => Receiver::Switch {
                    switch,
                    ingress: port,
                },
            },
        };
        let places = topology.port_indices().map(place).collect();
        let mut switches = Vec::with_capacity(own_ports.len());
        for (switch, ports) in topology.switch_indices().zip(own_ports) {
            let to_port = |to: &PortIndex| match senders[to.index()] {
                Sender::Switch { port, .. } => port,
                Sender::Host(_) => fabric::PortIndex::new(u32::MAX),
            };
            let mut table = fabric::Routes::new();
            for host in topology.host_indices() {
                let ways: Vec<_> = routes.from_switch(switch, host).iter().map(to_port).collect();
                table.set(host.index() as u32, &ways);
            }
            let pipes: Vec<_> = ports.iter().copied().map(pipe).collect();
            let limits = pipes.len();
            let built = Switch::new(pipes, table, seeds.of(Drawer::Switch, switch.index()))?;
            switches.push(Junction {
                switch: share_buffer(topology, switch, built, limits)?,
                ports: ports.iter().map(|port| port.index() as u32).collect(),
            });
        }
        Ok(Self {
            uplinks,
            switches,
            places,
            calendar: Calendar::new(topology.ports.len()),
        })
    }

    /// When the next packet arrives somewhere, and by which port's link.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Time, usize)> {
        self.calendar.first()
    }

    /// The first moment that cannot be simulated.
    pub(crate) fn horizon(&self) -> Time {
        self.calendar.horizon()
    }

    /// A host sends a packet by this port, one of its own.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, port: u32, packet: Packet) {
        let Sender::Host(uplink) = self.places[port as usize].sender else {
            return;
        };
        let pipe = &mut self.uplinks[uplink as usize];
        let idle = pipe.next_time();
        pipe.send(now, packet);
        let next = pipe.next_time();
        if next != idle {
            self.calendar.set(port as usize, next);
        }
    }

    /// The link of this port delivers what has arrived by `now`: a switch sends it on; what is for a
    /// host is given back.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Time, port: usize) -> Option<Packet> {
        let place = self.places[port];
        let (packet, next) = match place.sender {
            Sender::Host(uplink) => {
                let pipe = &mut self.uplinks[uplink as usize];
                (pipe.receive(now), pipe.next_time())
            }
            Sender::Switch { switch, port } => {
                let switch = &mut self.switches[switch as usize].switch;
                (switch.receive(now, port), switch.next_time(port))
            }
        };
        self.calendar.set(port, next);
        match place.receiver {
            Receiver::Host => packet,
            Receiver::Switch { switch, ingress } => {
                let packet = packet?;
                let Junction { switch, ports } = &mut self.switches[switch as usize];
                let calendar = &mut self.calendar;
                switch.forward(now, ingress, packet, |port, next| {
                    calendar.set(ports[port.index()] as usize, next);
                });
                None
            }
        }
    }

    /// Changes a port's link as of `now`.
    pub(crate) fn apply(&mut self, now: Time, port: PortIndex, change: Change) {
        match self.places[port.index()].sender {
            Sender::Host(uplink) => {
                let pipe = &mut self.uplinks[uplink as usize];
                pipe.apply(now, change);
                self.calendar.set(port.index(), pipe.next_time());
            }
            Sender::Switch { switch, port } => {
                let Junction { switch, ports } = &mut self.switches[switch as usize];
                let calendar = &mut self.calendar;
                switch.apply(now, port, change, |port, next| {
                    calendar.set(ports[port.index()] as usize, next);
                });
            }
        }
    }

    /// Brings what is read of the ports up to date.
    pub(crate) fn settle(&mut self, now: Time) {
        self.uplinks.iter_mut().for_each(|pipe| pipe.settle(now));
        for junction in &mut self.switches {
            junction.switch.settle(now);
        }
    }

    /// Lets the accounts of the queues' lengths begin anew.
    pub(crate) fn reset_occupancy(&mut self, now: Time) {
        self.uplinks
            .iter_mut()
            .for_each(|pipe| pipe.reset_occupancy(now));
        for junction in &mut self.switches {
            junction.switch.reset_occupancy(now);
        }
    }

    /// The queue, link and faults of a port.
    pub(crate) fn pipe(&self, port: PortIndex) -> Option<&Pipe<Packet>> {
        match self.places[port.index()].sender {
            Sender::Host(uplink) => self.uplinks.get(uplink as usize),
            Sender::Switch { switch, port } => self.switches[switch as usize].switch.port(port),
        }
    }
}
