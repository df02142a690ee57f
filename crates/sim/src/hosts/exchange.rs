//! What happens for most packets: an endpoint receives data and acknowledges it, and its peer receives the
//! acknowledgment and sends the next data. Where the acknowledgment runs ahead all the way, this is one straight line,
//! and no packet with it is ever written.

use weir_fabric::Packet as _;
use weir_network::{DirectPort, HostArrival, Passage};
use weir_tcp::{QuickNext, Reply};
use weir_units::{ByteSize, Time};
use weir_wire::Ecn;
use weir_wire::tcp::Segment;

use super::socket::Socket;
use super::{Endpoint, EndpointEvent, HostContext, Hosts, TcpEnd, Transport};
use crate::flows::FlowId;
use crate::packet::{Network, Packet, plain_length};

/// An event for an application, if there is one.
type Notice = Option<(FlowId, EndpointEvent)>;

/// An acknowledgment at the peer's host, for which no packet has been written.
#[derive(Clone, Copy, Debug)]
struct PassedAcknowledgment {
    arrival: HostArrival,
    segment: Segment,
    ecn: Ecn,
    /// The number of its flow.
    flow: u32,
    /// The host at which it arrives, and the position of its endpoint.
    host: u32,
    position: u32,
    /// The position of the endpoint that sent it.
    sender: u32,
}

impl Hosts {
    /// Delivers a packet that is long enough for data. Mostly it is the next of a flow: then this takes little time.
    #[inline(never)]
    pub(super) fn receive_data(&mut self, arrival: HostArrival, network: &mut Network) -> Notice {
        let packet = network.packet(arrival.slot);
        if let Some(Some(endpoint)) = self.endpoints.get_mut(packet.endpoint as usize)
            && endpoint.accepts(packet)
            && let Transport::Tcp(end) = &mut endpoint.transport
            && end.is_bare()
            && let Some(segment) = packet.plain_segment()
        {
            let (ecn, socket, shared) = (packet.ecn(), &mut endpoint.socket, &mut self.shared);
            let turn = socket.turn(end, arrival.time, network);
            let (connection, may_send) = (&mut end.connection, turn.may_send());
            if let Some(reply) = connection.take_data(arrival.time, &segment, ecn, may_send) {
                let (passed, notice) = socket.answer_data(end, arrival, turn, reply, shared);
                if let Some(passed) = passed {
                    self.receive_passed(passed, network);
                }
                return notice;
            }
        }
        self.receive_generally(arrival, network)
    }

    /// Delivers a packet that is too short for data, mostly an acknowledgment.
    #[inline(never)]
    pub(super) fn receive_acknowledgment(
        &mut self,
        arrival: HostArrival,
        network: &mut Network,
    ) -> Notice {
        let packet = network.packet(arrival.slot);
        if let Some(Some(endpoint)) = self.endpoints.get_mut(packet.endpoint as usize)
            && endpoint.accepts(packet)
            && let Some(segment) = packet.plain_segment()
            && let Ok(notice) =
                endpoint.take_acknowledgment(&segment, arrival, &mut self.shared, network)
        {
            return notice;
        }
        self.receive_generally(arrival, network)
    }

    /// Takes in an acknowledgment that has come to its host ahead of the events, unless a timer of the host is
    /// earlier. Then its packet is written, and waits for its turn.
    #[inline(always)]
    fn receive_passed(&mut self, passed: PassedAcknowledgment, network: &mut Network) {
        let PassedAcknowledgment {
            arrival,
            segment,
            ecn,
            flow,
            host,
            position,
            sender,
        } = passed;
        let time = arrival.time;
        if time <= self.next_timer(host, time)
            && let Some(Some(endpoint)) = self.endpoints.get_mut(position as usize)
            && endpoint.socket.address.flow.number == flow
            && !endpoint.socket.address_lost
            && let Ok(event) =
                endpoint.take_acknowledgment(&segment, arrival, &mut self.shared, network)
        {
            debug_assert_eq!(event, None, "the flows of undisturbed hosts have no end");
        } else if let Some(Some(endpoint)) = self.endpoints.get(sender as usize) {
            let packet = network.packet_mut(arrival.slot);
            packet.write_segment(&segment, ecn, &endpoint.socket.address);
            network.queue_ahead(arrival);
        }
    }
}

/// Who decides what a connection sends after a segment that it takes in on its fast paths.
#[derive(Debug)]
enum Turn<'a> {
    /// The connection, by this port.
    Own(DirectPort<'a, Packet>),
    /// Nobody: the queue of this port is too long.
    Wait(DirectPort<'a, Packet>),
    /// [`Socket::attend_tcp`]: more than the connection counts.
    General(&'a mut Network),
}

impl<'a> Turn<'a> {
    #[inline(always)]
    fn may_send(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Returns the network of the host.
    #[inline(always)]
    fn into_network(self) -> &'a mut Network {
        match self {
            Self::Own(port) | Self::Wait(port) => port.into_network(),
            Self::General(network) => network,
        }
    }
}

/// A segment that an endpoint does not take in on the fast paths of its connection.
#[derive(Clone, Copy, Debug)]
struct NotTaken;

impl Endpoint {
    /// Takes in an acknowledgment, if that takes only a fast path of the connection. Otherwise it changes nothing.
    #[inline(always)]
    fn take_acknowledgment(
        &mut self,
        segment: &Segment,
        arrival: HostArrival,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Result<Notice, NotTaken> {
        let Transport::Tcp(end) = &mut self.transport else {
            return Err(NotTaken);
        };
        if !end.is_bare() {
            return Err(NotTaken);
        }
        let socket = &mut self.socket;
        let turn = socket.turn(end, arrival.time, network);
        let (connection, may_send) = (&mut end.connection, turn.may_send());
        match connection.take_acknowledgment(arrival.time, segment, may_send) {
            Some(reply) => Ok(socket.answer_acknowledgment(end, arrival, turn, reply, shared)),
            None => Err(NotTaken),
        }
    }
}

impl Socket {
    /// Returns who decides what a connection sends after the next segment.
    #[inline(always)]
    fn turn<'a>(&self, end: &TcpEnd, now: Time, network: &'a mut Network) -> Turn<'a> {
        if self.send_slot != Time::ZERO || end.sends_bursts() {
            return Turn::General(network);
        }
        let port = match network.direct_port(self.address.port) {
            Ok(port) => port,
            Err(network) => return Turn::General(network),
        };
        if end.has_small_queues() && !port.has_room(now) {
            Turn::Wait(port)
        } else {
            Turn::Own(port)
        }
    }

    /// Attends to a connection that has taken in data, with the effects of [`Self::attend_tcp`]. Mostly it has an
    /// acknowledgment to send or nothing; the packet goes into the slot of the one that it has received.
    #[inline(always)]
    fn answer_data(
        &mut self,
        end: &mut TcpEnd,
        arrival: HostArrival,
        turn: Turn<'_>,
        Reply { next, due }: Reply,
        shared: &mut HostContext,
    ) -> (Option<PassedAcknowledgment>, Notice) {
        let HostArrival { time, slot, .. } = arrival;
        let (mut port, segment, ecn) = match (turn, next) {
            (Turn::Own(port), QuickNext::Segment(segment, ecn)) => (port, segment, ecn),
            (turn, next) => {
                let notice = self.answer_nothing(end, arrival, turn, (next, due), shared);
                return (None, notice);
            }
        };
        let length = ByteSize::from_bytes(u64::from(plain_length(&segment)));
        let (passage, mut has_room) = port.pass(time, slot, self.address.destination, length);
        if let Passage::Unknown = passage {
            let packet = port.packet_mut(slot);
            packet.write_segment(&segment, ecn, &self.address);
            has_room = port.send(time, slot);
        }
        if end.has_small_queues() && !has_room {
            self.send_slot = port.reserve_slot();
        }
        if let Passage::OnLink(on, at) = passage {
            let packet = port.packet_mut(slot);
            packet.write_segment(&segment, ecn, &self.address);
            port.into_network().travel_from(on, slot, at);
        }
        let passed = match passage {
            Passage::AtHost(arrival) => Some(PassedAcknowledgment {
                arrival,
                segment,
                ecn,
                flow: self.address.flow.number,
                host: self.address.destination,
                position: self.address.peer,
                sender: self.address.position,
            }),
            Passage::OnLink(..) | Passage::Unknown => None,
        };
        (passed, self.end_attention(end, time, due, shared))
    }

    /// Attends to a connection that has taken in an acknowledgment, with the effects of [`Self::attend_tcp`]. Mostly
    /// it has one packet to send or none; a packet goes into the slot of the one that it has received.
    #[inline(always)]
    fn answer_acknowledgment(
        &mut self,
        end: &mut TcpEnd,
        arrival: HostArrival,
        turn: Turn<'_>,
        Reply { next, due }: Reply,
        shared: &mut HostContext,
    ) -> Notice {
        let HostArrival { time, slot, .. } = arrival;
        let (mut port, segment, ecn) = match (turn, next) {
            (Turn::Own(port), QuickNext::Segment(segment, ecn)) => (port, segment, ecn),
            (turn, next) => return self.answer_nothing(end, arrival, turn, (next, due), shared),
        };
        let packet = port.packet_mut(slot);
        packet.write_segment(&segment, ecn, &self.address);
        let has_room = port.send(time, slot);
        if end.has_small_queues() && !has_room {
            self.send_slot = port.reserve_slot();
        } else if end.connection.may_send_more(time) {
            return self.attend_tcp(end, time, shared, port.into_network());
        }
        self.end_attention(end, time, due, shared)
    }

    /// Attends to a connection that has taken in a segment and does not answer it at once.
    #[inline(always)]
    fn answer_nothing(
        &mut self,
        end: &mut TcpEnd,
        HostArrival { time, slot, .. }: HostArrival,
        turn: Turn<'_>,
        (next, due): (QuickNext, Time),
        shared: &mut HostContext,
    ) -> Notice {
        let (is_general, is_waiting) = match &turn {
            Turn::Own(_) => (!matches!(next, QuickNext::Nothing), false),
            Turn::Wait(_) => (false, true),
            Turn::General(_) => (true, false),
        };
        let network = turn.into_network();
        network.release(slot);
        if is_general {
            return self.attend_tcp(end, time, shared, network);
        }
        if is_waiting && let Some(mut port) = network.tx_port(self.address.port) {
            self.send_slot = port.reserve_slot();
        }
        self.end_attention(end, time, due, shared)
    }
}
