//! SED in a network: the controller, and its channels to the agents in the switches.

use std::collections::VecDeque;

use weir_fabric::Packet;
use weir_scenario::{
    Buffer, Level, Node, Port, RttAverage, Scenario, SedAllocation, SedLate, SedOptions,
    SwitchIndex,
};
use weir_sed::{
    Agent, Controller, ControllerConfig, Demand, DemandTable, LatePolicy, Method, PortId,
    RttReading, SwitchReport, WindowOrder,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::FlowKey;

use crate::network::Network;
use crate::seeds::{RngStream, Seeds};

/// The controller and its channels. It is generic over the packets of the network, and has no clock. Call
/// [`collect`](Self::collect) after every event in the network, and
/// [`handle_timeout`](Self::handle_timeout) when [`timeout`](Self::timeout) is reached.
#[derive(Debug)]
pub struct ControlPlane {
    controller: Controller,
    /// By switch.
    links: Vec<ControlLink>,
}

/// The two channels between a switch and the controller.
#[derive(Debug)]
struct ControlLink {
    switch: SwitchIndex,
    reports: ControlChannel<SwitchReport>,
    orders: ControlChannel<WindowOrder>,
}

/// One direction: messages are sent one after the other at a rate, and arrive after a latency.
#[derive(Debug)]
struct ControlChannel<T> {
    rate: Rate,
    latency: Duration,
    free_at: Time,
    in_flight: VecDeque<(Time, T)>,
}

impl<T> ControlChannel<T> {
    fn new(options: &SedOptions) -> Self {
        Self {
            rate: options.rate,
            latency: options.latency,
            free_at: Time::ZERO,
            in_flight: VecDeque::new(),
        }
    }

    fn send(&mut self, now: Time, message: T, length: ByteSize) {
        self.free_at = now.max(self.free_at) + self.rate.time_for(length);
        let arrival = self.free_at + self.latency;
        self.in_flight.push_back((arrival, message));
    }

    fn timeout(&self) -> Option<Time> {
        self.in_flight.front().map(|(arrival, _)| *arrival)
    }

    fn poll_delivered(&mut self, now: Time) -> Option<T> {
        self.timeout().filter(|arrival| *arrival <= now)?;
        self.in_flight.pop_front().map(|(_, message)| message)
    }
}

/// A full packet, for thresholds that are given in packets.
const PACKET: ByteSize = ByteSize::from_bytes(1500);

impl ControlPlane {
    /// Creates the scenario's controller, if it has one, and adds an agent to each switch. `demands` are
    /// the flows that the controller knows.
    pub fn new<P: Packet + Clone + Send + 'static>(
        scenario: &Scenario,
        seeds: Seeds,
        demands: DemandTable,
        network: &mut Network<P>,
    ) -> Option<Self> {
        let options = scenario.sed.as_ref()?;
        let config = config(options);
        let topology = &scenario.topology;
        let mut controller = Controller::new(config, demands);
        let mut lines = Vec::new();
        for switch in topology.switch_indices() {
            let ports = topology.ports_of(Node::Switch(switch));
            let mut slowest = None;
            for (number, port) in (0..).zip(ports) {
                let (rate, buffer) = (topology.port(port).rate, buffer(topology.port(port)));
                slowest = Some(slowest.map_or(rate, |slowest: Rate| slowest.min(rate)));
                let port = PortId {
                    switch: switch.index() as u32,
                    port: number,
                };
                controller.add_port(port, rate);
                if let Some(buffer) = buffer {
                    controller.set_buffer(port, buffer);
                }
            }
            let mut agent = config.agent(slowest.unwrap_or(Rate::ZERO));
            agent.counters_interval = options.counters_interval;
            let seed = seeds.of(RngStream::Sed, switch.index());
            network.add_element(switch, Agent::<P>::new(agent, seed));
            lines.push(ControlLink {
                switch,
                reports: ControlChannel::new(options),
                orders: ControlChannel::new(options),
            });
        }
        Some(Self {
            controller,
            links: lines,
        })
    }

    /// Registers a flow with the controller before an application opens it. The model assumes that this
    /// takes no time.
    pub fn register(&mut self, flow: FlowKey, size: ByteSize, within: Duration) {
        let demand = Demand { size, within };
        // A scenario's sizes and deadlines are validated, and the flow is the client's own.
        let _ = (self.controller.demands_mut()).register(flow.source, flow, demand);
    }

    /// Sends the agents' reports after an event in the network. Returns whether there were any: then
    /// [`Self::timeout`] may have changed.
    #[inline]
    pub fn collect<P: Packet + Clone + Send + 'static>(
        &mut self,
        now: Time,
        network: &mut Network<P>,
    ) -> bool {
        let mut any = false;
        for line in &mut self.links {
            let Some(agent) = network.element_mut::<Agent<P>>(line.switch) else {
                continue;
            };
            while let Some(report) = agent.next_report() {
                let length = report.length();
                line.reports.send(now, report, length);
                any = true;
            }
        }
        any
    }

    /// Returns when [`Self::handle_timeout`] has to be called next.
    pub fn timeout(&self, now: Time) -> Option<Time> {
        let lines = self.links.iter();
        let messages = lines.flat_map(|line| [line.reports.timeout(), line.orders.timeout()]);
        messages.flatten().chain(self.controller.timeout(now)).min()
    }

    /// Delivers the messages that arrive by `now`, and runs the controller's timers.
    pub fn handle_timeout<P: Packet + Clone + Send + 'static>(
        &mut self,
        now: Time,
        network: &mut Network<P>,
    ) {
        for line in &mut self.links {
            while let Some(report) = line.reports.poll_delivered(now) {
                let switch = line.switch.index() as u32;
                self.controller.receive(now, switch, report);
            }
        }
        if (self.controller.timeout(now)).is_some_and(|time| time <= now) {
            self.controller.handle_timeout(now);
        }
        while let Some((switch, order)) = self.controller.next_order() {
            if let Some(line) = self.links.get_mut(switch as usize) {
                line.orders.send(now, order, order.length());
            }
        }
        for line in &mut self.links {
            while let Some(order) = line.orders.poll_delivered(now) {
                let receive = |agent: &mut Agent<P>| agent.receive(now, order);
                network.update_element(line.switch, receive);
            }
        }
    }
}

/// Returns the size of a port's own buffer, if it has a limit.
fn buffer(port: &Port) -> Option<ByteSize> {
    match port.queue.buffer {
        Buffer::Limited(Level::Bytes(size)) => Some(size),
        Buffer::Limited(Level::Packets(packets)) => Some(PACKET * packets),
        Buffer::Unlimited => None,
    }
}

fn config(options: &SedOptions) -> ControllerConfig {
    let reading = |reading| match reading {
        RttAverage::Base => RttReading::Base,
        RttAverage::Loaded => RttReading::Loaded,
    };
    let size = |level| match level {
        Level::Bytes(size) => size,
        Level::Packets(packets) => PACKET * packets,
    };
    let threshold = size(options.threshold);
    ControllerConfig {
        threshold,
        recovery: options.recovery.map_or(threshold / 2, size),
        packet: PACKET,
        rtt: options.rtt,
        total_reading: reading(options.total_rtt),
        flow_reading: reading(options.flow_rtt),
        method: match options.allocation {
            SedAllocation::EarliestDeadline => Method::EarliestDeadline,
            SedAllocation::Paper => Method::Paper,
            SedAllocation::Planned => Method::Planned,
        },
        // The one that the allocation does not have is not read.
        base: options.base.unwrap_or_default(),
        best_effort: f64::from(options.best_effort.unwrap_or_default()) / 100.0,
        late: match options.late {
            SedLate::Spare => LatePolicy::Spare,
            SedLate::Stop => LatePolicy::Stop,
        },
        retransmit: options.retransmit,
        lease: options.lease,
        ..match options.allocation {
            SedAllocation::EarliestDeadline => ControllerConfig::earliest_deadline(),
            SedAllocation::Paper | SedAllocation::Planned => ControllerConfig::paper(),
        }
    }
}
