//! Connects the programs to the controllers: events of the programs go in, caps come out.

use rustix::time::{ClockId, clock_gettime};
use weir_canary::Snapshot;
use weir_metrics::Registry;
use weir_policy::{Policy, PolicyFlow, SocketOwner};
use weir_tcon::{HOLD, ObservedFlows, SamplingRound};
use weir_units::{Duration, Time};

use super::event::{Event, FlowOpened};
use super::{DataPlane, Options};
use crate::bpf::BpfError;
use crate::bpf::flow_key::KEY;
use crate::operation::{
    Enforce, EnforcerMetrics, FlowMeasurement, FlowStatus, PlaneKind, Status, Totals,
};

/// Assigns controllers to flows, and enforces their windows on the senders.
#[derive(Debug)]
pub struct Enforcer {
    plane: DataPlane,
    flows: ObservedFlows<TrackedFlow>,
    metrics: Option<EnforcerMetrics>,
    measurement: Option<FlowMeasurement>,
    events: Vec<Event>,
    gone: Vec<String>,
    warnings: Vec<String>,
}

/// A flow's identity in the programs.
#[derive(Debug)]
struct TrackedFlow {
    key: [u8; KEY],
    interface_index: u32,
    interface: String,
}

impl Enforcer {
    /// Enforces a policy on connections that open from now on.
    pub fn new(plane: DataPlane, policy: Policy, options: &Options) -> Self {
        let mut enforcer = Self {
            plane,
            flows: ObservedFlows::new(policy, options.reports_per_second),
            metrics: None,
            measurement: None,
            events: Vec::new(),
            gone: Vec::new(),
            warnings: Vec::new(),
        };
        enforcer.prepare();
        enforcer
    }

    /// Measures from now on what controlled flows do, for [`Enforce::snapshot`].
    pub fn measure(&mut self) {
        self.measurement = Some(FlowMeasurement::new(monotonic()));
    }

    /// Prepares the programs for the policy: its highest rates, and what it does not limit.
    fn prepare(&mut self) {
        self.plane.set_free_window(self.flows.free_window());
        self.set_idle();
        if let Err(error) = self.plane.set_rates(self.flows.has_rates()) {
            self.warnings.push(format!(
                "the sockets of this machine are not paced, so that flows with `max_rate` come in bursts: {error}"
            ));
        }
    }

    /// Tells the programs whether they need follow connections.
    fn set_idle(&self) {
        let controls = self.flows.policy().controls_at(&self.plane.interfaces());
        self.plane
            .set_idle(!controls && self.flows.controlled() == 0);
    }

    fn totals(&self) -> Totals {
        let counters = self.flows.counters();
        self.plane.counted(Totals {
            controlled: self.flows.controlled(),
            passed: counters.passed,
            idle: counters.idle,
            delivered: counters.delivered.bytes(),
            marked: counters.marked.bytes(),
            sent_again: counters.sent_again.bytes(),
            ..Totals::default()
        })
    }

    fn on_event(&mut self, now: Time, event: Event) -> Result<(), BpfError> {
        match event {
            Event::Opened(opened) => self.on_opened(now, &opened),
            Event::Closed { slot } => {
                self.measure_closed(now, slot);
                self.flows.on_closed(slot);
                self.plane.free(slot)
            }
            Event::Reported { slot, seen } => {
                self.flows.on_report(now, slot, &seen.report, seen.lowered);
                self.set_cap(now, slot);
                Ok(())
            }
        }
    }

    fn measure_closed(&mut self, now: Time, slot: u32) {
        let report = self.flows.report(now, slot, |flow| self.is_paced(flow));
        if let (Some(measurement), Some(report)) = (&mut self.measurement, report) {
            measurement.note_completed(now, &report);
        }
    }

    fn on_opened(&mut self, now: Time, opened: &FlowOpened) -> Result<(), BpfError> {
        let interface = self.plane.interface(opened.interface).map(str::to_owned);
        let flow = PolicyFlow {
            key: opened.flow,
            interface: interface.as_deref(),
            dscp: opened.dscp,
            owner: SocketOwner::UNKNOWN,
        };
        let tracked = TrackedFlow {
            key: opened.key,
            interface_index: opened.interface,
            interface: interface.clone().unwrap_or_default(),
        };
        let (slot, beginning) = (opened.slot, &opened.beginning);
        if !(self.flows).on_opened(now, slot, &flow, beginning, tracked) {
            return self.plane.forget(slot, &opened.key);
        }
        self.set_cap(now, slot);
        Ok(())
    }

    fn set_cap(&self, now: Time, slot: u32) {
        if let Some(cap) = self.flows.cap(slot, |flow| self.is_paced(flow)) {
            self.plane.set_cap(slot, cap, now + HOLD);
        }
    }

    /// Returns whether the flow's interface spaces its segments.
    fn is_paced(&self, flow: &TrackedFlow) -> bool {
        self.plane.paces(flow.interface_index)
    }

    fn on_round(&mut self, now: Time, round: SamplingRound) -> Result<(), BpfError> {
        for (slot, cap) in self.flows.caps(|flow| self.is_paced(flow)) {
            self.plane.set_cap(slot, cap, now + HOLD);
        }
        self.plane.set_schedule(self.flows.schedule());
        self.set_idle();
        if round == SamplingRound::CapsAndSilentFlows {
            self.gone.extend(self.plane.take_gone());
            let active_at = |flow: &TrackedFlow| self.plane.active_at(&flow.key);
            for (slot, flow) in self.flows.forget_silent(now, active_at) {
                self.plane.forget(slot, &flow.key)?;
            }
        }
        if let Some(measurement) = &mut self.measurement {
            let plane = &self.plane;
            let reports = (self.flows).reports(now, |flow| plane.paces(flow.interface_index));
            measurement.note_open(now, reports.map(|(_, report)| report));
        }
        if let Some(metrics) = &self.metrics {
            metrics.set(&self.totals(), self.flows.classes().iter().cloned());
        }
        Ok(())
    }
}

/// Enforcement by programs at interfaces.
impl Enforce for Enforcer {
    type Error = BpfError;

    fn set_registry(&mut self, registry: &Registry) {
        self.metrics = Some(EnforcerMetrics::register(registry, PlaneKind::Kernel));
    }

    fn set_policy(&mut self, policy: Policy) -> Result<(), BpfError> {
        self.flows.set_policy(policy);
        self.prepare();
        if self.measurement.is_some() {
            self.measure();
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), BpfError> {
        let mut events = std::mem::take(&mut self.events);
        self.plane.listen(&mut events)?;
        let now = monotonic();
        let schedule = self.flows.schedule();
        for event in events.drain(..) {
            self.on_event(now, event)?;
        }
        self.events = events;
        if self.flows.schedule() != schedule {
            self.plane.set_schedule(self.flows.schedule());
        }
        match self.flows.handle_timeout(now) {
            Some(round) => self.on_round(now, round),
            None => Ok(()),
        }
    }

    fn snapshot(&self, span: Duration) -> Option<Snapshot> {
        let measurement = self.measurement.as_ref()?;
        Some(measurement.snapshot(monotonic(), span))
    }

    fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.gone)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn is_over(&self) -> bool {
        self.plane.interfaces().is_empty()
    }

    fn status(&self) -> Status {
        let flows = self.flows.reports(monotonic(), |flow| self.is_paced(flow));
        let flows =
            flows.map(|(tracked, report)| FlowStatus::of(&report, tracked.interface.clone()));
        Status::new(self.plane.interfaces(), self.totals(), flows)
    }
}

/// Returns the time of the clock that the programs use.
fn monotonic() -> Time {
    let now = std::time::Duration::try_from(clock_gettime(ClockId::Monotonic));
    Time::ZERO + Duration::from(now.unwrap_or_default())
}
