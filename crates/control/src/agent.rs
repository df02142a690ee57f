//! An agent's way to its controller, whatever data plane the agent sits in.

mod task;

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, watch};
use weir_fabric::Packet;
use weir_sed::{Agent, AgentConfig, SwitchReport, WindowOrder};
use weir_units::{Rate, Time};

use crate::credentials::Credentials;
use crate::leader_epoch::LeaderEpoch;
use task::AgentTask;

/// A port of the switch that an agent sits in.
#[derive(Clone, Debug, PartialEq)]
pub struct PortDescription {
    /// By which the agent's reports name it.
    pub number: u32,
    /// By which people do.
    pub name: String,
    /// Its link's rate.
    pub rate: Rate,
    /// Which addresses are behind it: those that share so many bits with this one. Flows whose beginning no
    /// agent sees are placed by it.
    pub behind: Vec<(IpAddr, u8)>,
}

/// What an agent's channel needs.
#[derive(Clone)]
pub struct AgentOptions {
    /// Where the controller may be, `HOST:PORT`: the first that answers and lets the agent in.
    pub controllers: Vec<String>,
    /// What the agent proves to be.
    pub credentials: Credentials,
    /// The switch's name, as its certificate has it.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortDescription>,
    /// Called when there is something for [`AgentChannel::next_event`], from another thread: it has to be quick.
    pub wake: Option<Arc<dyn Fn() + Send + Sync>>,
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

/// What a controller says.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// It has let the agent in, which is to work like this.
    Attached(AgentConfig),
    /// It orders something.
    Order(WindowOrder),
}

/// How an agent stands to its controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentState {
    /// It looks for one.
    #[default]
    Searching,
    /// It looks for one again, as the last try or connection has ended like this.
    Failed(String),
    /// It has one.
    Attached {
        /// Where.
        controller: String,
        /// Whose orders it obeys.
        leader_epoch: LeaderEpoch,
    },
}

/// An agent's channel to its controller. It comes back by itself when it breaks, and ends when it is dropped.
///
/// The data plane that the [`Agent`] sits in calls [`Self::exchange`] whenever packets have passed or
/// [`AgentOptions::wake`] was called; it never blocks.
#[derive(Debug)]
pub struct AgentChannel {
    reports: mpsc::Sender<SwitchReport>,
    events: mpsc::Receiver<AgentEvent>,
    state: watch::Receiver<AgentState>,
    lost: Arc<Notify>,
}

/// How many reports, and how many orders, wait to be taken.
const WAITING: usize = 100_000;

impl AgentChannel {
    /// Begins to look for a controller. Runs on the current tokio runtime.
    pub fn start(options: AgentOptions) -> Self {
        let (reports, to_send) = mpsc::channel(WAITING);
        let (to_obey, events) = mpsc::channel(WAITING);
        let (told, state) = watch::channel(AgentState::default());
        let lost = Arc::new(Notify::new());
        tokio::spawn(AgentTask::new(options, to_obey, told, lost.clone()).run(to_send));
        Self {
            reports,
            events,
            state,
            lost,
        }
    }

    /// Tells the controller something, if there is one: one that comes later is told everything anyway.
    pub fn report(&mut self, report: SwitchReport) {
        // What has no room is missing: the connection ends, and with the next one the controller is told
        // everything anew.
        if self.reports.try_send(report).is_err() {
            self.lost.notify_one();
        }
    }

    /// The next thing that the controller says.
    pub fn next_event(&mut self) -> Option<AgentEvent> {
        self.events.try_recv().ok()
    }

    /// How it stands, and when that changes.
    pub fn state(&self) -> watch::Receiver<AgentState> {
        self.state.clone()
    }

    /// Takes what the agent reports, and hands it what it is ordered; tells whether that was anything, and
    /// so whether its switch has to be given its time.
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
