//! The agent of a host: its real endpoints. It takes [`HostCommand`]s, runs flows over kernel TCP, TLS,
//! UDP, DCQUIC and DCUDP, and reports [`AgentEvent`]s.
//!
//! [`run`] needs a tokio runtime with I/O and time; one thread is enough. The agent does not depend on
//! namespaces: its caller carries out changes to the host itself ([`HostCommand::Host`]).
//!
//! | file | contents |
//! |---|---|
//! | `context`, `flow`, `partial_transfer` | shared state; one end of a flow; a part of a flow |
//! | `client`, `request_client`, `server` | the workloads at either end, over any transport |
//! | `dial`, `flow_connection` | opening connections; a connection |
//! | `transports`, `tls` | the transport that an order asks for |
//! | `datagrams`, `packet_schedule` | UDP; constant rates |
//! | `transfer_header`, `payload` | the header of a transfer, and the data after it |
//! | `meter` | the counters |
//!
//! Differences from the simulator: an incast's receiver sends a request message of 8 bytes, which
//! the simulator omits. Datagrams less than 100 µs apart leave in batches, and the host's link spaces
//! them again. The first 24 bytes of a transfer are a header that identifies it, so no transfer is
//! smaller.

mod client;
mod context;
mod datagrams;
mod dial;
mod flow;
mod flow_connection;
mod meter;
mod packet_schedule;
mod partial_transfer;
mod payload;
mod request_client;
mod server;
mod tls;
mod transfer_header;
mod transports;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use weir_net::tls::{Identity, TlsError};
use weir_traffic::processor::processor_time;
use weir_units::{Duration, Time};

use crate::clock::Clock;
use crate::control::{self, AgentEvent, HostChange, HostCommand, HostSample, MessageError};
use context::{EventSender, FlowContext, RunSignals};
use meter::FlowMeter;

/// Why an agent ended early.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The director closed the control socket without [`HostCommand::Stop`].
    #[error("the director is gone")]
    DirectorGone,
    /// The control socket broke.
    #[error("the control socket: {0}")]
    Control(#[from] io::Error),
    /// The director sent an invalid message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// No certificate can be made for this host's servers.
    #[error("no certificate for this host's servers: {0}")]
    Certificate(#[from] TlsError),
    /// A flow's task panicked or was cancelled.
    #[error("a flow broke down: {0}")]
    Flow(#[from] JoinError),
}

/// Runs the endpoints of a host until [`HostCommand::Stop`]. Reads orders and writes events as lines
/// ([`control::encode`]); `change` applies each [`HostCommand::Host`] to the host.
///
/// # Errors
/// [`AgentError`]. All flows are aborted then.
pub async fn run(
    orders: impl AsyncRead + Unpin,
    events: impl AsyncWrite + Unpin,
    change: impl FnMut(&HostChange) -> Result<(), String>,
) -> Result<(), AgentError> {
    let identity = Identity::self_signed(["weir-lab"])?;
    let (tell, told) = EventSender::new();
    let agent = Agent::new(tell, identity);
    tokio::try_join!(agent.work(orders, change), report(told, events))?;
    Ok(())
}

/// Writes events, up to and including the last one.
async fn report(
    mut told: mpsc::UnboundedReceiver<AgentEvent>,
    mut events: impl AsyncWrite + Unpin,
) -> Result<(), AgentError> {
    while let Some(event) = told.recv().await {
        let is_last = matches!(event, AgentEvent::Stopped { .. });
        events.write_all(&control::encode(&event)?).await?;
        if is_last || told.is_empty() {
            events.flush().await?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

struct Agent {
    events: EventSender,
    context: FlowContext,
    clock: watch::Sender<Option<Clock>>,
    epoch: watch::Sender<Option<u64>>,
    stop: watch::Sender<bool>,
    flows: JoinSet<u64>,
    meters: BTreeMap<u64, Arc<FlowMeter>>,
    /// Sends periodic samples.
    ticker: Option<tokio::time::Interval>,
}

impl Agent {
    fn new(events: EventSender, identity: Identity) -> Self {
        let (clock, epoch, stop) = (
            watch::Sender::new(None),
            watch::Sender::new(None),
            watch::Sender::new(false),
        );
        events.send(AgentEvent::Ready {
            fingerprint: identity.fingerprint().to_string(),
        });
        let signals = RunSignals {
            clock: clock.subscribe(),
            epoch: epoch.subscribe(),
            stop: stop.subscribe(),
        };
        Self {
            context: FlowContext::new(events.clone(), identity, signals),
            events,
            clock,
            epoch,
            stop,
            flows: JoinSet::new(),
            meters: BTreeMap::new(),
            ticker: None,
        }
    }

    async fn work(
        mut self,
        orders: impl AsyncRead + Unpin,
        mut change: impl FnMut(&HostChange) -> Result<(), String>,
    ) -> Result<(), AgentError> {
        let mut orders = BufReader::new(orders);
        let mut line = Vec::new();
        loop {
            tokio::select! {
                // Cancel-safe: the bytes read so far stay in the line.
                read = orders.read_until(b'\n', &mut line) => {
                    if read? == 0 || line.last() != Some(&b'\n') {
                        return Err(AgentError::DirectorGone);
                    }
                    let order = control::decode(&line)?;
                    line.clear();
                    if order == HostCommand::Stop {
                        return self.end().await;
                    }
                    self.follow(order, &mut change);
                }
                Some(ended) = self.flows.join_next() => self.forget(ended?),
                () = tick(&mut self.ticker) => self.sample(),
            }
        }
    }

    fn follow(
        &mut self,
        order: HostCommand,
        change: &mut impl FnMut(&HostChange) -> Result<(), String>,
    ) {
        match order {
            HostCommand::Start(order) => {
                let (flow, meter) = (order.flow, Arc::new(FlowMeter::default()));
                self.meters.insert(flow, meter.clone());
                let work = flow::carry_out(*order, self.context.clone(), meter);
                self.flows.spawn(async move {
                    work.await;
                    flow
                });
            }
            HostCommand::Begin { epoch, interval } => {
                self.clock.send_replace(Some(Clock::since(epoch)));
                self.ticker = interval.map(ticker);
            }
            HostCommand::Sample => self.sample(),
            HostCommand::Epoch { number } => {
                self.epoch.send_replace(Some(number));
            }
            HostCommand::Host(asked) => {
                let error = change(&asked).err();
                if let (HostChange::Address { was, is, .. }, None) = (&asked, &error) {
                    self.context.replace_address(*was, *is);
                }
                self.events.send(AgentEvent::Changed {
                    change: asked,
                    error,
                });
            }
            HostCommand::Stop => {}
        }
    }

    /// Removes the meter of a flow that has ended.
    fn forget(&mut self, flow: u64) {
        self.meters.remove(&flow);
    }

    fn sample(&self) {
        let clock = *self.clock.borrow();
        let flows = self.meters.iter().map(|(flow, meter)| meter.sample(*flow));
        self.events.send(AgentEvent::Sample(HostSample {
            at: clock.map_or(Time::ZERO, Clock::now),
            cpu: processor_time(),
            flows: flows.collect(),
        }));
    }

    /// Stops all flows and waits for their reports.
    async fn end(mut self) -> Result<(), AgentError> {
        self.stop.send_replace(true);
        while let Some(ended) = self.flows.join_next().await {
            self.forget(ended?);
        }
        self.events.send(AgentEvent::Stopped {
            cpu: processor_time(),
        });
        Ok(())
    }
}

fn ticker(interval: Duration) -> tokio::time::Interval {
    let least = Duration::from_millis(1);
    let mut ticker = tokio::time::interval(interval.max(least).into());
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}

/// Waits for the next sample time.
async fn tick(ticker: &mut Option<tokio::time::Interval>) {
    match ticker {
        Some(ticker) => {
            ticker.tick().await;
        }
        None => std::future::pending().await,
    }
}
