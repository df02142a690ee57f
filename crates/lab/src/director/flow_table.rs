//! The books on flows: what each has achieved, from what the hosts at its ends say.

use std::collections::BTreeMap;

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Time};

use super::flows::LiveFlow;
use crate::control::{Completion, FlowOutcome, HostSample, Role};

/// All flows, in the order of their numbers.
#[derive(Debug)]
pub(super) struct FlowTable {
    /// All flows.
    pub(super) accounts: Vec<FlowStats>,
    /// From when on what ends say of themselves comes after the run's end.
    closed: bool,
}

/// What is known of a flow.
#[derive(Debug)]
pub(super) struct FlowStats {
    pub(super) flow: LiveFlow,
    ends: [FlowEnd; 2],
    /// What the flow had achieved at the end of the warm-up.
    pub(super) before: FlowCounters,
    /// Of flows that arrive at random: those that are over.
    arrivals: BTreeMap<u64, Vec<FlowOutcome>>,
}

#[derive(Debug, Default)]
struct FlowEnd {
    achieved: FlowCounters,
    window: Option<ByteSize>,
    outcome: Option<FlowOutcome>,
}

impl FlowTable {
    /// Nothing has happened to these.
    pub(super) fn new(flows: Vec<LiveFlow>) -> Self {
        let account = |flow| FlowStats {
            flow,
            ends: Default::default(),
            before: FlowCounters::ZERO,
            arrivals: BTreeMap::new(),
        };
        Self {
            accounts: flows.into_iter().map(account).collect(),
            closed: false,
        }
    }

    /// Those of the group at this position.
    pub(super) fn of_group(&self, group: usize) -> impl Iterator<Item = &FlowStats> {
        let accounts = self.accounts.iter();
        accounts.filter(move |account| account.flow.group == group)
    }

    /// A host says how its flows stand.
    pub(super) fn take_sample(&mut self, host: usize, sample: &HostSample) {
        for of in &sample.flows {
            if let Some(account) = account(&mut self.accounts, of.flow) {
                let end = account.end(account.role_of(host));
                end.achieved = of.counters;
                end.window = of.window;
            }
        }
    }

    /// A host says what became of a flow.
    pub(super) fn take_outcome(&mut self, host: usize, outcome: FlowOutcome) {
        let closed = self.closed;
        let Some(account) = account(&mut self.accounts, outcome.flow) else {
            return;
        };
        let role = outcome.role.unwrap_or_else(|| account.role_of(host));
        if let Some(arrival) = outcome.arrival {
            // Its counters are among the flow's.
            account.arrivals.entry(arrival).or_default().push(outcome);
            return;
        }
        let end = account.end(role);
        if !closed {
            end.achieved = outcome.counters;
            end.window = None;
        }
        end.outcome = Some(outcome);
    }

    /// The warm-up is over.
    pub(super) fn mark(&mut self) {
        for account in &mut self.accounts {
            account.before = account.achieved();
        }
    }

    /// The run is over: what ends say from now on changes no counter.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }
}

fn account(accounts: &mut [FlowStats], flow: u64) -> Option<&mut FlowStats> {
    accounts.get_mut(usize::try_from(flow).ok()?)
}

impl FlowStats {
    fn end(&mut self, role: Role) -> &mut FlowEnd {
        &mut self.ends[side(role)]
    }

    /// Which end a host is.
    fn role_of(&self, host: usize) -> Role {
        if self.flow.from.index() == host {
            Role::Client
        } else {
            Role::Server
        }
    }

    /// What the flow has achieved so far.
    pub(super) fn achieved(&self) -> FlowCounters {
        self.ends[0].achieved + self.ends[1].achieved
    }

    /// The congestion window of the end that opened it.
    pub(super) fn window(&self) -> Option<ByteSize> {
        self.ends[side(Role::Client)].window
    }

    /// What both ends said last.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &FlowOutcome> {
        self.ends.iter().filter_map(|end| end.outcome.as_ref())
    }

    /// The flows that arrived at random and are over, each with what its ends said.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = &[FlowOutcome]> {
        self.arrivals.values().map(Vec::as_slice)
    }

    /// How long what was completed from `begin` on took.
    pub(super) fn completions(&self, begin: Time) -> impl Iterator<Item = Duration> {
        let arrivals = self.arrivals.values().flatten();
        let all = self.outcomes().chain(arrivals);
        let all = all.flat_map(|outcome| &outcome.completions);
        all.filter(move |Completion { at, .. }| *at >= begin)
            .map(|completion| completion.took)
    }
}

fn side(role: Role) -> usize {
    match role {
        Role::Client => 0,
        Role::Server => 1,
    }
}
