//! A host's end of the channel: it attaches to the first controller that leads, and again by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tonic::Streaming;
use weir_canary::Snapshot;
use weir_net::RepeatedWarning;
use weir_rollout::{Assignment, Held, Hello, Labels, MetricsOrder};
use weir_units::Duration as Span;

use super::translate;
use crate::connect::{Connection, Refusal, connect};
use crate::credentials::Credentials;
use crate::policy_v1 as v1;
use crate::policy_v1::from_host::Message as ToController;
use crate::policy_v1::hosts_client::HostsClient;
use crate::policy_v1::to_host::Message as FromController;
use crate::stream::Received;

/// Options of a host's channel.
#[derive(Clone)]
pub struct HostOptions {
    /// The controllers, `HOST:PORT`: the first that accepts the host is used.
    pub controllers: Vec<String>,
    /// The host's certificate and key, and the authority.
    pub credentials: Credentials,
    /// The host's name, as in its certificate.
    pub name: String,
    /// What it says of itself.
    pub labels: Labels,
    /// What it has put in force last.
    pub held: Option<Held>,
    /// Called from another thread when [`HostChannel::next_event`] has an event; it must return quickly.
    pub wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for HostOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HostOptions")
            .field("controllers", &self.controllers)
            .field("name", &self.name)
            .field("labels", &self.labels)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

/// A version that a host is to put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedPolicy {
    /// The decision.
    pub held: Held,
    /// The policy file; empty for the empty policy.
    pub text: String,
}

/// What a controller wants of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// To put a version in force, and to say so by [`HostChannel::taken`] or [`HostChannel::refused`].
    Assigned(AssignedPolicy),
    /// To report what connections did, from now on; `None` to report nothing.
    Metrics(Option<MetricsOrder>),
}

/// The state of a host's connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostState {
    /// It searches for a controller.
    #[default]
    Searching,
    /// It searches again; the last attempt or connection ended with this error.
    Failed(String),
    /// It is attached to this controller.
    Attached(String),
    /// It is attached to a controller that does not know the host's version: its store is an old copy.
    Ahead(String),
}

/// What a host tells.
#[derive(Debug)]
enum HostReport {
    Taken(Held),
    Refused(u64, String),
    Metrics(u64, Box<Snapshot>),
}

/// A host's channel to its controller. It attaches again by itself, and ends when it is dropped.
#[derive(Debug)]
pub struct HostChannel {
    reports: mpsc::UnboundedSender<HostReport>,
    events: mpsc::Receiver<HostEvent>,
    state: watch::Receiver<HostState>,
}

/// The most events that wait to be taken.
const WAITING: usize = 16;
/// The most reports that wait to be sent.
const QUEUED: usize = 4;
/// The pause between attempts doubles from the first value to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a controller may take to accept a host.
const ACCEPT: Duration = Duration::from_secs(30);

impl HostChannel {
    /// Starts to search for a controller. Runs on the current tokio runtime.
    pub fn start(options: HostOptions) -> Self {
        let (reports, to_send) = mpsc::unbounded_channel();
        let (to_do, events) = mpsc::channel(WAITING);
        let (reported, state) = watch::channel(HostState::default());
        let task = HostTask {
            events: to_do,
            state: reported,
            warnings: BTreeMap::new(),
            options,
        };
        tokio::spawn(task.run(to_send));
        Self {
            reports,
            events,
            state,
        }
    }

    /// Returns the next thing that the controller wants.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        self.events.try_recv().ok()
    }

    /// Waits for the next thing that the controller wants; `None` if the channel has ended.
    pub async fn event(&mut self) -> Option<HostEvent> {
        self.events.recv().await
    }

    /// Tells that a version is in force, and on the disk.
    pub fn taken(&self, held: Held) {
        // A task that has ended needs no report; neither here nor below.
        let _ = self.reports.send(HostReport::Taken(held));
    }

    /// Tells that a version cannot be put in force.
    pub fn refused(&self, version: u64, reason: impl Into<String>) {
        let _ = self
            .reports
            .send(HostReport::Refused(version, reason.into()));
    }

    /// Tells what connections did under a version.
    pub fn metrics(&self, version: u64, snapshot: Snapshot) {
        let _ = self
            .reports
            .send(HostReport::Metrics(version, Box::new(snapshot)));
    }

    /// Returns the state, with notice of its changes.
    pub fn state(&self) -> watch::Receiver<HostState> {
        self.state.clone()
    }
}

/// The task behind the channel.
struct HostTask {
    options: HostOptions,
    events: mpsc::Sender<HostEvent>,
    state: watch::Sender<HostState>,
    /// By controller.
    warnings: BTreeMap<String, RepeatedWarning>,
}

/// How a connection has ended.
enum End {
    /// The channel was dropped.
    Dropped,
    Failed(String),
}

/// A controller that has accepted this host.
struct AttachedTo {
    connection: Connection,
    outgoing: mpsc::Sender<v1::FromHost>,
    incoming: Streaming<v1::ToHost>,
}

impl HostTask {
    async fn run(mut self, mut reports: mpsc::UnboundedReceiver<HostReport>) {
        let mut pause = FIRST_PAUSE;
        loop {
            for controller in self.options.controllers.clone() {
                let mut noted = None;
                let attached = tokio::select! {
                    attached = self.attach(&controller) => attached,
                    () = note(&mut reports, &mut noted) => return,
                };
                self.options.held = noted.or(self.options.held.take());
                let end = match attached {
                    Ok(attached) => {
                        pause = FIRST_PAUSE;
                        self.warnings.remove(&controller);
                        self.state
                            .send_replace(HostState::Attached(controller.clone()));
                        tracing::info!(controller, "attached");
                        self.follow(&controller, attached, &mut reports).await
                    }
                    Err(error) => End::Failed(error),
                };
                match end {
                    End::Dropped => return,
                    End::Failed(error) => self.failed(&controller, error),
                }
            }
            let mut noted = None;
            tokio::select! {
                () = sleep(jittered(pause)) => {}
                () = note(&mut reports, &mut noted) => return,
            }
            self.options.held = noted.or(self.options.held.take());
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn failed(&mut self, controller: &str, error: String) {
        let now = Instant::now();
        let warning = self.warnings.entry(controller.to_owned());
        let warning = warning.or_insert_with(|| RepeatedWarning::new(now));
        if let Some(left_out) = warning.take(now, &error) {
            tracing::warn!(
                controller,
                error,
                left_out,
                "not attached: the policy stays as it is"
            );
        }
        self.state.send_replace(HostState::Failed(error));
    }

    async fn attach(&self, controller: &str) -> Result<AttachedTo, String> {
        let connection = connect(controller, &self.options.credentials).await;
        let connection = connection.map_err(|error| crate::controller::with_causes(&error))?;
        let (outgoing, messages) = mpsc::channel(QUEUED);
        let hello = Hello {
            name: self.options.name.clone(),
            labels: self.options.labels.clone(),
            held: self.options.held.clone(),
        };
        let hello = message(ToController::Hello(translate::to_hello(&hello)));
        let sent = outgoing.send(hello).await;
        sent.map_err(|_| "the connection has ended".to_owned())?;
        let mut client = HostsClient::new(connection.channel.clone());
        let answer = timeout(ACCEPT, client.attach(Received(messages))).await;
        let answer = answer.map_err(|_| "the controller does not answer".to_owned())?;
        let answer = answer.map_err(|status| explained(&connection, status.message()))?;
        Ok(AttachedTo {
            connection,
            outgoing,
            incoming: answer.into_inner(),
        })
    }

    async fn follow(
        &mut self,
        controller: &str,
        attached: AttachedTo,
        reports: &mut mpsc::UnboundedReceiver<HostReport>,
    ) -> End {
        let AttachedTo {
            connection,
            outgoing,
            mut incoming,
        } = attached;
        loop {
            tokio::select! {
                received = incoming.message() => match received {
                    Ok(Some(received)) => {
                        let Some(report) = self.receive(controller, received).await else {
                            return End::Dropped;
                        };
                        if let Some(report) = report
                            && outgoing.send(report).await.is_err()
                        {
                            return End::Failed("the controller has closed the connection".to_owned());
                        }
                    }
                    Ok(None) => return End::Failed(explained(&connection, "the controller has closed the connection")),
                    Err(status) => return End::Failed(explained(&connection, status.message())),
                },
                report = reports.recv() => {
                    let Some(report) = report else {
                        return End::Dropped;
                    };
                    let report = self.report(report);
                    if outgoing.send(message(report)).await.is_err() {
                        return End::Failed(explained(&connection, "the controller has closed the connection"));
                    }
                }
            }
        }
    }

    fn report(&mut self, report: HostReport) -> ToController {
        match report {
            HostReport::Taken(held) => {
                let version = held.version;
                self.options.held = Some(held);
                ToController::Taken(v1::Taken { version })
            }
            HostReport::Refused(version, reason) => {
                ToController::Refused(v1::RefusedVersion { version, reason })
            }
            HostReport::Metrics(version, snapshot) => {
                ToController::Metrics(translate::to_metrics(version, &snapshot))
            }
        }
    }

    /// Passes on what the controller wants. Returns an answer, if there is one at once; `None` if nobody takes
    /// events any more.
    async fn receive(
        &mut self,
        controller: &str,
        received: v1::ToHost,
    ) -> Option<Option<v1::FromHost>> {
        let event = match received.message {
            Some(FromController::Assignment(assignment)) => {
                let (assignment, text) = translate::assignment(assignment);
                if let Some(reason) = self.objection(&assignment) {
                    tracing::warn!(controller, reason, "a version is refused");
                    let version = assignment.version;
                    let refused = v1::RefusedVersion { version, reason };
                    return Some(Some(message(ToController::Refused(refused))));
                }
                HostEvent::Assigned(AssignedPolicy {
                    held: Held {
                        fleet: assignment.fleet,
                        revision: assignment.revision,
                        version: assignment.version,
                        digest: assignment.digest,
                    },
                    text,
                })
            }
            Some(FromController::Metrics(order)) => {
                let interval = Span::from_nanos(order.interval_nanoseconds);
                let order = MetricsOrder {
                    span: Span::from_nanos(order.span_nanoseconds),
                    interval,
                };
                HostEvent::Metrics((interval > Span::ZERO).then_some(order))
            }
            Some(FromController::Behind(behind)) => {
                let held = self.options.held.as_ref();
                tracing::warn!(
                    controller,
                    own = held.map_or(0, |held| held.revision),
                    theirs = behind.revision,
                    "the controller does not know the decision that is in force here: its store is an old copy, and \
                     nothing is taken back"
                );
                self.state
                    .send_replace(HostState::Ahead(controller.to_owned()));
                return Some(None);
            }
            // Of a later version of the protocol.
            None => return Some(None),
        };
        self.events.send(event).await.ok()?;
        if let Some(wake) = &self.options.wake {
            wake();
        }
        Some(None)
    }

    /// Returns why an assignment is not to be obeyed.
    fn objection(&self, assignment: &Assignment) -> Option<String> {
        let held = self.options.held.as_ref()?;
        if held.accepts(assignment) {
            return None;
        }
        Some(format!(
            "decision {} of fleet {} is older than decision {} of fleet {}, which is in force here",
            assignment.revision, assignment.fleet, held.revision, held.fleet
        ))
    }
}

/// Notes what is put in force without a controller, until the channel is dropped.
async fn note(reports: &mut mpsc::UnboundedReceiver<HostReport>, noted: &mut Option<Held>) {
    while let Some(report) = reports.recv().await {
        if let HostReport::Taken(held) = report {
            *noted = Some(held);
        }
    }
}

fn message(message: ToController) -> v1::FromHost {
    v1::FromHost {
        message: Some(message),
    }
}

/// Returns why a connection has ended: one end's refusal of the other's certificate, if that was it.
fn explained(connection: &Connection, otherwise: &str) -> String {
    match connection.refusal() {
        Some(Refusal::ByController(reason) | Refusal::OfController(reason)) => reason,
        None => otherwise.to_owned(),
    }
}

/// Returns between a half and the whole of a pause: thousands of hosts do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let part = (random >> 32) as f64 / 4_294_967_296.0;
    pause.mul_f64(0.5 + part / 2.0)
}
