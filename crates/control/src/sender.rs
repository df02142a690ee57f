//! The connection of senders that are their own agents to a controller.

mod task;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use weir_sed::{Allocator, AllowanceCallback, Demand, SenderFlow};
use weir_wire::FlowKey;

use crate::agent::AgentState;
use crate::credentials::Credentials;
use task::SenderTask;

/// Options of a sender's channel.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// The controllers, `HOST:PORT`: the first that accepts the sender is used.
    pub controllers: Vec<String>,
    /// The sender's certificate, of an application: the addresses decide which flows are its own.
    pub credentials: Credentials,
}

/// A sender's channel to its controller: an [`Allocator`] for a transport's endpoints, any number of
/// which may share it. It reconnects by itself, and ends when it and all of its flows are dropped.
///
/// The controller's orders hold for its lease; a flow that the controller does not know is not limited.
#[derive(Clone, Debug)]
pub struct SenderChannel {
    requests: mpsc::UnboundedSender<FlowRequest>,
    numbers: Arc<AtomicU64>,
    state: watch::Receiver<AgentState>,
}

impl SenderChannel {
    /// Starts to search for a controller. Runs on the current tokio runtime.
    pub fn start(options: SenderOptions) -> Self {
        let (wishes, wished) = mpsc::unbounded_channel();
        let (reported, state) = watch::channel(AgentState::default());
        tokio::spawn(SenderTask::new(options, reported).run(wished));
        Self {
            requests: wishes,
            numbers: Arc::new(AtomicU64::new(0)),
            state,
        }
    }

    /// Returns the state, with notice of its changes.
    pub fn state(&self) -> watch::Receiver<AgentState> {
        self.state.clone()
    }
}

impl Allocator for SenderChannel {
    fn open(&self, flow: FlowKey, segment: u32, hear: AllowanceCallback) -> Box<dyn SenderFlow> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let opened = NewFlow {
            flow,
            segment,
            callback: hear,
            acknowledged: acknowledged.clone(),
        };
        // A task that has ended needs no request; neither here nor below.
        let _ = self.requests.send(FlowRequest::Open(number, opened));
        Box::new(FlowHandle {
            number,
            acknowledged,
            wishes: self.requests.clone(),
        })
    }
}

/// Requests of flows to the task. The numbers distinguish successive flows between the same ports.
#[derive(Debug)]
enum FlowRequest {
    Open(u64, NewFlow),
    Demand(u64, DatedDemand),
    Close(u64),
}

/// A demand with its deadline as an instant.
#[derive(Clone, Copy, Debug)]
struct DatedDemand {
    demand: Demand,
    at: Instant,
}

/// A new flow.
struct NewFlow {
    flow: FlowKey,
    segment: u32,
    callback: AllowanceCallback,
    acknowledged: Arc<AtomicU64>,
}

impl fmt::Debug for NewFlow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut formatter = formatter.debug_struct("Opened");
        formatter.field("flow", &self.flow).finish_non_exhaustive()
    }
}

/// A transport's handle of a flow.
#[derive(Debug)]
struct FlowHandle {
    number: u64,
    acknowledged: Arc<AtomicU64>,
    wishes: mpsc::UnboundedSender<FlowRequest>,
}

impl SenderFlow for FlowHandle {
    fn demand(&self, demand: Demand) {
        let within = Duration::from_nanos(demand.within.as_nanos());
        // A time beyond the clock's range becomes a year.
        let at = Instant::now();
        let at = at.checked_add(within).unwrap_or(at + YEAR);
        let _ = self
            .wishes
            .send(FlowRequest::Demand(self.number, DatedDemand { demand, at }));
    }

    fn acknowledged(&self, bytes: u64) {
        self.acknowledged.store(bytes, Ordering::Relaxed);
    }
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl Drop for FlowHandle {
    fn drop(&mut self) {
        let _ = self.wishes.send(FlowRequest::Close(self.number));
    }
}
