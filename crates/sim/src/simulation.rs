//! The event loop of a run.

mod changes;
mod divided;
mod open_flows;

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use weir_fabric::PortChange;
use weir_network::{
    LinkLoads, MeasuredTime, PortMeter, Random, RngStream, Seeds, change_records, faults,
};
use weir_results::{
    EpochRecord, FlowRecord, FlowSample, LinkLoad, Observation, OutputError, Ratio, Recorder,
    RunSummary,
};
use weir_scenario::{ChangeSchedule, PortIndex, Scenario};
use weir_units::{Duration, Time};

use crate::deadlines;
use crate::error::{BuildError, RunError};
use crate::flows::{FlowId, FlowReport};
use crate::hosts::EndpointEvent;
use crate::measure::GroupMeter;
use crate::plugins;
use crate::shard::{Shard, ShardEvent};
use crate::threads::{FewerThreads, Threads};
use crate::workloads::GroupRunner;
use crate::world::World;

pub use open_flows::OpenFlow;

/// Changes of links and of addresses by faults; in each list the next one is last.
#[derive(Debug)]
struct ScheduledChanges<T> {
    links: Vec<(T, PortIndex, PortChange)>,
    addresses: Vec<(T, PortIndex)>,
}

impl<T: Ord + Copy> ScheduledChanges<T> {
    /// Creates it from lists in which the next one is first.
    fn new(mut links: Vec<(T, PortIndex, PortChange)>, mut addresses: Vec<(T, PortIndex)>) -> Self {
        links.reverse();
        addresses.reverse();
        Self { links, addresses }
    }

    fn timeout(&self) -> Option<T> {
        let link = self.links.last().map(|(at, ..)| *at);
        let address = self.addresses.last().map(|(at, _)| *at);
        link.into_iter().chain(address).min()
    }

    fn due_link(&mut self, now: T) -> Option<(PortIndex, PortChange)> {
        let due = self.links.pop_if(|(at, ..)| *at <= now);
        due.map(|(_, port, change)| (port, change))
    }

    fn due_address(&mut self, now: T) -> Option<PortIndex> {
        let due = self.addresses.pop_if(|(at, _)| *at <= now);
        due.map(|(_, port)| port)
    }
}

/// A scenario that runs in virtual time.
///
/// Create it, [`advance`](Self::advance) it to its end, and [`finish`](Self::finish) it for its summary.
/// The same scenario with the same seed gives the same result, to the last bit, for any division into
/// steps.
#[derive(Debug)]
pub struct Simulation {
    scenario: Arc<Scenario>,
    seeds: Seeds,
    has_plugins: bool,
    world: World,
    groups: Vec<GroupRunner>,
    now: Time,
    end: Time,
    /// When the warm-up ends; `None` once it has.
    warm_up: Option<Time>,
    /// Changes by faults at fixed times.
    faults: ScheduledChanges<Time>,
    /// Changes by faults at the start of epochs.
    epoch_faults: ScheduledChanges<u32>,
    /// The changes of settings that are to come.
    changes: Option<ChangeSchedule>,
    next_sample: Time,
    sampler: Random,
    /// Whether samples are taken. Otherwise their times are no control times.
    is_sampled: bool,
    /// Whether samples are taken even if nobody wants them, as they may affect other results.
    needs_samples: bool,
    /// The earliest event outside of links and endpoints: `warm_up`, `faults`, `changes`, `next_sample` if it is
    /// taken, and the groups' timeouts.
    control: Time,
    /// Whether changes and the end come at known times: none by an epoch or by the controller's orders.
    is_steady: bool,
    ports: Vec<PortMeter>,
    /// The ports of links whose load is reported.
    load_meters: Vec<PortMeter>,
    group_meters: Vec<GroupMeter>,
    /// Why there are fewer threads than asked for.
    fewer_threads: Option<FewerThreads>,
}

impl Simulation {
    /// Creates a simulation at time zero, on one thread.
    ///
    /// # Errors
    /// The scenario cannot be simulated.
    pub fn new(scenario: Scenario) -> Result<Self, BuildError> {
        Self::with_threads(scenario, Threads::ONE)
    }

    /// Creates a simulation at time zero that may use several threads. The result is the same, to the last
    /// bit. Small networks and those whose hosts act on each other stay on one thread: see
    /// [`Self::fewer_threads`].
    ///
    /// # Errors
    /// The scenario cannot be simulated.
    pub fn with_threads(scenario: Scenario, threads: Threads) -> Result<Self, BuildError> {
        let scenario = Arc::new(scenario);
        let seeds = Seeds::new(scenario.seed);
        let mut world = World::new(&scenario, seeds)?;
        let (partition, fewer_threads) = threads.partition(&scenario);
        if let Some(partition) = partition {
            world = world.divide(partition);
        }
        let groups = (0..).zip(&scenario.groups).map(|(number, group)| {
            let seed = seeds.of(RngStream::Workload, number as usize);
            GroupRunner::new(number, group, seed)
        });
        let (by_time, by_epoch) = (faults::changes(&scenario), faults::epoch_changes(&scenario));
        let addresses = faults::address_changes(&scenario);
        let epoch_addresses = faults::epoch_address_changes(&scenario);
        let ports = scenario.measurements.ports.iter();
        // The last one ends the run, and they have faults of their own.
        let mut workloads = scenario.groups.iter().map(|group| &group.workload);
        let has_epochs = workloads.any(|workload| workload.epochs().is_some());
        let mut simulation = Self {
            groups: groups.collect(),
            now: Time::ZERO,
            end: Time::ZERO + scenario.duration,
            warm_up: Some(Time::ZERO + scenario.warm_up),
            faults: ScheduledChanges::new(by_time, addresses),
            epoch_faults: ScheduledChanges::new(by_epoch, epoch_addresses),
            changes: ChangeSchedule::new(&scenario),
            next_sample: Time::ZERO,
            sampler: Random::new(seeds.of(RngStream::Samples, 0)),
            is_sampled: true,
            needs_samples: world.sed.is_some(),
            control: Time::ZERO,
            is_steady: world.sed.is_none() && !has_epochs,
            ports: ports
                .map(|port| PortMeter::new(*port, scenario.topology.port(*port)))
                .collect(),
            group_meters: scenario
                .groups
                .iter()
                .map(|group| GroupMeter::new(&group.name))
                .collect(),
            load_meters: load_meters(&world, &scenario),
            fewer_threads,
            world,
            seeds,
            has_plugins: plugins::has_any(&scenario),
            scenario,
        };
        simulation.check_horizon()?;
        simulation.schedule_sample();
        simulation.schedule_control();
        Ok(simulation)
    }

    /// Makes every packet an event at each switch and host. For tests, which compare the results.
    #[doc(hidden)]
    #[must_use]
    pub fn without_running_ahead(mut self) -> Self {
        self.is_steady = false;
        self
    }

    /// Returns the time up to which all events have been handled.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns when the run ends. With the workload `epochs` it may end earlier.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns how many packets have left the measured ports so far, for speed displays.
    pub fn packets(&self) -> u64 {
        let ports = self.ports.iter();
        ports.map(|meter| self.world.sent(meter.port)).sum()
    }

    /// Handles all events before `until`, or before the end if that is earlier.
    ///
    /// # Errors
    /// The recorder's: the simulation can continue then, but unrecorded data are lost. A plug-in failed: what follows its
    /// failure is worthless.
    pub fn advance(&mut self, until: Time, recorder: &mut dyn Recorder) -> Result<(), RunError> {
        self.handle_until(until, recorder)?;
        self.check_plugins()
    }

    /// Returns an error if a plug-in has failed.
    fn check_plugins(&self) -> Result<(), RunError> {
        if !self.has_plugins {
            return Ok(());
        }
        match plugins::failure(&self.scenario, self.seeds, &self.world.flows) {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    fn handle_until(&mut self, until: Time, recorder: &mut dyn Recorder) -> Result<(), RunError> {
        let mut until = until.min(self.end);
        let is_tapped = recorder.wants_packets();
        self.world.set_tapped(is_tapped);
        self.set_sampled(recorder.wants_samples());
        if self.world.is_divided() {
            return Ok(self.advance_divided(until, recorder)?);
        }
        let runs_ahead = self.is_steady && !is_tapped;
        loop {
            let end = self.control.min(until);
            let shard = &mut self.world.shard;
            let ahead = if runs_ahead { end } else { Time::ZERO };
            shard.network.set_run_ahead(ahead);
            // Each event may make an agent report to the controller.
            let event = if self.world.sed.is_some() {
                shard.handle_next(end)
            } else {
                shard.handle_until_notice(end)
            };
            if let Some(ShardEvent { time, notice }) = event {
                self.now = time;
                self.collect_reports();
                if let Some((flow, notice)) = notice {
                    // As long as the flow is open.
                    self.check_plugins()?;
                    self.on_notice(flow, notice, recorder)?;
                    self.world.shard.settle();
                    until = until.min(self.end);
                }
            } else if self.control < until {
                self.now = self.control;
                self.on_control(recorder)?;
                self.world.shard.settle();
                until = until.min(self.end);
            } else {
                break;
            }
        }
        self.now = self.now.max(until);
        Ok(self.record_packets(recorder)?)
    }

    /// Ends the run, or interrupts it: records the flows that are still open, and returns the summary of
    /// everything so far. The CPU time is left at zero: a simulation has no clock.
    ///
    /// # Errors
    /// The recorder's.
    pub fn finish(mut self, recorder: &mut dyn Recorder) -> Result<RunSummary, OutputError> {
        if self.warm_up.is_some() {
            // It was interrupted before the end of the warm-up: nothing is left out.
            Arc::make_mut(&mut self.scenario).warm_up = Duration::ZERO;
        }
        for (_, flow) in self.world.flows.open.iter() {
            self.record_flow(&self.report(flow), recorder)?;
        }
        Ok(self.summary())
    }

    /// Returns the summary so far, as [`finish`](Self::finish) would return it now.
    pub fn summary(&mut self) -> RunSummary {
        let now = self.now;
        let interrupted = now < self.end;
        let warm_up = self.scenario.warm_up;
        let span = now.since(Time::ZERO + warm_up);
        let mut groups: Vec<_> = (0..)
            .zip(&self.group_meters)
            .map(|(number, meter)| {
                let summary = meter.summary(now, &self.world, number, span);
                (meter.name.clone(), summary)
            })
            .collect();
        let all: u64 = groups
            .iter()
            .map(|(_, group)| group.delivered.bytes())
            .sum();
        for ((_, group), settings) in groups.iter_mut().zip(&self.scenario.groups) {
            group.share = Ratio::of(group.delivered.bytes(), all);
            let (scenario, routes) = (&self.scenario, &self.world.routes);
            let of_link = scenario.link_share(settings, routes, group.delivered, span);
            group.link_share = of_link.map(|(ip, link)| Ratio::of(ip.bytes(), link.bytes()));
        }
        let deadlines = deadlines::summary(&self.world, &self.scenario, now);
        let tcon = (self.world.shard.network).tcon_summaries(&self.scenario.topology);
        let tcon = tcon.into_iter().collect();
        let loads = self.loads();
        let world = &mut self.world;
        let ports = self.ports.iter_mut().filter_map(|meter| {
            let egress_port = world.advance_port(now, meter.port)?;
            Some((meter.name.clone(), meter.summary(now, egress_port)))
        });
        let mut summary = RunSummary {
            seed: self.scenario.seed,
            simulated: now.since(Time::ZERO),
            warm_up,
            changes: change_records(&self.scenario, now),
            interrupted,
            groups: groups.into_iter().collect(),
            ports: ports.collect(),
            loads,
            deadlines,
            tcon,
            ..RunSummary::default()
        };
        summary.reduction = self.scenario.measurements.reduction.and_then(|reduction| {
            let name = |position: usize| self.scenario.groups.get(position);
            summary.saved(&name(reduction.of)?.name, &name(reduction.against)?.name)
        });
        summary
    }

    /// Returns the loads of classes of links so far, if flows arrive at random.
    fn loads(&mut self) -> IndexMap<String, LinkLoad> {
        let (now, world) = (self.now, &mut self.world);
        let mut utilization = HashMap::new();
        for meter in &mut self.load_meters {
            if let Some(egress_port) = world.advance_port(now, meter.port) {
                let summary = meter.summary(now, egress_port);
                utilization.insert(meter.port, summary.utilization);
            }
        }
        let time = MeasuredTime {
            begin: Time::ZERO + self.scenario.warm_up,
            end: now,
        };
        let loads = world.loads.as_ref();
        let summary = loads.map(|loads| loads.summary(&self.scenario, time, &utilization));
        summary.unwrap_or_default()
    }

    fn check_horizon(&self) -> Result<(), BuildError> {
        let Shard { network, hosts } = &self.world.shard;
        let limit = network.horizon().min(hosts.horizon());
        if self.end < limit {
            Ok(())
        } else {
            Err(BuildError::TooLong {
                duration: self.scenario.duration,
                limit,
            })
        }
    }

    fn schedule_sample(&mut self) {
        let interval = self.scenario.measurements.sample_interval;
        self.next_sample += self.sampler.exponential(interval);
    }

    fn schedule_control(&mut self) {
        let groups = self.groups.iter().filter_map(GroupRunner::timeout);
        let fault = self.faults.timeout();
        let change = self.changes.as_ref().and_then(ChangeSchedule::timeout);
        let sed = self.world.sed.as_ref();
        let sed = sed.and_then(|sed| sed.timeout(self.now));
        let known = groups.chain(fault).chain(change).chain(self.warm_up);
        self.control = known.chain(sed).min().unwrap_or(Time::MAX);
        if self.is_sampled {
            self.control = self.control.min(self.next_sample);
        }
        self.collect_reports();
    }

    /// Sets whether samples are wanted from now on. The time of one does not depend on whether those before
    /// it were.
    fn set_sampled(&mut self, is_wanted: bool) {
        let is_sampled = is_wanted || self.needs_samples;
        if is_sampled == self.is_sampled {
            return;
        }
        self.is_sampled = is_sampled;
        while is_sampled && self.next_sample < self.now {
            self.schedule_sample();
        }
        self.schedule_control();
    }

    /// Sends agents' reports to the controller of SED, if there is one.
    #[inline(always)]
    fn collect_reports(&mut self) {
        if self.world.sed.is_some() {
            self.report_to_controller();
        }
    }

    #[cold]
    fn report_to_controller(&mut self) {
        let World { sed, shard, .. } = &mut self.world;
        if let Some(sed) = sed
            && sed.collect(self.now, &mut shard.network)
        {
            let next = sed.timeout(self.now).unwrap_or(Time::MAX);
            self.control = self.control.min(next);
        }
    }

    fn on_control(&mut self, recorder: &mut dyn Recorder) -> Result<(), OutputError> {
        let now = self.now;
        if self.warm_up.is_some_and(|end| end <= now) {
            self.warm_up = None;
            self.end_warm_up();
        }
        let World { sed, shard, .. } = &mut self.world;
        if let Some(sed) = sed {
            sed.handle_timeout(now, &mut shard.network);
        }
        while let Some((port, change)) = self.faults.due_link(now) {
            self.change(port, change);
        }
        while let Some(port) = self.faults.due_address(now) {
            self.world.readdress(now, port);
        }
        self.apply_changes();
        for group in &mut self.groups {
            if group.timeout().is_some_and(|time| time <= now) {
                group.handle_timeout(now, &mut self.world);
            }
        }
        if self.is_sampled && self.next_sample <= now {
            self.sample(recorder)?;
            self.schedule_sample();
        }
        self.advance_network(recorder)
    }

    fn on_notice(
        &mut self,
        flow: FlowId,
        notice: EndpointEvent,
        recorder: &mut dyn Recorder,
    ) -> Result<(), OutputError> {
        self.pass_on(flow, notice);
        self.advance_network(recorder)
    }

    fn pass_on(&mut self, id: FlowId, notice: EndpointEvent) {
        if let Some(flow) = self.world.flows.open.get(id) {
            let group = flow.group as usize;
            self.groups[group].on_notice(self.now, id, notice, &mut self.world);
        }
    }

    /// Applies the change when a fault begins or ends.
    fn change(&mut self, port: PortIndex, change: PortChange) {
        self.world.shard.network.apply(self.now, port, change);
        if let PortChange::Rate(rate) = change {
            let meters = self.ports.iter_mut().chain(&mut self.load_meters);
            for meter in meters.filter(|meter| meter.port == port) {
                meter.set_rate(self.now, rate);
            }
        }
    }

    /// Begins the next epoch, with its faults, if it is time.
    fn begin_epoch(&mut self) -> bool {
        let now = self.now;
        let Some(number) = self.world.epochs.begin(now) else {
            return false;
        };
        while let Some((port, change)) = self.epoch_faults.due_link(number) {
            self.change(port, change);
        }
        while let Some(port) = self.epoch_faults.due_address(number) {
            self.world.readdress(now, port);
        }
        for group in &mut self.groups {
            group.on_epoch(now, &mut self.world);
        }
        true
    }

    /// Handles the events that follow from applications' actions.
    fn advance_network(&mut self, recorder: &mut dyn Recorder) -> Result<(), OutputError> {
        loop {
            while let Some((flow, notice)) = self.world.next_notice() {
                self.pass_on(flow, notice);
            }
            if !self.begin_epoch() {
                break;
            }
        }
        for report in self.world.epochs.take_reports() {
            recorder.record(Observation::Epoch(EpochRecord {
                group: &self.scenario.groups[report.group as usize].name,
                index: report.index,
                epoch: report.epoch.into(),
                start: report.start,
                completion: report.took,
                attempts: report.attempts,
            }))?;
        }
        if self.world.epochs.are_over() {
            self.end = self.end.min(self.now);
        }
        while let Some(report) = self.world.next_over() {
            self.record_flow(&report, recorder)?;
        }
        self.record_packets(recorder)?;
        self.schedule_control();
        Ok(())
    }

    fn end_warm_up(&mut self) {
        let now = self.now;
        for meter in &mut self.ports {
            if let Some(egress_port) = self.world.advance_port(now, meter.port) {
                meter.begin(now, egress_port);
            }
            self.world.reset_occupancy(now, meter.port);
        }
        for (number, meter) in (0..).zip(&mut self.group_meters) {
            meter.begin(&self.world, number);
        }
        for meter in &mut self.load_meters {
            if let Some(egress_port) = self.world.advance_port(now, meter.port) {
                meter.begin(now, egress_port);
            }
        }
        self.world.mark_flows(now);
    }

    fn sample(&mut self, recorder: &mut dyn Recorder) -> Result<(), OutputError> {
        let now = self.now;
        for meter in &self.ports {
            if let Some(egress_port) = self.world.advance_port(now, meter.port) {
                recorder.record(Observation::Port(meter.sample(now, egress_port)))?;
            }
        }
        for (number, meter) in (0..).zip(&mut self.group_meters) {
            recorder.record(Observation::Group(meter.sample(now, &self.world, number)))?;
        }
        let open = self.world.flows.open.iter().map(|(_, flow)| flow);
        let endless = open.filter(|flow| flow.size.is_none());
        let topology = &self.scenario.topology;
        for flow in endless.take(recorder.sampled_flows()) {
            recorder.record(Observation::FlowSample(FlowSample {
                time: now,
                group: &self.scenario.groups[flow.group as usize].name,
                index: flow.index,
                source: &topology.host(flow.pair.from).name,
                destination: &topology.host(flow.pair.to).name,
                counters: self.world.achieved(flow),
                window: self.world.window(flow),
                smoothed_rtt: self.world.path(flow).smoothed_rtt,
            }))?;
        }
        Ok(())
    }

    fn record_packets(&mut self, recorder: &mut dyn Recorder) -> Result<(), OutputError> {
        for (time, port, packet) in self.world.take_tapped() {
            recorder.record(Observation::Packet(port, &packet.captured(time)))?;
        }
        Ok(())
    }

    fn record_flow(
        &self,
        report: &FlowReport,
        recorder: &mut dyn Recorder,
    ) -> Result<(), OutputError> {
        recorder.record(Observation::Flow(self.flow_record(report)))
    }

    fn flow_record(&self, report: &FlowReport) -> FlowRecord<'_> {
        let FlowReport {
            flow,
            achieved,
            path,
        } = report;
        let topology = &self.scenario.topology;
        let (from, measured) = match flow.end {
            // A flow with an end is measured as a whole.
            Some(_) => (flow.start, *achieved),
            None => {
                let begin = flow.start.max(Time::ZERO + self.scenario.warm_up);
                (begin, achieved.since(flow.before()))
            }
        };
        let span = flow.end.unwrap_or(self.now).since(from);
        FlowRecord {
            group: &self.scenario.groups[flow.group as usize].name,
            index: flow.index,
            source: &topology.host(flow.pair.from).name,
            destination: &topology.host(flow.pair.to).name,
            start: flow.start,
            end: flow.end,
            size: flow.size,
            ideal: flow.ideal,
            counters: *achieved,
            goodput: measured.goodput(span),
            smoothed_rtt: path.smoothed_rtt,
            min_rtt: path.min_rtt,
        }
    }
}

/// Returns meters of the ports of links whose load is reported.
fn load_meters(world: &World, scenario: &Scenario) -> Vec<PortMeter> {
    let ports = world.loads.as_ref().map(LinkLoads::ports);
    let ports = ports.unwrap_or_default().into_iter();
    ports
        .map(|port| PortMeter::new(port, scenario.topology.port(port)))
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_scenario::Scenario;

    use super::*;

    #[test]
    fn no_timer_exceeds_the_horizon_of_the_event_queue() {
        let text = |hosts: u32, duration: &str| {
            format!(
                r#"
                title = "How long a run may be"
                source = "2^64 ns divided by the number of hosts"
                duration = "{duration}"
                [star]
                rate = "1Gbps"
                delay = "1us"
                queue = {{ kind = "drop-tail", buffer = "unlimited" }}
                [star.hosts.a]
                count = {hosts}
                [star.hosts.b]
                [groups.flows]
                from = "a"
                to = "b"
                workload = "bulk"
                "#
            )
        };
        let new = |hosts, duration| {
            let loaded = Scenario::parse("test", &text(hosts, duration), &[]).unwrap();
            Simulation::new(loaded.scenario)
        };
        assert!(new(1, "3600000s").is_ok());
        // 5,001 hosts take 14 bits, which leaves 2^50 ns or 312 h.
        assert!(new(5_000, "1100000s").is_ok());
        let error = new(5_000, "1200000s").unwrap_err();
        assert!(matches!(error, BuildError::TooLong { .. }), "{error}");
    }
}
