//! The task behind an agent's channel: connects, follows one controller, and connects again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tonic::Streaming;
use weir_sed::{AgentConfig, Report};
use weir_units::Duration as Span;

use super::{AgentError, AgentEvent, AgentOptions, AgentState, Lease, PortDescription};
use crate::connect::connect;
use crate::quota::Quota;
use crate::stream::Received;
use crate::term::Governor;
use crate::translate::{self, Garbled};
use crate::v1;
use crate::v1::agents_client::AgentsClient;
use crate::v1::from_agent::Message as Outgoing;
use crate::v1::from_controller::Message as Incoming;

/// Pauses between tries: the first, and the longest that it doubles to.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a controller may take to let an agent in.
const WELCOME: Duration = Duration::from_secs(5);
/// How many messages wait for the connection.
const QUEUED: usize = 16;
/// How many reports go into one message, which keeps it well below gRPC's 4 MB.
const PER_MESSAGE: usize = 4096;

/// The task.
pub(super) struct Link {
    options: AgentOptions,
    events: mpsc::Sender<AgentEvent>,
    state: watch::Sender<AgentState>,
    /// Whose orders are in force, and until when.
    governed: Option<(Governor, Instant)>,
    /// A report has been lost.
    lost: Arc<Notify>,
    quota: Quota,
}

/// Why a connection is not followed any more.
enum End {
    /// Nobody wants it.
    Dropped,
    Failed(AgentError),
}

impl<E: Into<AgentError>> From<E> for End {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// A connection to a controller that has let the agent in.
struct Attached {
    lease: Lease,
    heartbeat: Duration,
    outgoing: mpsc::Sender<v1::FromAgent>,
    incoming: Streaming<v1::FromController>,
}

impl Link {
    pub(super) fn new(
        options: AgentOptions,
        events: mpsc::Sender<AgentEvent>,
        state: watch::Sender<AgentState>,
        lost: Arc<Notify>,
    ) -> Self {
        Self {
            options,
            events,
            state,
            governed: None,
            lost,
            quota: Quota::new(Instant::now()),
        }
    }

    /// Follows controllers until the channel is dropped.
    pub(super) async fn run(mut self, mut reports: mpsc::Receiver<Report>) {
        let mut pause = FIRST_PAUSE;
        loop {
            for controller in self.options.controllers.clone() {
                let attached = tokio::select! {
                    attached = self.attach(&controller) => attached,
                    () = discard(&mut reports) => return,
                };
                let end = match attached {
                    Ok(attached) => {
                        pause = FIRST_PAUSE;
                        self.follow(attached, &mut reports).await
                    }
                    Err(end) => end,
                };
                let End::Failed(error) = end else {
                    return;
                };
                if let Some(left_out) = self.quota.take(Instant::now()) {
                    tracing::warn!(controller, %error, left_out, "no controller");
                }
                self.state
                    .send_replace(AgentState::Failed(error.to_string()));
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = discard(&mut reports) => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attach(&mut self, controller: &str) -> Result<Attached, End> {
        let channel = connect(controller, &self.options.credentials).await?;
        let (outgoing, queued) = mpsc::channel(QUEUED);
        let begin = Instant::now();
        let hello = self.hello(begin);
        let hello = v1::FromAgent {
            message: Some(Outgoing::Hello(hello)),
        };
        let _ = outgoing.try_send(hello);
        let mut client = AgentsClient::new(channel);
        let answered = async {
            let mut incoming = client.attach(Received(queued)).await?.into_inner();
            let first = incoming.message().await?.ok_or(AgentError::Closed)?;
            Ok::<_, End>((first, incoming))
        };
        let answered = timeout(WELCOME, answered).await;
        let (first, incoming) = answered.map_err(|_| AgentError::Silent)??;
        let Some(Incoming::Welcome(welcome)) = first.message else {
            return Err(Garbled::Missing("welcome").into());
        };
        let (lease, heartbeat) = Lease::welcomed(&welcome, begin, Instant::now())?;
        let governor = lease.governor().clone();
        let config: AgentConfig = translate::settings(welcome.settings, span(lease.obeyed()))?;
        self.hand(AgentEvent::Attached(config))?;
        self.state.send_replace(AgentState::Attached {
            controller: controller.to_owned(),
            governor,
        });
        Ok(Attached {
            lease,
            heartbeat,
            outgoing,
            incoming,
        })
    }

    fn hello(&mut self, now: Instant) -> v1::Hello {
        let governed = self.governed.take_if(|(_, until)| *until <= now);
        drop(governed);
        let governor = self.governed.as_ref().map(|(governor, _)| v1::Governor {
            name: governor.name.clone(),
            term: governor.term,
        });
        v1::Hello {
            name: self.options.name.clone(),
            ports: self.options.ports.iter().map(described).collect(),
            governor,
        }
    }

    async fn follow(
        &mut self,
        mut attached: Attached,
        reports: &mut mpsc::Receiver<Report>,
    ) -> End {
        let mut beats = interval(attached.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(PER_MESSAGE);
        loop {
            let silent = sleep_until(attached.lease.silent_at().into());
            let step = tokio::select! {
                message = attached.incoming.message() => match message {
                    Ok(Some(message)) => self.obey(&mut attached.lease, message),
                    Ok(None) => Err(AgentError::Closed.into()),
                    Err(status) => Err(status.into()),
                },
                count = reports.recv_many(&mut batch, PER_MESSAGE) => match count {
                    0 => Err(End::Dropped),
                    _ => say(&attached, &mut batch).await,
                },
                _ = beats.tick() => say(&attached, &mut batch).await,
                () = self.lost.notified() => Err(AgentError::Full.into()),
                () = silent => Err(AgentError::Silent.into()),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    fn obey(&mut self, lease: &mut Lease, message: v1::FromController) -> Result<(), End> {
        let Some(Incoming::Orders(orders)) = message.message else {
            return Err(Garbled::Missing("orders").into());
        };
        let now = Instant::now();
        if orders.term < lease.governor().term {
            return Ok(());
        }
        if !lease.holds(now, orders.beat) {
            return Err(AgentError::Stale.into());
        }
        lease.hear(now);
        if orders.orders.is_empty() {
            return Ok(());
        }
        self.governed = Some((lease.governor().clone(), now + lease.obeyed()));
        for order in orders.orders {
            self.hand(AgentEvent::Order(translate::order(order)?))?;
        }
        if let Some(wake) = &self.options.wake {
            wake();
        }
        Ok(())
    }

    fn hand(&self, event: AgentEvent) -> Result<(), End> {
        self.events.try_send(event).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AgentError::Full.into(),
            mpsc::error::TrySendError::Closed(_) => End::Dropped,
        })
    }
}

/// Nobody is there to hear reports. Ends when there will be no more.
async fn discard(reports: &mut mpsc::Receiver<Report>) {
    while reports.recv().await.is_some() {}
}

/// Sends what is in the batch, or that the agent is there.
async fn say(attached: &Attached, batch: &mut Vec<Report>) -> Result<(), End> {
    let reports = batch.drain(..).map(|report| translate::to_report(&report));
    let reports = v1::Reports {
        reports: reports.collect(),
        beat: attached.lease.beat(Instant::now()),
    };
    let message = v1::FromAgent {
        message: Some(Outgoing::Reports(reports)),
    };
    let sent = attached
        .outgoing
        .send_timeout(message, attached.heartbeat * 2);
    sent.await.map_err(|_| AgentError::Full.into())
}

fn described(port: &PortDescription) -> v1::Port {
    let behind = port.behind.iter().map(|(address, bits)| v1::Prefix {
        address: translate::to_address(*address),
        bits: (*bits).into(),
    });
    v1::Port {
        number: port.number,
        name: port.name.clone(),
        rate_bits_per_second: port.rate.bits_per_second(),
        behind: behind.collect(),
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
