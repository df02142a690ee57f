//! A switch: packets come in at a port, pass the elements in its path, and leave by the port of their
//! route.

mod element;
mod error;
mod ports;
mod routes;
mod shared_buffer;
#[cfg(test)]
mod tests;

use std::any::Any;

use weir_units::{ByteSize, Time};

use crate::counters::{PacketCount, StageCounters};
use crate::egress_port::EgressPort;
use crate::faults::Faults;
use crate::packet::Packet;
use crate::timeline::PortChange;

pub use element::{Element, Output};
pub use error::SwitchError;
pub use routes::{LoadBalancing, PortIndex, Routes};
pub use shared_buffer::{BufferError, SharedBuffer};

use ports::Ports;

/// A switch with an [`EgressPort`] at each port.
///
/// [`Self::forward`] takes a packet in. The packet leaves by the port that the [`Routes`] name for its
/// [destination](Packet::destination). Call [`Self::poll_delivered`] until `None` whenever
/// [`Self::timeout`] of that port is reached. A caller keeps one entry per port in its event queue:
/// `forward`, `apply` and `handle_timeout` call a function `changed` for each port whose timeout they
/// have changed, with the new one. An entry may be too early, if faults dropped the expected packet; it
/// is never too late. `now` must not run backwards.
///
/// ```
/// use weir_fabric::{
///     EgressPort, Faults, Link, Packet, PortIndex, Queue, Routes, Rule, SharedBuffer, Switch,
/// };
/// use weir_units::{ByteSize, Duration, Rate, Time};
/// use weir_wire::Ecn;
///
/// #[derive(Clone, Copy)]
/// struct Datagram {
///     to: u32,
///     ecn: Ecn,
/// }
///
/// impl Packet for Datagram {
///     fn length(&self) -> ByteSize {
///         ByteSize::from_bytes(1000)
///     }
///     fn ecn(&self) -> Ecn {
///         self.ecn
///     }
///     fn set_ecn(&mut self, ecn: Ecn) {
///         self.ecn = ecn;
///     }
///     fn destination(&self) -> u32 {
///         self.to
///     }
/// }
///
/// // Two ports that share 100 kB; ECT packets are marked above 10 kB.
/// let size = ByteSize::from_bytes(100_000);
/// let rules = [Rule::buffer(size), Rule::mark_above(ByteSize::from_bytes(10_000))];
/// let port = |seed| {
///     let link = Link::new(Rate::from_gbps(8), Duration::from_micros(5));
///     EgressPort::new(Queue::new(rules, seed), link, Faults::none())
/// };
/// let routes = Routes::new()
///     .with(0, [PortIndex::new(0)])
///     .with(1, [PortIndex::new(1)]);
/// let mut switch = Switch::new([port(1), port(2)], routes, 1)?
///     .with_shared_buffer(SharedBuffer::dynamic(size, 1.0)?)?;
///
/// let mut entries = [None; 2];
/// for to in [0, 1, 1] {
///     let packet = Datagram { to, ecn: Ecn::Ect0 };
///     switch.forward(Time::ZERO, PortIndex::new(0), packet, |port, timeout| {
///         entries[port.index()] = timeout;
///     });
/// }
/// // One byte takes 1 ns, and the propagation delay is 5 µs.
/// assert_eq!(entries, [Some(Time::from_nanos(6000)); 2]);
/// let first = switch.poll_delivered(Time::from_nanos(6000), PortIndex::new(1));
/// assert!(first.is_some_and(|packet| packet.to == 1));
/// assert_eq!(switch.timeout(PortIndex::new(1)), Some(Time::from_nanos(7000)));
/// assert!(switch.counters().balance(switch.inside()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Switch<P> {
    elements: Vec<Box<dyn Element<P>>>,
    ports: Ports<P>,
}

impl<P: Packet + Clone + 'static> Switch<P> {
    /// Creates a switch with these ports and routes. `seed` decides which of several ports a flow or a
    /// packet takes, so that switches in a row choose independently.
    pub fn new(
        ports: impl Into<Vec<EgressPort<P>>>,
        routes: Routes,
        seed: u64,
    ) -> Result<Self, SwitchError> {
        Ok(Self {
            elements: Vec::new(),
            ports: Ports::new(ports.into(), routes, seed)?,
        })
    }

    /// Adds an element at the end of the path: behind the existing ones, before the choice of the port.
    pub fn with_element(mut self, element: impl Element<P>) -> Self {
        self.add_element(element);
        self
    }

    /// Appends an element to the path.
    pub fn add_element(&mut self, element: impl Element<P>) {
        self.elements.push(Box::new(element));
    }

    /// Whether there are elements in the path.
    #[inline]
    pub fn has_elements(&self) -> bool {
        !self.elements.is_empty()
    }

    /// Lets the queues share a buffer, in addition to their own rules.
    pub fn with_shared_buffer(self, buffer: SharedBuffer) -> Result<Self, SwitchError> {
        Ok(Self {
            ports: self.ports.with_shared_buffer(buffer)?,
            ..self
        })
    }

    /// Takes in a packet at port `ingress`.
    #[inline]
    pub fn forward(
        &mut self,
        now: Time,
        ingress: PortIndex,
        packet: P,
        mut changed: impl FnMut(PortIndex, Option<Time>),
    ) {
        if self.elements.is_empty() {
            self.ports.send(now, packet, &mut changed);
        } else {
            self.ports.count_arrival(&packet);
            Output::new(now, &mut self.elements, &mut self.ports, &mut changed)
                .forward(ingress, packet);
        }
    }

    /// Takes in a packet that the caller keeps, and returns by which port and when it reaches the far end of
    /// that port's link; `None` if it is dropped. For a switch without elements whose ports
    /// [hold no packets](EgressPort::without_packets).
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, packet: &mut P) -> Option<(PortIndex, Time)> {
        match self.egress(now, packet) {
            Some(port) => Some((port, self.transmit_by(now, port, packet)?)),
            None => {
                self.ports.count_unroutable(packet);
                None
            }
        }
    }

    /// Takes in a packet that the caller keeps, as [`Self::transmit`] does, and sends it by `port`, which is
    /// the port of its [route](Self::egress).
    #[inline(always)]
    pub fn transmit_by(&mut self, now: Time, port: PortIndex, packet: &mut P) -> Option<Time> {
        self.ports.transmit(now, port, packet)
    }

    /// Takes in a packet of this length and sends it by `port`, the port of its route, as
    /// [`EgressPort::transmit_unwatched`] does. For a switch without elements.
    #[inline(always)]
    pub fn transmit_unwatched(
        &mut self,
        now: Time,
        port: PortIndex,
        length: ByteSize,
    ) -> Option<Time> {
        self.ports.transmit_unwatched(now, port, length)
    }

    /// Returns the port by which all packets for a destination leave, if there is only one.
    #[inline(always)]
    pub fn only_port_to(&self, destination: u32) -> Option<PortIndex> {
        self.ports.routes().only_port_to(destination)
    }

    /// Returns the port by which a packet that arrives at `now` leaves, unless an element rewrites its destination.
    #[inline]
    pub fn egress(&self, now: Time, packet: &P) -> Option<PortIndex> {
        self.ports.egress(now, packet)
    }

    /// Returns all ports by which packets for a destination may leave.
    pub fn ports_to(&self, destination: u32) -> impl Iterator<Item = PortIndex> {
        self.ports.routes().ports_to(destination)
    }

    /// Whether the choice of a packet's port depends on the packets before it: they must arrive in order.
    pub fn has_flowlets(&self) -> bool {
        self.ports.routes().has_flowlets()
    }

    /// Whether the queues share a buffer.
    pub fn has_shared_buffer(&self) -> bool {
        self.ports.has_shared_buffer()
    }

    /// Makes all ports hold their packets, before the first one.
    pub fn hold_packets(&mut self, faults: impl Fn(PortIndex) -> Faults<P>) {
        for (port, egress_port) in (0..).map(PortIndex::new).zip(self.ports.egress_ports_mut()) {
            if !egress_port.holds_packets() {
                egress_port.hold_packets(faults(port));
            }
        }
    }

    /// Returns when [`Self::poll_delivered`] may return a packet next at this port.
    #[inline]
    pub fn timeout(&self, port: PortIndex) -> Option<Time> {
        self.port(port)?.timeout()
    }

    /// Returns the next packet that has come out at the far end of this port's link by `now`.
    #[inline]
    pub fn poll_delivered(&mut self, now: Time, port: PortIndex) -> Option<P> {
        self.ports.poll_delivered(now, port)
    }

    /// Returns when an element needs [`Self::handle_timeout`] next. If there are elements, ask after each
    /// call of that and of [`Self::forward`].
    pub fn timeout_of_elements(&self) -> Option<Time> {
        let timers = self.elements.iter().filter_map(|element| element.timeout());
        timers.min()
    }

    /// Calls the elements whose timeout is reached.
    pub fn handle_timeout(&mut self, now: Time, mut changed: impl FnMut(PortIndex, Option<Time>)) {
        let mut rest = self.elements.as_mut_slice();
        while let Some((element, behind)) = rest.split_first_mut() {
            if element.timeout().is_some_and(|time| time <= now) {
                let out = &mut Output::new(now, behind, &mut self.ports, &mut changed);
                element.handle_timeout(now, out);
            }
            rest = behind;
        }
    }

    /// Applies a change from a [`Timeline`](crate::Timeline) to a port, as of `now`.
    pub fn apply(
        &mut self,
        now: Time,
        port: PortIndex,
        change: PortChange,
        mut changed: impl FnMut(PortIndex, Option<Time>),
    ) {
        self.ports.update_port(port, &mut changed, |egress_port| {
            egress_port.apply(now, change)
        });
    }

    /// Lets `act` change a port, for example its queue.
    pub fn update_port(
        &mut self,
        port: PortIndex,
        mut changed: impl FnMut(PortIndex, Option<Time>),
        act: impl FnOnce(&mut EgressPort<P>),
    ) {
        self.ports.update_port(port, &mut changed, act);
    }

    /// Changes the size and the limits of the shared buffer, if there is one. It has as many limits as before.
    pub fn change_shared_buffer(&mut self, buffer: SharedBuffer) {
        self.ports.change_shared_buffer(buffer);
    }

    /// Returns a port, up to date as of `now`: see [`EgressPort::advance`].
    pub fn advance(&mut self, now: Time, port: PortIndex) -> Option<&EgressPort<P>> {
        self.ports
            .update_port(port, &mut |_, _| {}, |egress_port| egress_port.advance(now));
        self.port(port)
    }

    /// Restarts the statistics of a queue's length: see [`EgressPort::reset_occupancy`].
    pub fn reset_occupancy(&mut self, now: Time, port: PortIndex) {
        self.ports.update_port(port, &mut |_, _| {}, |egress_port| {
            egress_port.reset_occupancy(now)
        });
    }

    /// Returns a port as of the last event there; `None` if there is no such port.
    #[inline]
    pub fn port(&self, port: PortIndex) -> Option<&EgressPort<P>> {
        self.ports.egress_ports().get(port.index())
    }

    /// Returns all ports, each as of the last event there.
    pub fn ports(&self) -> &[EgressPort<P>] {
        self.ports.egress_ports()
    }

    /// Returns the first element of this type.
    pub fn element<E: Element<P>>(&self) -> Option<&E> {
        let mut elements = self.elements.iter();
        elements.find_map(|element| (element.as_ref() as &dyn Any).downcast_ref())
    }

    /// Returns the first element of this type, mutably. Packets that it holds must not be taken out.
    pub fn element_mut<E: Element<P>>(&mut self) -> Option<&mut E> {
        let mut elements = self.elements.iter_mut();
        elements.find_map(|element| (element.as_mut() as &mut dyn Any).downcast_mut())
    }

    /// Returns the packets that elements hold, and those that wait, are in transit or are delayed at the
    /// ports.
    pub fn inside(&self) -> PacketCount {
        let elements = self.elements.iter().map(|element| element.held());
        let egress_ports = self.ports().iter().map(EgressPort::inside);
        elements
            .chain(egress_ports)
            .fold(PacketCount::ZERO, |sum, inside| sum + inside)
    }

    /// Returns the counters. They balance with [`Self::inside`].
    pub fn counters(&self) -> StageCounters {
        self.ports.counters(self.has_elements())
    }
}
