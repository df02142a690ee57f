//! Hosts: the endpoints of flows, their timers, and their packets.
//!
//! | file | endpoints of |
//! |---|---|
//! | `tcp`, `tls` | TCP, and TLS over it |
//! | `quic` | QUIC |
//! | `dcudp` | DCUDP |
//! | `udp` | UDP without congestion control |
//!
//! `end` is their common interface. `socket` connects them with their host's link and timers.
//! `exchange` takes data in, its acknowledgment, and the data that this lets out. `running_ahead` takes packets in
//! before the network's time has come to them. `datagram_slab` keeps the bytes of QUIC and DCUDP datagrams.
//!
//! Packets carry the position of their endpoint. Positions are reused, so a packet also carries the number
//! of its flow. `timers` has the earliest time that each endpoint has asked for.

mod datagram_slab;
mod dcudp;
mod end;
mod exchange;
mod quic;
mod running_ahead;
mod socket;
mod tcp;
mod timers;
mod tls;
mod udp;

use weir_congestion::AlgorithmSpec;
use weir_counters::FlowCounters;
use weir_network::HostArrival;
use weir_units::{ByteSize, Time};

use crate::flows::{FlowId, PathView};
use crate::packet::{Address, Contents, Network, Packet};
use weir_fabric::Packet as _;

use datagram_slab::{DatagramRoute, DatagramSlab};
pub(crate) use dcudp::{DcudpEnd, DcudpSetup};
use end::{DatagramEnd, End};
pub(crate) use quic::{HostEnvironment, PathSecrets, QuicEnd, QuicSetup};
use socket::Socket;
pub(crate) use tcp::{TcpEnd, TcpSetup};
use timers::HostTimers;
pub(crate) use udp::{UdpEnd, codepoint};

/// One end of a flow, in whole cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
struct Endpoint {
    socket: Socket,
    transport: Transport,
}

/// The protocol of an endpoint.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the others are boxed, and have ten times the size of the difference"
)]
enum Transport {
    /// In place, as there may be many thousands, and each packet needs two.
    Tcp(TcpEnd),
    Quic(Box<QuicEnd>),
    Dcudp(Box<DcudpEnd>),
    Udp(Box<UdpEnd>),
}

/// An action of an application on the endpoint of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Starts to use it.
    Begin,
    /// Writes data to send.
    Write(ByteSize),
    /// Has data to send at all times.
    WriteEndlessly,
    /// Sends no more data.
    Finish,
    /// Closes: everything has been delivered, in both directions.
    Close,
}

/// An event of an endpoint for its flow's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointEvent {
    /// The awaited data have been delivered.
    Delivered,
    /// The connection is closed, or has been given up.
    Closed,
}

/// The endpoints of all hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    endpoints: Vec<Option<Endpoint>>,
    /// A bit for each of the last packets that ran ahead to a host: whether it was taken in at once.
    taken_at_once: u8,
    shared: HostContext,
}

/// State that all endpoints share.
#[derive(Debug)]
struct HostContext {
    timers: HostTimers,
    datagrams: DatagramSlab,
}

impl HostContext {
    /// Sends the datagram that `fill` writes, if any.
    fn send(
        &mut self,
        now: Time,
        address: &Address,
        network: &mut Network,
        fill: impl FnOnce(&mut Vec<u8>) -> Option<DatagramRoute>,
    ) -> bool {
        self.datagrams.send(now, address, network, fill)
    }
}

impl Endpoint {
    /// Whether a packet is for this endpoint, and not for an earlier one at its position.
    #[inline]
    fn accepts(&self, packet: &Packet) -> bool {
        self.socket.address.flow.number == packet.flow && !self.socket.address_lost
    }

    /// Sends pending data, sets the timer, and returns an event for the application.
    #[inline]
    fn drive(
        &mut self,
        now: Time,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Option<(FlowId, EndpointEvent)> {
        let socket = &mut self.socket;
        match &mut self.transport {
            Transport::Tcp(end) => socket.attend_tcp(end, now, shared, network),
            Transport::Quic(end) => socket.attend_datagrams(&mut **end, now, shared, network),
            Transport::Dcudp(end) => socket.attend_datagrams(&mut **end, now, shared, network),
            Transport::Udp(_) => None,
        }
    }
}

impl Hosts {
    /// Creates hosts that will have this number of endpoints, or more.
    pub(crate) fn new(hosts: usize, endpoints: usize) -> Self {
        Self {
            endpoints: Vec::with_capacity(endpoints),
            taken_at_once: 0,
            shared: HostContext {
                timers: HostTimers::new(hosts),
                datagrams: DatagramSlab::new(),
            },
        }
    }

    /// Returns the first time that cannot be simulated.
    pub(crate) fn horizon(&self) -> Time {
        self.shared.timers.horizon()
    }

    /// Makes room for endpoints at the positions below `count`.
    pub(crate) fn make_room(&mut self, count: u32) {
        self.endpoints.resize_with(count as usize, || None);
    }

    /// Puts a TCP endpoint at its position.
    pub(crate) fn open_tcp(&mut self, address: Address, end: TcpEnd) {
        self.open(address, Transport::Tcp(end));
    }

    /// Puts a QUIC endpoint at its position.
    pub(crate) fn open_quic(&mut self, address: Address, end: QuicEnd) {
        self.open(address, Transport::Quic(Box::new(end)));
    }

    /// Puts a DCUDP endpoint at its position.
    pub(crate) fn open_dcudp(&mut self, address: Address, end: DcudpEnd) {
        self.open(address, Transport::Dcudp(Box::new(end)));
    }

    /// Puts a UDP endpoint at its position.
    pub(crate) fn open_udp(&mut self, address: Address, end: UdpEnd) {
        self.open(address, Transport::Udp(Box::new(end)));
    }

    fn open(&mut self, address: Address, transport: Transport) {
        self.endpoints[address.position as usize] = Some(Endpoint {
            socket: Socket {
                armed: Time::MAX,
                awaited: u64::MAX,
                send_slot: Time::ZERO,
                address_lost: false,
                address,
            },
            transport,
        });
    }

    /// Removes an endpoint, if there is one. The next endpoint at this position ignores packets that are
    /// still in transit.
    pub(crate) fn close(&mut self, position: u32) -> bool {
        self.endpoints[position as usize].take().is_some()
    }

    /// Returns the earliest timer and its host.
    #[inline]
    pub(crate) fn next_timeout(&self) -> (Time, usize) {
        self.shared.timers.next()
    }

    /// Delivers a packet to its endpoint, and releases it or sends the next one in its slot.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        arrival: HostArrival,
        network: &mut Network,
    ) -> Option<(FlowId, EndpointEvent)> {
        if network.packet(arrival.slot).is_long() {
            self.receive_data(arrival, network)
        } else {
            self.receive_acknowledgment(arrival, network)
        }
    }

    /// Delivers a packet to an endpoint of any kind.
    #[inline(never)]
    fn receive_generally(
        &mut self,
        arrival: HostArrival,
        network: &mut Network,
    ) -> Option<(FlowId, EndpointEvent)> {
        let (time, packet) = (arrival.time, network.packet(arrival.slot));
        let endpoint = self.endpoints[packet.endpoint as usize].as_mut();
        let endpoint = endpoint.filter(|endpoint| endpoint.accepts(packet));
        let Some(Endpoint { socket, transport }) = endpoint else {
            network.release(arrival.slot);
            return None;
        };
        let shared = &mut self.shared;
        match (transport, packet.contents()) {
            (Transport::Tcp(end), Contents::Segment(segment)) => {
                end.receive(time, &segment, packet.ecn());
                network.release(arrival.slot);
                socket.attend_tcp(end, time, shared, network)
            }
            (Transport::Quic(end), Contents::RawDatagram(datagram)) => {
                let bytes = shared.datagrams.take(datagram.slot, packet.is_copied());
                end.receive(time, packet.locations(), packet.ecn(), bytes);
                network.release(arrival.slot);
                socket.attend_datagrams(&mut **end, time, shared, network)
            }
            (Transport::Dcudp(end), Contents::RawDatagram(datagram)) => {
                let bytes = shared.datagrams.take(datagram.slot, packet.is_copied());
                end.receive(time, packet.ecn(), bytes);
                network.release(arrival.slot);
                socket.attend_datagrams(&mut **end, time, shared, network)
            }
            (Transport::Udp(end), Contents::Datagram(datagram)) => {
                end.receive(&datagram, packet.ecn());
                network.release(arrival.slot);
                None
            }
            _ => {
                network.release(arrival.slot);
                None
            }
        }
    }

    /// Handles the earliest timer of a host.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        host: usize,
        network: &mut Network,
    ) -> Option<(FlowId, EndpointEvent)> {
        let (armed, position) = self.shared.timers.pop(host)?;
        self.prefetch_timers(host);
        let endpoint = self.endpoints[position as usize].as_mut()?;
        if endpoint.socket.armed != armed {
            return None;
        }
        endpoint.socket.armed = Time::MAX;
        let is_due = |due: Option<Time>| due.is_some_and(|due| due <= now);
        match &mut endpoint.transport {
            Transport::Tcp(end) if is_due(end.connection.timeout()) => {
                end.connection.handle_timeout(now);
            }
            // A timer that has been postponed since: nothing else has happened, so there is nothing to send.
            Transport::Tcp(end) if endpoint.socket.send_slot == Time::ZERO => {
                let due = end.connection.timeout().unwrap_or(Time::MAX);
                endpoint.socket.set_timer(due, &mut self.shared);
                return None;
            }
            Transport::Quic(end) if is_due(end.timeout()) => end.handle_timeout(now),
            Transport::Dcudp(end) if is_due(end.timeout()) => end.handle_timeout(now),
            _ => {}
        }
        endpoint.drive(now, &mut self.shared, network)
    }

    /// Applies an application's action to the endpoint of a connection.
    pub(crate) fn act(
        &mut self,
        now: Time,
        position: u32,
        network: &mut Network,
        action: Action,
    ) -> Option<(FlowId, EndpointEvent)> {
        let endpoint = self.endpoints[position as usize].as_mut()?;
        match (&mut endpoint.transport, action) {
            (Transport::Tcp(end), Action::Write(size)) => end.write(size),
            (Transport::Tcp(end), Action::WriteEndlessly) => end.write_endlessly(),
            (Transport::Tcp(end), Action::Finish | Action::Close) => end.close(),
            (Transport::Quic(end), Action::Write(size)) => end.write(size),
            (Transport::Quic(end), Action::WriteEndlessly) => end.write(ByteSize::MAX),
            (Transport::Quic(end), Action::Finish) => end.finish(),
            (Transport::Quic(end), Action::Close) => end.close(now),
            (Transport::Dcudp(end), Action::Write(size)) => end.write(size),
            (Transport::Dcudp(end), Action::WriteEndlessly) => end.write(ByteSize::MAX),
            (Transport::Dcudp(end), Action::Finish) => end.finish(),
            (Transport::Dcudp(end), Action::Close) => end.close(now),
            (_, Action::Begin) | (Transport::Udp(_), _) => {}
        }
        endpoint.drive(now, &mut self.shared, network)
    }

    /// Changes parameters of the congestion control of an endpoint's connection, which may send more at once.
    pub(crate) fn set_congestion_parameters(
        &mut self,
        now: Time,
        position: u32,
        network: &mut Network,
        spec: &AlgorithmSpec,
    ) -> Option<(FlowId, EndpointEvent)> {
        let endpoint = self.endpoints[position as usize].as_mut()?;
        match &mut endpoint.transport {
            Transport::Tcp(end) => end.connection.set_congestion_parameters(spec),
            Transport::Quic(end) => end.set_congestion_parameters(spec),
            Transport::Dcudp(end) => end.set_congestion_parameters(spec),
            Transport::Udp(_) => return None,
        }
        endpoint.drive(now, &mut self.shared, network)
    }

    /// Changes a host's address on the link of this port of its own.
    pub(crate) fn readdress(
        &mut self,
        now: Time,
        port: u32,
        network: &mut Network,
    ) -> Vec<(FlowId, EndpointEvent)> {
        let mut notices = Vec::new();
        for endpoint in self.endpoints.iter_mut().flatten() {
            let Endpoint { socket, transport } = endpoint;
            let is_there = socket.address.port == port;
            match transport {
                Transport::Quic(end) => {
                    end.readdress(now, port);
                    let end = &mut **end;
                    notices.extend(socket.attend_datagrams(end, now, &mut self.shared, network));
                }
                Transport::Tcp(_) | Transport::Dcudp(_) => socket.address_lost |= is_there,
                // A pure sender continues from the new address.
                Transport::Udp(_) => socket.address_lost |= is_there && !socket.address.initiator,
            }
        }
        notices
    }

    /// Announces the peer application's action, which this end would learn from TLS record headers.
    pub(crate) fn expect(&mut self, position: u32, action: Action) {
        let endpoint = self.endpoints[position as usize].as_mut();
        if let Some(Transport::Tcp(end)) = endpoint.map(|endpoint| &mut endpoint.transport) {
            match action {
                Action::Write(size) => end.expect(size),
                Action::WriteEndlessly => end.expect_endlessly(),
                Action::Begin | Action::Finish | Action::Close => {}
            }
        }
    }

    /// Sends a datagram of the application.
    pub(crate) fn send_datagram(
        &mut self,
        now: Time,
        position: u32,
        payload: u32,
        network: &mut Network,
    ) {
        let Some(endpoint) = self.endpoints[position as usize].as_mut() else {
            return;
        };
        if let Transport::Udp(end) = &mut endpoint.transport {
            let (datagram, ecn) = end.send(payload);
            let packet = Packet::of_datagram(datagram, ecn, &endpoint.socket.address);
            network.send(now, endpoint.socket.address.port, packet);
        }
    }

    /// Requests an event when this many bytes have been delivered to the application.
    pub(crate) fn wait_for(&mut self, position: u32, bytes: u64) {
        if let Some(endpoint) = &mut self.endpoints[position as usize] {
            endpoint.socket.awaited = bytes;
        }
    }

    /// Returns the counters of the endpoint at a position.
    pub(crate) fn achieved(&self, position: u32) -> FlowCounters {
        self.end(position).map_or(FlowCounters::ZERO, End::achieved)
    }

    /// Returns the RTT estimates of the endpoint at a position.
    pub(crate) fn path(&self, position: u32) -> PathView {
        self.end(position).map_or(PathView::default(), End::path)
    }

    /// Returns the congestion window of the endpoint at a position, if it has one.
    pub(crate) fn window(&self, position: u32) -> Option<ByteSize> {
        self.end(position)?.window()
    }

    /// Returns DCTCP's α of the endpoint at a position, if it has one.
    pub(crate) fn ce_fraction(&self, position: u32) -> Option<f64> {
        self.end(position)?.ce_fraction()
    }

    /// Whether no more data will be delivered to the endpoint at a position, as its connection is closed.
    pub(crate) fn is_closed(&self, position: u32) -> bool {
        self.end(position).is_none_or(End::is_closed)
    }

    /// Whether its connection ended before everything was delivered, or will not notify the peer.
    pub(crate) fn has_failed(&self, position: u32) -> bool {
        self.end(position).is_some_and(End::has_failed)
    }

    fn end(&self, position: u32) -> Option<&dyn End> {
        let endpoint = self.endpoints.get(position as usize)?.as_ref()?;
        Some(match &endpoint.transport {
            Transport::Tcp(end) => end,
            Transport::Quic(end) => &**end,
            Transport::Dcudp(end) => &**end,
            Transport::Udp(end) => &**end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulation may have many thousands, and a packet needs two.
    #[test]
    fn an_endpoint_is_small() {
        assert_eq!(size_of::<Option<Endpoint>>(), 384);
    }
}
