//! The ports of a switch: where packets go when the elements are done with them.

use weir_units::Time;

use crate::counters::{DropReason, PacketCount, StageCounters};
use crate::egress_port::EgressPort;
use crate::packet::Packet;

use super::error::SwitchError;
use super::routes::{PortIndex, Routes};
use super::shared_buffer::{BufferUsage, SharedBuffer};

/// Pipes, the routes to them, and the buffer that they share.
#[derive(Debug)]
pub(super) struct Ports<P> {
    pipes: Vec<EgressPort<P>>,
    routes: Routes,
    seed: u64,
    usage: Option<BufferUsage>,
    /// What happens outside the pipes.
    counters: StageCounters,
}

impl<P: Packet + Clone> Ports<P> {
    pub(super) fn new(
        pipes: Vec<EgressPort<P>>,
        routes: Routes,
        seed: u64,
    ) -> Result<Self, SwitchError> {
        let count = pipes.len();
        let astray = routes.iter().find(|(_, port)| port.index() >= count);
        if let Some((destination, port)) = astray {
            return Err(SwitchError::NoSuchPort {
                destination,
                port,
                ports: count,
            });
        }
        Ok(Self {
            pipes,
            routes,
            seed,
            usage: None,
            counters: StageCounters::default(),
        })
    }

    pub(super) fn with_shared_buffer(mut self, buffer: SharedBuffer) -> Result<Self, SwitchError> {
        self.pipes.iter_mut().for_each(EgressPort::watch);
        self.usage = Some(BufferUsage::new(buffer, &self.pipes)?);
        Ok(self)
    }

    pub(super) fn egress_ports(&self) -> &[EgressPort<P>] {
        &self.pipes
    }

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

    /// The port on a packet's way.
    pub(super) fn egress(&self, packet: &P) -> Option<PortIndex> {
        self.routes.port_for(packet, self.seed)
    }

    /// The port on a packet's way, where nothing but the port's link decides what becomes of it.
    #[inline(always)]
    pub(super) fn fast_forward_port(&self, packet: &P) -> Option<PortIndex> {
        let port = self.routes.port_for(packet, self.seed)?;
        let pipe = self.pipes.get(port.index())?;
        (self.usage.is_none() && pipe.is_plain(packet.length())).then_some(port)
    }

    /// A packet is certain to come in at `ingress`, and to leave by `port`, which is [direct](Self::direct).
    /// Gives when that port delivers next, if this has changed.
    #[inline(always)]
    pub(super) fn fast_forward(
        &mut self,
        entry: Time,
        ingress: PortIndex,
        port: PortIndex,
        packet: P,
    ) -> Option<Time> {
        self.count_arrival(&packet);
        let pipe = self.pipes.get_mut(port.index())?;
        if pipe.fast_forward(entry, ingress.index() as u32, packet) {
            pipe.timeout()
        } else {
            None
        }
    }

    /// Sends a packet that came in at `ingress` on its way.
    #[inline]
    pub(super) fn send(
        &mut self,
        now: Time,
        ingress: PortIndex,
        packet: P,
        changed: &mut (impl FnMut(PortIndex, Option<Time>) + ?Sized),
    ) {
        let port = self.routes.port_for(&packet, self.seed);
        let Some((port, pipe)) = port.and_then(|port| {
            let pipe = self.pipes.get_mut(port.index())?;
            Some((port, pipe))
        }) else {
            return self.drop(packet, DropReason::NoRoute);
        };
        let before = pipe.next_arrival;
        let (after, next) = match &mut self.usage {
            None => {
                if pipe.has_fast_forwarded() {
                    pipe.send_between(now, ingress.index() as u32, packet);
                } else {
                    pipe.send(now, packet);
                }
                (pipe.next_arrival, pipe.timeout())
            }
            Some(account) => {
                account.send(&mut self.pipes, now, port, packet);
                let Some(pipe) = self.pipes.get(port.index()) else {
                    return;
                };
                (pipe.next_arrival, pipe.timeout())
            }
        };
        if after != before {
            changed(port, next);
        }
    }

    #[inline(always)]
    pub(super) fn poll_delivered(&mut self, now: Time, port: PortIndex) -> Option<P> {
        let pipe = self.pipes.get_mut(port.index())?;
        let Some(account) = &mut self.usage else {
            return pipe.poll_delivered(now);
        };
        let before = pipe.queue().backlog().size;
        let packet = pipe.poll_delivered(now);
        account.release(before - pipe.queue().backlog().size);
        packet
    }

    /// Does something to one pipe that may change when its packets leave.
    pub(super) fn alter(
        &mut self,
        port: PortIndex,
        changed: &mut impl FnMut(PortIndex, Option<Time>),
        act: impl FnOnce(&mut EgressPort<P>),
    ) {
        let Some(pipe) = self.pipes.get_mut(port.index()) else {
            return;
        };
        let (timeout, backlog) = (pipe.timeout(), pipe.queue().backlog().size);
        act(pipe);
        if let Some(account) = &mut self.usage {
            account.release(backlog - pipe.queue().backlog().size);
            account.watch(port, pipe);
        }
        let after = pipe.timeout();
        if after != timeout {
            changed(port, after);
        }
    }

    pub(super) fn counters(&self) -> StageCounters {
        let mut counters = self.counters;
        for pipe in &self.pipes {
            let within = pipe.counters();
            counters = counters
                + StageCounters {
                    // It came in at the switch's entrance, and was counted there.
                    arrived: PacketCount::ZERO,
                    ..within
                };
        }
        counters
    }
}
