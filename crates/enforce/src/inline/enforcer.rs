//! Transparent congestion control between two interfaces, by a policy.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use weir_canary::Snapshot;
use weir_metrics::Registry;
use weir_policy::Policy;
use weir_tcon::{FlowClass, Limits, Tcon};
use weir_units::Duration;

use super::rules::PolicyRules;
use super::{AttachError, Inline, InterfacePair};
use crate::bypass::{Arming, BypassError, FastPath, FastPathCounts};
use crate::operation::{
    Enforce, EnforcerMetrics, FlowMeasurement, FlowStatus, InlineCounts, PlaneKind, Status, Totals,
};
use crate::segment::Segment;

/// The time for which a step forwards frames.
const STEP: Duration = Duration::from_millis(50);

/// The number of steps between updates of metrics and checks of interfaces.
const STEPS_PER_ROUND: u64 = 5;

/// The number of steps between searches for silent connections of the fast path: at least a minute.
const STEPS_PER_SEARCH: u64 = 1200;

/// A cable between two interfaces that controls the TCP flows selected by a policy.
#[derive(Debug)]
pub struct Enforcer {
    cable: Inline,
    ends: InterfacePair,
    policy: Policy,
    /// The most connections.
    connections: usize,
    /// The way of frames that this process would forward unchanged, if there is one.
    fast_path: Option<Arc<FastPath>>,
    /// An event descriptor that is never written to.
    never: OwnedFd,
    metrics: Option<EnforcerMetrics>,
    measurement: Option<FlowMeasurement>,
    steps: u64,
}

impl Enforcer {
    /// Joins two interfaces of the calling thread's network namespace, and sets them promiscuous. `seed` is
    /// the seed of the algorithms' random choices.
    ///
    /// # Errors
    /// [`AttachError`]: an interface that does not exist, carries no Ethernet frames, is the other one or
    /// in use; no permission.
    pub fn attach(
        interfaces: [&str; 2],
        policy: Policy,
        limits: Limits,
        seed: u64,
    ) -> Result<Self, AttachError> {
        let (ends, ports) = InterfacePair::join(interfaces)?;
        let rules = Box::new(PolicyRules::new(policy.clone(), &ends.names, None));
        let tcon: Tcon<Segment> = Tcon::new(limits, rules, seed);
        Ok(Self {
            cable: Inline::new(ports, tcon),
            ends,
            policy,
            connections: limits.connections.connections,
            fast_path: None,
            never: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
            metrics: None,
            measurement: None,
            steps: 0,
        })
    }

    /// Measures from now on what controlled flows do, for [`Enforce::snapshot`].
    pub fn measure(&mut self) {
        self.measurement = Some(FlowMeasurement::new(self.cable.now()));
    }

    /// Makes the cable fail open, and has frames that no rule is for pass by the kernel: see
    /// [`bypass`](crate::bypass). Call [`Enforce::step`] without delay from
    /// now on.
    ///
    /// # Errors
    /// See [`BypassError`]. The cable then fails closed, as without the call, but what a killed process has
    /// left may still forward frames: see [`Self::remove_bypass`].
    pub fn arm_bypass(&mut self) -> Result<Arming, BypassError> {
        let connections = u32::try_from(self.connections).unwrap_or(u32::MAX);
        let arming = self.cable.arm_bypass(connections)?;
        if let Some(bypass) = &self.cable.bypass {
            self.fast_path = Some(Arc::new(bypass.open_fast_path()?));
            self.set_rules();
        }
        Ok(arming)
    }

    /// Removes what a killed process may have left, which would forward each frame a second time.
    ///
    /// # Errors
    /// See [`BypassError`].
    pub fn remove_bypass(&self) -> Result<(), BypassError> {
        self.cable.remove_bypass()
    }

    fn set_rules(&mut self) {
        let fast_path = self.fast_path.clone();
        let rules = PolicyRules::new(self.policy.clone(), &self.ends.names, fast_path);
        if let Some(tcon) = self.cable.switch.element_mut::<Tcon<Segment>>() {
            tcon.set_policy(Box::new(rules));
        }
    }

    fn tcon(&self) -> Option<&Tcon<Segment>> {
        self.cable.element()
    }

    fn totals(&self) -> Totals {
        let Some(tcon) = self.tcon() else {
            return Totals::default();
        };
        let (counters, connections) = (tcon.counters(), tcon.connections());
        let fast_path = self.fast_path_counts().unwrap_or_default();
        Totals {
            controlled: counters.flows - counters.ended,
            // Both flows of each connection.
            passed: counters.passed + 2 * fast_path.begun,
            idle: connections.idle + fast_path.idle,
            opened: connections.opened + fast_path.begun,
            closed: connections.closed + fast_path.closed,
            refused: connections.refused,
            unknown_packets: connections.unknown,
            lowered: counters.lowered,
            delivered: counters.delivered.bytes(),
            marked: counters.marked.bytes(),
            sent_again: counters.sent_again.bytes(),
            kernel: None,
            in_line: Some(self.in_line(tcon)),
        }
    }

    /// Returns the counts by the names of interfaces.
    fn classes(&self) -> impl Iterator<Item = FlowClass<String>> {
        let classes = self.tcon().map(Tcon::classes).unwrap_or_default();
        classes.iter().map(|class| FlowClass {
            egress: class
                .egress
                .map_or(String::new(), |port| self.ends.name_of(port)),
            rule: class.rule,
            congestion: class.congestion,
            flows: class.flows,
            begun: class.begun,
            counters: class.counters,
            decisions: class.decisions,
            rtt: class.rtt,
            window: class.window,
        })
    }

    fn in_line(&self, tcon: &Tcon<Segment>) -> InlineCounts {
        let passed = self.cable.counters();
        let counters = tcon.counters();
        let (kept, most) = (tcon.kept(), tcon.most_kept());
        InlineCounts {
            frames: passed.frames,
            untouched: passed.untouched,
            segments: passed.segments,
            overrun: self.ends.overrun.iter().sum(),
            unreadable: passed.unreadable,
            full: passed.full,
            too_long: passed.too_long,
            down: passed.down,
            late: passed.late,
            masked: counters.retransmissions,
            masked_bytes: counters.masked.bytes(),
            timeouts: counters.timeouts,
            withheld: counters.withheld,
            echoes: counters.echoes,
            unkept: counters.unkept,
            forged: counters.forged,
            displaced: tcon.connections().displaced,
            kept_packets: kept.packets,
            kept_bytes: kept.size.bytes(),
            most_kept_packets: most.packets,
            most_kept_bytes: most.size.bytes(),
            bypass: self.cable.bypass_counts(),
            fast_path: self.fast_path_counts(),
        }
    }

    fn fast_path_counts(&self) -> Option<FastPathCounts> {
        self.fast_path.as_deref().map(FastPath::counts)
    }
}

/// Enforcement as a cable between two interfaces.
impl Enforce for Enforcer {
    type Error = io::Error;

    fn set_registry(&mut self, registry: &Registry) {
        self.metrics = Some(EnforcerMetrics::register(registry, PlaneKind::InLine));
    }

    fn set_policy(&mut self, policy: Policy) -> io::Result<()> {
        self.policy = policy;
        self.set_rules();
        if self.measurement.is_some() {
            self.measure();
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<()> {
        self.cable.run_for(&self.never, STEP)?;
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_SEARCH)
            && let Some(bypass) = &mut self.cable.bypass
        {
            // What cannot be forgotten only takes room.
            let _ = bypass.forget_silent();
        }
        if self.steps.is_multiple_of(STEPS_PER_ROUND) {
            self.ends.look_at(&self.cable.ports);
            if let Some(measurement) = &mut self.measurement {
                let now = self.cable.now();
                let tcon = self.cable.element::<Tcon<Segment>>();
                measurement.note_open(now, tcon.into_iter().flat_map(|tcon| tcon.flows(now)));
            }
            if let Some(metrics) = &self.metrics {
                metrics.set(&self.totals(), self.classes());
                metrics.set_frames(self.cable.frames_of(&self.ends, self.fast_path_counts()));
            }
        }
        Ok(())
    }

    fn snapshot(&self, span: Duration) -> Option<Snapshot> {
        let measurement = self.measurement.as_ref()?;
        Some(measurement.snapshot(self.cable.now(), span))
    }

    fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ends.gone)
    }

    fn is_over(&self) -> bool {
        !self.ends.exist
    }

    fn status(&self) -> Status {
        let now = self.cable.now();
        let reports = self.tcon().into_iter().flat_map(|tcon| tcon.flows(now));
        let flows = reports.map(|report| {
            let egress = report.egress;
            let interface = egress.map_or(String::new(), |port| self.ends.name_of(port));
            FlowStatus::of(&report, interface)
        });
        Status::new(self.ends.names.to_vec(), self.totals(), flows)
    }
}
