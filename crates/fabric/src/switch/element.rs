//! Elements: packet processors in a switch's path.

use std::any::Any;
use std::fmt;

use weir_units::Time;

use crate::counters::{DropReason, PacketCount};
use crate::egress_port::EgressPort;
use crate::packet::Packet;

use super::PortIndex;
use super::ports::Ports;

/// A packet processor in a switch's path, between the arrival of a packet and the choice of its port. It
/// may rewrite, hold, drop and absorb packets, and send packets of its own in any direction.
///
/// Every packet that it receives goes into one of the methods of [`Output`], or is held and counted in
/// [`Self::held`]: the switch's balance detects a lost packet. A rewrite does not change a packet's
/// length. To change the length, absorb the packet and inject another.
///
/// ```
/// use weir_fabric::{Element, Output, Packet, PortIndex};
/// use weir_units::Time;
///
/// /// Limits the window that receivers announce, unscaled.
/// #[derive(Debug)]
/// struct Clamp(u16);
///
/// impl<P: Packet + Clone + 'static> Element<P> for Clamp {
///     fn process(&mut self, _: Time, ingress: PortIndex, mut packet: P, out: &mut Output<'_, P>) {
///         if packet.tcp().is_some_and(|segment| segment.window > self.0) {
///             packet.set_window(self.0);
///         }
///         out.forward(ingress, packet);
///     }
/// }
/// ```
pub trait Element<P>: Any + fmt::Debug + Send {
    /// Processes a packet that came into the switch at port `ingress`.
    fn process(&mut self, now: Time, ingress: PortIndex, packet: P, out: &mut Output<'_, P>);

    /// Returns when it needs [`Self::handle_timeout`] next. By default never.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// Handles the timeout that it asked for, and asks for a later one. By default does nothing.
    fn handle_timeout(&mut self, now: Time, out: &mut Output<'_, P>) {
        let _ = (now, out);
    }

    /// Returns the received packets that it holds. By default none.
    fn held(&self) -> PacketCount {
        PacketCount::ZERO
    }
}

/// The output of an element.
pub struct Output<'a, P> {
    now: Time,
    /// The elements behind this one.
    behind: &'a mut [Box<dyn Element<P>>],
    ports: &'a mut Ports<P>,
    changed: &'a mut dyn FnMut(PortIndex, Option<Time>),
}

impl<'a, P: Packet + Clone + 'static> Output<'a, P> {
    pub(super) fn new(
        now: Time,
        behind: &'a mut [Box<dyn Element<P>>],
        ports: &'a mut Ports<P>,
        changed: &'a mut dyn FnMut(PortIndex, Option<Time>),
    ) -> Self {
        Self {
            now,
            behind,
            ports,
            changed,
        }
    }

    /// Passes a packet on, rewritten or not, to the next element, or after the last one to the port of
    /// its route. `ingress` is the port where it came in.
    pub fn forward(&mut self, ingress: PortIndex, packet: P) {
        match self.behind.split_first_mut() {
            None => self.ports.send(self.now, packet, self.changed),
            Some((next, behind)) => {
                let mut out = Output::new(self.now, behind, self.ports, self.changed);
                next.process(self.now, ingress, packet, &mut out);
            }
        }
    }

    /// Returns the port by which this packet would leave, if no later element rewrites its destination.
    pub fn egress(&self, packet: &P) -> Option<PortIndex> {
        self.ports.egress(self.now, packet)
    }

    /// Returns a port as of the last event there: its queue is no shorter than it is now.
    #[inline]
    pub fn egress_port_stale(&self, port: PortIndex) -> Option<&EgressPort<P>> {
        self.ports.egress_ports().get(port.index())
    }

    /// Returns a port, up to date as of now.
    pub fn egress_port(&mut self, port: PortIndex) -> Option<&EgressPort<P>> {
        self.ports
            .update_port(port, &mut self.changed, |egress_port| {
                egress_port.advance(self.now)
            });
        self.egress_port_stale(port)
    }

    /// Sends a packet of the element's own: a copy, a reply, a message. Later elements receive it as
    /// though it had come in at `ingress`.
    pub fn inject(&mut self, ingress: PortIndex, packet: P) {
        self.ports.count_injection(&packet);
        self.forward(ingress, packet);
    }

    /// Consumes a packet that was addressed to the element, or is no longer needed.
    pub fn absorb(&mut self, packet: P) {
        self.ports.absorb(packet);
    }

    /// Drops a packet; [`DropReason::Element`] unless another reason fits better.
    pub fn drop(&mut self, packet: P, reason: DropReason) {
        self.ports.drop(packet, reason);
    }
}

impl<P> fmt::Debug for Output<'_, P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Output")
            .field("now", &self.now)
            .field("elements_behind", &self.behind.len())
            .finish_non_exhaustive()
    }
}
