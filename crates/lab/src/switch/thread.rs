//! The switch's thread: delivers due packets, reads new frames, and waits.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, TryRecvError};

use rustix::event::{PollFd, PollFlags};
use rustix::time::ClockId;
use smallvec::{SmallVec, smallvec};
use weir_enforce::segment::Segment;
use weir_fabric::PortChange;
use weir_network::{ControlPlane, Network, PortMeter, Seeds};
use weir_results::{Emulation, PortSummary, TconSummary};
use weir_scenario::{PortIndex, Scenario, Topology};
use weir_sed::{DemandRule, DemandTable};
use weir_units::{Duration, Time};

use super::SwitchError;
use super::address_owners::AddressOwners;
use super::capture::CaptureSender;
use super::command::{HostSocket, PortReading, SwitchCommand};
use super::fidelity::Fidelity;
use super::losses::Losses;
use super::rx_batch::RxBatch;
use super::tx_port::{TxPort, TxTarget};
use super::wake_up_latency::WakeUpLatency;
use crate::clock::{self, Clock};

/// The number of packets that may be pending before they are handed over.
const BATCH: usize = 64;
/// Up to this many hosts' interfaces, waiting allocates nothing.
const DOORS: usize = 32;
/// The longest sleep.
const IDLE: Duration = Duration::from_secs(1);

/// The report of a stopped switch.
#[derive(Clone, Debug)]
pub struct SwitchReport {
    /// The measured ports by name, since the end of the warm-up.
    pub ports: Vec<(String, PortSummary)>,
    /// The counters of switches with transparent congestion control, by name, since the start.
    pub tcon: Vec<(String, TconSummary)>,
    /// The fidelity of the emulation.
    pub emulation: Emulation,
    /// Whether its thread had real-time priority.
    pub real_time: bool,
    /// Frames that hosts sent, super-packets counted once.
    pub frames: u64,
    /// Of these, frames that were not IP or had no destination here.
    pub ignored: u64,
    /// Frames for hosts whose interface was down or gone.
    pub undeliverable: u64,
    /// Packets that were not captured because the receiver was too slow.
    pub uncopied: u64,
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct SwitchThread {
    clock: Clock,
    /// The time by which the clock is ahead of the run's.
    lead: Duration,
    topology: Topology,
    network: Network<Segment>,
    /// SED's controller with its channels, and the time of its next event.
    sed: Option<ControlPlane>,
    sed_timeout: Time,
    /// The time up to which the network has run.
    reached: Time,
    interfaces: Vec<SwitchInterface>,
    /// For each port of the topology that leads to a host, the index of the host's interface.
    interface_at: Vec<Option<usize>>,
    rx_batch: RxBatch,
    /// The number of packets to be handed over, and the interfaces that have some.
    pending_packets: usize,
    open: Vec<usize>,
    meters: Vec<PortMeter>,
    copier: Option<CaptureSender>,
    fidelity: Fidelity,
    /// The CPU time used before the measurement began.
    cpu_before: Duration,
}

/// Why the thread is awake.
#[derive(Debug)]
struct WakeReason {
    by_orders: bool,
    /// The interfaces that have frames, and the earliest time at which these may have arrived.
    interfaces: SmallVec<[usize; DOORS]>,
    there_since: Time,
}

/// An interface of a host, in and out.
#[derive(Debug)]
struct SwitchInterface {
    socket: HostSocket,
    tx_port: TxPort,
    /// Whether the interface still exists.
    exists: bool,
}

impl HostSocket {
    fn exit(&self, clock: Clock) -> TxTarget<'_> {
        TxTarget {
            port: &self.device,
            to: self.mac,
            clock,
        }
    }
}

impl SwitchThread {
    pub(super) fn new(
        scenario: &Scenario,
        (clock, lead): (Clock, Duration),
        (owners, demands): (AddressOwners, Vec<DemandRule>),
        sockets: Vec<HostSocket>,
        addresses: &[(IpAddr, PortIndex)],
    ) -> Result<Self, SwitchError> {
        let topology = scenario.topology.clone();
        let measured = &scenario.measurements.ports;
        let seeds = Seeds::new(scenario.seed);
        let mut network = Network::new(&topology, measured, Duration::ZERO, |_| true, seeds)?;
        network.add_tcon(&topology, seeds, &owners);
        let demands = DemandTable::new(demands, usize::MAX);
        let sed = ControlPlane::new(scenario, seeds, demands, &mut network);
        let mut door_at = vec![None; topology.ports.len()];
        for (position, socket) in sockets.iter().enumerate() {
            if let Some(interface) = door_at.get_mut(socket.port.reverse().index()) {
                *interface = Some(position);
            }
        }
        let interface = |socket| SwitchInterface {
            socket,
            tx_port: TxPort::default(),
            exists: true,
        };
        let mut runner = Self {
            clock,
            lead,
            network,
            sed,
            sed_timeout: Time::MAX,
            reached: Time::ZERO,
            interfaces: sockets.into_iter().map(interface).collect(),
            interface_at: door_at,
            rx_batch: RxBatch::new(clock),
            pending_packets: 0,
            open: Vec::new(),
            meters: measured
                .iter()
                .map(|port| PortMeter::new(*port, topology.port(*port)))
                .collect(),
            copier: None,
            fidelity: Fidelity::new(&topology, scenario.live.delay_error),
            cpu_before: Duration::ZERO,
            topology,
        };
        for (address, port) in addresses {
            runner.assign(*address, *port);
        }
        Ok(runner)
    }

    /// Captures the packets that pass measured ports, if there is a sender.
    pub(super) fn with_copier(mut self, copier: Option<CaptureSender>) -> Self {
        self.network.set_tapped(copier.is_some());
        self.copier = copier;
        self
    }

    /// Runs until it receives [`SwitchCommand::Stop`].
    pub(super) fn run(
        mut self,
        orders: &Receiver<SwitchCommand>,
        wake: &OwnedFd,
        real_time: bool,
    ) -> Result<SwitchReport, SwitchError> {
        let mut waiter = WakeUpLatency::new(self.clock);
        loop {
            self.deliver_due();
            let woken = self.wait(wake, &mut waiter)?;
            for position in woken.interfaces {
                self.read(position, woken.there_since);
            }
            if woken.by_orders && self.is_told_to_stop(orders, wake) {
                return Ok(self.report(real_time));
            }
        }
    }

    /// Delivers all packets that are due by now.
    fn deliver_due(&mut self) {
        let now = self.clock.now();
        loop {
            let (due, port) = self.network.next_event();
            if self.sed_timeout <= due.min(now) {
                self.control();
                continue;
            }
            if due > now {
                break;
            }
            self.reached = due;
            let packet = self.network.deliver(due, port);
            // A packet that has reached a host has passed no agent since the last event.
            if self.sed.is_some() && packet.is_none() {
                self.collect_reports();
            }
            if port >= self.topology.ports.len() {
                // A timeout of a switch's element.
                continue;
            }
            let delivered = self.network.delivered(port);
            self.fidelity.link_delivered(port, due, now, delivered);
            if let Some(packet) = packet {
                self.hand_over(due, port, &packet);
            }
            if self.pending_packets >= BATCH {
                self.flush();
            }
        }
        self.flush();
        if let Some(copier) = &mut self.copier {
            copier.hand_on_old(now - self.lead);
        }
    }

    /// Runs the due events of SED's controller.
    fn control(&mut self) {
        self.reached = self.reached.max(self.sed_timeout);
        if let Some(sed) = &mut self.sed {
            sed.handle_timeout(self.reached, &mut self.network);
            sed.collect(self.reached, &mut self.network);
            self.sed_timeout = sed.timeout(self.reached).unwrap_or(Time::MAX);
        }
    }

    /// Passes the agents' reports to SED's controller, if there is one.
    fn collect_reports(&mut self) {
        if let Some(sed) = &mut self.sed
            && sed.collect(self.reached, &mut self.network)
        {
            self.sed_timeout = sed.timeout(self.reached).unwrap_or(Time::MAX);
        }
    }

    /// Queues a packet that has left the link of `port`, which leads to a host.
    fn hand_over(&mut self, due: Time, port: usize, packet: &Segment) {
        let position = self.interface_at.get(port).copied().flatten();
        let Some((position, interface)) =
            position.and_then(|position| Some((position, self.interfaces.get_mut(position)?)))
        else {
            return;
        };
        let exit = interface.socket.exit(self.clock);
        if interface
            .tx_port
            .push(due, packet, exit, &mut self.fidelity)
        {
            self.open.push(position);
        }
        self.pending_packets += 1;
    }

    /// Hands over all queued packets.
    fn flush(&mut self) {
        for position in self.open.drain(..) {
            if let Some(interface) = self.interfaces.get_mut(position) {
                let exit = interface.socket.exit(self.clock);
                interface.tx_port.flush(exit, &mut self.fidelity);
            }
        }
        self.pending_packets = 0;
        if let Some(copier) = &mut self.copier {
            for (time, port, packet) in self.network.take_tapped() {
                copier.copy(time - self.lead, port, &packet);
            }
        }
    }

    /// Waits for the next event, for frames of hosts whose links have room, and for commands.
    fn wait(&self, wake: &OwnedFd, waiter: &mut WakeUpLatency) -> Result<WakeReason, SwitchError> {
        let now = self.clock.now();
        let due = self.network.next_event().0.min(self.sed_timeout);
        let mut until = due.min(now + IDLE);
        let mut sources: SmallVec<[_; DOORS]> = smallvec![PollFd::new(wake, PollFlags::IN)];
        let mut positions: SmallVec<[_; DOORS]> = SmallVec::new();
        for (position, interface) in self.interfaces.iter().enumerate() {
            if !interface.exists {
                continue;
            }
            let room_at = self.network.room_at(interface.socket.port.index() as u32);
            if room_at > now {
                until = until.min(room_at);
                continue;
            }
            positions.push(position);
            sources.push(PollFd::from_borrowed_fd(
                interface.socket.device.as_fd(),
                PollFlags::IN,
            ));
        }
        let there_since =
            waiter
                .wait(until, &mut sources)
                .map_err(|source| SwitchError::System {
                    action: "waiting for frames",
                    source,
                })?;
        let mut ready = sources.iter().map(|source| !source.revents().is_empty());
        let by_orders = ready.next().unwrap_or(false);
        let interfaces = ready.zip(positions).filter(|(ready, _)| *ready);
        Ok(WakeReason {
            by_orders,
            interfaces: interfaces.map(|(_, position)| position).collect(),
            there_since,
        })
    }

    fn read(&mut self, position: usize, there_since: Time) {
        let Some(interface) = self.interfaces.get_mut(position) else {
            return;
        };
        let port = interface.socket.port.index() as u32;
        let (intake, network) = (&mut self.rx_batch, &mut self.network);
        interface.exists = intake.read(&interface.socket.device, port, there_since, network);
    }

    fn is_told_to_stop(&mut self, orders: &Receiver<SwitchCommand>, wake: &OwnedFd) -> bool {
        // Before the commands are taken: a later command wakes the thread again.
        let _ = rustix::io::read(wake, &mut [0; 8]);
        loop {
            match orders.try_recv() {
                Ok(SwitchCommand::Stop) | Err(TryRecvError::Disconnected) => return true,
                Ok(command) => self.handle_command(command),
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    fn handle_command(&mut self, command: SwitchCommand) {
        // The network must not change before its due events have run.
        self.deliver_due();
        let now = self.clock.now().max(self.reached);
        match command {
            SwitchCommand::Apply(port, change) => self.apply(now, port, change),
            SwitchCommand::ChangeQueue(port, settings) => {
                self.network.change_queue(now, port, &settings);
            }
            SwitchCommand::ChangeSharedBuffer(switch, buffer) => {
                // The reader of the scenario has checked it.
                let changed = self.network.change_shared_buffer(switch, &buffer);
                debug_assert!(changed.is_ok());
            }
            SwitchCommand::Assign(address, port) => self.assign(address, port),
            SwitchCommand::Withdraw(address) => {
                self.rx_batch.destinations.remove(&address);
            }
            SwitchCommand::Begin => self.begin(now),
            SwitchCommand::Sample(answer) => {
                // If the caller does not wait for the answer, it has dropped the receiver.
                let _ = answer.send(self.sample(now));
            }
            SwitchCommand::Stop => {}
        }
    }

    fn apply(&mut self, now: Time, port: PortIndex, change: PortChange) {
        self.network.apply(now, port, change);
        if let PortChange::Rate(rate) = change {
            self.fidelity.set_rate(port, rate);
            let meters = self.meters.iter_mut();
            for meter in meters.filter(|meter| meter.port == port) {
                meter.set_rate(now, rate);
            }
        }
    }

    fn assign(&mut self, address: IpAddr, port: PortIndex) {
        if let Some(host) = self.topology.port(port).from.host() {
            let destination = Network::<Segment>::destination_at(&self.topology, host, port);
            self.rx_batch.destinations.insert(address, destination);
        }
    }

    fn begin(&mut self, now: Time) {
        for meter in &mut self.meters {
            if let Some(egress_port) = self.network.advance(now, meter.port) {
                meter.begin(now, egress_port);
            }
            self.network.reset_occupancy(now, meter.port);
        }
        self.fidelity.begin();
        self.cpu_before = clock::read(ClockId::ThreadCPUTime);
    }

    fn sample(&mut self, now: Time) -> Vec<PortReading> {
        let mut samples = Vec::with_capacity(self.meters.len());
        for meter in &self.meters {
            let Some(egress_port) = self.network.advance(now, meter.port) else {
                continue;
            };
            let sample = meter.sample(now, egress_port);
            samples.push(PortReading {
                port: meter.port,
                time: now - self.lead,
                queue: sample.queue,
                queue_packets: sample.queue_packets,
                sent: sample.sent,
                marks: sample.marks,
                drops: sample.drops,
            });
        }
        samples
    }

    fn report(mut self, real_time: bool) -> SwitchReport {
        self.deliver_due();
        let now = self.clock.now().max(self.reached);
        let mut ports = Vec::with_capacity(self.meters.len());
        for meter in &mut self.meters {
            if let Some(egress_port) = self.network.advance(now, meter.port) {
                ports.push((meter.name.clone(), meter.summary(now, egress_port)));
            }
        }
        let mut losses = Losses::default();
        for interface in &self.interfaces {
            losses.full += interface.tx_port.losses.full;
            losses.down += interface.tx_port.losses.down;
        }
        let cpu = clock::read(ClockId::ThreadCPUTime);
        let cpu = cpu.checked_sub(self.cpu_before).unwrap_or(Duration::ZERO);
        SwitchReport {
            ports,
            tcon: self.network.tcon_summaries(&self.topology),
            emulation: self.fidelity.emulation(&self.topology, losses, cpu),
            real_time,
            frames: self.rx_batch.read,
            ignored: self.rx_batch.ignored,
            undeliverable: losses.down,
            uncopied: self.copier.map_or(0, CaptureSender::finish),
        }
    }
}
