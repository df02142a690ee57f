//! The controller: hears of flows and queues from switches, and tells them who may send how much.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::FlowKey;

use crate::agent::AgentConfig;
use crate::allocation::{Late, Method, Settings, allocate, total_window};
use crate::demand::Demands;
use crate::message::{Order, PortId, Report};
use crate::table::{Entry, Table};

/// Which round-trip time an equation of the paper means by RTT_avg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// That of an empty network.
    Base,
    /// That of a network whose queue is at the threshold: base + K/C.
    Loaded,
}

/// How a controller decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// K: from this length on a queue is congested.
    pub threshold: ByteSize,
    /// Below this length it no longer is. The paper has K here too; but Twin is made so that the queue is
    /// K long, and windows that are released whenever it is a little shorter let it overflow.
    pub recovery: ByteSize,
    /// The length of a full packet, by which windows are counted.
    pub packet: ByteSize,
    /// The round-trip time of an empty network.
    pub rtt: Duration,
    /// What equation 3 means by it.
    pub total_reading: Reading,
    /// What equation 4 means by it.
    pub flow_reading: Reading,
    /// How windows are chosen.
    pub method: Method,
    /// What a flow without deadline has at least, in segments.
    pub base: u32,
    /// What becomes of flows that are late.
    pub late: Late,
    /// Whether senders of dropped packets are told to send them again (RSED).
    pub retransmit: bool,
    /// For how long an allocation holds without a sign of life from the controller.
    pub lease: Duration,
    /// How often windows in force are computed anew if nothing but time and what is left of flows has
    /// changed.
    pub refresh: Duration,
    /// After how long without a word of it a flow is forgotten.
    pub idle: Duration,
    /// How many flows there may be at a port; further ones have no window of their own.
    pub flows_per_port: usize,
}

impl ControllerConfig {
    /// The paper's values (sections 4 and 5.1) for packets of 1500 bytes, with equation 3 read for the
    /// empty and equation 4 for the loaded network: otherwise flows get less than they need.
    pub fn paper() -> Self {
        let packet = ByteSize::from_bytes(1500);
        Self {
            threshold: packet * 30,
            recovery: packet * 15,
            packet,
            rtt: Duration::from_micros(200),
            total_reading: Reading::Base,
            flow_reading: Reading::Loaded,
            method: Method::Paper,
            base: 1,
            late: Late::Spare,
            retransmit: false,
            lease: Duration::from_secs(2),
            refresh: Duration::from_millis(5),
            idle: Duration::from_secs(60),
            flows_per_port: 100_000,
        }
    }

    /// An agent that works as this controller expects it to, for a switch whose slowest link has this
    /// rate.
    pub fn agent(&self, slowest: Rate) -> AgentConfig {
        let gentle = self.settings(slowest).total / INITIAL_WINDOW;
        AgentConfig {
            threshold: self.threshold,
            recovery: self.recovery,
            packet: self.packet,
            lease: self.lease,
            retransmit: self.retransmit,
            gentle_above: (self.method == Method::Planned).then_some(gentle),
            ..AgentConfig::paper()
        }
    }

    fn rtt(&self, reading: Reading, rate: Rate) -> Duration {
        match reading {
            Reading::Base => self.rtt,
            Reading::Loaded if rate.is_zero() => self.rtt,
            Reading::Loaded => self.rtt + rate.time_for(self.threshold),
        }
    }

    /// What decides the windows of a port of this rate.
    fn settings(&self, rate: Rate) -> Settings {
        let total_rtt = self.rtt(self.total_reading, rate);
        // What a packet has beside its data, with Ethernet's framing.
        const HEADERS: u64 = 40;
        const FRAMING: u64 = 38;
        let packet = self.packet.bytes() as f64;
        Settings {
            method: self.method,
            total: total_window(self.threshold, rate, total_rtt, self.packet),
            rtt: self.rtt(self.flow_reading, rate),
            rate: rate.mul_f64((packet - HEADERS as f64) / (packet + FRAMING as f64)),
            base: self.base,
            late: self.late,
        }
    }
}

/// What a controller has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Reports that came in.
    pub reports: u64,
    /// Orders that went out.
    pub orders: u64,
    /// Computations of all windows of a port.
    pub computations: u64,
    /// Flows that were forgotten as nothing was heard of them.
    pub idle: u64,
    /// Flows for which there was no room.
    pub refused: u64,
}

/// With how many segments a sender begins that nobody holds back (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// A port that is looked after.
#[derive(Debug)]
struct Port {
    settings: Settings,
    congested: bool,
    /// Whether windows are in force.
    governed: bool,
    /// Whether something has changed that windows depend on.
    is_due: bool,
    /// When windows were last computed.
    computed_at: Time,
    table: Table,
}

/// The controller of all switches, of whatever transport between them: [`Self::receive`] what a switch
/// reports, call [`Self::on_time`] when [`Self::next_time`] has come, and take what there is to be
/// told by [`Self::next_order`] after both. `now` must not run backwards.
///
/// Windows are computed anew when a queue becomes congested, when it recovers while flows are stopped,
/// and while windows are in force, when a flow begins or ends. A queue that has recovered is left alone
/// again if nobody is stopped: all stopped flows at once would fill it beyond its end.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    ports: BTreeMap<PortId, Port>,
    /// The ports that flows leave by.
    places: FxHashMap<(u32, FlowKey), u32>,
    demands: Demands,
    orders: VecDeque<(u32, Order)>,
    /// When switches are next told that the controller is there.
    renewal: Time,
    /// When silent flows are next looked for.
    inspection: Time,
    counters: ControllerCounters,
}

impl Controller {
    /// A controller that knows of no port and no flow.
    pub fn new(config: ControllerConfig, demands: Demands) -> Self {
        Self {
            config,
            ports: BTreeMap::new(),
            places: FxHashMap::default(),
            demands,
            orders: VecDeque::new(),
            renewal: Time::ZERO,
            inspection: Time::ZERO,
            counters: ControllerCounters::default(),
        }
    }

    /// Looks after a port whose link has this rate.
    pub fn add_port(&mut self, port: PortId, rate: Rate) {
        let port_state = Port {
            settings: self.config.settings(rate),
            congested: false,
            governed: false,
            is_due: false,
            computed_at: Time::ZERO,
            table: Table::default(),
        };
        self.ports.insert(port, port_state);
    }

    /// What flows demand.
    pub fn demands_mut(&mut self) -> &mut Demands {
        &mut self.demands
    }

    /// How it decides.
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// What it has done so far.
    pub fn counters(&self) -> ControllerCounters {
        self.counters
    }

    /// The flows of a port by priority.
    pub fn flows(&self, port: PortId) -> impl Iterator<Item = &Entry> {
        let port = self.ports.get(&port);
        port.into_iter().flat_map(|port| port.table.iter())
    }

    /// A switch reports something.
    pub fn receive(&mut self, now: Time, switch: u32, report: Report) {
        self.counters.reports += 1;
        match report {
            Report::Opened { flow, port } => self.open(now, PortId { switch, port }, flow),
            Report::Accepted {
                flow,
                segment,
                reverse_port,
            } => self.accept(now, switch, flow, segment, reverse_port),
            Report::Closed { flow } => self.close(switch, &flow),
            Report::Congested { port } => self.set_congested(PortId { switch, port }, true),
            Report::Recovered { port } => self.set_congested(PortId { switch, port }, false),
            Report::Counters { acknowledged } => {
                for (flow, bytes) in acknowledged {
                    if let Some(entry) = self.entry(switch, &flow) {
                        entry.acknowledged = entry.acknowledged.max(bytes);
                        entry.heard = now;
                    }
                }
                self.refresh(now, switch);
            }
            Report::Dropped { flow, sequence } => {
                if self.config.retransmit && self.entry(switch, &flow).is_some() {
                    self.order(switch, Order::Retransmit { flow, sequence });
                }
            }
        }
    }

    /// When [`Self::on_time`] is to be called: at once after something that changes windows.
    pub fn next_time(&self, now: Time) -> Option<Time> {
        if self.ports.values().any(|port| port.is_due) {
            return Some(now);
        }
        let governed = self.ports.values().any(|port| port.governed);
        let renewal = governed.then_some(self.renewal);
        let inspection = (!self.places.is_empty()).then_some(self.inspection);
        renewal.into_iter().chain(inspection).min()
    }

    /// Computes the windows that are due, renews leases, forgets flows that nothing is heard of.
    pub fn on_time(&mut self, now: Time) {
        self.inspect(now);
        let due = self.ports.iter().filter(|(_, port)| port.is_due);
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.compute(now, id);
        }
        self.renew(now);
    }

    /// The next thing to tell a switch, and which.
    pub fn next_order(&mut self) -> Option<(u32, Order)> {
        let order = self.orders.pop_front();
        self.counters.orders += u64::from(order.is_some());
        order
    }

    fn order(&mut self, switch: u32, order: Order) {
        self.orders.push_back((switch, order));
    }

    fn entry(&mut self, switch: u32, flow: &FlowKey) -> Option<&mut Entry> {
        let port = *self.places.get(&(switch, *flow))?;
        let port = self.ports.get_mut(&PortId { switch, port })?;
        port.table.get_mut(flow)
    }

    /// What is left of flows has changed, and so what they need.
    fn refresh(&mut self, now: Time, switch: u32) {
        let interval = self.config.refresh;
        for (id, port) in &mut self.ports {
            if id.switch == switch && port.governed && port.computed_at + interval <= now {
                port.is_due = true;
            }
        }
    }

    fn open(&mut self, now: Time, id: PortId, flow: FlowKey) {
        let demand = self.demands.of(&flow);
        // A SYN that is sent again does not begin anew.
        if self.places.contains_key(&(id.switch, flow)) {
            return;
        }
        let Some(port) = self.ports.get_mut(&id) else {
            return;
        };
        if port.table.len() >= self.config.flows_per_port {
            self.counters.refused += 1;
            return;
        }
        if self.places.is_empty() {
            self.inspection = now + self.config.idle;
        }
        port.table.insert(now, flow, demand);
        port.is_due |= port.governed || port.congested || port.settings.method == Method::Planned;
        self.places.insert((id.switch, flow), id.port);
    }

    fn accept(&mut self, now: Time, switch: u32, flow: FlowKey, segment: u32, reverse_port: u32) {
        if let Some(entry) = self.entry(switch, &flow) {
            entry.segment = segment.max(1);
            entry.heard = now;
        }
        // Whoever answers may be the one that has something to send.
        let back = flow.reversed();
        if self.demands.of(&back).is_some() {
            let port = reverse_port;
            self.open(now, PortId { switch, port }, back);
            if let Some(entry) = self.entry(switch, &back) {
                entry.segment = segment.max(1);
            }
        }
    }

    fn close(&mut self, switch: u32, flow: &FlowKey) {
        let Some(port) = self.places.remove(&(switch, *flow)) else {
            return;
        };
        if let Some(port) = self.ports.get_mut(&PortId { switch, port })
            && port.table.remove(flow)
        {
            port.is_due |= port.governed;
        }
        self.demands.forget(flow);
        self.order(switch, Order::Release { flow: *flow });
    }

    fn set_congested(&mut self, id: PortId, congested: bool) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.is_due |= congested || port.governed;
            port.congested = congested;
        }
    }

    /// Computes all windows of a port, or lets it be.
    fn compute(&mut self, now: Time, id: PortId) {
        let Some(port) = self.ports.get_mut(&id) else {
            return;
        };
        port.is_due = false;
        port.computed_at = now;
        let was_governed = port.governed;
        let stopped = port.table.iter().any(Entry::is_stopped);
        // A plan does not wait for the queue: so many flows will fill it.
        let crowded = port.settings.method == Method::Planned
            && port.table.len() > (port.settings.total / INITIAL_WINDOW) as usize;
        let governed = port.congested || crowded || (was_governed && stopped);
        port.governed = governed;
        let orders = &mut self.orders;
        let mut tell = |entry: &Entry| {
            let flow = entry.flow;
            let order = match entry.window {
                None => Order::Release { flow },
                Some(segments) => Order::Allow {
                    flow,
                    window: segments.saturating_mul(entry.segment),
                },
            };
            orders.push_back((id.switch, order));
        };
        if !governed {
            port.table.set_windows(std::iter::repeat(None), &mut tell);
            return;
        }
        self.counters.computations += 1;
        let candidates: Vec<_> = (port.table.iter())
            .map(|entry| entry.candidate(now))
            .collect();
        let windows = allocate(&port.settings, &candidates);
        port.table
            .set_windows(windows.into_iter().map(Some), &mut tell);
        if !was_governed {
            self.renewal = self.renewal.min(now);
        }
    }

    /// Tells switches with windows in force that they hold, three times per lease.
    fn renew(&mut self, now: Time) {
        if self.renewal > now {
            return;
        }
        let governed = self.ports.iter().filter(|(_, port)| port.governed);
        let mut switches: Vec<_> = governed.map(|(id, _)| id.switch).collect();
        switches.dedup();
        self.renewal = now + self.config.lease / 3;
        for switch in switches {
            self.order(switch, Order::Renew);
        }
    }

    fn inspect(&mut self, now: Time) {
        if self.inspection > now || self.places.is_empty() {
            return;
        }
        self.inspection = now + self.config.idle;
        let Some(since) = now.checked_sub(self.config.idle) else {
            return;
        };
        let mut silent = Vec::new();
        for (id, port) in &self.ports {
            let flows = port.table.silent_since(since).into_iter();
            silent.extend(flows.map(|flow| (id.switch, flow)));
        }
        self.counters.idle += silent.len() as u64;
        for (switch, flow) in silent {
            self.close(switch, &flow);
        }
    }
}

/// How far from being done a flow is that the controller looks after, for those who want to see it.
impl Entry {
    /// The window in bytes, if it is governed.
    pub fn window_size(&self) -> Option<ByteSize> {
        let segments = self.window?;
        Some(ByteSize::from_bytes(
            u64::from(segments) * u64::from(self.segment),
        ))
    }

    /// The time between when its rest would be there at its window's rate and its deadline; nothing
    /// without either.
    pub fn slack(&self, now: Time, rtt: Duration) -> Option<Duration> {
        let job = self.job(now)?;
        let window = self.window_size().filter(|window| !window.is_zero())?;
        let rate = Rate::from_size_over(window, rtt);
        job.due.checked_sub(rate.time_for(job.size))
    }
}
