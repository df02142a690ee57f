//! Which flow has which controller, and what becomes of what the programs tell.

use std::collections::HashMap;

use rustix::time::{ClockId, clock_gettime};
use weir_fabric::ConnectionLimits;
use weir_metrics::Registry;
use weir_policy::{Policy, PolicyFlow, PolicyRule};
use weir_tcon::Observed;
use weir_units::{Duration, Time};
use weir_wire::FlowKey;

use super::event::{Event, KEY, Opened, Seen};
use super::pace::Pace;
use super::{Cap, HOLD, Options, Plane};
use crate::bpf::BpfError;
use crate::operation::{Enforce, Figures, FlowStatus, Status, Totals};

/// How often limits are written anew although nothing has changed: several times while they hold.
const ROUND: Duration = Duration::from_millis(250);

/// How often silent flows and interfaces that are gone are looked for, in rounds.
const ROUNDS_PER_SEARCH: u64 = 4;

/// A flow that was reported within this is active.
const ACTIVE: Duration = Duration::from_millis(500);

/// Gives flows their controllers, and senders their windows.
#[derive(Debug)]
pub struct Enforcer {
    plane: Plane,
    policy: Policy,
    options: Options,
    flows: HashMap<u32, Flow>,
    totals: Totals,
    figures: Option<Figures>,
    heard: Vec<Event>,
    gone: Vec<String>,
    round_at: Time,
    rounds: u64,
    /// Flows that were reported lately.
    active: u64,
}

/// A flow that is controlled.
#[derive(Debug)]
struct Flow {
    key: [u8; KEY],
    flow: FlowKey,
    interface: String,
    interface_index: u32,
    rule: u32,
    observed: Observed,
    seen: Option<Box<Seen>>,
    heard_at: Time,
    /// When its silence was last asked about.
    asked_at: Time,
}

/// A rule asks for what cannot be done at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: `ecn = true`: at an interface nobody negotiates ECN for the ends; turn it on at both \
     (net.ipv4.tcp_ecn = 1), and leave `ecn` out"
)]
pub struct NotHere {
    /// Where the rule begins in its file.
    pub line: u32,
}

impl Enforcer {
    /// Whether all that a policy asks for can be done at an interface.
    ///
    /// # Errors
    /// The first rule for which that is not so.
    pub fn check(policy: &Policy) -> Result<(), NotHere> {
        let asks = |rule: &&PolicyRule| {
            let control = rule.control.as_ref();
            control.is_some_and(|control| control.ecn == Some(true))
        };
        match policy.rules.iter().find(asks) {
            Some(rule) => Err(NotHere { line: rule.line }),
            None => Ok(()),
        }
    }

    /// Enforces a policy on the connections that open from now on.
    pub fn new(plane: Plane, policy: Policy, options: &Options) -> Self {
        Self {
            plane,
            policy,
            options: *options,
            flows: HashMap::new(),
            totals: Totals::default(),
            figures: None,
            heard: Vec::new(),
            gone: Vec::new(),
            round_at: Time::ZERO,
            rounds: 0,
            active: 0,
        }
    }

    fn totals(&self) -> Totals {
        self.plane.counted(Totals {
            controlled: self.flows.len() as u64,
            ..self.totals
        })
    }

    fn on_event(&mut self, now: Time, event: Event) -> Result<(), BpfError> {
        match event {
            Event::Opened(opened) => self.on_opened(now, opened),
            Event::Closed { slot } => {
                self.flows.remove(&slot);
                self.plane.free(slot)
            }
            Event::Reported { slot, seen } => {
                self.on_report(now, slot, seen);
                Ok(())
            }
        }
    }

    fn on_opened(&mut self, now: Time, opened: Opened) -> Result<(), BpfError> {
        // The end of the one before may have been too much to tell.
        self.flows.remove(&opened.slot);
        let interface = self.plane.interface(opened.interface).map(str::to_owned);
        let flow = PolicyFlow {
            key: opened.flow,
            interface: interface.as_deref(),
            dscp: opened.dscp,
        };
        let rule = self.policy.rule(&flow);
        let Some((rule, control)) = rule.and_then(|rule| Some((rule, rule.control.as_ref()?)))
        else {
            self.totals.passed += 1;
            return self.plane.forget(opened.slot, &opened.key);
        };
        let seed = u64::from(opened.slot) ^ now.since(Time::ZERO).as_nanos();
        let observed = Observed::new(&control.congestion, &opened.beginning, seed);
        let flow = Flow {
            key: opened.key,
            flow: opened.flow,
            interface: interface.unwrap_or_default(),
            interface_index: opened.interface,
            rule: rule.line,
            observed,
            seen: None,
            heard_at: now,
            asked_at: now,
        };
        self.plane
            .set_cap(opened.slot, flow.cap(&self.plane), now + HOLD);
        self.flows.insert(opened.slot, flow);
        Ok(())
    }

    fn on_report(&mut self, now: Time, slot: u32, seen: Box<Seen>) {
        let Some(flow) = self.flows.get_mut(&slot) else {
            return;
        };
        flow.observed.on_report(&seen.report);
        self.plane.set_cap(slot, flow.cap(&self.plane), now + HOLD);
        let before = flow.seen.as_ref().map(|seen| &seen.report);
        let news = |of: fn(&weir_tcon::Report) -> u64| {
            of(&seen.report).saturating_sub(before.map_or(0, of))
        };
        self.totals.delivered += news(|report| report.delivered.bytes());
        self.totals.marked += news(|report| report.marked.bytes());
        self.totals.sent_again += news(|report| report.sent_again.bytes());
        flow.seen = Some(seen);
        flow.heard_at = now;
        self.active = self.active.max(1);
    }

    fn set_pace(&mut self) {
        let pace = Pace::new(self.active, self.options.reports_per_second);
        self.plane.set_pace(pace);
    }

    /// Writes all limits anew, and looks at how much is going on.
    fn on_round(&mut self, now: Time) -> Result<(), BpfError> {
        self.active = 0;
        for (slot, flow) in &self.flows {
            self.plane.set_cap(*slot, flow.cap(&self.plane), now + HOLD);
            self.active += u64::from(now.since(flow.heard_at) < ACTIVE);
        }
        self.set_pace();
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS_PER_SEARCH) {
            self.gone.extend(self.plane.take_gone());
            self.forget_silent(now)?;
        }
        if let Some(figures) = &self.figures {
            figures.set(&self.totals());
        }
        Ok(())
    }

    /// Forgets flows of which the programs have heard nothing for too long (RFC 5382, section 5).
    fn forget_silent(&mut self, now: Time) -> Result<(), BpfError> {
        let longest = ConnectionLimits::default().idle;
        let mut silent = Vec::new();
        for (slot, flow) in &mut self.flows {
            if now.since(flow.heard_at) < longest || now.since(flow.asked_at) < longest / 8 {
                continue;
            }
            flow.asked_at = now;
            let active_at = self.plane.active_at(&flow.key);
            if active_at.is_none_or(|time| now.since(time) > longest) {
                silent.push((*slot, flow.key));
            }
        }
        for (slot, key) in silent {
            self.totals.idle += 1;
            self.flows.remove(&slot);
            self.plane.forget(slot, &key)?;
        }
        Ok(())
    }
}

/// With programs at interfaces.
impl Enforce for Enforcer {
    type Error = BpfError;

    fn set_registry(&mut self, registry: &Registry) {
        self.figures = Some(Figures::register(registry, &self.totals()));
    }

    fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    fn step(&mut self) -> Result<(), BpfError> {
        let mut heard = std::mem::take(&mut self.heard);
        self.plane.listen(&mut heard)?;
        let now = monotonic();
        let is_awake = self.active > 0;
        for event in heard.drain(..) {
            self.on_event(now, event)?;
        }
        self.heard = heard;
        if !is_awake && self.active > 0 {
            self.set_pace();
        }
        if now.since(self.round_at) >= ROUND {
            self.round_at = now;
            self.on_round(now)?;
        }
        Ok(())
    }

    fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.gone)
    }

    fn is_over(&self) -> bool {
        self.plane.interfaces().is_empty()
    }

    fn status(&self) -> Status {
        let flows = self.flows.values();
        let mut flows: Vec<_> = flows.map(|flow| flow.status(&self.plane)).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.delivered));
        Status {
            interfaces: self.plane.interfaces(),
            totals: self.totals(),
            flows,
        }
    }
}

impl Flow {
    /// What its sender may do. An interface that spaces segments needs no window that gives the rate.
    fn cap(&self, plane: &Plane) -> Cap {
        match plane.paces(self.interface_index) {
            true => Cap {
                limit: self.observed.limit_where_paced(),
                rate: self.observed.pacing_rate(),
            },
            false => Cap {
                limit: self.observed.limit(),
                rate: None,
            },
        }
    }

    fn status(&self, plane: &Plane) -> FlowStatus {
        let report = self.seen.as_ref().map(|seen| &seen.report);
        let bytes = |of: fn(&weir_tcon::Report) -> u64| report.map_or(0, of);
        let end = |address, port| std::net::SocketAddr::new(address, port).to_string();
        let rate = self.observed.pacing_rate();
        FlowStatus {
            from: end(self.flow.source, self.flow.source_port),
            to: end(self.flow.destination, self.flow.destination_port),
            interface: self.interface.clone(),
            congestion: self.observed.congestion().to_owned(),
            rule: self.rule,
            rtt_us: self.observed.rtt().as_nanos() as f64 / 1e3,
            window: self.observed.window().bytes(),
            enforced: self.cap(plane).limit.allowed.bytes(),
            pacing_rate: rate.map(weir_units::Rate::bits_per_second),
            in_flight: self.observed.in_flight().bytes(),
            delivered: bytes(|report| report.delivered.bytes()),
            marked: bytes(|report| report.marked.bytes()),
            sent_again: bytes(|report| report.sent_again.bytes()),
            masked: 0,
            kept: 0,
            lowered: self.seen.as_ref().map_or(0, |seen| seen.lowered),
        }
    }
}

/// The clock that the programs read too.
fn monotonic() -> Time {
    let now = std::time::Duration::try_from(clock_gettime(ClockId::Monotonic));
    Time::ZERO + Duration::from(now.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_negotiates_ecn_at_an_interface() {
        let rules = |ecn: &str| {
            let text = format!("[[rules]]\npass = true\n[[rules]]\ncongestion = \"dctcp\"\n{ecn}");
            Enforcer::check(&weir_scenario::parse_policy("test", &text).unwrap())
        };
        assert_eq!(rules("ecn = true"), Err(NotHere { line: 3 }));
        assert_eq!(rules("ecn = false"), Ok(()));
        assert_eq!(rules(""), Ok(()));
    }
}
