//! The agent in a switch: watches the queues, reports to the controller, and applies its orders to the
//! packets that pass.

mod activity;
mod config;
mod flow;
mod follow;
mod link;
mod queue;
mod repeat;
#[cfg(test)]
mod tests;
mod watch;
mod window;

use std::collections::VecDeque;
use std::fmt;

use weir_fabric::{
    ConnectionId, Connections, Direction, DropReason, Element, Output, Packet, PortIndex,
};
use weir_units::Time;
use weir_wire::FlowKey;
use weir_wire::tcp::{Flags, Segment};

use crate::message::{SwitchReport, WindowOrder};
pub use config::{AgentConfig, AgentCounters};
use flow::TrackedConnection;
use link::LinkMonitor;
use queue::{DroppedPacket, QueueMonitor};

/// The agent in a switch: an [`Element`] of its path.
///
/// Pass it the controller's orders by [`Self::receive`]; take its reports by [`Self::next_report`]
/// after the switch did work. Packets pass at once, never later than without the agent.
pub struct Agent<P> {
    config: AgentConfig,
    connections: Connections<TrackedConnection<P>>,
    queues: QueueMonitor,
    links: LinkMonitor,
    reports: VecDeque<SwitchReport>,
    orders: VecDeque<WindowOrder>,
    /// When the first of the orders arrived.
    ordered_at: Option<Time>,
    /// Until when the orders hold; `None` without orders.
    leased_until: Option<Time>,
    /// Until when the orders of an earlier controller hold, if another one has started since.
    inherited_until: Option<Time>,
    /// When acknowledged bytes are reported next.
    next_counters: Option<Time>,
    /// The number of open flows per egress port of their data.
    open: Vec<u32>,
    /// The super-packet of the last segment and its egress port, if inner segments need no processing.
    burst: Option<(u64, Option<PortIndex>)>,
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
    /// Creates an agent. `seed` randomizes the hashing of its flow table, so that an attacker cannot
    /// choose collisions.
    pub fn new(config: AgentConfig, seed: u64) -> Self {
        Self {
            connections: Connections::new(config.connections, seed),
            config,
            queues: QueueMonitor::default(),
            links: LinkMonitor::default(),
            reports: VecDeque::new(),
            orders: VecDeque::new(),
            ordered_at: None,
            leased_until: None,
            inherited_until: None,
            next_counters: None,
            open: Vec::new(),
            burst: None,
            counters: AgentCounters::default(),
        }
    }

    /// Replaces the settings, as a controller with settings of its own requires.
    pub fn configure(&mut self, config: AgentConfig) {
        self.config = config;
    }

    /// Returns until when the orders hold, if there are any.
    pub fn leased_until(&self) -> Option<Time> {
        self.leased_until
    }

    /// Takes an order, which is carried out when the switch next handles its timeouts.
    pub fn receive(&mut self, now: Time, order: WindowOrder) {
        self.orders.push_back(order);
        self.ordered_at.get_or_insert(now);
    }

    /// Returns the next report to the controller.
    pub fn next_report(&mut self) -> Option<SwitchReport> {
        self.reports.pop_front()
    }

    /// Returns the counters.
    pub fn counters(&self) -> AgentCounters {
        AgentCounters {
            connections: self.connections.counters(),
            ..self.counters
        }
    }

    /// Returns the ordered window of a flow, in bytes.
    pub fn allowed(&self, flow: &FlowKey) -> Option<u32> {
        let (id, direction) = self.find(flow)?;
        self.connections.get(id)?.state.half(direction).limit
    }

    fn find(&self, flow: &FlowKey) -> Option<(ConnectionId, Direction)> {
        let id = self.connections.find(flow)?;
        let direction = if self.connections.get(id)?.flow == *flow {
            Direction::Forward
        } else {
            Direction::Reverse
        };
        Some((id, direction))
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
        self.burst = None;
        self.forget(now);
        if self.is_forged(&flow, segment) {
            self.counters.forged += 1;
            return out.forward(ingress, packet);
        }
        let known = self.connections.observe_by_id(now, flow, segment);
        let Some((id, direction)) = known else {
            self.counters.unknown_scale += u64::from(self.leased_until.is_some());
            out.forward(ingress, packet);
            return self.watch(now, egress, out);
        };
        if self.is_policed(id, direction, segment) {
            self.counters.policed += 1;
            return out.drop(packet, DropReason::Element);
        }
        self.note(now, id, direction, flow, segment, egress);
        self.note_activity(now, id, direction, flow, segment);
        self.burst = self
            .plain_burst(id, direction, &packet)
            .map(|burst| (burst, egress));
        self.clamp(now, id, direction, ingress, &mut packet, segment);
        if self.config.retransmit {
            let before = dropped(egress, out);
            out.forward(ingress, packet);
            if segment.payload > 0 && dropped(egress, out) > before {
                let sequence = segment.sequence;
                self.reports
                    .push_back(SwitchReport::Dropped { flow, sequence });
            }
            self.look_for_repeats(now, id, direction.reversed());
        } else {
            out.forward(ingress, packet);
        }
        self.watch(now, egress, out);
    }

    /// Returns the super-packet that a segment belongs to, if its inner segments need no processing:
    /// their windows are not lowered, and their drops are not reported.
    fn plain_burst(&self, id: ConnectionId, direction: Direction, packet: &P) -> Option<u64> {
        let connection = self.connections.get(id)?;
        let limit = connection.state.half(direction.reversed()).limit;
        let plain = limit.is_none() && !self.config.retransmit;
        plain
            .then(|| packet.burst())
            .flatten()
            .map(|burst| burst.id)
    }

    /// Returns the egress port of a segment that brings no news beyond the previous one of its
    /// super-packet.
    fn repeats(&self, packet: &P) -> Option<Option<PortIndex>> {
        let (id, egress) = self.burst?;
        let burst = packet.burst()?;
        (burst.is_inner && burst.id == id).then_some(egress)
    }

    fn apply(&mut self, now: Time, order: WindowOrder, out: &mut Output<'_, P>) {
        self.leased_until = Some(now + self.config.lease);
        match order {
            WindowOrder::Allow { flow, window } => self.set_limit(now, &flow, Some(window), out),
            WindowOrder::Release { flow } => self.set_limit(now, &flow, None, out),
            WindowOrder::Retransmit { flow, sequence } => {
                if let Some((id, direction)) = self.find(&flow) {
                    self.await_repeat(
                        now,
                        DroppedPacket {
                            id,
                            direction,
                            sequence,
                        },
                    );
                }
            }
            WindowOrder::Renew => {}
            WindowOrder::Describe => {
                self.inherit(now);
                self.describe(now);
            }
            WindowOrder::Remember { flow, demand } => self.remember(&flow, demand),
        }
    }
}

/// Returns the number of packets that the queue of a port has dropped.
fn dropped<P: Packet + Clone + 'static>(port: Option<PortIndex>, out: &mut Output<'_, P>) -> u64 {
    let egress_port = port.and_then(|port| out.egress_port(port));
    egress_port.map_or(0, |egress_port| {
        egress_port.queue().counters().dropped.total().packets
    })
}

impl<P: Packet + Clone + Send + 'static> Element<P> for Agent<P> {
    fn process(&mut self, now: Time, ingress: PortIndex, mut packet: P, out: &mut Output<'_, P>) {
        if let Some(egress) = self.repeats(&packet) {
            out.forward(ingress, packet);
            return self.watch(now, egress, out);
        }
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

    fn timeout(&self) -> Option<Time> {
        let progress = self.next_counters.filter(|_| self.config.never_stops);
        let orders = [
            self.ordered_at,
            self.leased_until,
            self.inherited_until,
            progress,
        ];
        let first = orders.into_iter().flatten().min();
        if self.queues.is_empty() {
            return first;
        }
        let counters = if self.queues.any_congested() {
            self.next_counters
        } else {
            None
        };
        let queues = [counters, self.queues.timeout()];
        first.into_iter().chain(queues.into_iter().flatten()).min()
    }

    fn handle_timeout(&mut self, now: Time, out: &mut Output<'_, P>) {
        self.burst = None;
        if self.ordered_at.is_some_and(|at| at <= now) {
            self.ordered_at = None;
            while let Some(order) = self.orders.pop_front() {
                self.apply(now, order, out);
            }
        }
        if self.leased_until.is_some_and(|until| until <= now) {
            self.expire(now, out);
        }
        if self.inherited_until.is_some_and(|until| until <= now) {
            self.release_inherited(now, out);
        }
        self.watch_recovery(now, out);
        let is_due = self.next_counters.is_some_and(|at| at <= now);
        if self.config.never_stops && is_due {
            self.report_progress(now, out);
        } else if self.queues.any_congested() && is_due {
            self.report_counters(now);
        }
        self.repeat(now, out);
    }
}
