//! The task behind an agent's channel: connects, follows one controller, and connects again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};
use weir_net::RepeatedWarning;
use weir_sed::{AgentConfig, SwitchReport};

use super::metrics::ChannelMetrics;
use super::{AgentEvent, AgentOptions, AgentState, PortDescription};
use crate::connect::connect;
use crate::controller_stream::{
    DisconnectCause, FIRST_PAUSE, LONGEST_PAUSE, LeaderLease, QUEUED, span,
};
use crate::error::AgentError;
use crate::lease::Lease;
use crate::stream::Received;
use crate::translate;
use crate::v1;
use crate::v1::agents_client::AgentsClient;
use crate::v1::from_agent::Message as ToController;

/// The most reports per message, which keeps it well below gRPC's 4 MB.
const PER_MESSAGE: usize = 4096;

/// The task.
pub(super) struct AgentTask {
    options: AgentOptions,
    events: mpsc::Sender<AgentEvent>,
    state: watch::Sender<AgentState>,
    governed: LeaderLease,
    /// A report has been lost.
    lost: Arc<Notify>,
    /// By controller.
    warnings: BTreeMap<String, RepeatedWarning>,
    metrics: ChannelMetrics,
}

type Attached = crate::controller_stream::ControllerStream<v1::FromAgent>;

impl AgentTask {
    pub(super) fn new(
        options: AgentOptions,
        events: mpsc::Sender<AgentEvent>,
        state: watch::Sender<AgentState>,
        lost: Arc<Notify>,
    ) -> Self {
        let registry = options.metrics.clone().unwrap_or_default();
        Self {
            options,
            events,
            state,
            governed: LeaderLease::default(),
            lost,
            warnings: BTreeMap::new(),
            metrics: ChannelMetrics::new(&registry),
        }
    }

    /// Follows controllers until the channel is dropped.
    pub(super) async fn run(mut self, mut reports: mpsc::Receiver<SwitchReport>) {
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
                        self.metrics.set_attached(true);
                        self.warnings.clear();
                        let end = self.follow(attached, &mut reports).await;
                        self.metrics.set_attached(false);
                        end
                    }
                    Err(end) => end,
                };
                let DisconnectCause::Failed(error) = end else {
                    return;
                };
                let now = Instant::now();
                let warnings = self.warnings.entry(controller.clone());
                let warning = warnings.or_insert_with(|| RepeatedWarning::new(now));
                if let Some(left_out) = warning.take(now, &error.to_string()) {
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

    async fn attach(&mut self, controller: &str) -> Result<Attached, DisconnectCause> {
        let connection = connect(controller, &self.options.credentials).await?;
        let (outgoing, queued) = mpsc::channel(QUEUED);
        let begin = Instant::now();
        let hello = self.hello(begin);
        let hello = v1::FromAgent {
            message: Some(ToController::Hello(hello)),
        };
        let _ = outgoing.try_send(hello);
        let mut client = AgentsClient::new(connection.channel.clone());
        let call = client.attach(Received(queued));
        let attached = Attached::welcomed(connection, call, begin, outgoing).await;
        let (attached, welcome) = attached?;
        let lease = &attached.lease;
        let leader_epoch = lease.leader_epoch.clone();
        let config: AgentConfig =
            translate::settings(welcome.settings, span(lease.order_lifetime()))?;
        self.hand(AgentEvent::Attached(config))?;
        self.state.send_replace(AgentState::Attached {
            controller: controller.to_owned(),
            leader_epoch,
        });
        Ok(attached)
    }

    fn hello(&mut self, now: Instant) -> v1::Hello {
        v1::Hello {
            name: self.options.name.clone(),
            ports: self.options.ports.iter().map(described).collect(),
            leader_epoch: self.governed.leader_epoch(now),
        }
    }

    async fn follow(
        &mut self,
        mut attached: Attached,
        reports: &mut mpsc::Receiver<SwitchReport>,
    ) -> DisconnectCause {
        let mut beats = interval(attached.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(PER_MESSAGE);
        loop {
            let silent = sleep_until(attached.lease.silent_at().into());
            let step = tokio::select! {
                message = attached.incoming.message() => match message {
                    Ok(Some(message)) => self.apply_orders(&mut attached.lease, message),
                    Ok(None) => Err(AgentError::Closed.into()),
                    Err(status) => Err(status.into()),
                },
                count = reports.recv_many(&mut batch, PER_MESSAGE) => match count {
                    0 => Err(DisconnectCause::Dropped),
                    _ => send_reports(&attached, &mut batch).await,
                },
                _ = beats.tick() => send_reports(&attached, &mut batch).await,
                () = self.lost.notified() => Err(AgentError::Full.into()),
                () = silent => Err(AgentError::Silent.into()),
            };
            if let Err(end) = step {
                return attached.explain(end);
            }
        }
    }

    fn apply_orders(
        &mut self,
        lease: &mut Lease,
        message: v1::FromController,
    ) -> Result<(), DisconnectCause> {
        let orders = self.governed.accept_orders(lease, message)?;
        self.metrics.heard();
        if orders.is_empty() {
            return Ok(());
        }
        for order in orders {
            self.hand(AgentEvent::Order(translate::order(order)?))?;
        }
        if let Some(wake) = &self.options.wake {
            wake();
        }
        Ok(())
    }

    fn hand(&self, event: AgentEvent) -> Result<(), DisconnectCause> {
        self.events.try_send(event).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AgentError::Full.into(),
            mpsc::error::TrySendError::Closed(_) => DisconnectCause::Dropped,
        })
    }
}

/// Drops reports while there is no controller. Returns when there can be no more.
async fn discard(reports: &mut mpsc::Receiver<SwitchReport>) {
    while reports.recv().await.is_some() {}
}

/// Sends the batch, or an empty heartbeat.
async fn send_reports(
    attached: &Attached,
    batch: &mut Vec<SwitchReport>,
) -> Result<(), DisconnectCause> {
    let reports = batch.drain(..).map(|report| translate::to_report(&report));
    let reports = v1::Reports {
        reports: reports.collect(),
        beat: attached.lease.beat(Instant::now()),
    };
    let message = v1::FromAgent {
        message: Some(ToController::Reports(reports)),
    };
    attached.send(message).await
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
        buffer_bytes: port.buffer.map_or(0, |size| size.bytes()),
    }
}
