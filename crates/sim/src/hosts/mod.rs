//! Hosts: the endpoints of flows, their timers, and what they send.
//!
//! | file | endpoints of |
//! |---|---|
//! | `tcp` | TCP |
//! | `udp` | UDP without congestion control |
//!
//! An endpoint is found by its position, which packets carry; positions are used again, so that a
//! packet also says which flow it belongs to. Timers are lazy: the calendar holds the earliest time
//! that an endpoint has asked for, and an endpoint that is called too early is asked again.

mod tcp;
mod udp;

use weir_units::Time;

use crate::calendar::Calendar;
use crate::flows::{Achieved, FlowId};
use crate::network::Network;
use crate::packet::{Contents, Packet};

pub(crate) use tcp::{TcpEnd, TcpSetup};
pub(crate) use udp::{UdpEnd, codepoint};

/// Where an endpoint is and which way its packets go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) flow: FlowId,
    pub(crate) position: u32,
    /// The position of the endpoint at the other end.
    pub(crate) peer: u32,
    /// Positions in the topology's list of hosts.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The port of the source by which packets leave.
    pub(crate) port: u32,
    /// Whether this is the end that opened the flow.
    pub(crate) initiator: bool,
}

/// One end of a flow.
#[derive(Debug)]
struct Endpoint {
    /// The time in the calendar; the end of time if there is none.
    armed: Time,
    /// The application waits until this many bytes have been delivered to it.
    awaited: u64,
    /// When it may send one packet, where the host's queue was too long; otherwise zero.
    turn: Time,
    address: Address,
    transport: Transport,
}

/// The protocol of an endpoint.
#[derive(Debug)]
enum Transport {
    Tcp(Box<TcpEnd>),
    Udp(UdpEnd),
}

/// What an endpoint has to tell its flow's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// What the application waits for has been delivered.
    Delivered,
    /// The connection is closed, or was given up.
    Closed,
}

/// The endpoints of all hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    endpoints: Vec<Option<Endpoint>>,
    /// Positions that are free.
    free: Vec<u32>,
    timers: Calendar,
}

impl Endpoint {
    /// Sends what is to be sent, sets the timer, and tells what the application has to know.
    #[inline]
    fn attend(
        &mut self,
        now: Time,
        timers: &mut Calendar,
        network: &mut Network,
    ) -> Option<(FlowId, Notice)> {
        let Transport::Tcp(end) = &mut self.transport else {
            return None;
        };
        let port = self.address.port;
        while self.turn <= now {
            let has_turn = self.turn > Time::ZERO;
            self.turn = Time::ZERO;
            if end.has_small_queues() && !has_turn && !network.has_room(now, port) {
                self.turn = network.take_turn(port);
                break;
            }
            let Some((segment, ecn)) = end.next_segment(now) else {
                break;
            };
            let packet = Packet::new(Contents::Segment(segment), ecn, &self.address);
            network.send(now, port, packet);
        }
        let turn = Some(self.turn).filter(|turn| *turn > now);
        let due = end.next_time().into_iter().chain(turn).min();
        let due = due.unwrap_or(Time::MAX);
        if due < self.armed {
            self.armed = due;
            timers.set(self.address.position as usize, Some(due));
        }
        if end.delivered() >= self.awaited {
            self.awaited = u64::MAX;
            return Some((self.address.flow, Notice::Delivered));
        }
        end.take_closed()
            .then_some((self.address.flow, Notice::Closed))
    }
}

impl Hosts {
    pub(crate) fn new() -> Self {
        Self {
            endpoints: Vec::new(),
            free: Vec::new(),
            timers: Calendar::new(64),
        }
    }

    /// A free position for an endpoint to come.
    pub(crate) fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.endpoints.push(None);
            self.timers.reserve(self.endpoints.len());
            self.endpoints.len() as u32 - 1
        })
    }

    /// Puts an endpoint to its position.
    pub(crate) fn open_tcp(&mut self, address: Address, end: TcpEnd) {
        self.open(address, Transport::Tcp(Box::new(end)));
    }

    /// Puts an endpoint to its position.
    pub(crate) fn open_udp(&mut self, address: Address, end: UdpEnd) {
        self.open(address, Transport::Udp(end));
    }

    fn open(&mut self, address: Address, transport: Transport) {
        self.endpoints[address.position as usize] = Some(Endpoint {
            armed: Time::MAX,
            awaited: u64::MAX,
            turn: Time::ZERO,
            address,
            transport,
        });
    }

    /// Removes an endpoint. What is still on the way to it is lost on whoever comes next.
    pub(crate) fn close(&mut self, position: u32) {
        if self.endpoints[position as usize].take().is_some() {
            self.timers.set(position as usize, None);
            self.free.push(position);
        }
    }

    /// The earliest timer and whose it is.
    #[inline]
    pub(crate) fn next(&self) -> (Time, usize) {
        self.timers.first()
    }

    /// A packet reaches the endpoint that it is for.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        now: Time,
        packet: &Packet,
        network: &mut Network,
    ) -> Option<(FlowId, Notice)> {
        let endpoint = self.endpoints[packet.endpoint as usize].as_mut()?;
        if endpoint.address.flow.number != packet.flow {
            return None;
        }
        match (&mut endpoint.transport, &packet.contents) {
            (Transport::Tcp(end), Contents::Segment(segment)) => {
                end.receive(now, segment, packet.ecn);
                endpoint.attend(now, &mut self.timers, network)
            }
            (Transport::Udp(end), Contents::Datagram(datagram)) => {
                end.receive(datagram, packet.ecn);
                None
            }
            _ => None,
        }
    }

    /// An endpoint's timer has come.
    pub(crate) fn on_time(
        &mut self,
        now: Time,
        position: usize,
        network: &mut Network,
    ) -> Option<(FlowId, Notice)> {
        self.timers.set(position, None);
        let endpoint = self.endpoints[position].as_mut()?;
        endpoint.armed = Time::MAX;
        if let Transport::Tcp(end) = &mut endpoint.transport
            && end.next_time().is_some_and(|due| due <= now)
        {
            end.on_time(now);
        }
        endpoint.attend(now, &mut self.timers, network)
    }

    /// The application does something with a TCP endpoint.
    pub(crate) fn with_tcp(
        &mut self,
        now: Time,
        position: u32,
        network: &mut Network,
        act: impl FnOnce(&mut TcpEnd),
    ) -> Option<(FlowId, Notice)> {
        let endpoint = self.endpoints[position as usize].as_mut()?;
        if let Transport::Tcp(end) = &mut endpoint.transport {
            act(end);
        }
        endpoint.attend(now, &mut self.timers, network)
    }

    /// The application sends a datagram.
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
            let packet = Packet::new(Contents::Datagram(datagram), ecn, &endpoint.address);
            network.send(now, endpoint.address.port, packet);
        }
    }

    /// The application wants to know when this many bytes have been delivered to it.
    pub(crate) fn wait_for(&mut self, position: u32, bytes: u64) {
        if let Some(endpoint) = &mut self.endpoints[position as usize] {
            endpoint.awaited = bytes;
        }
    }

    /// The TCP endpoint at a position, if there is one.
    pub(crate) fn tcp(&self, position: u32) -> Option<&TcpEnd> {
        match &self.endpoints[position as usize].as_ref()?.transport {
            Transport::Tcp(end) => Some(end),
            Transport::Udp(_) => None,
        }
    }

    /// What the endpoint at a position has achieved.
    pub(crate) fn achieved(&self, position: u32) -> Achieved {
        let endpoint = self.endpoints[position as usize].as_ref();
        endpoint.map_or(Achieved::default(), |endpoint| match &endpoint.transport {
            Transport::Tcp(end) => end.achieved(),
            Transport::Udp(end) => end.achieved(),
        })
    }
}
