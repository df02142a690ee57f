//! An agent's connection to its controller, in any data plane.

mod metrics;
mod task;

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, watch};
use weir_fabric::Packet;
use weir_metrics::Registry;
use weir_sed::{Agent, AgentConfig, SwitchReport, WindowOrder};
use weir_units::{ByteSize, Rate, Time};

use crate::credentials::Credentials;
use crate::leader_epoch::LeaderEpoch;
pub use metrics::register_agent_metrics;
use task::AgentTask;

/// A port of the agent's switch.
#[derive(Clone, Debug, PartialEq)]
pub struct PortDescription {
    /// Its number in the agent's reports.
    pub number: u32,
    /// Its name for operators.
    pub name: String,
    /// Its link's rate.
    pub rate: Rate,
    /// The size of its buffer, if that is known.
    pub buffer: Option<ByteSize>,
    /// The prefixes behind it: address and length in bits. They place flows whose start no agent sees.
    pub behind: Vec<(IpAddr, u8)>,
}

/// Options of an agent's channel.
#[derive(Clone)]
pub struct AgentOptions {
    /// The controllers, `HOST:PORT`: the first that accepts the agent is used.
    pub controllers: Vec<String>,
    /// The agent's certificate and key, and the authority.
    pub credentials: Credentials,
    /// The switch's name, as in its certificate.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortDescription>,
    /// Called from another thread when [`AgentChannel::next_event`] has an event; it must return
    /// quickly.
    pub wake: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The registry of the channel's metrics.
    pub metrics: Option<Registry>,
}

impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentOptions")
            .field("controllers", &self.controllers)
            .field("name", &self.name)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

/// A message of the controller.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The controller has accepted the agent, with these settings.
    Attached(AgentConfig),
    /// An order.
    Order(WindowOrder),
}

/// The state of an agent's connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentState {
    /// It searches for a controller.
    #[default]
    Searching,
    /// It searches again; the last attempt or connection ended with this error.
    Failed(String),
    /// It is connected.
    Attached {
        /// The controller's address.
        controller: String,
        /// The controller's name and term.
        leader_epoch: LeaderEpoch,
    },
}

/// An agent's channel to its controller. It reconnects by itself, and ends when it is dropped.
///
/// The data plane of the [`Agent`] calls [`Self::exchange`] whenever packets have passed or
/// [`AgentOptions::wake`] was called; it never blocks.
#[derive(Debug)]
pub struct AgentChannel {
    reports: mpsc::Sender<SwitchReport>,
    events: mpsc::Receiver<AgentEvent>,
    state: watch::Receiver<AgentState>,
    lost: Arc<Notify>,
}

/// The most reports, and the most orders, that wait to be taken.
const WAITING: usize = 100_000;

impl AgentChannel {
    /// Starts to search for a controller. Runs on the current tokio runtime.
    pub fn start(options: AgentOptions) -> Self {
        let (reports, to_send) = mpsc::channel(WAITING);
        let (to_obey, events) = mpsc::channel(WAITING);
        let (reported, state) = watch::channel(AgentState::default());
        let lost = Arc::new(Notify::new());
        tokio::spawn(AgentTask::new(options, to_obey, reported, lost.clone()).run(to_send));
        Self {
            reports,
            events,
            state,
            lost,
        }
    }

    /// Sends a report if there is a controller. A later one gets a full description anyway.
    pub fn report(&mut self, report: SwitchReport) {
        // A report without room is lost: the connection ends, and the next one starts with a full
        // description.
        if self.reports.try_send(report).is_err() {
            self.lost.notify_one();
        }
    }

    /// Returns the next message of the controller.
    pub fn next_event(&mut self) -> Option<AgentEvent> {
        self.events.try_recv().ok()
    }

    /// Returns the state, with notice of its changes.
    pub fn state(&self) -> watch::Receiver<AgentState> {
        self.state.clone()
    }

    /// Sends the agent's reports, and passes it the controller's messages. Returns whether there were
    /// any: the switch then has to handle its timeouts.
    pub fn exchange<P: Packet + Clone + Send + 'static>(
        &mut self,
        now: Time,
        agent: &mut Agent<P>,
    ) -> bool {
        while let Some(report) = agent.next_report() {
            self.report(report);
        }
        let mut any = false;
        while let Some(event) = self.next_event() {
            any = true;
            match event {
                AgentEvent::Attached(config) => agent.configure(config),
                AgentEvent::Order(order) => agent.receive(now, order),
            }
        }
        any
    }
}
