//! The summary of the flow table for the results, in the simulator's terms.

use std::collections::BTreeMap;

use weir_counters::FlowCounters;
use weir_network::{DueTransfer, IdealTimes, deadline_summary};
use weir_results::{
    CompletionTimes, DeadlineSummary, EpochSummary, FlowRecord, GroupSummary, Ratio, Slowdowns,
    TransferTime,
};
use weir_scenario::{Routes, Scenario, Workload};
use weir_units::{ByteSize, Duration, Time};

use super::epochs::{Epochs, Request};
use super::flow_table::{FlowStats, FlowTable};
use crate::control::{FlowOutcome, Role};

/// The measured part of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredSpan {
    /// The end of the warm-up.
    pub(super) begin: Time,
    /// The end of the run.
    pub(super) end: Time,
}

impl MeasuredSpan {
    fn length(self) -> Duration {
        self.end.since(self.begin)
    }
}

/// Summarizes all groups.
pub(super) fn groups(
    scenario: &Scenario,
    flow_table: &FlowTable,
    epochs: Option<&Epochs>,
    span: MeasuredSpan,
) -> Vec<(String, GroupSummary)> {
    let groups = scenario.groups.iter().enumerate();
    let mut groups: Vec<_> = groups
        .map(|(position, group)| {
            let mut summary = summary(scenario, flow_table, position, span);
            if let Some(within) = group.deadline {
                let due = due_transfers(flow_table, position, within, span.end);
                let missed = due.iter().filter(|transfer| transfer.is_missed());
                summary.deadlines_missed = Some(missed.count() as u64);
            }
            if group.transport.has_known_peers() {
                let count = without_handshake(flow_table, position);
                summary.connections_without_handshake = Some(count);
            }
            if let (Some(epochs), Workload::Epochs { .. }) = (epochs, &group.workload) {
                summary.epochs = Some(in_step(flow_table, position, epochs, span));
            }
            (group.name.clone(), summary)
        })
        .collect();
    let all: u64 = groups
        .iter()
        .map(|(_, group)| group.delivered.bytes())
        .sum();
    let routes = scenario.topology.routes();
    for ((_, group), settings) in groups.iter_mut().zip(&scenario.groups) {
        group.share = Ratio::of(group.delivered.bytes(), all);
        let of_link = scenario.link_share(settings, &routes, group.delivered, span.length());
        group.link_share = of_link.map(|(ip, link)| Ratio::of(ip.bytes(), link.bytes()));
    }
    groups
}

fn summary(
    scenario: &Scenario,
    flow_table: &FlowTable,
    group: usize,
    span: MeasuredSpan,
) -> GroupSummary {
    let since = |account: &FlowStats| account.counters().since(account.before);
    let achieved: FlowCounters = flow_table.of_group(group).map(since).sum();
    let completions = |account: &'_ FlowStats| account.completions(span.begin).collect::<Vec<_>>();
    let mut completions: Vec<Duration> = flow_table.of_group(group).flat_map(completions).collect();
    let count = |account: &FlowStats| match account.arrivals().count() {
        0 => 1,
        arrivals => arrivals as u64,
    };
    let endless = flow_table
        .of_group(group)
        .filter(|account| is_endless(account));
    let transfers = transfer_times(scenario, flow_table, group, span);
    let unfinished = transfers.iter().filter(|transfer| transfer.took.is_none());
    GroupSummary {
        flows: flow_table.of_group(group).map(count).sum(),
        flows_with_timeout: (flow_table.of_group(group))
            .filter(|account| since(account).timeouts > 0)
            .count() as u64,
        completed: completions.len() as u64,
        unfinished: unfinished.count() as u64,
        completion: CompletionTimes::of(&mut completions),
        slowdown: Slowdowns::of(&transfers),
        fairness: Ratio::fairness(endless.filter_map(|account| {
            let active = active_time(scenario, account, span);
            (!active.is_zero()).then(|| since(account).goodput(active))
        })),
        ..GroupSummary::of(&achieved, span.length())
    }
}

/// Returns the part of the measured time from a flow's start until it ended or its group stopped.
fn active_time(scenario: &Scenario, account: &FlowStats, span: MeasuredSpan) -> Duration {
    let stop = scenario.groups[account.flow.group].stop;
    let end = last_delivery(account.outcomes()).or(stop);
    let until = end.unwrap_or(span.end).min(span.end);
    until.since(account.flow.start.max(span.begin))
}

/// Returns the transfers of a group that had not ended before the measured time.
fn transfer_times(
    scenario: &Scenario,
    flow_table: &FlowTable,
    group: usize,
    span: MeasuredSpan,
) -> Vec<TransferTime> {
    let mut ideal_times = LiveIdealTimes::new(scenario);
    let mut found = Vec::new();
    for account in flow_table.of_group(group) {
        for record in flow_records(scenario, account, span, &mut ideal_times) {
            let is_measured = record.end.is_none_or(|end| end >= span.begin);
            let transfer = record.size.zip(record.ideal).filter(|_| is_measured);
            found.extend(transfer.map(|(size, ideal)| TransferTime {
                size,
                ideal,
                took: record.end.map(|end| end.since(record.start)),
            }));
        }
    }
    found
}

/// The times of transfers on the empty network.
pub(super) struct LiveIdealTimes<'r> {
    scenario: &'r Scenario,
    routes: Routes,
    times: IdealTimes,
}

impl<'r> LiveIdealTimes<'r> {
    pub(super) fn new(scenario: &'r Scenario) -> Self {
        Self {
            scenario,
            routes: scenario.topology.routes(),
            times: IdealTimes::new(scenario),
        }
    }

    /// Returns the time of a flow with this size.
    fn of(&mut self, account: &FlowStats, size: ByteSize) -> Option<Duration> {
        let flow = &account.flow;
        let hosts = (flow.from, flow.to);
        (self.times).of(self.scenario, &self.routes, flow.group, hosts, size)
    }
}

/// Returns the number of a group's connections that its clients began without a handshake.
fn without_handshake(flow_table: &FlowTable, group: usize) -> u64 {
    let outcomes = flow_table.of_group(group).flat_map(FlowStats::outcomes);
    let clients = outcomes.filter(|outcome| outcome.role == Some(Role::Client));
    clients
        .map(|client| client.connections_without_handshake)
        .sum()
}

/// Summarizes all transfers with deadlines, if there are any.
pub(super) fn deadlines(
    scenario: &Scenario,
    flow_table: &FlowTable,
    span: MeasuredSpan,
) -> Option<DeadlineSummary> {
    let groups = scenario.groups.iter().enumerate();
    let due = groups.filter_map(|(position, group)| {
        Some(due_transfers(
            flow_table,
            position,
            group.deadline?,
            span.end,
        ))
    });
    deadline_summary(scenario, span.begin, due.flatten().collect(), span.end)
}

/// Returns a group's transfers that are finished or were due by `now`.
fn due_transfers(
    flow_table: &FlowTable,
    group: usize,
    within: Duration,
    now: Time,
) -> Vec<DueTransfer> {
    let transfer = |account: &FlowStats, outcomes: Vec<&FlowOutcome>| {
        // The client knows the start of a transfer, and the server its end.
        let of = |role| outcomes.iter().find(|outcome| outcome.role == Some(role));
        let (client, server) = (of(Role::Client), of(Role::Server));
        let known = client.into_iter().chain(server);
        let start = known.clone().find_map(|outcome| outcome.started)?;
        Some(DueTransfer {
            start,
            deadline: start + within,
            end: server.and_then(|server| server.ended),
            size: known.clone().find_map(|outcome| outcome.size)?,
            from: account.flow.from,
            to: account.flow.to,
        })
    };
    let accounts = flow_table.of_group(group);
    let transfers = accounts.flat_map(|account| {
        let arrivals = account.arrivals().map(|outcomes| outcomes.iter().collect());
        let whole = std::iter::once(account.outcomes().collect());
        let all = arrivals.chain(whole);
        all.filter_map(|outcomes| transfer(account, outcomes))
            .collect::<Vec<_>>()
    });
    let is_due = |transfer: &DueTransfer| transfer.end.is_some() || transfer.deadline <= now;
    transfers.filter(is_due).collect()
}

/// Returns whether a flow has no end of its own.
fn is_endless(account: &FlowStats) -> bool {
    account.arrivals().next().is_none() && account.outcomes().all(|outcome| outcome.size.is_none())
}

/// Summarizes a group's epochs.
fn in_step(
    flow_table: &FlowTable,
    group: usize,
    epochs: &Epochs,
    span: MeasuredSpan,
) -> EpochSummary {
    let is_own = |request: &&Request| {
        let account = flow_table.flows.get(request.flow as usize);
        account.is_some_and(|account| account.flow.group == group)
    };
    let mut slowest: BTreeMap<u64, Option<Duration>> = BTreeMap::new();
    let mut lost = 0;
    let requests = epochs.requests.iter().filter(is_own);
    for request in requests.filter(|request| request.start >= span.begin) {
        lost += u64::from(request.took.is_none());
        let epoch = slowest.entry(request.epoch).or_insert(Some(Duration::ZERO));
        *epoch = epoch.zip(request.took).map(|(one, other)| one.max(other));
    }
    let complete: Vec<Duration> = slowest.into_values().flatten().collect();
    EpochSummary {
        count: complete.len() as u64,
        total: complete
            .into_iter()
            .fold(Duration::ZERO, |sum, took| sum + took),
        lost,
    }
}

/// Returns a record for each flow, random arrivals included.
pub(super) fn flow_records<'r>(
    scenario: &'r Scenario,
    account: &'r FlowStats,
    span: MeasuredSpan,
    ideal_times: &mut LiveIdealTimes<'_>,
) -> Vec<FlowRecord<'r>> {
    let arrivals: Vec<_> = account.arrivals().collect();
    let mut records = if arrivals.is_empty() {
        vec![record(scenario, account, account.outcomes(), span)]
    } else {
        let arrivals = arrivals.into_iter();
        arrivals
            .map(|outcomes| record(scenario, account, outcomes.iter(), span))
            .collect()
    };
    for record in &mut records {
        record.ideal = record.size.and_then(|size| ideal_times.of(account, size));
    }
    records
}

fn record<'r>(
    scenario: &'r Scenario,
    account: &FlowStats,
    outcomes: impl Iterator<Item = &'r FlowOutcome>,
    span: MeasuredSpan,
) -> FlowRecord<'r> {
    let outcomes: Vec<&FlowOutcome> = outcomes.collect();
    let of = |role| outcomes.iter().find(|outcome| outcome.role == Some(role));
    let client = of(Role::Client);
    let start = client.and_then(|client| client.started);
    let start = start.unwrap_or(account.flow.start);
    let end = last_delivery(outcomes.iter().copied());
    let is_arrival = outcomes.iter().any(|outcome| outcome.arrival.is_some());
    let achieved = if is_arrival {
        outcomes.iter().map(|outcome| outcome.counters).sum()
    } else {
        account.counters()
    };
    let (from, measured) = match end {
        Some(_) => (start, achieved),
        None => (start.max(span.begin), achieved.since(account.before)),
    };
    let topology = &scenario.topology;
    FlowRecord {
        group: &scenario.groups[account.flow.group].name,
        index: client
            .and_then(|client| client.arrival)
            .unwrap_or(account.flow.index),
        source: &topology.host(account.flow.from).name,
        destination: &topology.host(account.flow.to).name,
        start,
        end,
        size: outcomes.iter().find_map(|outcome| outcome.size),
        ideal: None,
        counters: achieved,
        goodput: measured.goodput(end.unwrap_or(span.end).since(from)),
        smoothed_rtt: client.and_then(|client| client.smoothed_rtt),
        min_rtt: client.and_then(|client| client.min_rtt),
    }
}

/// Returns when all data of a flow had arrived, if they have.
fn last_delivery<'o>(mut outcomes: impl Iterator<Item = &'o FlowOutcome>) -> Option<Time> {
    // The end with completions waits for data: it knows when all had arrived.
    let waiting = outcomes.find(|outcome| !outcome.completions.is_empty());
    waiting.and_then(|outcome| outcome.ended)
}

/// Returns notes about flows that ended early.
pub(super) fn failures(scenario: &Scenario, flow_table: &FlowTable) -> Vec<String> {
    let mut notes = Vec::new();
    for (position, group) in scenario.groups.iter().enumerate() {
        let outcomes = || {
            let accounts = flow_table.of_group(position);
            accounts.flat_map(|account| account.outcomes().chain(account.arrivals().flatten()))
        };
        let failures: Vec<_> = outcomes()
            .filter_map(|outcome| outcome.failure.as_ref())
            .collect();
        if let Some(first) = failures.first() {
            notes.push(format!(
                "group `{}`: {} ends of flows failed, the first because {first}",
                group.name,
                failures.len()
            ));
        }
        let given_up: u64 = outcomes().map(|outcome| outcome.requests_failed).sum();
        if given_up > 0 {
            notes.push(format!(
                "group `{}`: {given_up} requests were given up",
                group.name
            ));
        }
    }
    notes
}
