//! What happens for most packets: an endpoint receives data and acknowledges it, and its peer receives the
//! acknowledgment and sends the next data. Where the acknowledgment runs ahead all the way, this is one straight line,
//! and no packet with it is ever written.

use weir_fabric::Packet as _;
use weir_network::{HostArrival, Stop};
use weir_tcp::QuickNext;
use weir_units::ByteSize;
use weir_wire::Ecn;
use weir_wire::tcp::Segment;

use super::socket::Socket;
use super::{Endpoint, EndpointEvent, HostContext, Hosts, TcpEnd, Transport};
use crate::flows::FlowId;
use crate::packet::{Network, plain_length};

/// An event for an application, if there is one.
type Notice = Option<(FlowId, EndpointEvent)>;

/// Whose packet lies in the slot in which an acknowledgment arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// The last data of the endpoint that receives the acknowledgment: that has not been written.
    Own,
    /// The acknowledgment itself.
    Peer,
}

/// A segment that an endpoint does not take in on the fast paths of its connection.
#[derive(Clone, Copy, Debug)]
struct NotTaken;

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
        let HostArrival { time, slot, .. } = arrival;
        let packet = network.packet(slot);
        let Some(Some(endpoint)) = self.endpoints.get_mut(packet.endpoint as usize) else {
            return self.receive_generally(arrival, network);
        };
        let accepts = endpoint.accepts(packet);
        let (segment, ecn) = (packet.plain_segment(), packet.ecn());
        let Endpoint { socket, transport } = endpoint;
        let (true, Transport::Tcp(end), Some(segment)) = (accepts, transport, segment) else {
            return self.receive_generally(arrival, network);
        };
        if !socket.is_straight(end) {
            return self.receive_generally(arrival, network);
        }
        let Some(mut port) = network.direct_port(socket.address.port) else {
            return self.receive_generally(arrival, network);
        };
        let may_send = !end.has_small_queues() || port.has_room(time);
        let Some(next) = (end.connection).take_data(time, &segment, ecn, may_send) else {
            return self.receive_generally(arrival, network);
        };
        if next != QuickNext::Segment {
            let network = port.into_network();
            return socket.answer_nothing(
                end,
                arrival,
                (next, may_send),
                &mut self.shared,
                network,
            );
        }
        let (segment, ecn) = end.connection.quick_acknowledgment(time);
        let length = ByteSize::from_bytes(u64::from(plain_length(&segment)));
        let passage = port.pass(time, socket.address.destination, length);
        let mut has_room = passage.has_room;
        if passage.stop != Stop::Host {
            let packet = port.packet_mut(slot);
            packet.write_plain_segment(segment, ecn, &socket.address);
            if passage.stop == Stop::Sender {
                has_room = port.send(time, slot);
            }
        }
        if end.has_small_queues() && !has_room {
            socket.send_slot = port.reserve_slot();
        }
        let notice = socket.end_attention(end, time, &mut self.shared);
        match passage.stop {
            Stop::Host => {
                let address = &socket.address;
                let passed = PassedAcknowledgment {
                    arrival: passage.arrival(slot),
                    segment,
                    ecn,
                    flow: address.flow.number,
                    host: address.destination,
                    position: address.peer,
                    sender: address.position,
                };
                self.receive_passed(passed, network);
            }
            Stop::Link => network.travel_from(passage, slot),
            Stop::Sender => {}
        }
        notice
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
            && let Ok(notice) = endpoint.take_acknowledgment(
                &segment,
                arrival,
                Slot::Peer,
                &mut self.shared,
                network,
            )
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
            && let Ok(event) = endpoint.take_acknowledgment(
                &segment,
                arrival,
                Slot::Own,
                &mut self.shared,
                network,
            )
        {
            debug_assert_eq!(event, None, "the flows of undisturbed hosts have no end");
        } else if let Some(Some(endpoint)) = self.endpoints.get(sender as usize) {
            let packet = network.packet_mut(arrival.slot);
            packet.write_plain_segment(segment, ecn, &endpoint.socket.address);
            network.queue_ahead(arrival);
        }
    }
}

impl Endpoint {
    /// Takes in an acknowledgment, if that takes only a fast path of the connection, and sends what follows. Otherwise
    /// it changes nothing. The next packet goes into the slot of the one that has arrived.
    #[inline(always)]
    fn take_acknowledgment(
        &mut self,
        segment: &Segment,
        arrival: HostArrival,
        slot_of: Slot,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Result<Notice, NotTaken> {
        let HostArrival { time, slot, .. } = arrival;
        let Transport::Tcp(end) = &mut self.transport else {
            return Err(NotTaken);
        };
        let socket = &mut self.socket;
        if !socket.is_straight(end) {
            return Err(NotTaken);
        }
        let Some(mut port) = network.direct_port(socket.address.port) else {
            return Err(NotTaken);
        };
        let may_send = !end.has_small_queues() || port.has_room(time);
        let Some(next) = (end.connection).take_acknowledgment(time, segment, may_send) else {
            return Err(NotTaken);
        };
        if next != QuickNext::Segment {
            let network = port.into_network();
            return Ok(socket.answer_nothing(end, arrival, (next, may_send), shared, network));
        }
        let (segment, ecn) = end.connection.quick_data(time);
        let packet = port.packet_mut(slot);
        match slot_of {
            Slot::Own => packet.renew(segment, ecn),
            Slot::Peer => packet.write_plain_segment(segment, ecn, &socket.address),
        }
        let has_room = port.send(time, slot);
        if end.has_small_queues() && !has_room {
            socket.send_slot = port.reserve_slot();
        } else if end.connection.may_send_more(time) {
            return Ok(socket.attend_tcp(end, time, shared, port.into_network()));
        }
        Ok(socket.end_attention(end, time, shared))
    }
}

impl Socket {
    /// Whether what a connection sends next depends on itself and on the length of its host's queue alone.
    #[inline(always)]
    fn is_straight(&self, end: &TcpEnd) -> bool {
        self.send_slot.as_nanos() == 0 && end.is_bare() && !end.sends_bursts()
    }

    /// Attends to a connection that has taken in a segment and does not answer it at once; without room in its host's
    /// queue, it may not.
    #[inline(always)]
    fn answer_nothing(
        &mut self,
        end: &mut TcpEnd,
        HostArrival { time, slot, .. }: HostArrival,
        (next, has_room): (QuickNext, bool),
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Notice {
        network.release(slot);
        if next == QuickNext::Unknown {
            return self.attend_tcp(end, time, shared, network);
        }
        if !has_room && let Some(mut port) = network.tx_port(self.address.port) {
            self.send_slot = port.reserve_slot();
        }
        self.end_attention(end, time, shared)
    }
}
