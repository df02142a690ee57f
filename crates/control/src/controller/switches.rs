//! The switches with agents, and the orders that wait to be sent to them.

use std::collections::BTreeMap;
use std::mem;
use std::net::IpAddr;

use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use weir_units::{ByteSize, Rate, Time};

use super::refusal::Refusal;
use crate::leader_epoch::LeaderEpoch;
use crate::translate;
use crate::v1;

/// The messages to a connected peer.
pub(super) type ReplySender = mpsc::Sender<Result<v1::FromController, Status>>;

/// A connection to a peer: the waiting orders, and the last beat.
#[derive(Debug)]
pub(super) struct PeerSession {
    pub(super) id: u64,
    outgoing: ReplySender,
    /// Dropped with the session, which ends the task that reads from it.
    _end: oneshot::Sender<()>,
    waiting: Vec<v1::Order>,
    /// The peer's clock in its last message, and ours.
    beat: u64,
    pub(super) received: Time,
}

/// A peer with more waiting orders than this is disconnected.
const MOST_WAITING: usize = 200_000;
/// The most orders per message, which keeps it well below gRPC's 4 MB.
const PER_MESSAGE: usize = 10_000;

impl PeerSession {
    pub(super) fn new(id: u64, outgoing: ReplySender, end: oneshot::Sender<()>, now: Time) -> Self {
        Self {
            id,
            outgoing,
            _end: end,
            waiting: Vec::new(),
            beat: 0,
            received: now,
        }
    }

    pub(super) fn welcome(&self, welcome: v1::Welcome) {
        let message = v1::from_controller::Message::Welcome(welcome);
        self.send_message(message);
    }

    pub(super) fn order(&mut self, order: &weir_sed::WindowOrder) {
        self.waiting.push(translate::to_order(order));
    }

    pub(super) fn note_heartbeat(&mut self, now: Time, beat: u64) {
        self.beat = self.beat.max(beat);
        self.received = now;
    }

    /// Sends the waiting orders; returns `false` if the peer does not keep up.
    pub(super) fn flush(&mut self, term: u64) -> bool {
        while !self.waiting.is_empty() && self.outgoing.capacity() > 0 {
            let rest = self.waiting.split_off(self.waiting.len().min(PER_MESSAGE));
            let orders = mem::replace(&mut self.waiting, rest);
            self.send(term, orders);
        }
        self.waiting.len() <= MOST_WAITING
    }

    /// Sends a heartbeat.
    pub(super) fn beat(&self, term: u64) {
        self.send(term, Vec::new());
    }

    fn send(&self, term: u64, orders: Vec<v1::Order>) {
        let beat = self.beat;
        let orders = v1::Orders { term, orders, beat };
        self.send_message(v1::from_controller::Message::Orders(orders));
    }

    fn send_message(&self, message: v1::from_controller::Message) {
        let message = v1::FromController {
            message: Some(message),
        };
        // Messages to a closed connection are dropped; its stream reports the end to the task.
        let _ = self.outgoing.try_send(Ok(message));
    }
}

/// A port, as its switch describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Port {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) rate: Rate,
    /// The size of its buffer, if that is known.
    pub(super) buffer: Option<ByteSize>,
    /// The prefixes behind it: address and length in bits.
    pub(super) behind: Vec<(IpAddr, u8)>,
}

/// The first message of an agent.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    pub(super) name: String,
    pub(super) ports: Vec<Port>,
    pub(super) leader_epoch: Option<LeaderEpoch>,
}

/// The most ports per switch.
const MOST_PORTS: usize = 1024;
/// The most prefixes per port.
const MOST_PREFIXES: usize = 1024;
/// Names are for display only.
const LONGEST_NAME: usize = 63;

impl Hello {
    pub(super) fn parse(hello: v1::Hello) -> Result<Self, Refusal> {
        let count = hello.ports.len();
        if count > MOST_PORTS {
            let most = MOST_PORTS;
            return Err(Refusal::Ports { count, most });
        }
        let ports = hello.ports.into_iter().map(|port| {
            let behind = port.behind.iter().take(MOST_PREFIXES).map(|prefix| {
                let address = translate::address(&prefix.address)?;
                Ok((address, u8::try_from(prefix.bits).unwrap_or(u8::MAX)))
            });
            Ok(Port {
                number: port.number,
                name: port.name.chars().take(LONGEST_NAME).collect(),
                rate: Rate::from_bits_per_second(port.rate_bits_per_second),
                buffer: (port.buffer_bytes > 0).then(|| ByteSize::from_bytes(port.buffer_bytes)),
                behind: behind.collect::<Result<_, Refusal>>()?,
            })
        });
        Ok(Self {
            name: hello.name,
            ports: ports.collect::<Result<_, Refusal>>()?,
            leader_epoch: hello.leader_epoch.map(leader_epoch),
        })
    }

    /// Returns the rate of the slowest link, which limits how many flows may start with a full window.
    pub(super) fn slowest(&self) -> Rate {
        let rates = self.ports.iter().map(|port| port.rate);
        rates.min().unwrap_or(Rate::ZERO)
    }
}

pub(super) fn leader_epoch(leader_epoch: v1::LeaderEpoch) -> LeaderEpoch {
    LeaderEpoch {
        name: leader_epoch.name,
        term: leader_epoch.term,
    }
}

/// A switch.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) name: String,
    pub(super) ports: Vec<Port>,
    pub(super) session: Option<PeerSession>,
}

/// All switches that have ever attached, by their number in the logic.
#[derive(Debug, Default)]
pub(super) struct Switches {
    pub(super) by_number: BTreeMap<u32, Switch>,
    numbers: BTreeMap<String, u32>,
}

/// The most switches.
const MOST_SWITCHES: usize = 10_000;

impl Switches {
    /// Returns a switch's number; assigns one if it has none.
    pub(super) fn number(&mut self, name: &str) -> Result<u32, Refusal> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        if self.numbers.len() >= MOST_SWITCHES {
            return Err(Refusal::Switches(MOST_SWITCHES));
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    pub(super) fn attach(&mut self, number: u32, hello: Hello, session: PeerSession) {
        let switch = Switch {
            name: hello.name,
            ports: hello.ports,
            session: Some(session),
        };
        self.by_number.insert(number, switch);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Switch)> {
        self.by_number
            .iter()
            .map(|(number, switch)| (*number, switch))
    }

    /// Returns the session with this id, and the number of its switch.
    pub(super) fn session(&mut self, id: u64) -> Option<(u32, &mut PeerSession)> {
        self.sessions().find(|(_, session)| session.id == id)
    }

    pub(super) fn sessions(&mut self) -> impl Iterator<Item = (u32, &mut PeerSession)> {
        let switches = self.by_number.iter_mut();
        switches.filter_map(|(number, switch)| Some((*number, switch.session.as_mut()?)))
    }
}

impl Switches {
    /// Returns the ports that lead to an address, by longest prefix match at each switch.
    pub(super) fn towards(&self, address: IpAddr) -> Vec<(u32, u32)> {
        let ports = self.by_number.iter().filter_map(|(number, switch)| {
            let prefixes = switch.ports.iter().flat_map(|port| {
                let matching = port
                    .behind
                    .iter()
                    .filter(|(network, bits)| weir_sed::shares_prefix(*network, address, *bits));
                matching.map(|(_, bits)| (*bits, port.number))
            });
            let (_, port) = prefixes.max_by_key(|(bits, _)| *bits)?;
            Some((*number, port))
        });
        ports.collect()
    }
}
