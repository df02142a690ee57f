//! A run, from start to end.

use weir_counters::FlowCounters;
use weir_fabric::PortChange;
use weir_network::{Random, RngStream, Seeds};
use weir_results::{FlowSample, GroupSample, Observation, PortSample, Recorder, RunSummary};
use weir_scenario::{ChangeSchedule, ChangedSettings, PortIndex, Scenario, Workload};
use weir_units::{ByteSize, Duration, Time};

use super::epochs::{Epochs, Request};
use super::event_schedule::{EventSchedule, PortEvent};
use super::flow_table::{FlowStats, FlowTable};
use super::flows::LiveFlow;
use super::hosts::{HostMessage, Hosts};
use super::resources::Resources;
use super::sample_rounds::{SamplePurpose, SampleRounds};
use crate::LabError;
use crate::clock::{Clock, RunTimer};
use crate::control::{AgentEvent, HostChange, HostCommand};
use crate::plan::Plan;
use crate::switch::{CaptureReceiver, SwitchError, SwitchHandle, SwitchReport};

/// The longest interval between calls of `watch`.
const GLANCE: Duration = Duration::from_millis(100);
/// The shortest sample interval: more frequent samples would be a noticeable load.
const LEAST_INTERVAL: Duration = Duration::from_millis(5);

/// A running run. Dropping it stops the switch and kills the hosts.
pub(super) struct Session<'s> {
    pub(super) scenario: &'s Scenario,
    plan: &'s Plan,
    clock: Clock,
    pub(super) hosts: Hosts,
    /// `None` once stopped.
    switch: Option<SwitchHandle>,
    /// The packets captured at measured ports, if wanted.
    copies: Option<CaptureReceiver>,
    pub(super) resources: Resources,
    pub(super) flow_table: FlowTable,
    event_schedule: EventSchedule,
    /// The changes of the switch's settings that are to come.
    changes: Option<ChangeSchedule>,
    pub(super) epochs: Option<Epochs>,
    sample_rounds: SampleRounds,
    sampling: Sampling,
    /// When the warm-up ends; `None` once it has.
    pub(super) warm_up: Option<Time>,
    /// When the measurement begins: the time of the samples at the end of the warm-up.
    pub(super) begin: Time,
    /// The index of each port's current address, by port.
    addresses: Vec<usize>,
    pub(super) notes: Vec<String>,
}

/// The sample times and the last samples.
struct Sampling {
    random: Random,
    interval: Duration,
    next: Time,
    /// The last sample of each group: its time and counters.
    groups: Vec<(Time, FlowCounters)>,
}

impl Sampling {
    fn new(scenario: &Scenario) -> Self {
        let seed = Seeds::new(scenario.seed).of(RngStream::Samples, 0);
        let mut sampling = Self {
            random: Random::new(seed),
            interval: scenario.measurements.sample_interval.max(LEAST_INTERVAL),
            next: Time::ZERO,
            groups: vec![(Time::ZERO, FlowCounters::ZERO); scenario.groups.len()],
        };
        sampling.schedule(Time::ZERO);
        sampling
    }

    /// Draws the next sample time after `now`.
    fn schedule(&mut self, now: Time) {
        while self.next <= now {
            self.next += self.random.exponential(self.interval);
        }
    }
}

impl<'s> Session<'s> {
    /// Creates a run of these flows on these hosts. It begins at the clock's epoch.
    pub(super) fn new(
        (scenario, plan, flows): (&'s Scenario, &'s Plan, Vec<LiveFlow>),
        (hosts, (switch, copies), resources): (
            Hosts,
            (SwitchHandle, Option<CaptureReceiver>),
            Resources,
        ),
        clock: Clock,
        mut notes: Vec<String>,
    ) -> Self {
        let interval = scenario.measurements.sample_interval;
        if interval < LEAST_INTERVAL {
            notes.push(format!(
                "samples are taken every {LEAST_INTERVAL} on average, not every {interval}"
            ));
        }
        Self {
            scenario,
            plan,
            clock,
            sample_rounds: SampleRounds::new(hosts.count()),
            hosts,
            switch: Some(switch),
            copies,
            resources,
            epochs: epochs(scenario, &flows),
            flow_table: FlowTable::new(flows),
            event_schedule: EventSchedule::new(scenario),
            changes: ChangeSchedule::new(scenario),
            sampling: Sampling::new(scenario),
            warm_up: Some(Time::ZERO + scenario.warm_up),
            begin: Time::ZERO,
            addresses: vec![0; scenario.topology.ports.len()],
            notes,
        }
    }

    /// Runs until the end, or until `watch` returns `false`.
    pub(super) async fn carry_out(
        mut self,
        recorder: &mut dyn Recorder,
        watch: &mut dyn FnMut(Time) -> bool,
    ) -> Result<RunSummary, LabError> {
        let end = Time::ZERO + self.scenario.duration;
        let mut alarm = RunTimer::new(self.clock).map_err(LabError::system("waiting"))?;
        self.begin_epoch().await?;
        let mut goes_on = true;
        while goes_on && self.clock.now() < end && !self.is_complete() {
            let next = self.timeout(end);
            tokio::select! {
                message = self.hosts.next() => {
                    self.on_message(message, recorder).await?;
                }
                rung = alarm.until(next) => rung.map_err(LabError::system("waiting"))?,
            }
            self.handle_timeout(recorder).await?;
            goes_on = watch(self.clock.now());
        }
        self.end(!goes_on, recorder).await
    }

    /// Returns whether the run is complete before its time is over.
    fn is_complete(&self) -> bool {
        self.epochs.as_ref().is_some_and(Epochs::are_over)
    }

    /// Returns the time of the next action.
    fn timeout(&self, end: Time) -> Time {
        let change = self.changes.as_ref().and_then(ChangeSchedule::timeout);
        let times = [self.event_schedule.timeout(), change, self.warm_up];
        let known = times.into_iter().flatten();
        let glance = self.clock.now() + GLANCE;
        known
            .chain([self.sampling.next, glance])
            .fold(end, Time::min)
    }

    async fn handle_timeout(&mut self, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        let now = self.clock.now();
        self.record_packets(recorder)?;
        while let Some((port, happening)) = self.event_schedule.due(now) {
            self.apply_event(port, happening).await?;
        }
        self.apply_changes(now)?;
        if self.warm_up.is_some_and(|end| end <= now) {
            self.warm_up = None;
            self.switch()?.begin()?;
            // Without a warm-up all that flows deliver counts: a busy host's sample would come late.
            if !self.scenario.warm_up.is_zero() {
                self.request_samples(SamplePurpose::EndOfWarmUp).await?;
            }
        }
        if self.sampling.next <= now {
            self.sampling.schedule(now);
            self.sample_ports(recorder)?;
            if !self.sample_rounds.is_sampling() {
                self.request_samples(SamplePurpose::Sample).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn request_samples(&mut self, purpose: SamplePurpose) -> Result<(), LabError> {
        self.sample_rounds.begin_round(purpose);
        self.hosts.send_all(&HostCommand::Sample).await
    }

    async fn apply_event(&mut self, port: PortIndex, happening: PortEvent) -> Result<(), LabError> {
        match happening {
            PortEvent::Change(change) => {
                self.switch()?.apply(port, change)?;
                match change {
                    PortChange::Down(true) => self.set_carrier(port, false).await,
                    PortChange::Down(false) => self.set_carrier(port, true).await,
                    _ => Ok(()),
                }
            }
            PortEvent::Address => self.change_address(port).await,
        }
    }

    /// Applies the changes of the switch's settings that are due. Hosts know those of loads from the start.
    fn apply_changes(&mut self, now: Time) -> Result<(), LabError> {
        let Some(mut schedule) = self.changes.take() else {
            return Ok(());
        };
        while let Some(change) = schedule.due(now) {
            match change.set {
                ChangedSettings::Queues { ports, .. } => {
                    for port in ports {
                        self.switch()?.change_queue(port, schedule.port(port))?;
                    }
                }
                ChangedSettings::SharedBuffers { switches, .. } => {
                    for switch in switches {
                        if let Some(buffer) = schedule.switch(switch).shared_buffer {
                            self.switch()?.change_shared_buffer(switch, buffer)?;
                        }
                    }
                }
                ChangedSettings::Groups { .. } => {}
            }
        }
        self.changes = Some(schedule);
        Ok(())
    }

    /// Sets the carrier of the host's interface at a port, like pulling or plugging its cable.
    async fn set_carrier(&mut self, port: PortIndex, on: bool) -> Result<(), LabError> {
        let Some((host, nic)) = self.plan.nic(&self.scenario.topology, port) else {
            return Ok(());
        };
        let interface = nic.name.clone();
        let change = if on {
            HostChange::InterfaceUp { interface }
        } else {
            HostChange::InterfaceDown { interface }
        };
        self.hosts
            .send(host.index(), &HostCommand::Host(change))
            .await
    }

    async fn change_address(&mut self, port: PortIndex) -> Result<(), LabError> {
        let Some((host, nic)) = self.plan.nic(&self.scenario.topology, port) else {
            return Ok(());
        };
        let count = &mut self.addresses[port.index()];
        let (Some(was), Some(is)) = (nic.addresses.get(*count), nic.addresses.get(*count + 1))
        else {
            return Ok(());
        };
        *count += 1;
        self.switch()?.assign(*is, port)?;
        self.switch()?.withdraw(*was)?;
        let change = HostChange::Address {
            interface: nic.name.clone(),
            was: *was,
            is: *is,
        };
        self.hosts
            .send(host.index(), &HostCommand::Host(change))
            .await
    }

    /// Begins the next epoch, if there is one, with the events due in it.
    async fn begin_epoch(&mut self) -> Result<(), LabError> {
        let Some(epochs) = &mut self.epochs else {
            return Ok(());
        };
        if epochs.are_over() {
            return Ok(());
        }
        let number = epochs.begin();
        while let Some((port, happening)) = self.event_schedule.due_in_epoch(number) {
            self.apply_event(port, happening).await?;
        }
        self.hosts.send_all(&HostCommand::Epoch { number }).await
    }

    /// Handles a host's message. Returns the time of the last samples once all hosts have answered.
    pub(super) async fn on_message(
        &mut self,
        message: Option<(usize, HostMessage)>,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<Time>, LabError> {
        match message {
            Some((host, HostMessage::Event(event))) => self.on_event(host, event, recorder).await,
            Some((host, HostMessage::Invalid(source))) => Err(LabError::Message {
                host: self.hosts.name(host),
                source,
            }),
            Some((host, HostMessage::Closed)) => Err(self.resources.processes.gone(host)),
            None => Err(LabError::Unresponsive),
        }
    }

    async fn on_event(
        &mut self,
        host: usize,
        event: AgentEvent,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<Time>, LabError> {
        match event {
            AgentEvent::Sample(sample) => {
                self.flow_table.take_sample(host, &sample);
                let complete = self.sample_rounds.answered(host, sample.at);
                return self.on_round(complete, recorder);
            }
            AgentEvent::EpochDone {
                flow,
                number,
                asked,
                took,
                attempts,
            } => {
                let request = Request {
                    flow,
                    epoch: number,
                    start: asked,
                    took,
                    attempts,
                };
                let epochs = self.epochs.as_mut();
                if epochs.is_some_and(|epochs| epochs.answered(request)) {
                    self.begin_epoch().await?;
                }
            }
            AgentEvent::Finished(outcome) => self.flow_table.take_outcome(host, *outcome),
            AgentEvent::Changed {
                change,
                error: Some(error),
            } => {
                return Err(LabError::Change {
                    host: self.hosts.name(host),
                    problem: format!("{change:?}: {error}"),
                });
            }
            AgentEvent::Path {
                flow,
                description: news,
                ..
            } => tracing::info!(flow, news, "a path"),
            AgentEvent::Changed { .. }
            | AgentEvent::Ready { .. }
            | AgentEvent::Listening { .. }
            | AgentEvent::Stopped { .. } => {}
        }
        Ok(None)
    }

    /// Handles a complete round.
    fn on_round(
        &mut self,
        complete: Option<(SamplePurpose, Time)>,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<Time>, LabError> {
        match complete {
            Some((SamplePurpose::Sample, at)) => self.sample_groups(at, recorder)?,
            Some((SamplePurpose::EndOfWarmUp, at)) => {
                self.flow_table.end_warm_up();
                self.begin = at;
            }
            Some((SamplePurpose::End, at)) => return Ok(Some(at)),
            None => {}
        }
        Ok(None)
    }

    fn switch(&self) -> Result<&SwitchHandle, LabError> {
        Ok(self.switch.as_ref().ok_or(SwitchError::Gone)?)
    }

    pub(super) fn stop_switch(&mut self) -> Result<SwitchReport, LabError> {
        Ok(self.switch.take().ok_or(SwitchError::Gone)?.stop()?)
    }

    /// Records the packets captured so far.
    pub(super) fn record_packets(&self, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        for batch in self.copies.iter().flat_map(CaptureReceiver::take) {
            for (port, frame) in batch.frames() {
                recorder.record(Observation::Frame(port, &frame))?;
            }
        }
        Ok(())
    }

    fn sample_ports(&self, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        for sample in self.switch()?.sample()? {
            recorder.record(Observation::Port(PortSample {
                time: sample.time,
                port: &self.scenario.topology.port(sample.port).name,
                queue: sample.queue,
                queue_packets: sample.queue_packets,
                sent: sample.sent,
                marks: sample.marks,
                drops: sample.drops,
            }))?;
        }
        Ok(())
    }

    fn sample_groups(&mut self, at: Time, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        for (position, group) in self.scenario.groups.iter().enumerate() {
            let achieved: FlowCounters = self
                .flow_table
                .of_group(position)
                .map(FlowStats::counters)
                .sum();
            let windows = self
                .flow_table
                .of_group(position)
                .filter_map(FlowStats::window);
            let windows: Vec<_> = windows.collect();
            let (last, before) = self.sampling.groups[position];
            self.sampling.groups[position] = (at, achieved);
            recorder.record(Observation::Group(GroupSample {
                time: at,
                group: &group.name,
                counters: achieved,
                goodput: achieved.since(before).goodput(at.since(last.min(at))),
                window: mean(&windows),
            }))?;
        }
        self.sample_flows(at, recorder)
    }

    /// Samples the first flows without a size one by one, if the recorder wants them.
    fn sample_flows(&self, at: Time, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        let (groups, topology) = (&self.scenario.groups, &self.scenario.topology);
        let endless = self.flow_table.flows.iter().filter(|account| {
            let workload = &groups[account.flow.group].workload;
            !matches!(
                workload,
                Workload::Transfer { .. } | Workload::Poisson { .. } | Workload::Trace { .. }
            )
        });
        for account in endless.take(recorder.sampled_flows()) {
            recorder.record(Observation::FlowSample(FlowSample {
                time: at,
                group: &groups[account.flow.group].name,
                index: account.flow.index,
                source: &topology.host(account.flow.from).name,
                destination: &topology.host(account.flow.to).name,
                counters: account.counters(),
                window: account.window(),
                smoothed_rtt: account.smoothed_rtt(),
            }))?;
        }
        Ok(())
    }
}

/// Returns the epochs of the scenario, if it has any.
fn epochs(scenario: &Scenario, flows: &[LiveFlow]) -> Option<Epochs> {
    let workloads = scenario.groups.iter().map(|group| &group.workload);
    let count = workloads.clone().find_map(Workload::epochs)?;
    let in_step: Vec<_> = workloads
        .map(|workload| workload.epochs().is_some())
        .collect();
    let flows = (0_u64..).zip(flows);
    let flows = flows.filter(|(_, flow)| in_step[flow.group]);
    Some(Epochs::new(count.into(), flows.map(|(number, _)| number)))
}

fn mean(sizes: &[ByteSize]) -> Option<ByteSize> {
    let sum = sizes.iter().fold(ByteSize::ZERO, |sum, size| sum + *size);
    (!sizes.is_empty()).then(|| sum / sizes.len() as u64)
}
