//! All flows that are only heard of: which are controlled, what their senders may do, and when a flow
//! counts as over.

use std::collections::BTreeMap;

use weir_fabric::ConnectionLimits;
use weir_policy::{Policy, PolicyFlow};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;

use crate::cap::Cap;
use crate::counters::{EnforcementCounters, FlowReport};
use crate::observed_flow::{FlowStart, ObservedFlow};
use crate::progress_report::ProgressReport;
use crate::report_schedule::ReportSchedule;

/// How often caps are given anew although nothing has changed: several times while they [hold](crate::HOLD).
const ROUND: Duration = Duration::from_millis(250);

/// How often silent flows are looked for, in rounds.
const ROUNDS_PER_SEARCH: u64 = 4;

/// A flow that was reported within this is active.
const ACTIVE: Duration = Duration::from_millis(500);

/// The flows that a policy controls, by numbers that the data plane gives them. With each goes a `T`: what
/// the data plane knows it by.
///
/// The data plane tells of flows that open, close and are seen, and asks what their senders may do:
///
/// ```
/// use weir_policy::{Policy, PolicyFlow, PolicyRule, TconControl};
/// use weir_tcon::{Beginning, ObservedFlows};
/// use weir_units::{ByteSize, Duration, Time};
/// use weir_wire::tcp::Sequence;
///
/// let control = TconControl {
///     congestion: "dctcp".parse()?,
///     ecn: None,
///     buffer: ByteSize::from_mib(1),
/// };
/// let policy = Policy { rules: vec![PolicyRule::new(Some(control))] };
/// let mut flows = ObservedFlows::new(policy, 20_000);
/// let flow = PolicyFlow::between("192.0.2.1:80".parse()?, "198.51.100.7:4000".parse()?);
/// let beginning = Beginning {
///     first: Sequence::new(1),
///     segment_size: 1448,
///     is_marked: true,
///     rtt: Some(Duration::from_millis(1)),
/// };
/// assert!(flows.on_opened(Time::ZERO, 7, &flow, &beginning, "eth0"));
/// let is_paced = |interface: &&str| *interface == "eth1";
/// assert_eq!(flows.cap(7, is_paced).map(|cap| cap.limit.allowed), Some(ByteSize::from_bytes(14_480)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ObservedFlows<T> {
    policy: Policy,
    reports_per_second: u32,
    flows: BTreeMap<u32, Flow<T>>,
    counters: ObservedCounters,
    round_at: Time,
    rounds: u64,
    /// Flows that were reported lately.
    active: u64,
}

/// Counts of all flows, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedCounters {
    /// Flows that were left alone as the policy says.
    pub passed: u64,
    /// Flows that were forgotten after a long silence.
    pub idle: u64,
    /// Data of controlled flows that has arrived.
    pub delivered: ByteSize,
    /// The part of it whose acknowledgments told of marks.
    pub marked: ByteSize,
    /// Data of controlled flows that their senders have sent again.
    pub sent_again: ByteSize,
}

/// What is to be done when a round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingRound {
    /// All [caps](ObservedFlows::caps) are to be given anew, and reports made by the
    /// [schedule](ObservedFlows::schedule).
    Caps,
    /// Besides, [silent flows](ObservedFlows::forget_silent) are to be looked for.
    CapsAndSilentFlows,
}

/// A flow that is controlled.
#[derive(Debug)]
struct Flow<T> {
    known_by: T,
    key: FlowKey,
    rule: u32,
    observed: ObservedFlow,
    counters: EnforcementCounters,
    heard_at: Time,
    /// When its silence was last asked about.
    asked_at: Time,
}

impl<T> ObservedFlows<T> {
    /// Controls the flows that open from now on by `policy`. All together are to be reported so often in a
    /// second.
    pub fn new(policy: Policy, reports_per_second: u32) -> Self {
        Self {
            policy,
            reports_per_second,
            flows: BTreeMap::new(),
            counters: ObservedCounters::default(),
            round_at: Time::ZERO,
            rounds: 0,
            active: 0,
        }
    }

    /// Has another policy decide about flows that open from now on; the others keep what they have.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The handshake of a flow is complete. Returns whether it is controlled; what is not, is forgotten.
    pub fn on_opened(
        &mut self,
        now: Time,
        number: u32,
        flow: &PolicyFlow<'_>,
        beginning: &FlowStart,
        known_by: T,
    ) -> bool {
        // The end of the one before may have been too much to tell.
        self.flows.remove(&number);
        let rule = self.policy.rule(flow);
        let Some((rule, control)) = rule.and_then(|rule| Some((rule, rule.control.as_ref()?)))
        else {
            self.counters.passed += 1;
            return false;
        };
        let seed = u64::from(number) ^ now.since(Time::ZERO).as_nanos();
        let flow = Flow {
            known_by,
            key: flow.key,
            rule: rule.line,
            observed: ObservedFlow::new(&control.congestion, beginning, seed),
            counters: EnforcementCounters::default(),
            heard_at: now,
            asked_at: now,
        };
        self.flows.insert(number, flow);
        true
    }

    /// Something was seen of a flow, whose sender's windows have been lowered so often since it began.
    pub fn on_report(&mut self, now: Time, number: u32, report: &ProgressReport, lowered: u64) {
        let Some(flow) = self.flows.get_mut(&number) else {
            return;
        };
        flow.observed.on_report(report);
        let counters = EnforcementCounters {
            delivered: report.delivered,
            marked: report.marked,
            masked: ByteSize::ZERO,
            sent_again: report.sent_again,
            lowered,
        };
        let before = std::mem::replace(&mut flow.counters, counters);
        self.counters.delivered += counters.delivered - before.delivered;
        self.counters.marked += counters.marked - before.marked;
        self.counters.sent_again += counters.sent_again - before.sent_again;
        flow.heard_at = now;
        self.active = self.active.max(1);
    }

    /// A flow is over.
    pub fn on_closed(&mut self, number: u32) {
        self.flows.remove(&number);
    }

    /// Whether a round begins, and with what.
    pub fn handle_timeout(&mut self, now: Time) -> Option<SamplingRound> {
        if now.since(self.round_at) < ROUND {
            return None;
        }
        self.round_at = now;
        let heard = self.flows.values().map(|flow| now.since(flow.heard_at));
        self.active = heard.filter(|silence| *silence < ACTIVE).count() as u64;
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS_PER_SEARCH) {
            Some(SamplingRound::CapsAndSilentFlows)
        } else {
            Some(SamplingRound::Caps)
        }
    }

    /// What a flow's sender may do; `None` for one that is not controlled. `is_paced` says whether the
    /// flow's segments are spaced by a rate.
    pub fn cap(&self, number: u32, is_paced: impl FnOnce(&T) -> bool) -> Option<Cap> {
        let flow = self.flows.get(&number)?;
        Some(flow.observed.cap(is_paced(&flow.known_by)))
    }

    /// The same of all flows.
    pub fn caps(&self, is_paced: impl Fn(&T) -> bool) -> impl Iterator<Item = (u32, Cap)> {
        let flows = self.flows.iter();
        flows.map(move |(number, flow)| (*number, flow.observed.cap(is_paced(&flow.known_by))))
    }

    /// How often flows are to be reported, and the reports to be looked at.
    pub fn schedule(&self) -> ReportSchedule {
        ReportSchedule::new(self.active, self.reports_per_second)
    }

    /// Forgets flows that were silent for too long (RFC 5382, section 5), and gives them out. `active_at`
    /// says when the data plane last saw a flow, if it still knows it.
    pub fn forget_silent(
        &mut self,
        now: Time,
        mut active_at: impl FnMut(&T) -> Option<Time>,
    ) -> Vec<(u32, T)> {
        let longest = ConnectionLimits::default().idle;
        let mut numbers = Vec::new();
        for (number, flow) in &mut self.flows {
            if now.since(flow.heard_at) < longest || now.since(flow.asked_at) < longest / 8 {
                continue;
            }
            flow.asked_at = now;
            if active_at(&flow.known_by).is_none_or(|time| now.since(time) > longest) {
                numbers.push(*number);
            }
        }
        let silent = numbers.into_iter().filter_map(|number| {
            let flow = self.flows.remove(&number)?;
            Some((number, flow.known_by))
        });
        let silent: Vec<_> = silent.collect();
        self.counters.idle += silent.len() as u64;
        silent
    }

    /// How many flows are controlled.
    pub fn controlled(&self) -> u64 {
        self.flows.len() as u64
    }

    /// What was counted of all of them.
    pub fn counters(&self) -> ObservedCounters {
        self.counters
    }

    /// Each flow as it is now, with what the data plane knows it by.
    pub fn reports(&self, is_paced: impl Fn(&T) -> bool) -> impl Iterator<Item = (&T, FlowReport)> {
        let flows = self.flows.values();
        flows.map(move |flow| (&flow.known_by, flow.report(is_paced(&flow.known_by))))
    }
}

impl<T> Flow<T> {
    fn report(&self, is_paced: bool) -> FlowReport {
        FlowReport {
            flow: self.key,
            egress: None,
            rule: self.rule,
            congestion: self.observed.congestion(),
            rtt: self.observed.rtt(),
            window: self.observed.window(),
            enforced: self.observed.cap(is_paced).limit.allowed,
            pacing_rate: self.observed.pacing_rate(),
            in_flight: self.observed.in_flight(),
            kept: ByteSize::ZERO,
            counters: self.counters,
        }
    }
}

#[cfg(test)]
mod tests;
