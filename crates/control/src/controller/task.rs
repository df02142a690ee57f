//! The controller's main task: owns the logic, processes the messages of all peers in turn, and
//! decides.

use std::net::IpAddr;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use weir_sed::{Controller as Logic, Demand, PortId, SwitchReport};
use weir_units::{Duration, Time};
use weir_wire::FlowKey;

use super::ControllerError;
use super::clock::Clock;
use super::metrics::ControllerMetrics;
use super::refusal::Refusal;
use super::senders::Senders;
use super::status;
use super::switches::{Hello, PeerSession, ReplySender, Switches};
use crate::leader_epoch::{EpochFile, LeaderEpoch};
use crate::quota::LogQuota;
use crate::translate;
use crate::v1;

/// The reply to a waiting request.
type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// The session of an accepted peer.
#[derive(Debug)]
pub(super) struct AdmittedPeer {
    pub(super) session: u64,
    /// Completes when the task has ended the session.
    pub(super) over: oneshot::Receiver<()>,
}

/// A sender's report of a flow.
#[derive(Clone, Debug)]
pub(super) enum SenderReport {
    /// It begins, or its demand changes. `client` is the sender's address.
    Flow {
        client: IpAddr,
        flow: FlowKey,
        segment: u32,
        demand: Option<Demand>,
    },
    Acknowledged {
        flow: FlowKey,
        bytes: u64,
    },
    Closed {
        flow: FlowKey,
    },
}

/// An input of the task.
#[derive(Debug)]
pub(super) enum ControllerInput {
    Attach {
        hello: Hello,
        outgoing: ReplySender,
        answer: Answer<AdmittedPeer>,
    },
    Reports {
        session: u64,
        beat: u64,
        reports: Vec<SwitchReport>,
    },
    Register {
        client: IpAddr,
        flows: weir_sed::FlowPattern,
        demand: Demand,
        answer: Answer<()>,
    },
    Withdraw {
        client: IpAddr,
        flows: weir_sed::FlowPattern,
        answer: Answer<bool>,
    },
    AttachSender {
        leader_epoch: Option<LeaderEpoch>,
        outgoing: ReplySender,
        answer: Answer<AdmittedPeer>,
    },
    SenderReports {
        session: u64,
        beat: u64,
        reports: Vec<SenderReport>,
    },
    /// Demands of flows whose applications register nothing.
    SetRules(Vec<weir_sed::DemandRule>),
    /// A stream has ended, for any reason.
    Detach { session: u64 },
    /// A message was invalid: its sender is being disconnected.
    Malformed { whose: String, refusal: Refusal },
    Show {
        flows: usize,
        answer: Answer<v1::Status>,
    },
}

/// The task.
#[derive(Debug)]
pub(super) struct ControllerTask {
    logic: Logic,
    clock: Clock,
    state: EpochFile,
    switches: Switches,
    senders: Senders,
    sessions: u64,
    quota: LogQuota,
    metrics: ControllerMetrics,
}

/// The most messages that are processed before windows are computed: they are decided together.
const TOGETHER: usize = 256;
/// How often unused registrations are removed.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(60);

/// The heartbeats of either end per lease.
pub(crate) const BEATS: u64 = 8;

impl ControllerTask {
    pub(super) fn new(logic: Logic, state: EpochFile, metrics: ControllerMetrics) -> Self {
        Self {
            logic,
            clock: Clock::start(),
            state,
            switches: Switches::default(),
            senders: Senders::default(),
            sessions: 0,
            quota: LogQuota::new(Instant::now()),
            metrics,
        }
    }

    fn heartbeat(&self) -> Duration {
        self.logic.config().lease / BEATS
    }

    fn term(&self) -> u64 {
        self.state.leader_epoch().term
    }

    /// Processes inputs and decides, until all of their senders are dropped.
    pub(super) async fn run(
        mut self,
        mut inputs: mpsc::Receiver<ControllerInput>,
    ) -> Result<(), ControllerError> {
        let mut received = Vec::with_capacity(TOGETHER);
        let mut beats = interval(std::time::Duration::from_nanos(
            self.heartbeat().as_nanos().max(1_000_000),
        ));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sweeps = interval(SWEEP);
        loop {
            let now = self.clock.now();
            let next = self.logic.timeout(now);
            let due = next.map(|time| self.clock.instant(time).into());
            tokio::select! {
                count = inputs.recv_many(&mut received, TOGETHER) => if count == 0 {
                    return Ok(());
                },
                () = sleep_until(due.unwrap_or_else(tokio::time::Instant::now)), if due.is_some() => {}
                _ = beats.tick() => self.beat(),
                _ = sweeps.tick() => self.logic.forget_unused_demands(),
            }
            let begin = Instant::now();
            let decides = received
                .iter()
                .any(|input| matches!(input, ControllerInput::Reports { .. }));
            for input in received.drain(..) {
                self.handle_input(input)?;
            }
            self.decide();
            if decides {
                self.metrics.decided(begin.elapsed());
            }
            self.metrics
                .show(&self.logic, &mut self.switches, &self.senders);
        }
    }

    /// Computes the windows that are due, and sends the orders.
    fn decide(&mut self) {
        let now = self.clock.now();
        if self.logic.timeout(now).is_some_and(|time| time <= now) {
            self.logic.handle_timeout(now);
        }
        while let Some((number, order)) = self.logic.next_order() {
            if self.senders.take(number, &order) {
                continue;
            }
            let switch = self.switches.by_number.get_mut(&number);
            if let Some(session) = switch.and_then(|switch| switch.session.as_mut()) {
                session.order(&order);
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        let term = self.term();
        let mut slow = Vec::new();
        let agents = self.switches.sessions().map(|(_, session)| session);
        for session in agents.chain(self.senders.sessions()) {
            if !session.flush(term) {
                slow.push(session.id);
            }
        }
        for session in slow {
            self.detach(session, "it does not take what it is told");
        }
    }

    /// Sends heartbeats, and disconnects silent peers.
    fn beat(&mut self) {
        let now = self.clock.now();
        let (term, lease) = (self.term(), self.logic.config().lease);
        let mut silent = Vec::new();
        let agents = self.switches.sessions().map(|(_, session)| session);
        for session in agents.chain(self.senders.sessions()) {
            match now.checked_since(session.received) {
                Some(since) if since > lease => silent.push(session.id),
                _ => session.beat(term),
            }
        }
        for session in silent {
            self.detach(session, "nothing is heard of it");
        }
    }

    fn handle_input(&mut self, input: ControllerInput) -> Result<(), ControllerError> {
        match input {
            ControllerInput::Attach {
                hello,
                outgoing,
                answer,
            } => self.attach(hello, outgoing, answer)?,
            ControllerInput::Reports {
                session,
                beat,
                reports,
            } => self.report(session, beat, reports),
            ControllerInput::Register {
                client,
                flows,
                demand,
                answer,
            } => {
                let registered = self.logic.register(self.clock.now(), client, flows, demand);
                self.metrics.registered(registered.is_ok());
                reply(answer, registered.map_err(Refusal::from));
            }
            ControllerInput::Withdraw {
                client,
                flows,
                answer,
            } => {
                let withdrawn = self.logic.demands_mut().withdraw(client, flows);
                reply(answer, withdrawn.map_err(Refusal::from));
            }
            ControllerInput::AttachSender {
                leader_epoch,
                outgoing,
                answer,
            } => self.attach_sender(leader_epoch, outgoing, answer)?,
            ControllerInput::SenderReports {
                session,
                beat,
                reports,
            } => self.sender_reports(session, beat, reports),
            ControllerInput::SetRules(rules) => self.logic.demands_mut().set_rules(rules),
            ControllerInput::Detach { session } => self.detach(session, "its connection has ended"),
            ControllerInput::Malformed { whose, refusal } => {
                self.metrics.garbled();
                if let Some(left_out) = self.quota.take(Instant::now()) {
                    tracing::warn!(whose, %refusal, left_out, "a message makes no sense");
                }
            }
            ControllerInput::Show { flows, answer } => {
                let status = status::of(
                    &self.logic,
                    &self.switches,
                    self.state.leader_epoch(),
                    &self.clock,
                    flows,
                );
                let senders = self.senders.attached.len() as u64;
                reply(answer, Ok(v1::Status { senders, ..status }));
            }
        }
        Ok(())
    }

    /// Checks whether this controller may give orders, by the controller that an agent last obeyed.
    ///
    /// A later controller of this one's name ends this one.
    fn check(&self, whose: &str, leader_epoch: Option<&LeaderEpoch>) -> Result<(), CheckError> {
        let own = self.state.leader_epoch();
        match leader_epoch {
            Some(other) if other.name != own.name => {
                Err(CheckError::Refused(Refusal::Governed(other.clone())))
            }
            Some(other) if other.term > own.term => {
                Err(CheckError::Superseded(ControllerError::Superseded {
                    switch: whose.to_owned(),
                    later: other.term,
                    own: own.term,
                }))
            }
            _ => Ok(()),
        }
    }

    fn attach(
        &mut self,
        hello: Hello,
        outgoing: ReplySender,
        answer: Answer<AdmittedPeer>,
    ) -> Result<(), ControllerError> {
        match self.check(&hello.name, hello.leader_epoch.as_ref()) {
            Ok(()) => {}
            Err(error) => return self.refuse(&hello.name, error, answer),
        }
        let number = match self.switches.number(&hello.name) {
            Ok(number) => number,
            Err(refusal) => {
                reply(answer, Err(refusal));
                return Ok(());
            }
        };
        let (mut session, admitted) = self.admit(outgoing);
        let config = self.logic.config().agent(hello.slowest());
        session.welcome(v1::Welcome {
            settings: Some(translate::to_settings(&config)),
            ..self.welcome()
        });
        session.order(&weir_sed::WindowOrder::Describe);
        self.logic.remove_switch(number);
        self.senders.forget_switch(number);
        for port in &hello.ports {
            let id = PortId {
                switch: number,
                port: port.number,
            };
            self.logic.add_port(id, port.rate);
            if let Some(buffer) = port.buffer {
                self.logic.set_buffer(id, buffer);
            }
        }
        tracing::info!(switch = hello.name, ports = hello.ports.len(), "attached");
        self.switches.attach(number, hello, session);
        self.place_senders(number);
        reply(answer, Ok(admitted));
        Ok(())
    }

    fn refuse(
        &mut self,
        whose: &str,
        error: CheckError,
        answer: Answer<AdmittedPeer>,
    ) -> Result<(), ControllerError> {
        match error {
            CheckError::Refused(refusal) => {
                if let Some(left_out) = self.quota.take(Instant::now()) {
                    tracing::warn!(whose, %refusal, left_out, "refused");
                }
                reply(answer, Err(refusal));
                Ok(())
            }
            CheckError::Superseded(error) => {
                reply(answer, Err(Refusal::Superseded(self.term())));
                Err(error)
            }
        }
    }

    fn welcome(&self) -> v1::Welcome {
        let own = self.state.leader_epoch();
        v1::Welcome {
            leader_epoch: Some(v1::LeaderEpoch {
                name: own.name.clone(),
                term: own.term,
            }),
            heartbeat_nanoseconds: self.heartbeat().as_nanos(),
            lease_nanoseconds: self.logic.config().lease.as_nanos(),
            settings: None,
        }
    }

    fn admit(&mut self, outgoing: ReplySender) -> (PeerSession, AdmittedPeer) {
        self.sessions += 1;
        let (end, over) = oneshot::channel();
        let session = PeerSession::new(self.sessions, outgoing, end, self.clock.now());
        let admitted = AdmittedPeer {
            session: self.sessions,
            over,
        };
        (session, admitted)
    }

    fn attach_sender(
        &mut self,
        leader_epoch: Option<LeaderEpoch>,
        outgoing: ReplySender,
        answer: Answer<AdmittedPeer>,
    ) -> Result<(), ControllerError> {
        match self.check("of a sender", leader_epoch.as_ref()) {
            Ok(()) => {}
            // A sender, which is not a switch, cannot end a controller.
            Err(CheckError::Superseded(_)) => {
                let refusal = Refusal::Superseded(self.term());
                return self.refuse("a sender", CheckError::Refused(refusal), answer);
            }
            Err(error) => return self.refuse("a sender", error, answer),
        }
        let (session, admitted) = self.admit(outgoing);
        session.welcome(self.welcome());
        self.senders.attach(session);
        reply(answer, Ok(admitted));
        Ok(())
    }

    fn report(&mut self, session: u64, beat: u64, reports: Vec<SwitchReport>) {
        let now = self.clock.now();
        let Some((number, session)) = self.switches.session(session) else {
            return;
        };
        session.note_heartbeat(now, beat);
        for report in reports {
            self.logic.receive(now, number, report);
        }
    }

    fn sender_reports(&mut self, session: u64, beat: u64, reports: Vec<SenderReport>) {
        let now = self.clock.now();
        match self.senders.session(session) {
            Some(known) => known.note_heartbeat(now, beat),
            None => return,
        }
        for report in reports {
            if let Err(refusal) = self.sender_report(now, session, report) {
                self.metrics.registered(false);
                if let Some(left_out) = self.quota.take(Instant::now()) {
                    tracing::warn!(%refusal, left_out, "a sender's flow is not looked after");
                }
            }
        }
    }

    fn sender_report(
        &mut self,
        now: Time,
        session: u64,
        report: SenderReport,
    ) -> Result<(), Refusal> {
        match report {
            SenderReport::Flow {
                client,
                flow,
                segment,
                demand,
            } => {
                if let Some(demand) = demand {
                    self.logic.register(now, client, flow, demand)?;
                }
                // A flow that was silent for long may have been removed: it is placed again then.
                if self.senders.open(session, flow, segment, demand)? {
                    self.place(now, &flow, segment, demand, None);
                }
            }
            SenderReport::Acknowledged { flow, bytes } => {
                if self.senders.acknowledge(session, &flow, bytes) {
                    let acknowledged = vec![(flow, bytes)];
                    self.report_at_ports(now, &flow, SwitchReport::Counters { acknowledged });
                }
            }
            SenderReport::Closed { flow } => {
                if self.senders.close(session, &flow) {
                    self.report_at_ports(now, &flow, SwitchReport::Closed { flow });
                }
            }
        }
        Ok(())
    }

    /// Places a sender's flow at the ports that lead to its receiver, of all switches or of one.
    fn place(
        &mut self,
        now: Time,
        flow: &FlowKey,
        segment: u32,
        demand: Option<Demand>,
        only: Option<u32>,
    ) {
        for (switch, port) in self.switches.towards(flow.destination) {
            if only.is_some_and(|only| only != switch) {
                continue;
            }
            let opened = SwitchReport::Opened {
                flow: *flow,
                port,
                age: Duration::ZERO,
                demand,
            };
            self.logic.receive(now, switch, opened);
            let accepted = SwitchReport::Accepted {
                flow: *flow,
                segment,
                reverse_port: port,
            };
            self.logic.receive(now, switch, accepted);
        }
    }

    /// Places senders' flows at the ports of a switch that has just attached.
    fn place_senders(&mut self, switch: u32) {
        let now = self.clock.now();
        let flows = self.senders.flows();
        let flows: Vec<_> = flows
            .map(|(flow, known)| (*flow, known.segment, known.demand, known.acknowledged))
            .collect();
        for (flow, segment, demand, bytes) in flows {
            self.place(now, &flow, segment, demand, Some(switch));
            let acknowledged = vec![(flow, bytes)];
            self.logic
                .receive(now, switch, SwitchReport::Counters { acknowledged });
        }
    }

    fn report_at_ports(&mut self, now: Time, flow: &FlowKey, report: SwitchReport) {
        for (switch, _) in self.switches.towards(flow.destination) {
            self.logic.receive(now, switch, report.clone());
        }
    }

    fn detach(&mut self, session: u64, why: &str) {
        if let Some((number, _)) = self.switches.session(session) {
            if let Some(switch) = self.switches.by_number.get_mut(&number) {
                tracing::info!(switch = switch.name, why, "detached");
                switch.session = None;
            }
            self.senders.forget_switch(number);
            return;
        }
        let now = self.clock.now();
        for flow in self.senders.detach(session) {
            self.report_at_ports(now, &flow, SwitchReport::Closed { flow });
        }
    }
}

/// Why a peer is not accepted.
enum CheckError {
    Refused(Refusal),
    /// This controller has been superseded.
    Superseded(ControllerError),
}

/// Sends a reply; the caller may have gone.
fn reply<T>(answer: Answer<T>, result: Result<T, Refusal>) {
    let _ = answer.send(result);
}
