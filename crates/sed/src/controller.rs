//! The controller: receives reports of flows and queues from switches, and orders each flow's window.

mod config;
mod pipe;
mod progress;
mod recent_share;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use weir_units::{ByteSize, Rate, Time};
use weir_wire::FlowKey;

use crate::allocation::{AllocationSettings, Method, WindowAllocator};
use crate::demand::{Demand, DemandError, DemandTable, FlowPattern};
use crate::message::{PortId, SwitchReport, WindowOrder};
use crate::table::{AllocationInput, Entry, PortFlowTable};
pub(crate) use config::INITIAL_WINDOW;
pub use config::{ControllerConfig, RttReading};
use pipe::MeasuredPipe;
use progress::ActiveFlow;
use recent_share::RecentShare;
pub use view::Slack;

/// Counts of a controller, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Reports received.
    pub reports: u64,
    /// Orders sent.
    pub orders: u64,
    /// Computations of all windows of a port.
    pub computations: u64,
    /// Flows that were removed because nothing was reported of them.
    pub idle: u64,
    /// Flows for which there was no room.
    pub refused: u64,
    /// Registrations that were removed because no flow used them.
    pub unused: u64,
}

/// The state of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortState {
    /// Whether its queue is congested.
    pub congested: bool,
    /// Whether windows are in force.
    pub governed: bool,
}

/// A port that is controlled.
#[derive(Debug)]
struct Port {
    settings: AllocationSettings,
    state: PortState,
    /// Whether an input of the windows has changed.
    is_due: bool,
    /// When windows were last computed.
    computed_at: Time,
    /// The size of its buffer, if that is known.
    buffer: Option<ByteSize>,
    /// What is on the way outside of the queue ([`Method::EarliestDeadline`]).
    pipe: MeasuredPipe,
    /// What flows without deadline have had lately ([`Method::EarliestDeadline`]).
    share: RecentShare,
    table: PortFlowTable,
}

/// The controller of all switches, without a transport. [`Self::receive`] the switches' reports, call
/// [`Self::handle_timeout`] when [`Self::timeout`] has come, and send the orders of
/// [`Self::next_order`] after both. `now` must not run backwards.
///
/// Windows are computed when a queue becomes congested, and when it recovers while flows are stopped.
/// While windows are in force, they are also computed when a flow begins or ends. A recovered queue is
/// released if no flow is stopped: all stopped flows at once would overflow it.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    ports: BTreeMap<PortId, Port>,
    /// The egress port of each flow.
    egress_ports: FxHashMap<(u32, FlowKey), u32>,
    demands: DemandTable,
    orders: VecDeque<(u32, WindowOrder)>,
    /// When leases are renewed next.
    renewal: Time,
    /// When silent flows are searched next.
    inspection: Time,
    counters: ControllerCounters,
    /// Buffers for the computation of windows: large tables are not reallocated each time.
    survey: AllocationInput,
    allocator: WindowAllocator,
}

impl Controller {
    /// Creates a controller without ports or flows.
    pub fn new(config: ControllerConfig, demands: DemandTable) -> Self {
        Self {
            config,
            ports: BTreeMap::new(),
            egress_ports: FxHashMap::default(),
            demands,
            orders: VecDeque::new(),
            renewal: Time::ZERO,
            inspection: Time::ZERO,
            counters: ControllerCounters::default(),
            survey: AllocationInput::default(),
            allocator: WindowAllocator::default(),
        }
    }

    /// Adds a port whose link has this rate.
    pub fn add_port(&mut self, port: PortId, rate: Rate) {
        let port_state = Port {
            settings: self.config.settings(rate),
            state: PortState::default(),
            is_due: false,
            computed_at: Time::ZERO,
            buffer: None,
            pipe: MeasuredPipe::default(),
            share: RecentShare::default(),
            table: PortFlowTable::default(),
        };
        self.ports.insert(port, port_state);
    }

    /// Sets the size of a port's buffer: windows together take half of it at most, or else four times
    /// what equation 3 gives ([`Method::EarliestDeadline`]).
    pub fn set_buffer(&mut self, port: PortId, buffer: ByteSize) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.buffer = Some(buffer);
        }
    }

    /// Removes the ports of a switch that has left or restarts, and their flows.
    pub fn remove_switch(&mut self, switch: u32) {
        self.ports.retain(|id, _| id.switch != switch);
        self.egress_ports.retain(|(at, _), _| *at != switch);
    }

    /// Registers the demand of one of the client's own flows, or of all flows that match a pattern. For
    /// a flow that is already open, it counts from its start.
    ///
    /// # Errors
    /// As [`DemandTable::register`].
    pub fn register(
        &mut self,
        now: Time,
        client: IpAddr,
        flows: impl Into<FlowPattern>,
        demand: Demand,
    ) -> Result<(), DemandError> {
        let flows = flows.into();
        self.demands.register(client, flows, demand)?;
        if let Some(flow) = flows.flow() {
            self.change(now, &flow, demand);
        }
        Ok(())
    }

    /// Changes the demand of a flow.
    fn change(&mut self, now: Time, flow: &FlowKey, demand: Demand) {
        let config = self.config;
        for (id, port) in &mut self.ports {
            if port.table.update(flow, |entry| entry.demand = Some(demand)) {
                let waited = port.computed_at + config.refresh <= now;
                port.is_due |= (port.state.governed || port.state.congested) && waited;
                let flow = *flow;
                let order = WindowOrder::Remember { flow, demand };
                self.orders
                    .extend(config.remember.then_some((id.switch, order)));
            }
        }
    }

    /// Removes registrations that no flow has used since the last call.
    pub fn forget_unused_demands(&mut self) {
        let places = &self.egress_ports;
        let mut open: FxHashSet<FlowKey> = FxHashSet::default();
        open.extend(places.keys().map(|(_, flow)| *flow));
        let unused = self.demands.forget_unused(|flow| open.contains(flow));
        self.counters.unused += unused as u64;
    }

    /// Returns the demands of flows.
    pub fn demands(&self) -> &DemandTable {
        &self.demands
    }

    /// Returns the demands of flows, for changes.
    pub fn demands_mut(&mut self) -> &mut DemandTable {
        &mut self.demands
    }

    /// Returns the settings.
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// Returns the counters.
    pub fn counters(&self) -> ControllerCounters {
        self.counters
    }

    /// Processes a switch's report.
    pub fn receive(&mut self, now: Time, switch: u32, report: SwitchReport) {
        self.counters.reports += 1;
        match report {
            SwitchReport::Opened {
                flow,
                port,
                age,
                demand,
            } => {
                let started = now.checked_sub(age).unwrap_or(Time::ZERO);
                self.open(now, PortId { switch, port }, flow, started, demand);
            }
            SwitchReport::Accepted {
                flow,
                segment,
                reverse_port,
            } => self.accept(now, switch, flow, segment, reverse_port),
            SwitchReport::Closed { flow } => self.close(switch, &flow),
            SwitchReport::Congested { port } => self.set_congested(PortId { switch, port }, true),
            SwitchReport::Recovered { port } => self.set_congested(PortId { switch, port }, false),
            SwitchReport::Counters { acknowledged } => {
                for (flow, bytes) in acknowledged {
                    self.update(switch, &flow, |entry| {
                        entry.acknowledged = entry.acknowledged.max(bytes);
                        entry.reported_at = now;
                    });
                }
                self.refresh(now, switch);
            }
            SwitchReport::Active {
                flow,
                port,
                segment,
                age,
                acknowledged,
                demand,
            } => {
                let active = ActiveFlow {
                    flow,
                    segment,
                    acknowledged,
                    started: now.checked_sub(age).unwrap_or(Time::ZERO),
                    demand: demand.and_then(|demand| demand.check().ok()),
                };
                self.activate(now, PortId { switch, port }, active);
            }
            SwitchReport::Progress { flows, queues } => {
                self.progress(now, switch, &flows, &queues);
            }
            SwitchReport::Dropped { flow, sequence } => {
                if self.config.retransmit && self.egress_ports.contains_key(&(switch, flow)) {
                    self.order(switch, WindowOrder::Retransmit { flow, sequence });
                }
            }
        }
    }

    /// Returns when [`Self::handle_timeout`] is to be called: at once after a change that affects
    /// windows.
    pub fn timeout(&self, now: Time) -> Option<Time> {
        if self.ports.values().any(|port| port.is_due) {
            return Some(now);
        }
        let governed = self.ports.values().any(|port| port.state.governed);
        let renewal = governed.then_some(self.renewal);
        let inspection = (!self.egress_ports.is_empty()).then_some(self.inspection);
        renewal.into_iter().chain(inspection).min()
    }

    /// Computes the windows that are due, renews leases, and removes silent flows.
    pub fn handle_timeout(&mut self, now: Time) {
        self.inspect(now);
        let due = self.ports.iter().filter(|(_, port)| port.is_due);
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.compute(now, id);
        }
        self.renew(now);
    }

    /// Returns the next order, and the number of its switch.
    pub fn next_order(&mut self) -> Option<(u32, WindowOrder)> {
        let order = self.orders.pop_front();
        self.counters.orders += u64::from(order.is_some());
        order
    }

    fn order(&mut self, switch: u32, order: WindowOrder) {
        self.orders.push_back((switch, order));
    }

    /// Returns the port of a flow, if the flow is known.
    fn port_of(&mut self, switch: u32, flow: &FlowKey) -> Option<&mut Port> {
        let port = *self.egress_ports.get(&(switch, *flow))?;
        self.ports.get_mut(&PortId { switch, port })
    }

    /// Updates a flow's row, if it exists.
    fn update(&mut self, switch: u32, flow: &FlowKey, change: impl FnOnce(&mut Entry)) {
        if let Some(port) = self.port_of(switch, flow) {
            port.table.update(flow, change);
        }
    }

    /// Marks the windows as due, as the remaining bytes of flows have changed.
    fn refresh(&mut self, now: Time, switch: u32) {
        let interval = self.config.refresh;
        for (id, port) in &mut self.ports {
            if id.switch == switch && port.state.governed && port.computed_at + interval <= now {
                port.is_due = true;
            }
        }
    }

    /// Adds a flow. `reported` is the demand that the switch has stored.
    fn open(
        &mut self,
        now: Time,
        id: PortId,
        flow: FlowKey,
        started: Time,
        reported: Option<Demand>,
    ) {
        // A retransmitted SYN does not restart the flow.
        if self.egress_ports.contains_key(&(id.switch, flow)) {
            return;
        }
        let reported = reported.and_then(|demand| demand.check().ok());
        let demand = self.demands.demand_for_new(&flow).or(reported);
        self.insert(now, id, flow, started, demand);
        if let (true, Some(demand)) = (self.config.remember, demand)
            && self.egress_ports.contains_key(&(id.switch, flow))
        {
            self.order(id.switch, WindowOrder::Remember { flow, demand });
        }
    }

    /// Adds a flow to its port's table, if there is room.
    fn insert(
        &mut self,
        now: Time,
        id: PortId,
        flow: FlowKey,
        started: Time,
        demand: Option<Demand>,
    ) {
        let Some(port) = self.ports.get_mut(&id) else {
            return;
        };
        if port.table.order.len() >= self.config.flows_per_port {
            self.counters.refused += 1;
            return;
        }
        if self.egress_ports.is_empty() {
            self.inspection = now + self.config.inspection_interval();
        }
        port.table.insert(now, flow, started, demand);
        port.is_due |=
            port.state.governed || port.state.congested || port.settings.method != Method::Paper;
        self.egress_ports.insert((id.switch, flow), id.port);
    }

    fn accept(&mut self, now: Time, switch: u32, flow: FlowKey, segment: u32, reverse_port: u32) {
        self.update(switch, &flow, |entry| {
            entry.segment = segment.max(1);
            entry.reported_at = now;
        });
        // The answering end may be the one that sends the data.
        let back = flow.reversed();
        if self.demands.of(&back).is_some() {
            let port = reverse_port;
            self.open(now, PortId { switch, port }, back, now, None);
            self.update(switch, &back, |entry| entry.segment = segment.max(1));
        }
    }

    fn close(&mut self, switch: u32, flow: &FlowKey) {
        let Some(port) = self.egress_ports.remove(&(switch, *flow)) else {
            return;
        };
        if let Some(port) = self.ports.get_mut(&PortId { switch, port })
            && port.table.remove(flow)
        {
            port.is_due |= port.state.governed;
        }
        self.demands.forget(flow);
        self.order(switch, WindowOrder::Release { flow: *flow });
    }

    fn set_congested(&mut self, id: PortId, congested: bool) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.is_due |= congested || port.state.governed;
            port.state.congested = congested;
        }
    }

    /// Computes all windows of a port, or releases them.
    fn compute(&mut self, now: Time, id: PortId) {
        let Some(port) = self.ports.get_mut(&id) else {
            return;
        };
        port.is_due = false;
        port.computed_at = now;
        let was_governed = port.state.governed;
        let survey = &mut self.survey;
        let stopped = port.table.survey(now, survey);
        let settings = port.current_settings(now, &self.config);
        // This many flows will fill the queue: a plan does not wait for that.
        let many = (settings.total / INITIAL_WINDOW) as usize;
        let governed = port.state.congested
            || match settings.method {
                Method::Paper => was_governed && stopped,
                Method::Planned => port.table.order.len() > many || (was_governed && stopped),
                Method::EarliestDeadline => {
                    port.table.count_active() > if was_governed { 0 } else { many }
                }
            };
        port.state.governed = governed;
        let orders = &mut self.orders;
        let mut tell = |entry: &Entry| {
            let flow = entry.flow;
            let order = match entry.window {
                None => WindowOrder::Release { flow },
                Some(segments) => WindowOrder::Allow {
                    flow,
                    window: segments.saturating_mul(entry.segment),
                },
            };
            orders.push_back((id.switch, order));
        };
        if !governed {
            let none = std::iter::repeat(None);
            port.table.set_windows(survey, none, &mut tell);
            return;
        }
        self.counters.computations += 1;
        let windows = self.allocator.allocate(&settings, &survey.candidates);
        let windows = windows.iter().copied().map(Some);
        port.table.set_windows(survey, windows, &mut tell);
        if !was_governed {
            self.renewal = self.renewal.min(now);
        }
    }

    /// Renews the leases of switches with windows in force, three times per lease.
    fn renew(&mut self, now: Time) {
        if self.renewal > now {
            return;
        }
        let governed = self.ports.iter().filter(|(_, port)| port.state.governed);
        let mut switches: Vec<_> = governed.map(|(id, _)| id.switch).collect();
        switches.dedup();
        self.renewal = now + self.config.lease / 3;
        for switch in switches {
            self.order(switch, WindowOrder::Renew);
        }
    }

    fn inspect(&mut self, now: Time) {
        if self.inspection > now || self.egress_ports.is_empty() {
            return;
        }
        self.inspection = now + self.config.inspection_interval();
        self.remove_unreported(now);
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
