//! Transparent congestion control between two interfaces, by a policy.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use weir_fabric::PortIndex;
use weir_metrics::Registry;
use weir_scenario::Policy;
use weir_tcon::{FlowReport, Limits, Tcon};
use weir_units::Duration;

use super::rules::Rules;
use super::{Inline, SIDES};
use crate::operation::{Enforce, Figures, FlowStatus, InLine, Status, Totals};
use crate::port::{PacketSocket, Port, PortError};
use crate::segment::Segment;

/// For how long frames pass before somebody else has a turn.
const STEP: Duration = Duration::from_millis(50);

/// How often, in steps, figures are brought up to date, and interfaces looked after.
const STEPS_PER_ROUND: u64 = 5;

/// Why there can be no cable.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Both ends are the same.
    #[error("`{0}` is at both ends: a cable joins two interfaces")]
    SameInterface(String),
    /// Somebody else passes the frames on already.
    #[error(
        "`{name}` is a port of `{master}`, which passes its frames on too: `ip link set {name} nomaster` \
         frees it"
    )]
    InUse {
        /// The interface.
        name: String,
        /// The bridge, bond or virtual router that has it.
        master: String,
    },
    /// An interface is not there, or may not be used.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Something else.
    #[error("making an event descriptor: {0}")]
    System(#[from] io::Error),
}

/// A cable between two interfaces that controls the TCP flows which a policy names.
#[derive(Debug)]
pub struct Enforcer {
    cable: Inline,
    interfaces: [String; 2],
    /// Nobody writes to it.
    never: OwnedFd,
    figures: Option<Figures>,
    gone: Vec<String>,
    /// Whether both interfaces are there.
    is_whole: bool,
    /// Frames that were not read in time.
    overrun: u64,
    steps: u64,
}

impl Enforcer {
    /// Joins two interfaces of the calling thread's network namespace, which take all frames from then on,
    /// whomever they are for. `seed` decides whatever the algorithms randomize.
    ///
    /// # Errors
    /// [`AttachError`]: an interface that is not there, carries no Ethernet frames, is the other one or in use; no
    /// permission.
    pub fn attach(
        interfaces: [&str; 2],
        policy: Policy,
        limits: Limits,
        seed: u64,
    ) -> Result<Self, AttachError> {
        let [one, other] = interfaces.map(bind);
        let ports = [one?, other?];
        let [one, other] = &ports;
        if one.interface() == other.interface() {
            return Err(AttachError::SameInterface(interfaces[1].to_owned()));
        }
        for port in &ports {
            port.set_promiscuous()?;
        }
        let interfaces = interfaces.map(str::to_owned);
        let rules = Box::new(Rules::new(policy, &interfaces));
        let tcon: Tcon<Segment> = Tcon::new(limits, rules, seed);
        Ok(Self {
            cable: Inline::new(ports.map(Port::from), tcon),
            interfaces,
            never: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
            figures: None,
            gone: Vec::new(),
            is_whole: true,
            overrun: 0,
            steps: 0,
        })
    }

    fn tcon(&self) -> Option<&Tcon<Segment>> {
        self.cable.element()
    }

    /// What has disappeared, and what was lost unread.
    fn look_after_ports(&mut self) {
        let gone = |(name, port): (&String, &Port)| (!port.is_attached()).then(|| name.clone());
        let ports = self.cable.ports();
        self.overrun += ports.iter().map(Port::take_dropped).sum::<u64>();
        let missing = self.interfaces.iter().zip(ports).filter_map(gone);
        self.gone = missing.collect();
        self.is_whole = self.gone.is_empty();
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

    fn in_line(&self, tcon: &Tcon<Segment>) -> InLine {
        let passed = self.cable.counters();
        let counters = tcon.counters();
        let (kept, most) = (tcon.kept(), tcon.most_kept());
        InLine {
            frames: passed.frames,
            untouched: passed.untouched,
            segments: passed.segments,
            overrun: self.overrun,
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

    fn flow_status(&self, report: &FlowReport) -> FlowStatus {
        let end = |address, port| std::net::SocketAddr::new(address, port).to_string();
        let (flow, counters) = (report.flow, report.counters);
        FlowStatus {
            from: end(flow.source, flow.source_port),
            to: end(flow.destination, flow.destination_port),
            interface: report
                .egress
                .map_or(String::new(), |port| self.name_of(port)),
            congestion: report.congestion.to_owned(),
            rule: report.rule,
            rtt_us: report.rtt.as_nanos() as f64 / 1e3,
            window: report.window.bytes(),
            enforced: report.enforced.bytes(),
            pacing_rate: report.pacing_rate.map(weir_units::Rate::bits_per_second),
            in_flight: report.in_flight.bytes(),
            delivered: counters.delivered.bytes(),
            marked: counters.marked.bytes(),
            sent_again: counters.sent_again.bytes(),
            masked: counters.masked.bytes(),
            kept: report.kept.bytes(),
            lowered: counters.lowered,
        }
    }

    fn name_of(&self, port: PortIndex) -> String {
        let mut sides = SIDES.iter().zip(&self.interfaces);
        let found = sides.find(|(side, _)| **side == port);
        found.map_or(String::new(), |(_, name)| name.clone())
    }
}

/// As a cable between two interfaces.
impl Enforce for Enforcer {
    type Error = io::Error;

    fn set_registry(&mut self, registry: &Registry) {
        self.figures = Some(Figures::register(registry, &self.totals()));
    }

    fn set_policy(&mut self, policy: Policy) {
        let rules = Box::new(Rules::new(policy, &self.interfaces));
        if let Some(tcon) = self.cable.element_mut::<Tcon<Segment>>() {
            tcon.set_policy(rules);
        }
    }

    fn step(&mut self) -> io::Result<()> {
        self.cable.run_for(&self.never, STEP)?;
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_ROUND) {
            self.look_after_ports();
            if let Some(figures) = &self.figures {
                figures.set(&self.totals());
            }
        }
        Ok(())
    }

    fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.gone)
    }

    fn is_over(&self) -> bool {
        !self.is_whole
    }

    fn status(&self) -> Status {
        let reports = self.tcon().into_iter().flat_map(Tcon::flows);
        let mut flows: Vec<_> = reports.map(|report| self.flow_status(&report)).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.delivered));
        Status {
            interfaces: self.interfaces.to_vec(),
            totals: self.totals(),
            flows,
        }
    }
}

/// A socket at an interface that nobody else passes frames on from.
fn bind(name: &str) -> Result<PacketSocket, AttachError> {
    let socket = PacketSocket::bind(name)?;
    match master(name, socket.interface()) {
        Some(master) => Err(AttachError::InUse {
            name: name.to_owned(),
            master,
        }),
        None => Ok(socket),
    }
}

/// The bridge, bond or virtual router that an interface is a port of, as far as /sys tells, which may be of
/// another network namespace.
fn master(name: &str, index: u32) -> Option<String> {
    let folder = std::path::Path::new("/sys/class/net").join(name);
    let shown = std::fs::read_to_string(folder.join("ifindex")).ok()?;
    if shown.trim().parse() != Ok(index) {
        return None;
    }
    let master = std::fs::read_link(folder.join("master")).ok()?;
    Some(master.file_name()?.to_str()?.to_owned())
}
