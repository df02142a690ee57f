//! The end of a run: the last samples of hosts and switch, and the results.

use std::time::Duration as StdDuration;

use indexmap::IndexMap;
use tokio::time::timeout;
use weir_results::{EpochRecord, HostSummary, Observation, Recorder, RunKind, RunSummary};
use weir_traffic::processor::processor_time;
use weir_units::{Duration, Time};

use super::hosts::HostMessage;
use super::sample_rounds::SamplePurpose;
use super::session::Session;
use super::summary::{self, LiveIdealTimes, MeasuredSpan};
use crate::LabError;
use crate::control::{AgentEvent, HostCommand};
use crate::switch::SwitchReport;

/// The time limit for the hosts' answers.
const PATIENCE: StdDuration = StdDuration::from_secs(20);

impl Session<'_> {
    /// Ends the run: takes the last samples, stops switch and hosts, and records the results.
    pub(super) async fn end(
        mut self,
        interrupted: bool,
        recorder: &mut dyn Recorder,
    ) -> Result<RunSummary, LabError> {
        let end = self.last_answers(recorder).await?;
        self.flow_table.close();
        // The switch stops first, so that measurement ends here; hosts then close connections unobserved.
        let report = self.stop_switch()?;
        self.record_packets(recorder)?;
        let cpu = self.stop_hosts().await?;
        let begin = match self.warm_up {
            // Interrupted during the warm-up: the whole run counts.
            Some(_) => Time::ZERO,
            None => self.begin,
        };
        let span = MeasuredSpan { begin, end };
        self.record(span, recorder)?;
        Ok(self.summary(span, interrupted, report, cpu))
    }

    /// Takes a last sample of all hosts; returns its time.
    async fn last_answers(&mut self, recorder: &mut dyn Recorder) -> Result<Time, LabError> {
        self.request_samples(SamplePurpose::End).await?;
        loop {
            let message = timeout(PATIENCE, self.hosts.next()).await;
            let message = message.map_err(|_| LabError::Unresponsive)?;
            if let Some(end) = self.on_message(message, recorder).await? {
                return Ok(end);
            }
        }
    }

    /// Stops all flows; returns the hosts' CPU times.
    async fn stop_hosts(&mut self) -> Result<Vec<Duration>, LabError> {
        self.hosts.send_all(&HostCommand::Stop).await?;
        let mut cpu: Vec<Option<Duration>> = vec![None; self.hosts.count()];
        while cpu.iter().any(Option::is_none) {
            match timeout(PATIENCE, self.hosts.next()).await {
                Ok(Some((host, HostMessage::Event(AgentEvent::Finished(outcome))))) => {
                    self.flow_table.take_outcome(host, *outcome);
                }
                Ok(Some((host, HostMessage::Event(AgentEvent::Stopped { cpu: used })))) => {
                    cpu[host] = Some(used);
                }
                // A host may exit once it has sent `Stopped`.
                Ok(Some((host, HostMessage::Closed))) if cpu[host].is_none() => {
                    return Err(self.resources.processes.gone(host));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Err(LabError::Unresponsive),
            }
        }
        Ok(cpu.into_iter().flatten().collect())
    }

    fn record(&self, span: MeasuredSpan, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        let mut ideal_times = LiveIdealTimes::new(self.scenario);
        for account in &self.flow_table.flows {
            for record in summary::flow_records(self.scenario, account, span, &mut ideal_times) {
                recorder.record(Observation::Flow(record))?;
            }
        }
        let requests = self.epochs.iter().flat_map(|epochs| &epochs.requests);
        for request in requests {
            let Some(account) = self.flow_table.flows.get(request.flow as usize) else {
                continue;
            };
            recorder.record(Observation::Epoch(EpochRecord {
                group: &self.scenario.groups[account.flow.group].name,
                index: account.flow.index,
                epoch: request.epoch,
                start: request.start,
                completion: request.took,
                attempts: request.attempts,
            }))?;
        }
        Ok(())
    }

    fn summary(
        self,
        span: MeasuredSpan,
        interrupted: bool,
        report: SwitchReport,
        cpu: Vec<Duration>,
    ) -> RunSummary {
        let Self {
            scenario,
            flow_table,
            epochs,
            mut notes,
            ..
        } = self;
        notes.extend(summary::failures(scenario, &flow_table));
        if report.uncopied > 0 {
            notes.push(format!(
                "{} packets are not in the capture: they came faster than they could be written",
                report.uncopied
            ));
        }
        let mut emulation = report.emulation;
        emulation.reasons.extend(notes);
        let hosts: IndexMap<String, HostSummary> = (scenario.topology.hosts.iter())
            .zip(&cpu)
            .map(|(host, cpu)| (host.name.clone(), HostSummary { cpu: *cpu }))
            .collect();
        let deadlines = summary::deadlines(scenario, &flow_table, span);
        let groups = summary::groups(scenario, &flow_table, epochs.as_ref(), span);
        let mut summary = RunSummary {
            seed: scenario.seed,
            world: RunKind::Live,
            simulated: span.end.since(Time::ZERO),
            warm_up: span.begin.since(Time::ZERO),
            cpu: cpu.into_iter().fold(processor_time(), |sum, cpu| sum + cpu),
            changes: weir_network::change_records(scenario, span.end),
            interrupted,
            groups: groups.into_iter().collect(),
            ports: report.ports.into_iter().collect(),
            deadlines,
            tcon: report.tcon.into_iter().collect(),
            hosts,
            emulation: Some(emulation),
            ..RunSummary::default()
        };
        let reduction = scenario.measurements.reduction;
        summary.reduction = reduction.and_then(|reduction| {
            let name = |position: usize| scenario.groups[position].name.as_str();
            summary.saved(name(reduction.of), name(reduction.against))
        });
        summary
    }
}
