//! The switch element: maps packets to streams and rewrites what the two ends see of each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_fabric::{
    Connection, ConnectionCounters, ConnectionId, ConnectionLimits, Connections, Direction,
    Element, Output, Packet, PacketCount, PortIndex,
};
use weir_units::{ByteSize, Time};
use weir_wire::tcp::{Flags, Segment};

use crate::counters::{Counters, FlowReport};
use crate::ecn::Negotiation;
use crate::flow_class::{FlowClass, FlowClasses};
use crate::flow_policy::{FlowInfo, PolicyLookup};
use crate::memory_budget::MemoryBudget;
use crate::stream::{AckVerdict, Stream, StreamContext, StreamStart};

/// Memory limits of a [`Tcon`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limits of the connection table.
    pub connections: ConnectionLimits,
    /// The total of all packets that wait to be sent or acknowledged.
    pub memory: ByteSize,
}

impl Default for Limits {
    /// 256 MiB of packets.
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            memory: ByteSize::from_mib(256),
        }
    }
}

/// Congestion control in the path of a switch: see the [crate's documentation](crate).
///
/// ```
/// use weir_congestion::AlgorithmSpec;
/// use weir_tcon::{FlowPolicy, Limits, Tcon};
///
/// let bbr = FlowPolicy::new("bbr".parse::<AlgorithmSpec>()?);
/// # type Packet = ();
/// // Put into the path of a switch by `Switch::with_element`.
/// let tcon: Tcon<Packet> = Tcon::new(Limits::default(), Box::new(bbr), 1);
/// assert_eq!(tcon.counters().flows, 0);
/// # Ok::<(), weir_congestion::SpecError>(())
/// ```
#[derive(Debug)]
pub struct Tcon<P> {
    connections: Connections<TrackedConnection<P>>,
    policies: Box<dyn PolicyLookup>,
    shared: StreamContext,
    /// The latest time at which each stream needs [`Stream::handle_timeout`]; some entries may be
    /// stale.
    timers: BinaryHeap<Reverse<(Time, ConnectionId, usize)>>,
    seed: u64,
}

/// The state of a connection beside its handshake.
#[derive(Debug)]
struct TrackedConnection<P> {
    stage: Stage,
    negotiation: Negotiation,
    /// The SYN in the direction `Forth`, and the one in the direction `Back`.
    syns: [Syn; 2],
    /// The data in the direction `Forth`, and in the direction `Back`.
    streams: [Option<Box<Stream<P>>>; 2],
}

/// The SYN of one end, as it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Syn {
    /// When it passed; `None` if it came twice or has not come.
    at: Option<Time>,
    /// Its ingress port; `None` if it has not come.
    ingress: Option<PortIndex>,
    dscp: u8,
    /// Whether it carried data (RFC 7413).
    has_data: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No policy has been looked up.
    #[default]
    New,
    /// The SYNs are being exchanged.
    Opening,
    /// Data flows.
    Started,
}

impl<P> Default for TrackedConnection<P> {
    fn default() -> Self {
        Self {
            stage: Stage::New,
            negotiation: Negotiation::default(),
            syns: [Syn::default(); 2],
            streams: [None, None],
        }
    }
}

impl<P> Tcon<P> {
    /// Creates an element that has seen no packets. `seed` randomizes the hashing of the flow table and
    /// the algorithms.
    pub fn new(limits: Limits, choose: Box<dyn PolicyLookup>, seed: u64) -> Self {
        Self {
            connections: Connections::new(limits.connections, seed),
            policies: choose,
            shared: StreamContext {
                memory: MemoryBudget::new(limits.memory),
                counters: Counters::default(),
                classes: FlowClasses::default(),
                held: PacketCount::ZERO,
            },
            timers: BinaryHeap::new(),
            seed,
        }
    }

    /// Returns the counters of all flows.
    pub fn counters(&self) -> Counters {
        self.shared.counters
    }

    /// Returns the counters of the connection table.
    pub fn connections(&self) -> ConnectionCounters {
        self.connections.counters()
    }

    /// Returns the counts by egress port, rule and algorithm, of all flows since the start.
    pub fn classes(&self) -> &[FlowClass<Option<PortIndex>>] {
        self.shared.classes.all()
    }

    /// Returns the packets that are kept now.
    pub fn kept(&self) -> PacketCount {
        self.shared.memory.kept
    }

    /// Returns the most packets that have been kept at a time.
    pub fn most_kept(&self) -> PacketCount {
        self.shared.memory.largest
    }

    /// Replaces the policy for flows that begin from now on; existing flows keep theirs.
    pub fn set_policy(&mut self, choose: Box<dyn PolicyLookup>) {
        self.policies = choose;
    }
}

impl<P: Packet + Clone + Send + 'static> Tcon<P> {
    /// Returns each controlled flow.
    pub fn flows(&self, now: Time) -> impl Iterator<Item = FlowReport> {
        self.connections.iter().flat_map(move |(_, connection)| {
            let streams = connection.state.streams.iter().flatten();
            streams.map(move |stream| report(now, connection, stream))
        })
    }

    /// Releases the state of connections that are over.
    fn forget(&mut self, now: Time, out: &mut Output<'_, P>)
    where
        P: std::fmt::Debug,
    {
        while let Some(connection) = self.connections.reclaim(now) {
            for stream in connection.state.streams.into_iter().flatten() {
                self.shared.counters.ended += 1;
                self.shared.classes.end(stream.class);
                stream.dissolve(&mut self.shared, out);
            }
        }
    }

    /// Handles a segment of a connection whose SYN was seen.
    fn on_segment(
        &mut self,
        now: Time,
        (id, way): (ConnectionId, Direction),
        (ingress, mut packet): (PortIndex, P),
        segment: &Segment,
        out: &mut Output<'_, P>,
    ) {
        let (shared, choose) = (&mut self.shared, self.policies.as_ref());
        let Some(connection) = self.connections.get_mut(id) else {
            return out.forward(ingress, packet);
        };
        if segment.flags.contains(Flags::SYN) {
            connection.on_syn(now, way, ingress, &mut packet, segment, choose);
            if connection.is_offloaded(way, segment, choose) {
                self.connections.release(id);
            }
            return out.forward(ingress, packet);
        }
        if connection.state.stage == Stage::Opening && connection.is_open() {
            let seed = self.seed ^ shared.counters.flows;
            connection.start(now, way, choose, seed, shared);
        }
        let handshake = connection.handshake;
        let state = &mut connection.state;
        if segment.flags.contains(Flags::RST) {
            return out.forward(ingress, packet);
        }
        state.negotiation_on(way, &packet, segment);
        let [forth, back] = &mut state.streams;
        let (own, other) = match way {
            Direction::Forward => (forth, back),
            Direction::Reverse => (back, forth),
        };
        if let Some(stream) = other
            && segment.flags.contains(Flags::ACK)
        {
            let answer = stream.on_ack(now, segment, &handshake, shared);
            if answer == AckVerdict::Withheld {
                shared.counters.withheld += 1;
                out.absorb(packet);
                stream.pump(now, shared, out);
                schedule(&mut self.timers, id, stream);
                return;
            }
            if answer == AckVerdict::ForwardCleaned {
                packet.clear_sack_blocks();
            }
            if stream.marks.is_active() {
                packet.set_flags(segment.flags.without(Flags::ECE));
            }
            stream.clamp(now, &mut packet, answer, &handshake, shared);
        }
        let echoes = state.negotiation.echoes(way);
        if echoes && let Some(segment) = packet.tcp() {
            packet.set_flags(segment.flags | Flags::ECE);
        }
        if let Some(stream) = own.as_deref_mut()
            && let Some(segment) = packet.tcp()
        {
            stream.note_header(&segment);
        }
        match own {
            Some(stream) if segment.sequence_length() > 0 => {
                stream.on_data(now, ingress, packet, segment, shared, out);
                schedule(&mut self.timers, id, stream);
            }
            _ => out.forward(ingress, packet),
        }
        if let Some(stream) = other {
            stream.pump(now, shared, out);
            schedule(&mut self.timers, id, stream);
        }
    }
}

impl<P: Packet> TrackedConnection<P> {
    /// Notes the ECN bits of the receiver's data.
    fn negotiation_on(&mut self, way: Direction, packet: &P, segment: &Segment) {
        let is_back = self.negotiation.is_active(way.reversed());
        if is_back && segment.payload > 0 {
            self.negotiation.on_data_back(packet.ecn(), segment.flags);
        }
    }
}

trait Opening<P> {
    /// Describes the data in this direction.
    fn info(&self, way: Direction) -> FlowInfo;
    fn on_syn(
        &mut self,
        now: Time,
        way: Direction,
        ingress: PortIndex,
        packet: &mut P,
        segment: &Segment,
        choose: &dyn PolicyLookup,
    );
    /// Returns whether the segments after this one with SYN take another way.
    fn is_offloaded(&self, way: Direction, syn: &Segment, choose: &dyn PolicyLookup) -> bool;
    fn start(
        &mut self,
        now: Time,
        way: Direction,
        choose: &dyn PolicyLookup,
        seed: u64,
        shared: &mut StreamContext,
    );
}

impl<P: Packet + Clone + 'static> Opening<P> for Connection<TrackedConnection<P>> {
    fn info(&self, way: Direction) -> FlowInfo {
        let [forth, back] = self.state.syns;
        let (key, own, other) = match way {
            Direction::Forward => (self.flow, forth, back),
            Direction::Reverse => (self.flow.reversed(), back, forth),
        };
        FlowInfo {
            key,
            dscp: own.ingress.map_or(other.dscp, |_| own.dscp),
            ingress: own.ingress,
            egress: other.ingress,
        }
    }

    fn on_syn(
        &mut self,
        now: Time,
        way: Direction,
        ingress: PortIndex,
        packet: &mut P,
        segment: &Segment,
        choose: &dyn PolicyLookup,
    ) {
        if let Some(syn) = self.state.syns.get_mut(way.index()) {
            *syn = Syn {
                at: syn.ingress.is_none().then_some(now),
                ingress: Some(ingress),
                dscp: packet.dscp(),
                has_data: segment.payload > 0,
            };
        }
        if self.state.stage == Stage::New {
            self.state.stage = Stage::Opening;
            let marks = |way| choose.policy_for(&self.info(way)).is_some_and(|it| it.ecn);
            self.state.negotiation = Negotiation::new(
                match (marks(Direction::Forward), marks(Direction::Reverse)) {
                    (true, false) => Some(Direction::Forward),
                    (false, true) => Some(Direction::Reverse),
                    _ => None,
                },
            );
        }
        let negotiation = &mut self.state.negotiation;
        negotiation.on_syn(packet, segment, way, &self.handshake);
    }

    fn is_offloaded(&self, way: Direction, syn: &Segment, choose: &dyn PolicyLookup) -> bool {
        let is_answer = way == Direction::Reverse
            && syn.flags.contains(Flags::ACK)
            && !syn.flags.contains(Flags::RST);
        let has_data = self.state.syns.iter().any(|syn| syn.has_data);
        is_answer
            && !has_data
            && self.state.stage == Stage::Opening
            && choose.offload(
                &self.info(Direction::Forward),
                &self.info(Direction::Reverse),
            )
    }

    fn start(
        &mut self,
        now: Time,
        way: Direction,
        choose: &dyn PolicyLookup,
        seed: u64,
        shared: &mut StreamContext,
    ) {
        self.state.stage = Stage::Started;
        let [forth, back] = self.state.syns.map(|syn| syn.at);
        // From the SYN to its SYN-ACK, and from the SYN-ACK to the segment that opened the connection.
        let first = forth.zip(back).map(|(forth, back)| back.since(forth));
        let second = back
            .filter(|_| way == Direction::Forward)
            .map(|back| now.since(back));
        let rtts = |way: Direction| match way {
            Direction::Forward => (first, second),
            Direction::Reverse => (second, first),
        };
        for way in [Direction::Forward, Direction::Reverse] {
            let info = self.info(way);
            let Some(policy) = choose.policy_for(&info) else {
                shared.counters.passed += 1;
                continue;
            };
            let is_marked = self.state.negotiation.is_active(way);
            let seed = seed ^ (way.index() as u64) << 63;
            let (rtt, sender_rtt) = rtts(way);
            let start = StreamStart {
                now,
                policy,
                egress: info.egress,
                handshake: &self.handshake,
                way,
                is_marked,
                rtt,
                sender_rtt,
                seed,
            };
            let stream = Stream::new(&start, shared);
            if let Some(place) = self.state.streams.get_mut(way.index()) {
                shared.counters.flows += u64::from(stream.is_some());
                *place = stream.map(Box::new);
            }
        }
    }
}

fn report<P: Packet + Clone + 'static>(
    now: Time,
    connection: &Connection<TrackedConnection<P>>,
    stream: &Stream<P>,
) -> FlowReport {
    let info = connection.info(stream.direction);
    FlowReport {
        flow: info.key,
        egress: info.egress,
        rule: stream.rule,
        congestion: stream.flow_controller.controller.name(),
        age: now.since(stream.began),
        segment_size: ByteSize::from_bytes(stream.flow_controller.segment_size),
        rtt: stream.flow_controller.rtt.smoothed(),
        rtt_min: stream.flow_controller.rtt.shortest(),
        window: stream.flow_controller.window(),
        enforced: stream.limit().allowed,
        pacing_rate: stream.flow_controller.pacing_rate(),
        max_rate: stream.max_rate,
        measured_rate: stream.meter.rate(now, stream.counters.delivered),
        in_flight: stream.in_flight(),
        kept: stream.kept,
        counters: stream.counters,
    }
}

/// Schedules a stream's next timeout, if it is earlier than the scheduled one.
fn schedule<P: Packet + Clone + 'static>(
    timers: &mut BinaryHeap<Reverse<(Time, ConnectionId, usize)>>,
    id: ConnectionId,
    stream: &mut Stream<P>,
) {
    if let Some(time) = stream.timeout()
        && stream.scheduled.is_none_or(|scheduled| time < scheduled)
    {
        stream.scheduled = Some(time);
        timers.push(Reverse((time, id, stream.direction.index())));
    }
}

impl<P: Packet + Clone + std::fmt::Debug + Send + 'static> Element<P> for Tcon<P> {
    fn process(&mut self, now: Time, ingress: PortIndex, packet: P, out: &mut Output<'_, P>) {
        let Some(segment) = packet.tcp() else {
            return out.forward(ingress, packet);
        };
        self.forget(now, out);
        match self.connections.observe_by_id(now, packet.flow(), &segment) {
            Some(which) => self.on_segment(now, which, (ingress, packet), &segment, out),
            None => out.forward(ingress, packet),
        }
        self.forget(now, out);
    }

    fn timeout(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse((time, ..))| *time)
    }

    fn handle_timeout(&mut self, now: Time, out: &mut Output<'_, P>) {
        while let Some(&Reverse((time, id, way))) = self.timers.peek()
            && time <= now
        {
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(id) else {
                continue;
            };
            let stream = connection.state.streams.get_mut(way);
            if let Some(Some(stream)) = stream
                && stream.scheduled == Some(time)
            {
                stream.scheduled = None;
                stream.handle_timeout(now, &mut self.shared, out);
                schedule(&mut self.timers, id, stream);
            }
        }
    }

    fn held(&self) -> PacketCount {
        self.shared.held
    }
}
