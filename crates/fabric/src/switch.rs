//! A switch: packets come in at a port, pass the elements in its path, and leave by a port on the
//! way to where they go.

mod element;
mod error;
mod ports;
mod routes;
mod shared_buffer;
#[cfg(test)]
mod tests;

use std::any::Any;

use weir_units::Time;

use crate::counters::{PacketCount, StageCounters};
use crate::egress_port::EgressPort;
use crate::packet::Packet;
use crate::timeline::PortChange;

pub use element::{Element, Output};
pub use error::SwitchError;
pub use routes::{PortIndex, Routes};
pub use shared_buffer::{BufferError, SharedBuffer};

use ports::Ports;

/// A switch with a [`EgressPort`] at each port, towards whoever is there.
///
/// [`Self::forward`] takes a packet in; it leaves by the pipe of the port that the [`Routes`] name
/// for its [destination](Packet::destination), as a pipe's packets do: [`Self::receive`] until
/// `None` whenever [`Self::timeout`] of that port is reached. A caller keeps one entry per port in
/// its event queue: `forward`, `apply` and `handle_timeout` tell it by a function `changed` of each port
/// whose next time they have changed, and what it is now. An entry may turn out too early, where
/// faults dropped what was expected; it is never too late. `now` must not run backwards.
///
/// ```
/// use weir_fabric::{
///     Faults, Link, Packet, Pipe, PortIndex, Queue, Routes, Rule, SharedBuffer, Switch,
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
/// let pipe = |seed| {
///     let link = Link::new(Rate::from_gbps(8), Duration::from_micros(5));
///     Pipe::new(Queue::new(rules, seed), link, Faults::none())
/// };
/// let routes = Routes::new()
///     .with(0, [PortIndex::new(0)])
///     .with(1, [PortIndex::new(1)]);
/// let mut switch = Switch::new([pipe(1), pipe(2)], routes, 1)?
///     .with_shared_buffer(SharedBuffer::dynamic(size, 1.0)?)?;
///
/// let mut entries = [None; 2];
/// for to in [0, 1, 1] {
///     let packet = Datagram { to, ecn: Ecn::Ect0 };
///     switch.forward(Time::ZERO, PortIndex::new(0), packet, |port, timeout| {
///         entries[port.index()] = timeout;
///     });
/// }
/// // One byte takes 1 ns, and 5 µs pass until it arrives.
/// assert_eq!(entries, [Some(Time::from_nanos(6000)); 2]);
/// let first = switch.receive(Time::from_nanos(6000), PortIndex::new(1));
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
    /// A switch with these ports and routes. `seed` decides which of several ports a flow takes, so
    /// that switches in a row do not all decide alike.
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

    /// The same with an element at the end of its path: behind those that are there, before the
    /// choice of the port.
    pub fn with_element(mut self, element: impl Element<P>) -> Self {
        self.add_element(element);
        self
    }

    /// Puts an element at the end of its path.
    pub fn add_element(&mut self, element: impl Element<P>) {
        self.elements.push(Box::new(element));
    }

    /// Whether there are elements in its path.
    #[inline]
    pub fn has_elements(&self) -> bool {
        !self.elements.is_empty()
    }

    /// The same with queues that share a buffer, beside their own rules.
    pub fn with_shared_buffer(self, buffer: SharedBuffer) -> Result<Self, SwitchError> {
        Ok(Self {
            ports: self.ports.with_shared_buffer(buffer)?,
            ..self
        })
    }

    /// A packet comes in at port `ingress`.
    #[inline]
    pub fn forward(
        &mut self,
        now: Time,
        ingress: PortIndex,
        packet: P,
        mut changed: impl FnMut(PortIndex, Option<Time>),
    ) {
        self.ports.count_arrival(&packet);
        if self.elements.is_empty() {
            self.ports.send(now, ingress, packet, &mut changed);
        } else {
            Output::new(now, &mut self.elements, &mut self.ports, &mut changed)
                .forward(ingress, packet);
        }
    }

    /// The port by which a packet leaves, where nothing but the port's link decides what becomes of it:
    /// no element, no rule, no account, no fault.
    #[inline(always)]
    pub fn fast_forward_port(&self, packet: &P) -> Option<PortIndex> {
        if self.elements.is_empty() {
            self.ports.fast_forward_port(packet)
        } else {
            None
        }
    }

    /// A packet is certain to come in at `ingress` at a time after now, and to leave by `port`, which is
    /// [direct](Self::direct) and stays so until then. The switch does what it would do if the packet
    /// were [forwarded](Self::forward) in its time. Gives when that port delivers next, if this has
    /// changed.
    #[inline(always)]
    pub fn fast_forward(
        &mut self,
        entry: Time,
        ingress: PortIndex,
        port: PortIndex,
        packet: P,
    ) -> Option<Time> {
        self.ports.fast_forward(entry, ingress, port, packet)
    }

    /// When [`Self::receive`] may have something next at this port.
    #[inline]
    pub fn timeout(&self, port: PortIndex) -> Option<Time> {
        self.port(port)?.timeout()
    }

    /// The next packet that has come out at this port, at the far end of its link, by `now`.
    #[inline]
    pub fn poll_delivered(&mut self, now: Time, port: PortIndex) -> Option<P> {
        self.ports.poll_delivered(now, port)
    }

    /// When an element wants [`Self::handle_timeout`] next: ask after each call of that and of
    /// [`Self::forward`], if there are elements.
    pub fn timeout_of_elements(&self) -> Option<Time> {
        let timers = self.elements.iter().filter_map(|element| element.timeout());
        timers.min()
    }

    /// Lets the elements whose time has come do what they want to.
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

    /// Applies a change from a [`Timeline`](crate::Timeline) to a port's pipe, as of `now`.
    pub fn apply(
        &mut self,
        now: Time,
        port: PortIndex,
        change: PortChange,
        mut changed: impl FnMut(PortIndex, Option<Time>),
    ) {
        self.ports.alter(port, &mut changed, |egress_port| {
            egress_port.apply(now, change)
        });
    }

    /// The pipe at a port, up to date as of `now`: see [`EgressPort::settle`].
    pub fn advance(&mut self, now: Time, port: PortIndex) -> Option<&EgressPort<P>> {
        self.ports
            .alter(port, &mut |_, _| {}, |egress_port| egress_port.advance(now));
        self.port(port)
    }

    /// Lets the account of a queue's length begin anew: see [`EgressPort::reset_occupancy`].
    pub fn reset_occupancy(&mut self, now: Time, port: PortIndex) {
        self.ports.alter(port, &mut |_, _| {}, |egress_port| {
            egress_port.reset_occupancy(now)
        });
    }

    /// The pipe at a port, as it was when something last happened there; `None` where there is no
    /// such port.
    #[inline]
    pub fn port(&self, port: PortIndex) -> Option<&EgressPort<P>> {
        self.ports.egress_ports().get(port.index())
    }

    /// The pipes at all ports, each as it was when something last happened there.
    pub fn ports(&self) -> &[EgressPort<P>] {
        self.ports.egress_ports()
    }

    /// The first element of this type.
    pub fn element<E: Element<P>>(&self) -> Option<&E> {
        let mut elements = self.elements.iter();
        elements.find_map(|element| (element.as_ref() as &dyn Any).downcast_ref())
    }

    /// The first element of this type, to be changed. What it holds may not be taken from it.
    pub fn element_mut<E: Element<P>>(&mut self) -> Option<&mut E> {
        let mut elements = self.elements.iter_mut();
        elements.find_map(|element| (element.as_mut() as &mut dyn Any).downcast_mut())
    }

    /// What elements hold, and what waits, is on the way or is delayed at the ports.
    pub fn inside(&self) -> PacketCount {
        let elements = self.elements.iter().map(|element| element.held());
        let egress_ports = self.ports().iter().map(EgressPort::inside);
        elements
            .chain(egress_ports)
            .fold(PacketCount::ZERO, |sum, inside| sum + inside)
    }

    /// What became of the packets that came in. These counters balance with [`Self::inside`].
    pub fn counters(&self) -> StageCounters {
        self.ports.counters()
    }
}
