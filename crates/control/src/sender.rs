//! The way to a controller of senders that are their own agents.

mod task;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use weir_sed::{Allocator, Demand, Hear, SenderFlow};
use weir_wire::FlowKey;

use crate::agent::AgentState;
use crate::credentials::Credentials;
use task::SenderTask;

/// What a sender's channel needs.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// Where the controller may be, `HOST:PORT`: the first that answers and lets the sender in.
    pub controllers: Vec<String>,
    /// What the sender proves to be: an application, by whose addresses its flows are its own.
    pub credentials: Credentials,
}

/// A sender's channel to its controller: an [`Allocator`] for a transport's endpoints, of which any number may
/// share it. It comes back by itself when it breaks, and ends when it and all of its flows are gone.
///
/// What the controller has ordered holds for its lease; a flow of which nothing is known there is its own
/// affair.
#[derive(Clone, Debug)]
pub struct SenderChannel {
    wishes: mpsc::UnboundedSender<FlowRequest>,
    numbers: Arc<AtomicU64>,
    state: watch::Receiver<AgentState>,
}

impl SenderChannel {
    /// Begins to look for a controller. Runs on the current tokio runtime.
    pub fn start(options: SenderOptions) -> Self {
        let (wishes, wished) = mpsc::unbounded_channel();
        let (told, state) = watch::channel(AgentState::default());
        tokio::spawn(SenderTask::new(options, told).run(wished));
        Self {
            wishes,
            numbers: Arc::new(AtomicU64::new(0)),
            state,
        }
    }

    /// How it stands, and when that changes.
    pub fn state(&self) -> watch::Receiver<AgentState> {
        self.state.clone()
    }
}

impl Allocator for SenderChannel {
    fn open(&self, flow: FlowKey, segment: u32, hear: Hear) -> Box<dyn SenderFlow> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let opened = NewFlow {
            flow,
            segment,
            hear,
            acknowledged: acknowledged.clone(),
        };
        // A task that is gone wants nothing; neither here nor below.
        let _ = self.wishes.send(FlowRequest::Open(number, opened));
        Box::new(FlowHandle {
            number,
            acknowledged,
            wishes: self.wishes.clone(),
        })
    }
}

/// What flows want of the task. Their numbers tell apart flows that follow each other between the same ports.
#[derive(Debug)]
enum FlowRequest {
    Open(u64, NewFlow),
    Demand(u64, DatedDemand),
    Close(u64),
}

/// A demand with its deadline in place of a span.
#[derive(Clone, Copy, Debug)]
struct DatedDemand {
    demand: Demand,
    at: Instant,
}

/// A flow as it begins.
struct NewFlow {
    flow: FlowKey,
    segment: u32,
    hear: Hear,
    acknowledged: Arc<AtomicU64>,
}

impl fmt::Debug for NewFlow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut formatter = formatter.debug_struct("Opened");
        formatter.field("flow", &self.flow).finish_non_exhaustive()
    }
}

/// A transport's hold on a flow.
#[derive(Debug)]
struct FlowHandle {
    number: u64,
    acknowledged: Arc<AtomicU64>,
    wishes: mpsc::UnboundedSender<FlowRequest>,
}

impl SenderFlow for FlowHandle {
    fn demand(&self, demand: Demand) {
        let within = Duration::from_nanos(demand.within.as_nanos());
        // Who has more time than clocks can tell has a year.
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
