//! Transparent congestion control between two interfaces, by a policy.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use weir_metrics::Registry;
use weir_policy::Policy;
use weir_tcon::{FlowClass, Limits, Tcon};
use weir_units::Duration;

use super::rules::PolicyRules;
use super::{AttachError, Inline, InterfacePair};
use crate::operation::{
    Enforce, EnforcerMetrics, FlowStatus, InlineCounts, PlaneKind, Status, Totals,
};
use crate::segment::Segment;

/// The time for which a step forwards frames.
const STEP: Duration = Duration::from_millis(50);

/// The number of steps between updates of metrics and checks of interfaces.
const STEPS_PER_ROUND: u64 = 5;

/// A cable between two interfaces that controls the TCP flows selected by a policy.
#[derive(Debug)]
pub struct Enforcer {
    cable: Inline,
    ends: InterfacePair,
    /// An event descriptor that is never written to.
    never: OwnedFd,
    metrics: Option<EnforcerMetrics>,
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
        let rules = Box::new(PolicyRules::new(policy, &ends.names));
        let tcon: Tcon<Segment> = Tcon::new(limits, rules, seed);
        Ok(Self {
            cable: Inline::new(ports, tcon),
            ends,
            never: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
            metrics: None,
            steps: 0,
        })
    }

    fn tcon(&self) -> Option<&Tcon<Segment>> {
        self.cable.element()
    }

    fn totals(&self) -> Totals {
        let Some(tcon) = self.tcon() else {
            return Totals::default();
        };
        let (counters, connections) = (tcon.counters(), tcon.connections());
        Totals {
            controlled: counters.flows - counters.ended,
            passed: counters.passed,
            idle: connections.idle,
            opened: connections.opened,
            closed: connections.closed,
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
        let passed = self.cable.counters;
        let counters = tcon.counters();
        let (kept, most) = (tcon.kept(), tcon.most_kept());
        InlineCounts {
            frames: passed.frames,
            untouched: passed.untouched,
            segments: passed.segments,
            overrun: self.ends.overrun,
            unreadable: passed.unreadable,
            full: passed.full,
            too_long: passed.too_long,
            down: passed.down,
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
        }
    }
}

/// Enforcement as a cable between two interfaces.
impl Enforce for Enforcer {
    type Error = io::Error;

    fn set_registry(&mut self, registry: &Registry) {
        self.metrics = Some(EnforcerMetrics::register(registry, PlaneKind::InLine));
    }

    fn set_policy(&mut self, policy: Policy) {
        let rules = Box::new(PolicyRules::new(policy, &self.ends.names));
        if let Some(tcon) = self.cable.switch.element_mut::<Tcon<Segment>>() {
            tcon.set_policy(rules);
        }
    }

    fn step(&mut self) -> io::Result<()> {
        self.cable.run_for(&self.never, STEP)?;
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_ROUND) {
            self.ends.look_at(&self.cable.ports);
            if let Some(metrics) = &self.metrics {
                metrics.set(&self.totals(), self.classes());
            }
        }
        Ok(())
    }

    fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ends.gone)
    }

    fn is_over(&self) -> bool {
        !self.ends.exist
    }

    fn status(&self) -> Status {
        let reports = self.tcon().into_iter().flat_map(Tcon::flows);
        let flows = reports.map(|report| {
            let egress = report.egress;
            let interface = egress.map_or(String::new(), |port| self.ends.name_of(port));
            FlowStatus::of(&report, interface)
        });
        Status::new(self.ends.names.to_vec(), self.totals(), flows)
    }
}
