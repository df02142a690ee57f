//! All flows that are known from reports only: which are controlled, the limits for their senders, and
//! when a flow counts as over.

use std::collections::BTreeMap;

use weir_fabric::ConnectionLimits;
use weir_policy::{Policy, PolicyFlow, TconControl};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::Sequence;

use crate::cap::Cap;
use crate::counters::{EnforcementCounters, FlowReport};
use crate::flow_class::{ClassIndex, FlowClass, FlowClasses};
use crate::observed_flow::{FlowStart, ObservedFlow};
use crate::progress_report::ProgressReport;
use crate::rate_meter::RateMeter;
use crate::report_schedule::ReportSchedule;

/// How often caps are renewed although nothing has changed: several times while they
/// [hold](crate::HOLD).
const ROUND: Duration = Duration::from_millis(250);

/// How many rounds there are per search for silent flows.
const ROUNDS_PER_SEARCH: u64 = 4;

/// A flow with a report within this time is active.
const ACTIVE: Duration = Duration::from_millis(500);

/// The most segments that are left alone at the beginning of a connection: the initial window of senders
/// (RFC 6928).
const FREE_SEGMENTS: u64 = 10;

/// The segment sizes by which limits in segments and limits in bytes are told apart.
const ETHERNET_SEGMENT: u32 = 1448;
const LONGEST_SEGMENT: u32 = 65_495;

/// The flows that a policy controls, by numbers that the data plane assigns. Each carries a `T`: the
/// data plane's handle of the flow.
///
/// The data plane announces flows that open and close, passes on reports, and asks for the senders'
/// limits:
///
/// ```
/// use weir_policy::{Policy, PolicyFlow, PolicyRule, TconControl};
/// use weir_tcon::{FlowStart, ObservedFlows};
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
/// let start = FlowStart {
///     first: Sequence::new(1),
///     segment_size: 1448,
///     is_marked: true,
///     rtt: Some(Duration::from_millis(1)),
/// };
/// assert!(flows.on_opened(Time::ZERO, 7, &flow, &start, "eth0"));
/// let is_paced = |interface: &&str| *interface == "eth1";
/// assert_eq!(flows.cap(7, is_paced).map(|cap| cap.limit.allowed), Some(ByteSize::from_bytes(14_480)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ObservedFlows<T> {
    policy: Policy,
    reports_per_second: u32,
    flows: BTreeMap<u32, Flow<T>>,
    classes: FlowClasses<String>,
    counters: ObservedCounters,
    round_at: Time,
    rounds: u64,
    /// Flows with a recent report.
    active: u64,
    /// Those of them whose senders have as much to send as they may.
    busy: u64,
    /// The shortest round trip of the busy ones.
    shortest_rtt: Duration,
}

/// Counts of all flows, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedCounters {
    /// Flows that the policy left alone.
    pub passed: u64,
    /// Flows that were forgotten after a long silence.
    pub idle: u64,
    /// Data of controlled flows that has arrived.
    pub delivered: ByteSize,
    /// The part of it whose acknowledgments carried an ECN echo.
    pub marked: ByteSize,
    /// Data of controlled flows that their senders have retransmitted.
    pub sent_again: ByteSize,
}

/// The data of a connection that no rule limits: the smaller of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeWindow {
    /// In segments of the connection.
    pub segments: u64,
    /// In bytes.
    pub bytes: ByteSize,
}

/// What to do when a round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingRound {
    /// Renew all [caps](ObservedFlows::caps), and set the report [schedule](ObservedFlows::schedule).
    Caps,
    /// Besides, search for [silent flows](ObservedFlows::forget_silent).
    CapsAndSilentFlows,
}

/// A controlled flow.
#[derive(Debug)]
struct Flow<T> {
    handle: T,
    key: FlowKey,
    rule: u32,
    class: ClassIndex,
    observed: ObservedFlow,
    meter: RateMeter,
    counters: EnforcementCounters,
    opened_at: Time,
    reported_at: Time,
    /// When the data plane was last asked about its silence.
    asked_at: Time,
    /// Whether its sender has as much to send as it may.
    is_busy: bool,
}

impl<T> ObservedFlows<T> {
    /// Creates a table that controls flows by `policy` from now on. All flows together are to make this
    /// many reports per second.
    pub fn new(policy: Policy, reports_per_second: u32) -> Self {
        Self {
            policy,
            reports_per_second,
            flows: BTreeMap::new(),
            classes: FlowClasses::default(),
            counters: ObservedCounters::default(),
            round_at: Time::ZERO,
            rounds: 0,
            active: 0,
            busy: 0,
            shortest_rtt: Duration::ZERO,
        }
    }

    /// Replaces the policy for flows that open from now on; existing flows keep theirs.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Returns the policy for flows that open.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns whether a rule of the policy has a highest rate.
    pub fn has_rates(&self) -> bool {
        self.controls()
            .any(|control| control.congestion.max_rate().is_some())
    }

    /// Returns what the rules that control flows ask for.
    fn controls(&self) -> impl Iterator<Item = &TconControl> {
        let rules = self.policy.rules.iter();
        rules.filter_map(|rule| rule.control.as_ref())
    }

    /// Returns what no rule of the policy limits of a connection's data: a number of segments, and of bytes.
    /// Until a sender has sent more there is nothing to decide. A highest rate limits everything.
    pub fn free_window(&self) -> FreeWindow {
        if self.has_rates() {
            return FreeWindow::default();
        }
        let least = |segment_size: u32| {
            let beginning = FlowStart {
                first: Sequence::new(0),
                segment_size,
                is_marked: false,
                rtt: None,
            };
            let limits = self.controls().map(|control| {
                let flow = ObservedFlow::new(&control.congestion, &beginning, 0);
                flow.cap(false).limit.allowed
            });
            limits.min().unwrap_or(ByteSize::from_bytes(u64::MAX))
        };
        let segments = least(ETHERNET_SEGMENT).bytes() / u64::from(ETHERNET_SEGMENT);
        FreeWindow {
            segments: segments.min(FREE_SEGMENTS),
            bytes: least(LONGEST_SEGMENT),
        }
    }

    /// Adds a flow whose handshake is complete. Returns whether it is controlled; others are not
    /// remembered.
    pub fn on_opened(
        &mut self,
        now: Time,
        number: u32,
        flow: &PolicyFlow<'_>,
        beginning: &FlowStart,
        known_by: T,
    ) -> bool {
        // The close of the number's previous flow may have been lost.
        self.on_closed(number);
        let decision = self.policy.decision(flow);
        let Some((rule, control)) =
            decision.and_then(|decision| Some((decision.rule, decision.control()?)))
        else {
            self.counters.passed += 1;
            return false;
        };
        let seed = u64::from(number) ^ now.since(Time::ZERO).as_nanos();
        let interface = flow.interface.unwrap_or_default().to_owned();
        let class = (self.classes).begin(interface, rule.line, control.congestion.name());
        let flow = Flow {
            handle: known_by,
            key: flow.key,
            rule: rule.line,
            class,
            observed: ObservedFlow::new(&control.congestion, beginning, seed),
            meter: RateMeter::new(now),
            counters: EnforcementCounters::default(),
            opened_at: now,
            reported_at: now,
            asked_at: now,
            is_busy: true,
        };
        self.flows.insert(number, flow);
        true
    }

    /// Processes a report of a flow. `lowered` counts the windows that were lowered since it began.
    pub fn on_report(&mut self, now: Time, number: u32, report: &ProgressReport, lowered: u64) {
        let Some(flow) = self.flows.get_mut(&number) else {
            return;
        };
        flow.observed.on_report(report);
        flow.meter.on_delivered(now, report.delivered);
        let counters = EnforcementCounters {
            delivered: report.delivered,
            marked: report.marked,
            masked: ByteSize::ZERO,
            sent_again: report.retransmitted,
            lowered,
        };
        let before = std::mem::replace(&mut flow.counters, counters);
        self.counters.delivered += counters.delivered - before.delivered;
        self.counters.marked += counters.marked - before.marked;
        self.counters.sent_again += counters.sent_again - before.sent_again;
        let (rtt, window) = (flow.observed.rtt(), flow.observed.window());
        self.classes.update(flow.class, |class| {
            class.add(&before, &counters);
            class.decided(rtt, window);
        });
        flow.reported_at = now;
        let is_troubled =
            counters.marked > before.marked || counters.sent_again > before.sent_again;
        flow.is_busy = is_troubled || report.delivered >= report.limited_until;
        let is_busy = flow.is_busy;
        self.note_active(is_busy, rtt);
    }

    /// Reports are read at once as flows are active, and as often as a busy one needs.
    fn note_active(&mut self, is_busy: bool, rtt: Duration) {
        self.active = self.active.max(1);
        if is_busy {
            self.shortest_rtt = match self.busy {
                0 => rtt,
                _ => self.shortest_rtt.min(rtt),
            };
            self.busy = self.busy.max(1);
        }
    }

    /// Removes a flow that is over.
    pub fn on_closed(&mut self, number: u32) {
        if let Some(flow) = self.flows.remove(&number) {
            self.classes.end(flow.class);
        }
    }

    /// Returns what to do if a round begins.
    pub fn handle_timeout(&mut self, now: Time) -> Option<SamplingRound> {
        if now.since(self.round_at) < ROUND {
            return None;
        }
        self.round_at = now;
        let is_active = |flow: &&Flow<T>| now.since(flow.reported_at) < ACTIVE;
        let active = self.flows.values().filter(is_active);
        self.active = active.clone().count() as u64;
        let busy = active.filter(|flow| flow.is_busy);
        self.busy = busy.clone().count() as u64;
        let rtts = busy.map(|flow| flow.observed.rtt());
        self.shortest_rtt = rtts.min().unwrap_or(Duration::ZERO);
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS_PER_SEARCH) {
            Some(SamplingRound::CapsAndSilentFlows)
        } else {
            Some(SamplingRound::Caps)
        }
    }

    /// Returns the limits for a flow's sender; `None` if it is not controlled. `is_paced` returns
    /// whether the flow's segments are paced.
    pub fn cap(&self, number: u32, is_paced: impl FnOnce(&T) -> bool) -> Option<Cap> {
        let flow = self.flows.get(&number)?;
        Some(flow.observed.cap(is_paced(&flow.handle)))
    }

    /// Returns the limits of all flows.
    pub fn caps(&self, is_paced: impl Fn(&T) -> bool) -> impl Iterator<Item = (u32, Cap)> {
        let flows = self.flows.iter();
        flows.map(move |(number, flow)| (*number, flow.observed.cap(is_paced(&flow.handle))))
    }

    /// Returns how often flows are to be reported, and the reports read.
    pub fn schedule(&self) -> ReportSchedule {
        ReportSchedule::new(
            self.active,
            self.busy,
            self.shortest_rtt,
            self.reports_per_second,
        )
    }

    /// Removes and returns flows that were silent for too long (RFC 5382, section 5). `active_at`
    /// returns when the data plane last saw a flow, if it still knows it.
    pub fn forget_silent(
        &mut self,
        now: Time,
        mut active_at: impl FnMut(&T) -> Option<Time>,
    ) -> Vec<(u32, T)> {
        let longest = ConnectionLimits::default().idle;
        let mut numbers = Vec::new();
        for (number, flow) in &mut self.flows {
            if now.since(flow.reported_at) < longest || now.since(flow.asked_at) < longest / 8 {
                continue;
            }
            flow.asked_at = now;
            if active_at(&flow.handle).is_none_or(|time| now.since(time) > longest) {
                numbers.push(*number);
            }
        }
        let silent = numbers.into_iter().filter_map(|number| {
            let flow = self.flows.remove(&number)?;
            self.classes.end(flow.class);
            Some((number, flow.handle))
        });
        let silent: Vec<_> = silent.collect();
        self.counters.idle += silent.len() as u64;
        silent
    }

    /// Returns the number of controlled flows.
    pub fn controlled(&self) -> u64 {
        self.flows.len() as u64
    }

    /// Returns the counters of all flows.
    pub fn counters(&self) -> ObservedCounters {
        self.counters
    }

    /// Returns the counts by interface, rule and algorithm, of all flows since the start.
    pub fn classes(&self) -> &[FlowClass<String>] {
        self.classes.all()
    }

    /// Returns the current state of a flow, if it is controlled.
    pub fn report(
        &self,
        now: Time,
        number: u32,
        is_paced: impl FnOnce(&T) -> bool,
    ) -> Option<FlowReport> {
        let flow = self.flows.get(&number)?;
        Some(flow.report(now, is_paced(&flow.handle)))
    }

    /// Returns the current state of each flow, with its handle.
    pub fn reports(
        &self,
        now: Time,
        is_paced: impl Fn(&T) -> bool,
    ) -> impl Iterator<Item = (&T, FlowReport)> {
        let flows = self.flows.values();
        flows.map(move |flow| (&flow.handle, flow.report(now, is_paced(&flow.handle))))
    }
}

impl<T> Flow<T> {
    fn report(&self, now: Time, is_paced: bool) -> FlowReport {
        FlowReport {
            flow: self.key,
            egress: None,
            rule: self.rule,
            congestion: self.observed.congestion(),
            age: now.since(self.opened_at),
            segment_size: self.observed.segment_size(),
            rtt: self.observed.rtt(),
            rtt_min: self.observed.rtt_min(),
            window: self.observed.window(),
            enforced: self.observed.cap(is_paced).limit.allowed,
            pacing_rate: self.observed.pacing_rate(),
            max_rate: self.observed.max_rate(),
            measured_rate: self.meter.rate(now, self.counters.delivered),
            in_flight: self.observed.in_flight(),
            kept: ByteSize::ZERO,
            counters: self.counters,
        }
    }
}

#[cfg(test)]
mod tests;
