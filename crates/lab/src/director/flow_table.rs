//! The flow table: the statistics of each flow, from the reports of the hosts at its ends.

use std::collections::BTreeMap;

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Time};

use super::flows::LiveFlow;
use crate::control::{Completion, FlowOutcome, HostSample, Role};

/// All flows, in the order of their numbers.
#[derive(Debug)]
pub(super) struct FlowTable {
    /// All flows.
    pub(super) flows: Vec<FlowStats>,
    /// Set at the end of the run: later reports change no counter.
    closed: bool,
}

/// The statistics of a flow.
#[derive(Debug)]
pub(super) struct FlowStats {
    pub(super) flow: LiveFlow,
    ends: [FlowEnd; 2],
    /// The counters at the end of the warm-up.
    pub(super) before: FlowCounters,
    /// With random arrivals, the finished ones.
    arrivals: BTreeMap<u64, Vec<FlowOutcome>>,
}

#[derive(Debug, Default)]
struct FlowEnd {
    achieved: FlowCounters,
    window: Option<ByteSize>,
    smoothed_rtt: Option<Duration>,
    outcome: Option<FlowOutcome>,
}

impl FlowTable {
    /// Creates the table of these flows, with zero counters.
    pub(super) fn new(flows: Vec<LiveFlow>) -> Self {
        let account = |flow| FlowStats {
            flow,
            ends: Default::default(),
            before: FlowCounters::ZERO,
            arrivals: BTreeMap::new(),
        };
        Self {
            flows: flows.into_iter().map(account).collect(),
            closed: false,
        }
    }

    /// Returns the flows of the group at this index.
    pub(super) fn of_group(&self, group: usize) -> impl Iterator<Item = &FlowStats> {
        let accounts = self.flows.iter();
        accounts.filter(move |account| account.flow.group == group)
    }

    /// Takes a host's sample of its flows.
    pub(super) fn take_sample(&mut self, host: usize, sample: &HostSample) {
        for of in &sample.flows {
            if let Some(account) = find(&mut self.flows, of.flow) {
                let end = account.end(account.role_of(host));
                end.achieved = of.counters;
                end.window = of.window;
                end.smoothed_rtt = of.smoothed_rtt;
            }
        }
    }

    /// Takes a host's outcome of a flow.
    pub(super) fn take_outcome(&mut self, host: usize, outcome: FlowOutcome) {
        let closed = self.closed;
        let Some(account) = find(&mut self.flows, outcome.flow) else {
            return;
        };
        let role = outcome.role.unwrap_or_else(|| account.role_of(host));
        if let Some(arrival) = outcome.arrival {
            // The flow's counters include those of its arrivals.
            account.arrivals.entry(arrival).or_default().push(outcome);
            return;
        }
        let end = account.end(role);
        if !closed {
            end.achieved = outcome.counters;
            (end.window, end.smoothed_rtt) = (None, None);
        }
        end.outcome = Some(outcome);
    }

    /// Marks the end of the warm-up.
    pub(super) fn end_warm_up(&mut self) {
        for account in &mut self.flows {
            account.before = account.counters();
        }
    }

    /// Marks the end of the run: later reports change no counter.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }
}

fn find(accounts: &mut [FlowStats], flow: u64) -> Option<&mut FlowStats> {
    accounts.get_mut(usize::try_from(flow).ok()?)
}

impl FlowStats {
    fn end(&mut self, role: Role) -> &mut FlowEnd {
        &mut self.ends[side(role)]
    }

    /// Returns the role of a host.
    fn role_of(&self, host: usize) -> Role {
        if self.flow.from.index() == host {
            Role::Client
        } else {
            Role::Server
        }
    }

    /// Returns the flow's counters so far.
    pub(super) fn counters(&self) -> FlowCounters {
        self.ends[0].achieved + self.ends[1].achieved
    }

    /// Returns the congestion window of the client.
    pub(super) fn window(&self) -> Option<ByteSize> {
        self.ends[side(Role::Client)].window
    }

    /// Returns the smoothed round-trip time of the client.
    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.ends[side(Role::Client)].smoothed_rtt
    }

    /// Returns the outcomes that both ends reported.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &FlowOutcome> {
        self.ends.iter().filter_map(|end| end.outcome.as_ref())
    }

    /// Returns the finished random arrivals, each with the outcomes of its ends.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = &[FlowOutcome]> {
        self.arrivals.values().map(Vec::as_slice)
    }

    /// Returns the durations of completions from `begin` on.
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
