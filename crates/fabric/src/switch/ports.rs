//! The ports of a switch: the stage after the elements.

use weir_units::{ByteSize, Time};

use crate::counters::{DropReason, PacketCount, StageCounters};
use crate::egress_port::EgressPort;
use crate::packet::Packet;

use super::error::SwitchError;
use super::routes::{PortIndex, Routes};
use super::shared_buffer::{BufferUsage, SharedBuffer};

/// The egress ports, the routes to them, and their shared buffer.
#[derive(Debug)]
pub(super) struct Ports<P> {
    egress_ports: Vec<EgressPort<P>>,
    routes: Routes,
    seed: u64,
    usage: Option<BufferUsage>,
    /// Counters outside the egress ports.
    counters: StageCounters,
}

impl<P: Packet + Clone> Ports<P> {
    pub(super) fn new(
        egress_ports: Vec<EgressPort<P>>,
        routes: Routes,
        seed: u64,
    ) -> Result<Self, SwitchError> {
        let count = egress_ports.len();
        let astray = routes.iter().find(|(_, port)| port.index() >= count);
        if let Some((destination, port)) = astray {
            return Err(SwitchError::NoSuchPort {
                destination,
                port,
                ports: count,
            });
        }
        Ok(Self {
            egress_ports,
            routes,
            seed,
            usage: None,
            counters: StageCounters::default(),
        })
    }

    pub(super) fn with_shared_buffer(mut self, buffer: SharedBuffer) -> Result<Self, SwitchError> {
        self.egress_ports.iter_mut().for_each(EgressPort::watch);
        self.usage = Some(BufferUsage::new(buffer, &self.egress_ports)?);
        Ok(self)
    }

    /// Replaces the shared buffer, if there is one, for packets to come.
    pub(super) fn change_shared_buffer(&mut self, buffer: SharedBuffer) {
        if let Some(usage) = &mut self.usage {
            usage.change(buffer);
        }
    }

    pub(super) fn egress_ports(&self) -> &[EgressPort<P>] {
        &self.egress_ports
    }

    pub(super) fn routes(&self) -> &Routes {
        &self.routes
    }

    pub(super) fn has_shared_buffer(&self) -> bool {
        self.usage.is_some()
    }

    pub(super) fn egress_ports_mut(&mut self) -> &mut [EgressPort<P>] {
        &mut self.egress_ports
    }

    /// Counts a packet that enters a switch with elements. Without elements the ports count it.
    #[inline]
    pub(super) fn count_arrival(&mut self, packet: &P) {
        self.counters.arrived.record(packet.length());
    }

    pub(super) fn count_injection(&mut self, packet: &P) {
        self.counters.injected.record(packet.length());
    }

    pub(super) fn absorb(&mut self, packet: P) {
        self.counters.absorbed.record(packet.length());
    }

    pub(super) fn drop(&mut self, packet: P, reason: DropReason) {
        self.counters.dropped.record(reason, packet.length());
    }

    /// Returns the port of a packet's route.
    #[inline]
    pub(super) fn egress(&self, now: Time, packet: &P) -> Option<PortIndex> {
        self.routes.port_for(now, packet, self.seed)
    }

    /// Drops a packet without a route that the caller keeps.
    #[cold]
    pub(super) fn count_unroutable(&mut self, packet: &P) {
        let dropped = &mut self.counters.dropped;
        dropped.record(DropReason::NoRoute, packet.length());
    }

    /// Queues a packet that the caller keeps at `port`, and returns when it reaches the far end of that
    /// port's link. `None` if it is dropped.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, port: PortIndex, packet: &mut P) -> Option<Time> {
        match &mut self.usage {
            None => {
                let egress_port = self.egress_ports.get_mut(port.index())?;
                egress_port.transmit(now, packet)
            }
            Some(usage) => usage.admit(&mut self.egress_ports, now, port, |egress_port, room| {
                egress_port.transmit_within(now, packet, room)
            }),
        }
    }

    /// Queues a packet of this length at `port` as [`EgressPort::transmit_unwatched`] does.
    #[inline(always)]
    pub(super) fn transmit_unwatched(
        &mut self,
        now: Time,
        port: PortIndex,
        length: ByteSize,
    ) -> Option<Time> {
        let egress_port = self.egress_ports.get_mut(port.index())?;
        egress_port.transmit_unwatched(now, length)
    }

    /// Sends a packet by the port of its route, which holds it.
    #[inline]
    pub(super) fn send(
        &mut self,
        now: Time,
        packet: P,
        changed: &mut (impl FnMut(PortIndex, Option<Time>) + ?Sized),
    ) {
        let port = self.routes.port_for(now, &packet, self.seed);
        let Some((port, egress_port)) = port.and_then(|port| {
            let egress_port = self.egress_ports.get_mut(port.index())?;
            Some((port, egress_port))
        }) else {
            return self.drop(packet, DropReason::NoRoute);
        };
        let before = egress_port.next_event();
        match &mut self.usage {
            None => {
                egress_port.send(now, packet);
            }
            Some(usage) => {
                usage.admit(&mut self.egress_ports, now, port, |egress_port, room| {
                    Some(egress_port.send_within(now, packet, room))
                });
            }
        }
        let Some(egress_port) = self.egress_ports.get(port.index()) else {
            return;
        };
        let (after, next) = (egress_port.next_event(), egress_port.timeout());
        if after != before {
            changed(port, next);
        }
    }

    #[inline(always)]
    pub(super) fn poll_delivered(&mut self, now: Time, port: PortIndex) -> Option<P> {
        let egress_port = self.egress_ports.get_mut(port.index())?;
        let Some(account) = &mut self.usage else {
            return egress_port.poll_delivered(now);
        };
        let before = egress_port.queue().backlog().size;
        let packet = egress_port.poll_delivered(now);
        account.release(before - egress_port.queue().backlog().size);
        packet
    }

    /// Changes one port, which may change when its packets leave.
    pub(super) fn update_port(
        &mut self,
        port: PortIndex,
        changed: &mut impl FnMut(PortIndex, Option<Time>),
        act: impl FnOnce(&mut EgressPort<P>),
    ) {
        let Some(egress_port) = self.egress_ports.get_mut(port.index()) else {
            return;
        };
        let (timeout, backlog) = (egress_port.timeout(), egress_port.queue().backlog().size);
        act(egress_port);
        if let Some(account) = &mut self.usage {
            account.release(backlog - egress_port.queue().backlog().size);
            account.watch(port, egress_port);
        }
        let after = egress_port.timeout();
        if after != timeout {
            changed(port, after);
        }
    }

    /// Returns the counters of a switch with elements or without.
    pub(super) fn counters(&self, has_elements: bool) -> StageCounters {
        let mut counters = self.counters;
        if !has_elements {
            // A packet that has arrived is at a port, or has no route.
            counters.arrived = counters.dropped.total();
        }
        for egress_port in &self.egress_ports {
            let mut within = egress_port.counters();
            if has_elements {
                // The packet was counted where it entered the switch.
                within.arrived = PacketCount::ZERO;
            }
            counters = counters + within;
        }
        counters
    }
}
