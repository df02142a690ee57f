//! The table of the TCP connections that pass through a switch or host: their flows, their
//! handshakes, and further state for each.

mod handshake;
mod recency_list;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use weir_units::{Duration, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::{Flags, Segment, Sequence};

use crate::flow_hash::{hash_of, mix};
pub use handshake::{Direction, Handshake, Offer};
use recency_list::RecencyList;

/// The size of a table and its timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The largest number of connections.
    pub connections: usize,
    /// The time without a segment after which a connection is removed.
    pub idle: Duration,
    /// The same while the handshake is not complete.
    pub half_open: Duration,
}

impl Default for ConnectionLimits {
    /// 100,000 connections, with the timeouts of RFC 5382, section 5 (REQ-5): 2 h 4 min, and 4 min for
    /// half-open connections.
    fn default() -> Self {
        Self {
            connections: 100_000,
            idle: Duration::from_secs(2 * 3600 + 4 * 60),
            half_open: Duration::from_secs(4 * 60),
        }
    }
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Connections whose first SYN was seen.
    pub opened: u64,
    /// Connections that ended by FINs or a reset.
    pub closed: u64,
    /// Connections removed after too long without a segment.
    pub idle: u64,
    /// Half-open connections removed to make room for others.
    pub displaced: u64,
    /// SYNs for which there was no room.
    pub refused: u64,
    /// Segments of connections whose SYN was not seen, or which have been removed.
    pub unknown: u64,
}

/// An entry of the table.
#[derive(Debug)]
pub struct Connection<T> {
    /// Its flow, in the direction of the first SYN.
    pub flow: FlowKey,
    /// Its handshake.
    pub handshake: Handshake,
    /// The caller's state.
    pub state: T,
    stage: Stage,
    /// The sequence number after the FIN in each direction.
    fin_sequences: [Option<Sequence>; 2],
    /// Which of these FINs have been acknowledged.
    fin_acked: [bool; 2],
    last_seen: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Until the third segment of its handshake.
    HalfOpen,
    Open,
    /// Ended: it waits to be reclaimed.
    Closed,
}

impl<T> Connection<T> {
    /// Whether its handshake has been seen from the first to the third segment.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether it has ended: this was its last segment.
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// When its last segment was seen.
    pub fn last_seen(&self) -> Time {
        self.last_seen
    }
}

/// The number of a connection while it is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u32);

/// A bounded table of TCP connections.
///
/// A connection stays in the table from its first SYN until both of its FINs have been acknowledged, a
/// reset ends it, or it has been idle for too long. Without the SYN the window scale is unknown: such
/// connections are only counted.
///
/// SYNs may come from any host. When the table is full, the oldest half-open connection makes room; if
/// there is none, the new one is refused. `seed` keeps an attacker who chooses the flows from choosing
/// the hash buckets too.
///
/// ```
/// use weir_fabric::{Connections, ConnectionLimits, Direction};
/// use weir_units::Time;
/// use weir_wire::FlowKey;
/// use weir_wire::tcp::{Flags, Options, Segment, SynOptions};
///
/// let mut table: Connections<u32> = Connections::new(ConnectionLimits::default(), 1);
/// let flow = FlowKey { source_port: 4000, destination_port: 80, ..FlowKey::UNSPECIFIED };
/// let options = Options::Syn(SynOptions { window_scale: Some(7), ..SynOptions::NONE });
/// let syn = Segment { flags: Flags::SYN, options, ..Segment::default() };
/// let answer = Segment {
///     flags: Flags::SYN | Flags::ACK,
///     acknowledgment: syn.end(),
///     ..syn
/// };
/// let (way, connection) = table.observe(Time::ZERO, flow, &syn).ok_or("no room")?;
/// assert_eq!((way, connection.handshake.window_scale(way)), (Direction::Forward, None));
/// let (way, connection) = table.observe(Time::ZERO, flow.reversed(), &answer).ok_or("unknown")?;
/// assert_eq!((way, connection.handshake.window_scale(way)), (Direction::Reverse, Some(7)));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Connections<T> {
    limits: ConnectionLimits,
    slots_by_endpoints: HashMap<Endpoints, u32, SeededState>,
    slots: Vec<Option<Connection<T>>>,
    free: Vec<u32>,
    /// Half-open connections, oldest first.
    half_open: RecencyList,
    /// Open connections, longest idle first.
    open: RecencyList,
    /// Closed connections.
    closed: RecencyList,
    /// The flow of the last segment and its connection: the next segment is often of the same flow.
    recent: Option<(FlowKey, ConnectionId)>,
    counters: ConnectionCounters,
}

impl<T: Default> Connections<T> {
    /// Records a segment of `flow`. Returns its connection and the segment's direction; `None` if the
    /// connection is unknown.
    ///
    /// Drops expired connections. Call [`Self::reclaim`] first to receive them instead.
    pub fn observe(
        &mut self,
        now: Time,
        flow: FlowKey,
        segment: &Segment,
    ) -> Option<(Direction, &mut Connection<T>)> {
        let (id, direction) = self.observe_by_id(now, flow, segment)?;
        Some((direction, self.get_mut(id)?))
    }

    /// Does the same as [`Self::observe`], and returns the connection's number.
    pub fn observe_by_id(
        &mut self,
        now: Time,
        flow: FlowKey,
        segment: &Segment,
    ) -> Option<(ConnectionId, Direction)> {
        let begins = begins(segment);
        let known = self.find(&flow).filter(|&id| {
            // A SYN with another sequence number begins another connection between the same ports.
            !(begins && self.is_replaced_by(id, &flow, segment))
        });
        let id = match known {
            Some(id) => id,
            None if begins => self.open(now, flow)?,
            None => {
                self.counters.unknown += 1;
                return None;
            }
        };
        let connection = self.get_mut(id)?;
        let direction = connection.direction_of(&flow);
        connection.last_seen = now;
        let before = connection.stage;
        connection.update_state(direction, segment);
        let after = connection.stage;
        self.recent = Some((flow, id));
        self.move_to_list(id, before, after);
        Some((id, direction))
    }

    /// Returns whether a SYN begins a new connection in index of the one at `id`, which then is closed.
    fn is_replaced_by(&mut self, id: ConnectionId, flow: &FlowKey, syn: &Segment) -> bool {
        let Some(connection) = self.get_mut(id) else {
            return true;
        };
        let offer = connection.handshake.offer(connection.direction_of(flow));
        // The other end of a simultaneous open has sent no SYN yet.
        let is_same = match offer {
            Some(offer) => offer.sequence == syn.sequence,
            None => connection.stage == Stage::HalfOpen,
        };
        if is_same {
            return false;
        }
        let before = connection.stage;
        connection.stage = Stage::Closed;
        self.move_to_list(id, before, Stage::Closed);
        true
    }

    /// Adds a connection, if there is room.
    fn open(&mut self, now: Time, flow: FlowKey) -> Option<ConnectionId> {
        while self.reclaim(now).is_some() {}
        if self.len() >= self.limits.connections {
            self.counters.refused += 1;
            return None;
        }
        let connection = Connection {
            flow,
            handshake: Handshake::default(),
            state: T::default(),
            stage: Stage::HalfOpen,
            fin_sequences: [None; 2],
            fin_acked: [false; 2],
            last_seen: now,
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                // Bounded by the number of connections.
                let index = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(None);
                index
            }
        };
        *self.slots.get_mut(index as usize)? = Some(connection);
        self.slots_by_endpoints.insert(Endpoints::of(&flow), index);
        self.half_open.push(index);
        self.counters.opened += 1;
        Some(ConnectionId(index))
    }
}

impl<T> Connections<T> {
    /// Creates an empty table.
    pub fn new(limits: ConnectionLimits, seed: u64) -> Self {
        Self {
            limits,
            slots_by_endpoints: HashMap::with_hasher(SeededState(seed)),
            slots: Vec::new(),
            free: Vec::new(),
            half_open: RecencyList::default(),
            open: RecencyList::default(),
            closed: RecencyList::default(),
            recent: None,
            counters: ConnectionCounters::default(),
        }
    }

    /// Removes and returns a connection that is closed, has been idle for too long, or has to make room
    /// for the next SYN. Call it until `None` before [`Self::observe`] to receive the state of removed
    /// connections.
    pub fn reclaim(&mut self, now: Time) -> Option<Connection<T>> {
        if let Some(index) = self.closed.first() {
            return self.remove(index);
        }
        if let Some(index) = self.silent(&self.half_open, now, self.limits.half_open)
            && let Some(connection) = self.remove(index)
        {
            self.counters.idle += 1;
            return Some(connection);
        }
        if let Some(index) = self.silent(&self.open, now, self.limits.idle)
            && let Some(connection) = self.remove(index)
        {
            self.counters.idle += 1;
            return Some(connection);
        }
        if self.len() < self.limits.connections {
            return None;
        }
        let connection = self.remove(self.half_open.first()?)?;
        self.counters.displaced += 1;
        Some(connection)
    }

    /// Removes a connection whose further segments are observed elsewhere. It does not count as opened.
    pub fn release(&mut self, ConnectionId(index): ConnectionId) -> Option<Connection<T>> {
        let connection = self.remove(index)?;
        self.counters.opened -= 1;
        Some(connection)
    }

    /// Returns the connection with this number.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection<T>> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Returns the connection with this number, mutably.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection<T>> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns the connection of this flow, in either direction.
    pub fn find(&self, flow: &FlowKey) -> Option<ConnectionId> {
        if let Some((recent, id)) = &self.recent
            && recent == flow
        {
            return Some(*id);
        }
        let index = self.slots_by_endpoints.get(&Endpoints::of(flow))?;
        Some(ConnectionId(*index))
    }

    /// Iterates over all connections with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection<T>)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(index, slot)| Some((ConnectionId(index), slot.as_ref()?)))
    }

    /// Iterates over all connections mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionId, &mut Connection<T>)> {
        let slots = (0..).zip(&mut self.slots);
        slots.filter_map(|(index, slot)| Some((ConnectionId(index), slot.as_mut()?)))
    }

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counters.
    pub fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// Returns the connection at the head of `order`, if it has been idle for longer than `limit`.
    fn silent(&self, order: &RecencyList, now: Time, limit: Duration) -> Option<u32> {
        let index = order.first()?;
        let connection = self.slots.get(index as usize)?.as_ref()?;
        (now.since(connection.last_seen) > limit).then_some(index)
    }

    /// Moves a connection to its list after a segment: an open one to the end.
    fn move_to_list(&mut self, ConnectionId(index): ConnectionId, before: Stage, after: Stage) {
        if before == after && after != Stage::Open {
            return;
        }
        if before == after && self.open.last() == Some(index) {
            return;
        }
        self.order(before).remove(index);
        self.order(after).push(index);
        if after == Stage::Closed
            && let Some(Some(connection)) = self.slots.get(index as usize)
        {
            self.slots_by_endpoints
                .remove(&Endpoints::of(&connection.flow));
            self.recent = None;
            self.counters.closed += 1;
        }
    }

    fn order(&mut self, stage: Stage) -> &mut RecencyList {
        match stage {
            Stage::HalfOpen => &mut self.half_open,
            Stage::Open => &mut self.open,
            Stage::Closed => &mut self.closed,
        }
    }

    fn remove(&mut self, index: u32) -> Option<Connection<T>> {
        let connection = self.slots.get_mut(index as usize)?.take()?;
        self.order(connection.stage).remove(index);
        if connection.stage != Stage::Closed {
            self.slots_by_endpoints
                .remove(&Endpoints::of(&connection.flow));
            self.recent = None;
        }
        self.free.push(index);
        Some(connection)
    }
}

impl<T> Connection<T> {
    fn direction_of(&self, flow: &FlowKey) -> Direction {
        if *flow == self.flow {
            Direction::Forward
        } else {
            Direction::Reverse
        }
    }

    /// Updates the state of the connection by a segment.
    fn update_state(&mut self, direction: Direction, segment: &Segment) {
        let (own, other) = (direction.index(), direction.reversed().index());
        let flags = segment.flags;
        if flags.contains(Flags::RST) {
            self.stage = Stage::Closed;
            return;
        }
        if flags.contains(Flags::SYN) {
            // A retransmitted SYN may offer less (RFC 7323, section 1.3); later ones are ignored.
            if self.stage == Stage::HalfOpen {
                self.handshake.record(direction, Offer::of(segment));
            }
            return;
        }
        if flags.contains(Flags::FIN)
            && let Some(end) = self.fin_sequences.get_mut(own)
        {
            *end = Some(segment.end());
        }
        if !flags.contains(Flags::ACK) {
            return;
        }
        let acknowledged = segment.acknowledgment;
        if self.stage == Stage::HalfOpen
            && self.handshake.is_complete()
            && let Some(offer) = self.handshake.offer(direction.reversed())
            && acknowledged == offer.sequence + 1
        {
            self.stage = Stage::Open;
        }
        if let (Some(Some(end)), Some(ended)) =
            (self.fin_sequences.get(other), self.fin_acked.get_mut(other))
        {
            *ended |= !acknowledged.precedes(*end);
        }
        if self.fin_acked == [true; 2] {
            self.stage = Stage::Closed;
        }
    }
}

/// Whether a segment begins a connection, or is the second SYN of a simultaneous open.
fn begins(segment: &Segment) -> bool {
    let flags = segment.flags;
    flags.contains(Flags::SYN) && !flags.intersects(Flags::ACK | Flags::RST | Flags::FIN)
}

/// The two ends of a connection, equal for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Endpoints(FlowKey);

impl Endpoints {
    fn of(flow: &FlowKey) -> Self {
        Self((*flow).min(flow.reversed()))
    }
}

impl std::hash::Hash for Endpoints {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(hash_of(&self.0));
    }
}

/// Builds hashers with the table's seed.
#[derive(Clone, Copy, Debug)]
struct SeededState(u64);

impl BuildHasher for SeededState {
    type Hasher = SeededHasher;
    fn build_hasher(&self) -> SeededHasher {
        SeededHasher(self.0)
    }
}

#[derive(Debug)]
struct SeededHasher(u64);

impl Hasher for SeededHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
