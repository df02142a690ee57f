//! What happens for most packets: an endpoint receives data and acknowledges it, and its peer receives the
//! acknowledgment and sends the next data. Where the acknowledgment runs ahead all the way, this is one straight line,
//! and no packet with it is ever written.

use weir_fabric::Packet as _;
use weir_network::{HostArrival, Passage};
use weir_tcp::QuickNext;
use weir_units::{ByteSize, Time};
use weir_wire::Ecn;
use weir_wire::tcp::Segment;

use super::socket::Socket;
use super::{EndpointEvent, HostContext, Hosts, TcpEnd, Transport};
use crate::flows::FlowId;
use crate::packet::{Network, plain_length};

/// An event for an application, if there is one.
type Notice = Option<(FlowId, EndpointEvent)>;

/// An acknowledgment at the peer's host, for which no packet has been written.
#[derive(Clone, Copy, Debug)]
struct PassedAcknowledgment {
    arrival: HostArrival,
    segment: Segment,
    ecn: Ecn,
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
            && let Some(segment) = packet.plain_segment()
            && end.receive_quickly::<true>(arrival.time, &segment, packet.ecn())
        {
            let (socket, shared) = (&mut endpoint.socket, &mut self.shared);
            let (passed, notice) = socket.answer_data(end, arrival, shared, network);
            if let Some(passed) = passed {
                self.receive_passed(passed, network);
            }
            return notice;
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
            && let Transport::Tcp(end) = &mut endpoint.transport
            && let Some(segment) = packet.plain_segment()
            && end.receive_quickly::<false>(arrival.time, &segment, packet.ecn())
        {
            let shared = &mut self.shared;
            return (endpoint.socket).answer_acknowledgment(end, arrival, shared, network);
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
            sender,
        } = passed;
        let time = arrival.time;
        let Some(Some(endpoint)) = self.endpoints.get(sender as usize) else {
            return;
        };
        let address = &endpoint.socket.address;
        let (flow, position, host) = (address.flow.number, address.peer, address.destination);
        if time <= self.next_timer(host, time)
            && let Some(Some(endpoint)) = self.endpoints.get_mut(position as usize)
            && endpoint.socket.address.flow.number == flow
            && !endpoint.socket.address_lost
            && let Transport::Tcp(end) = &mut endpoint.transport
            && end.receive_quickly::<false>(time, &segment, ecn)
        {
            let (socket, shared) = (&mut endpoint.socket, &mut self.shared);
            let event = socket.answer_acknowledgment(end, arrival, shared, network);
            debug_assert_eq!(event, None, "the flows of undisturbed hosts have no end");
        } else if let Some(Some(endpoint)) = self.endpoints.get(sender as usize) {
            let packet = network.packet_mut(arrival.slot);
            packet.write_segment(&segment, ecn, &endpoint.socket.address);
            network.queue_ahead(arrival);
        }
    }
}

impl Socket {
    /// Attends to a connection that has [received data quickly](TcpEnd::receive_quickly), with the effects of
    /// [`Self::attend_tcp`]. Mostly it has an acknowledgment to send or nothing; the packet goes into the slot of the
    /// one that it has received.
    #[inline(always)]
    fn answer_data(
        &mut self,
        end: &mut TcpEnd,
        HostArrival { time, slot, .. }: HostArrival,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> (Option<PassedAcknowledgment>, Notice) {
        let is_usual = self.send_slot == Time::ZERO && !end.sends_bursts();
        let Some(mut port) = network.direct_port(self.address.port).filter(|_| is_usual) else {
            network.release(slot);
            return (None, self.attend_tcp(end, time, shared, network));
        };
        let is_patient = end.has_small_queues();
        if is_patient && !port.has_room(time) {
            port.release(slot);
            self.send_slot = port.reserve_slot();
            return (None, self.end_attention(end, time, shared));
        }
        let (segment, ecn) = match end.connection.next_quickly::<true>(time) {
            QuickNext::Segment(segment, ecn) => (segment, ecn),
            QuickNext::Nothing => {
                port.release(slot);
                return (None, self.end_attention(end, time, shared));
            }
            QuickNext::Unknown => {
                port.release(slot);
                return (None, self.attend_tcp(end, time, shared, network));
            }
        };
        let length = ByteSize::from_bytes(u64::from(plain_length(&segment)));
        let passage = port.pass(time, slot, self.address.destination, length);
        if let Passage::Unknown = passage {
            let packet = port.packet_mut(slot);
            packet.write_segment(&segment, ecn, &self.address);
            port.send(time, slot);
        }
        if is_patient && !port.has_room(time) {
            self.send_slot = port.reserve_slot();
        }
        if let Passage::OnLink(port, at) = passage {
            let packet = network.packet_mut(slot);
            packet.write_segment(&segment, ecn, &self.address);
            network.travel_from(port, slot, at);
        }
        let passed = match passage {
            Passage::AtHost(arrival) => Some(PassedAcknowledgment {
                arrival,
                segment,
                ecn,
                sender: self.address.position,
            }),
            Passage::OnLink(..) | Passage::Unknown => None,
        };
        (passed, self.end_attention(end, time, shared))
    }

    /// Attends to a connection that has [received an acknowledgment quickly](TcpEnd::receive_quickly), with the
    /// effects of [`Self::attend_tcp`]. Mostly it has one packet to send or none; a packet goes into the slot of the
    /// one that it has received.
    #[inline(always)]
    fn answer_acknowledgment(
        &mut self,
        end: &mut TcpEnd,
        HostArrival { time, slot, .. }: HostArrival,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Notice {
        let is_usual = self.send_slot == Time::ZERO && !end.sends_bursts();
        let Some(mut port) = network.direct_port(self.address.port).filter(|_| is_usual) else {
            network.release(slot);
            return self.attend_tcp(end, time, shared, network);
        };
        let is_patient = end.has_small_queues();
        if is_patient && !port.has_room(time) {
            port.release(slot);
            self.send_slot = port.reserve_slot();
            return self.end_attention(end, time, shared);
        }
        match end.connection.next_quickly::<false>(time) {
            QuickNext::Nothing => port.release(slot),
            QuickNext::Segment(segment, ecn) => {
                let packet = port.packet_mut(slot);
                packet.write_segment(&segment, ecn, &self.address);
                let has_room = port.send(time, slot);
                if is_patient && !has_room {
                    self.send_slot = port.reserve_slot();
                } else if end.connection.may_send_more(time) {
                    return self.attend_tcp(end, time, shared, network);
                }
            }
            QuickNext::Unknown => {
                port.release(slot);
                return self.attend_tcp(end, time, shared, network);
            }
        }
        self.end_attention(end, time, shared)
    }
}
