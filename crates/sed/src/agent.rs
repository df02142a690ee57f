//! The switch's side: watches its queues, tells the controller what happens, and puts what it orders
//! into the packets that pass.

mod flow;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use weir_fabric::{
    Clamped, ConnectionCounters, ConnectionId, ConnectionLimits, Connections, Element, Output,
    Packet, PortIndex, Way, WindowLimit,
};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::{Flags, Segment};

use crate::message::{Order, Report};
use flow::Track;
use queue::{Queues, Repeat};

/// How an agent works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentConfig {
    /// K: from this length on a queue is congested.
    pub threshold: ByteSize,
    /// Below this length it no longer is.
    pub recovery: ByteSize,
    /// The length of a full packet.
    pub packet: ByteSize,
    /// For how long orders hold without another one.
    pub lease: Duration,
    /// How often the controller hears how far flows are while a queue is congested.
    pub counters_interval: Duration,
    /// Whether dropped packets are reported and duplicate ACKs made for them (RSED). Senders that use
    /// SACK do not heed an ACK that says nothing new, so SYNs lose their offer of it.
    pub retransmit: bool,
    /// Flows that are opened while there are more than these at a port begin with one segment, whatever
    /// their initial window, by the window in their SYN-ACK; `None` for never. A clamp that comes from
    /// the controller is a round trip too late for that.
    pub gentle_above: Option<u32>,
    /// How many connections are remembered, and for how long.
    pub connections: ConnectionLimits,
}

impl AgentConfig {
    /// The paper's values for packets of 1500 bytes.
    pub fn paper() -> Self {
        let packet = ByteSize::from_bytes(1500);
        Self {
            threshold: packet * 30,
            recovery: packet * 15,
            packet,
            lease: Duration::from_secs(2),
            counters_interval: Duration::from_millis(1),
            retransmit: false,
            gentle_above: None,
            connections: ConnectionLimits::default(),
        }
    }
}

/// What an agent has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// How often a queue became congested.
    pub congested: u64,
    /// Windows that were made smaller.
    pub clamped: u64,
    /// Windows that could not be, as their SYN was not seen.
    pub unknown_scale: u64,
    /// Window updates that were made for stopped flows.
    pub updates: u64,
    /// Packets for which duplicate ACKs were made.
    pub repeats: u64,
    /// FINs and resets with a sequence number that their flow is not near.
    pub forged: u64,
    /// How often all windows were released as the controller was silent.
    pub expired: u64,
    /// What is known of connections.
    pub connections: ConnectionCounters,
}

/// The agent in a switch: an [`Element`] of its path.
///
/// Hand it what the controller orders by [`Self::receive`]; take what it reports by
/// [`Self::next_report`] after the switch did something. Packets pass at once, never later than they
/// would have without it.
pub struct Agent<P> {
    config: AgentConfig,
    connections: Connections<Track<P>>,
    queues: Queues,
    reports: VecDeque<Report>,
    orders: VecDeque<Order>,
    /// When the first of the orders came.
    ordered_at: Option<Time>,
    /// Until when what was ordered holds; `None` while nothing was.
    leased_until: Option<Time>,
    /// When the controller next hears how far flows are.
    next_counters: Option<Time>,
    /// How many flows are open whose data leave by each port.
    open: Vec<u32>,
    counters: AgentCounters,
}

impl<P> fmt::Debug for Agent<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Agent")
            .field("config", &self.config)
            .field("connections", &self.connections.len())
            .field("leased_until", &self.leased_until)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl<P: Packet + Clone + Send + 'static> Agent<P> {
    /// An agent that has seen nothing. `seed` keeps those who choose the flows from choosing their places
    /// in its table.
    pub fn new(config: AgentConfig, seed: u64) -> Self {
        Self {
            connections: Connections::new(config.connections, seed),
            config,
            queues: Queues::default(),
            reports: VecDeque::new(),
            orders: VecDeque::new(),
            ordered_at: None,
            leased_until: None,
            next_counters: None,
            open: Vec::new(),
            counters: AgentCounters::default(),
        }
    }

    /// The controller orders something, which happens when the switch next gets its time.
    pub fn receive(&mut self, now: Time, order: Order) {
        self.orders.push_back(order);
        self.ordered_at.get_or_insert(now);
    }

    /// The next thing to tell the controller.
    pub fn next_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// What it has done so far.
    pub fn counters(&self) -> AgentCounters {
        AgentCounters {
            connections: self.connections.counters(),
            ..self.counters
        }
    }

    /// The window that a flow may have by order, in bytes.
    pub fn allowed(&self, flow: &FlowKey) -> Option<u32> {
        let (id, way) = self.find(flow)?;
        self.connections.get(id)?.state.half(way).limit
    }

    fn find(&self, flow: &FlowKey) -> Option<(ConnectionId, Way)> {
        let id = self.connections.find(flow)?;
        let way = match self.connections.get(id)?.flow == *flow {
            true => Way::Forth,
            false => Way::Back,
        };
        Some((id, way))
    }

    fn pass(
        &mut self,
        now: Time,
        ingress: PortIndex,
        mut packet: P,
        segment: &Segment,
        out: &mut Output<'_, P>,
    ) {
        let flow = packet.flow();
        let egress = out.egress(&packet);
        self.forget(now);
        if self.is_forged(&flow, segment) {
            self.counters.forged += 1;
            return out.forward(ingress, packet);
        }
        let known = self.connections.observe_by_id(now, flow, segment);
        let Some((id, way)) = known else {
            self.counters.unknown_scale += u64::from(self.leased_until.is_some());
            out.forward(ingress, packet);
            return self.watch(now, egress, out);
        };
        self.note(id, way, flow, segment, egress);
        self.clamp(id, way, ingress, &mut packet, segment);
        let before = dropped(egress, out);
        out.forward(ingress, packet);
        if self.config.retransmit && segment.payload > 0 && dropped(egress, out) > before {
            let sequence = segment.sequence;
            self.reports.push_back(Report::Dropped { flow, sequence });
        }
        self.watch(now, egress, out);
        self.look_for_repeats(now, id, way.reversed());
    }

    /// Connections that are over or silent make room; the controller hears of those that had no FIN.
    fn forget(&mut self, now: Time) {
        while let Some(gone) = self.connections.reclaim(now) {
            for (way, flow) in [(Way::Forth, gone.flow), (Way::Back, gone.flow.reversed())] {
                let half = gone.state.half(way);
                if half.is_open {
                    leave(&mut self.open, half.egress);
                    self.reports.push_back(Report::Closed { flow });
                }
            }
        }
    }

    /// Whether a FIN or reset is not its flow's: who does not see a flow cannot guess where it is.
    fn is_forged(&self, flow: &FlowKey, segment: &Segment) -> bool {
        if !segment.flags.intersects(Flags::FIN | Flags::RST) {
            return false;
        }
        let half = self.find(flow).and_then(|(id, way)| {
            let connection = self.connections.get(id)?;
            Some(connection.state.half(way))
        });
        half.is_some_and(|half| !half.is_near(segment.sequence))
    }

    /// What a segment says about its connection, for the controller and for later.
    fn note(
        &mut self,
        id: ConnectionId,
        way: Way,
        flow: FlowKey,
        segment: &Segment,
        egress: Option<PortIndex>,
    ) {
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let flags = segment.flags;
        let half = connection.state.half_mut(way);
        half.on_sent(segment);
        if let Some(port) = egress
            && flags.contains(Flags::SYN)
        {
            if !half.is_open {
                half.is_open = true;
                join(&mut self.open, port);
            }
            half.egress = Some(port);
            let port = port.index() as u32;
            if flags.contains(Flags::ACK) {
                let segment = connection.handshake.segment_size(way.reversed());
                self.reports.extend(segment.map(|segment| Report::Accepted {
                    flow: flow.reversed(),
                    segment,
                    reverse_port: port,
                }));
            } else {
                self.reports.push_back(Report::Opened { flow, port });
            }
        }
        if flags.contains(Flags::ACK) {
            (connection.state.half_mut(way.reversed())).on_acknowledged(segment.acknowledgment);
        }
        let reset = flags.contains(Flags::RST);
        for (ended, way, flow) in [
            (reset || flags.contains(Flags::FIN), way, flow),
            (reset, way.reversed(), flow.reversed()),
        ] {
            let half = connection.state.half_mut(way);
            if ended && half.is_open {
                half.is_open = false;
                leave(&mut self.open, half.egress);
                self.reports.push_back(Report::Closed { flow });
            }
        }
    }

    /// Makes the window smaller that a packet offers to the other end, and remembers the packet.
    fn clamp(
        &mut self,
        id: ConnectionId,
        way: Way,
        ingress: PortIndex,
        packet: &mut P,
        segment: &Segment,
    ) {
        let gentle = self.opening_window(id, way, segment);
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let handshake = connection.handshake;
        // Whoever may not even send one segment gets no ACK that could later tell it to go on.
        let full = handshake.segment_size(way.reversed()).unwrap_or(1);
        let half = connection.state.half_mut(way.reversed());
        let plain = segment.payload == 0 && !segment.flags.intersects(SPECIAL);
        if plain {
            half.template = Some((ingress, packet.clone()));
        }
        let limit = match segment.flags.contains(Flags::SYN) {
            true => half.limit.map(|limit| limit.max(full)).or(gentle),
            false => half.limit,
        };
        if let Some(limit) = limit {
            match limit_of(limit).clamp(packet, &handshake, way) {
                Clamped::Lowered => self.counters.clamped += 1,
                Clamped::Kept => {}
                Clamped::UnknownScale => self.counters.unknown_scale += 1,
            }
        }
        // The window of a SYN is in other units.
        if !segment.flags.contains(Flags::SYN) {
            half.shown = packet.tcp().map_or(0, |segment| segment.window);
        }
    }

    /// The window of a SYN-ACK where there are many flows already.
    fn opening_window(&self, id: ConnectionId, way: Way, segment: &Segment) -> Option<u32> {
        let above = self.config.gentle_above?;
        if !segment.flags.contains(Flags::SYN | Flags::ACK) {
            return None;
        }
        let connection = self.connections.get(id)?;
        let port = connection.state.half(way.reversed()).egress?;
        let open = self.open.get(port.index()).copied().unwrap_or(0);
        (open > above).then(|| connection.handshake.segment_size(way.reversed()))?
    }

    /// Looks at the queue that a packet has just gone to.
    fn watch(&mut self, now: Time, egress: Option<PortIndex>, out: &mut Output<'_, P>) {
        let Some(port) = egress else {
            return;
        };
        let Some(pipe) = out.pipe(port) else {
            return;
        };
        let backlog = pipe.queue().backlog().size;
        if backlog < self.config.threshold || self.queues.is_congested(port) {
            return;
        }
        let excess = backlog.checked_sub(self.config.recovery);
        let drained = pipe
            .link()
            .rate()
            .time_for(excess.unwrap_or(ByteSize::ZERO));
        self.queues.set_congested(port, Some(now + drained));
        self.counters.congested += 1;
        self.report_counters(now);
        let port = port.index() as u32;
        self.reports.push_back(Report::Congested { port });
    }

    /// Looks whether congested queues have recovered.
    fn watch_recovery(&mut self, now: Time, out: &mut Output<'_, P>) {
        while let Some(port) = self.queues.due(now) {
            let Some(pipe) = out.pipe(port) else {
                return;
            };
            let backlog = pipe.queue().backlog().size;
            if backlog < self.config.recovery {
                self.queues.set_congested(port, None);
                let port = port.index() as u32;
                self.reports.push_back(Report::Recovered { port });
            } else {
                // One packet more has to leave for it to be below.
                let excess = backlog - self.config.recovery + self.config.packet;
                let drained = pipe.link().rate().time_for(excess);
                self.queues.set_congested(port, Some(now + drained));
            }
        }
    }

    /// Tells how far flows are that have gone on since this was last told.
    fn report_counters(&mut self, now: Time) {
        self.next_counters = Some(now + self.config.counters_interval);
        let mut acknowledged = Vec::new();
        for (_, connection) in self.connections.iter_mut() {
            let flow = connection.flow;
            for (way, flow) in [(Way::Forth, flow), (Way::Back, flow.reversed())] {
                let half = connection.state.half_mut(way);
                acknowledged.extend(half.news().map(|bytes| (flow, bytes)));
            }
        }
        if !acknowledged.is_empty() {
            self.reports.push_back(Report::Counters { acknowledged });
        }
    }

    fn obey(&mut self, now: Time, order: Order, out: &mut Output<'_, P>) {
        self.leased_until = Some(now + self.config.lease);
        match order {
            Order::Allow { flow, window } => self.set_limit(&flow, Some(window), out),
            Order::Release { flow } => self.set_limit(&flow, None, out),
            Order::Retransmit { flow, sequence } => {
                if let Some((id, way)) = self.find(&flow) {
                    self.await_repeat(now, Repeat { id, way, sequence });
                }
            }
            Order::Renew => {}
            Order::Describe => self.describe(),
        }
    }

    /// Changes what a flow may have; one that was stopped and may go on has to be told, as no ACK is on
    /// its way.
    fn set_limit(&mut self, flow: &FlowKey, limit: Option<u32>, out: &mut Output<'_, P>) {
        let Some((id, way)) = self.find(flow) else {
            return;
        };
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let handshake = connection.handshake;
        let half = connection.state.half_mut(way);
        let was_stopped = half.limit == Some(0);
        half.limit = limit;
        if !was_stopped || limit == Some(0) {
            return;
        }
        let Some((ingress, mut packet)) = half.template.clone() else {
            return;
        };
        if let Some(limit) = limit {
            limit_of(limit).clamp(&mut packet, &handshake, way.reversed());
        }
        half.shown = packet.tcp().map_or(0, |segment| segment.window);
        self.counters.updates += 1;
        out.inject(ingress, packet);
    }

    /// Releases all flows as the controller has been silent for a lease.
    fn expire(&mut self, out: &mut Output<'_, P>) {
        self.leased_until = None;
        self.counters.expired += 1;
        let mut limited = Vec::new();
        for (_, connection) in self.connections.iter() {
            let flow = connection.flow;
            for (way, flow) in [(Way::Forth, flow), (Way::Back, flow.reversed())] {
                if connection.state.half(way).limit.is_some() {
                    limited.push(flow);
                }
            }
        }
        for flow in limited {
            self.set_limit(&flow, None, out);
        }
    }

    /// Tells a controller that has just begun of every flow and every congested port.
    fn describe(&mut self) {
        for (_, connection) in self.connections.iter_mut() {
            let (flow, handshake) = (connection.flow, connection.handshake);
            let ports = [Way::Forth, Way::Back].map(|way| connection.state.half(way).egress);
            let [Some(port), back] = ports.map(|port| port.map(|port| port.index() as u32)) else {
                continue;
            };
            self.reports.push_back(Report::Opened { flow, port });
            if let (Some(segment), Some(reverse_port)) = (handshake.segment_size(Way::Forth), back)
            {
                self.reports.push_back(Report::Accepted {
                    flow,
                    segment,
                    reverse_port,
                });
            }
            for way in [Way::Forth, Way::Back] {
                connection.state.half_mut(way).forget_news();
            }
        }
        for port in self.queues.congested() {
            let port = port.index() as u32;
            self.reports.push_back(Report::Congested { port });
        }
    }

    /// A packet is to be sent again once everything before it has arrived: duplicates of an earlier ACK
    /// would have another packet sent again, which is not lost.
    fn await_repeat(&mut self, now: Time, repeat: Repeat) {
        let Some(connection) = self.connections.get_mut(repeat.id) else {
            return;
        };
        let half = connection.state.half_mut(repeat.way);
        if let Some(port) = half.egress {
            half.awaited += 1;
            self.queues.wait(port, repeat);
            self.queues.try_at(port, now);
        }
    }

    fn look_for_repeats(&mut self, now: Time, id: ConnectionId, way: Way) {
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        let half = connection.state.half(way);
        if half.awaited > 0
            && let Some(port) = half.egress
        {
            self.queues.try_at(port, now);
        }
    }

    /// Makes duplicate ACKs for what has to be sent again, one packet at a time, and only while the queue
    /// is below the threshold: all at once they would fill it beyond its end again.
    fn repeat(&mut self, now: Time, out: &mut Output<'_, P>) {
        while let Some(port) = self.queues.repeat_due(now) {
            let Some(pipe) = out.pipe(port) else {
                return;
            };
            let (backlog, rate) = (pipe.queue().backlog().size, pipe.link().rate());
            if backlog >= self.config.threshold {
                let excess = backlog - self.config.threshold + self.config.packet;
                self.queues.try_at(port, now + rate.time_for(excess));
                continue;
            }
            let connections = &mut self.connections;
            let ready = self.queues.next_ready(port, |repeat| {
                let half = connections.get_mut(repeat.id)?.state.half_mut(repeat.way);
                half.is_due(repeat.sequence)
            });
            if let Some(repeat) = ready {
                self.send_duplicates(repeat, out);
                let turn = rate.time_for(self.config.packet);
                self.queues.try_at(port, now + turn);
            }
        }
    }

    fn send_duplicates(&mut self, repeat: Repeat, out: &mut Output<'_, P>) {
        let Some(connection) = self.connections.get_mut(repeat.id) else {
            return;
        };
        let half = connection.state.half_mut(repeat.way);
        let Some((ingress, mut packet)) = half.template.clone() else {
            return;
        };
        half.on_repeated();
        packet.set_window(half.shown);
        self.counters.repeats += 1;
        for _ in 0..DUPLICATES {
            out.inject(ingress, packet.clone());
        }
    }
}

/// How many duplicate ACKs say that a packet is lost (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;

/// Segments that are not remembered to be sent again.
const SPECIAL: Flags = Flags::from_bits(Flags::SYN.bits() | Flags::FIN.bits() | Flags::RST.bits());

/// Whole segments, or nothing: a window that is rounded below one segment would stop the flow.
fn limit_of(window: u32) -> WindowLimit {
    let allowed = ByteSize::from_bytes(window.into());
    WindowLimit {
        allowed,
        floor: allowed,
    }
}

/// How many packets the queue of a port has dropped.
fn dropped<P: Packet + Clone + 'static>(port: Option<PortIndex>, out: &mut Output<'_, P>) -> u64 {
    let pipe = port.and_then(|port| out.pipe(port));
    pipe.map_or(0, |pipe| pipe.queue().counters().dropped.total().packets)
}

fn join(open: &mut Vec<u32>, port: PortIndex) {
    if open.len() <= port.index() {
        open.resize(port.index() + 1, 0);
    }
    if let Some(open) = open.get_mut(port.index()) {
        *open += 1;
    }
}

fn leave(open: &mut [u32], port: Option<PortIndex>) {
    if let Some(open) = port.and_then(|port| open.get_mut(port.index())) {
        *open = open.saturating_sub(1);
    }
}

impl<P: Packet + Clone + Send + 'static> Element<P> for Agent<P> {
    fn process(&mut self, now: Time, ingress: PortIndex, mut packet: P, out: &mut Output<'_, P>) {
        let Some(segment) = packet.tcp() else {
            let egress = out.egress(&packet);
            out.forward(ingress, packet);
            return self.watch(now, egress, out);
        };
        if self.config.retransmit && segment.flags.contains(Flags::SYN) {
            packet.refuse_sack();
        }
        self.pass(now, ingress, packet, &segment, out);
    }

    fn next_time(&self) -> Option<Time> {
        let counters = match self.queues.any_congested() {
            true => self.next_counters,
            false => None,
        };
        let times = [
            self.ordered_at,
            self.leased_until,
            counters,
            self.queues.next_time(),
        ];
        times.into_iter().flatten().min()
    }

    fn on_time(&mut self, now: Time, out: &mut Output<'_, P>) {
        if self.ordered_at.is_some_and(|at| at <= now) {
            self.ordered_at = None;
            while let Some(order) = self.orders.pop_front() {
                self.obey(now, order, out);
            }
        }
        if self.leased_until.is_some_and(|until| until <= now) {
            self.expire(out);
        }
        self.watch_recovery(now, out);
        if self.queues.any_congested() && self.next_counters.is_some_and(|at| at <= now) {
            self.report_counters(now);
        }
        self.repeat(now, out);
    }
}
