//! The task behind a sender's channel: connects, reports its flows, applies their windows, and
//! reconnects.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};
use weir_net::RepeatedWarning;
use weir_sed::{Allowance, Demand, WindowOrder};
use weir_units::{ByteSize, Duration as Span};
use weir_wire::FlowKey;

use super::{DatedDemand, FlowRequest, NewFlow, SenderOptions};
use crate::agent::AgentState;
use crate::connect::connect;
use crate::controller_stream::{
    DisconnectCause, FIRST_PAUSE, LONGEST_PAUSE, LeaderLease, QUEUED, span,
};
use crate::error::AgentError;
use crate::lease::Lease;
use crate::stream::Received;
use crate::translate;
use crate::v1;
use crate::v1::flows_client::FlowsClient;
use crate::v1::from_sender::Message as ToController;
use crate::v1::sender_report::Report;

/// How often acknowledged bytes are reported.
const COUNTERS: Duration = Duration::from_millis(5);

/// The task.
pub(super) struct SenderTask {
    options: SenderOptions,
    state: watch::Sender<AgentState>,
    governed: LeaderLease,
    /// By controller.
    warnings: BTreeMap<String, RepeatedWarning>,
    flows: Flows,
}

/// The open flows.
#[derive(Default)]
struct Flows {
    open: BTreeMap<u64, OpenFlow>,
    /// The last flow that was opened between the same ports.
    numbers: HashMap<FlowKey, u64>,
}

struct OpenFlow {
    opened: NewFlow,
    due: Option<DatedDemand>,
    /// When it was reported to the controller: the controller counts its time from there.
    reported_at: Option<Instant>,
    told_acknowledged: u64,
    window: Option<u32>,
}

type Attached = crate::controller_stream::ControllerStream<v1::FromSender>;
type Wishes = mpsc::UnboundedReceiver<FlowRequest>;

impl SenderTask {
    pub(super) fn new(options: SenderOptions, state: watch::Sender<AgentState>) -> Self {
        Self {
            options,
            state,
            governed: LeaderLease::default(),
            warnings: BTreeMap::new(),
            flows: Flows::default(),
        }
    }

    /// Runs until the channel and all flows are dropped.
    pub(super) async fn run(mut self, mut wishes: Wishes) {
        let mut pause = FIRST_PAUSE;
        loop {
            for controller in self.options.controllers.clone() {
                let end = match self.attach(&controller, &mut wishes).await {
                    Ok(attached) => {
                        pause = FIRST_PAUSE;
                        self.warnings.clear();
                        self.follow(attached, &mut wishes).await
                    }
                    Err(end) => end,
                };
                let DisconnectCause::Failed(error) = end else {
                    return;
                };
                self.flows.forget_controller();
                let now = Instant::now();
                let warnings = self.warnings.entry(controller.clone());
                let warning = warnings.or_insert_with(|| RepeatedWarning::new(now));
                if let Some(left_out) = warning.take(now, &error.to_string()) {
                    tracing::warn!(controller, %error, left_out, "no controller for senders");
                }
                let failed = AgentState::Failed(error.to_string());
                self.state.send_replace(failed);
            }
            if self
                .flows
                .handle_requests_during(&mut wishes, sleep(pause))
                .await
                .is_none()
            {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attach(
        &mut self,
        controller: &str,
        wishes: &mut Wishes,
    ) -> Result<Attached, DisconnectCause> {
        let leader_epoch = self.governed.leader_epoch(Instant::now());
        let attaching = attach(controller, &self.options, leader_epoch);
        let attached = self.flows.handle_requests_during(wishes, attaching).await;
        let attached = attached.unwrap_or(Err(DisconnectCause::Dropped))?;
        self.state.send_replace(AgentState::Attached {
            controller: controller.to_owned(),
            leader_epoch: attached.lease.leader_epoch.clone(),
        });
        Ok(attached)
    }

    async fn follow(&mut self, mut attached: Attached, wishes: &mut Wishes) -> DisconnectCause {
        let mut beats = interval(attached.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut counters = interval(COUNTERS);
        counters.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reports = self.flows.announce(Instant::now());
        loop {
            let silent = sleep_until(attached.lease.silent_at().into());
            let step = tokio::select! {
                message = attached.incoming.message() => match message {
                    Ok(Some(message)) => self.apply_orders(&mut attached.lease, message),
                    Ok(None) => Err(AgentError::Closed.into()),
                    Err(status) => Err(status.into()),
                },
                wish = wishes.recv() => match wish {
                    Some(wish) => {
                        reports.extend(self.flows.wish(Instant::now(), wish));
                        while let Ok(wish) = wishes.try_recv() {
                            reports.extend(self.flows.wish(Instant::now(), wish));
                        }
                        send_if_any(&attached, &mut reports).await
                    }
                    None => Err(DisconnectCause::Dropped),
                },
                _ = counters.tick(), if self.flows.are_any() => {
                    reports.extend(self.flows.counters());
                    send_if_any(&attached, &mut reports).await
                }
                _ = beats.tick() => send_reports(&attached, &mut reports).await,
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
        let lease = span(lease.order_lifetime());
        for order in orders {
            match translate::order(order)? {
                WindowOrder::Allow { flow, window } => self.flows.allow(&flow, Some(window), lease),
                WindowOrder::Release { flow } => self.flows.allow(&flow, None, lease),
                WindowOrder::Renew => self.flows.renew(lease),
                // For switches only.
                WindowOrder::Retransmit { .. }
                | WindowOrder::Describe
                | WindowOrder::Remember { .. } => {}
            }
        }
        Ok(())
    }
}

async fn attach(
    controller: &str,
    options: &SenderOptions,
    leader_epoch: Option<v1::LeaderEpoch>,
) -> Result<Attached, DisconnectCause> {
    let connection = connect(controller, &options.credentials).await?;
    let (outgoing, queued) = mpsc::channel(QUEUED);
    let begin = Instant::now();
    let hello = v1::FromSender {
        message: Some(ToController::Hello(v1::SenderHello { leader_epoch })),
    };
    let _ = outgoing.try_send(hello);
    let mut client = FlowsClient::new(connection.channel.clone());
    let call = client.send(Received(queued));
    let attached = Attached::welcomed(connection, call, begin, outgoing).await;
    let (attached, _) = attached?;
    Ok(attached)
}

impl Flows {
    fn are_any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Processes requests of flows while `work` runs; returns `None` if there can be no more.
    async fn handle_requests_during<T>(
        &mut self,
        wishes: &mut Wishes,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                wish = wishes.recv() => drop(self.wish(Instant::now(), wish?)),
            }
        }
    }

    /// Processes a flow's request; returns the report for the controller.
    fn wish(&mut self, now: Instant, wish: FlowRequest) -> Option<Report> {
        match wish {
            FlowRequest::Open(number, opened) => {
                self.numbers.insert(opened.flow, number);
                let flow = OpenFlow {
                    opened,
                    due: None,
                    reported_at: None,
                    told_acknowledged: 0,
                    window: None,
                };
                self.open.insert(number, flow);
                None
            }
            FlowRequest::Demand(number, due) => {
                let flow = self.open.get_mut(&number)?;
                flow.due = Some(due);
                flow.reported_at.get_or_insert(now);
                flow.report()
            }
            FlowRequest::Close(number) => {
                let flow = self.open.remove(&number)?.opened.flow;
                // Another flow between the same ports may have begun.
                if self.numbers.get(&flow) != Some(&number) {
                    return None;
                }
                self.numbers.remove(&flow);
                Some(Report::Closed(translate::to_flow(&flow)))
            }
        }
    }

    /// Returns the full description for a controller that has just accepted the sender.
    fn announce(&mut self, now: Instant) -> Vec<Report> {
        let flows = self.open.values_mut().filter(|flow| flow.due.is_some());
        let reports = flows.filter_map(|flow| {
            flow.reported_at = Some(now);
            flow.told_acknowledged = 0;
            flow.report()
        });
        let mut reports: Vec<_> = reports.collect();
        reports.extend(self.counters());
        reports
    }

    /// Returns the acknowledged bytes that have changed.
    fn counters(&mut self) -> Vec<Report> {
        let reported = self
            .open
            .values_mut()
            .filter(|flow| flow.reported_at.is_some());
        let reports = reported.filter_map(|flow| {
            let bytes = flow.opened.acknowledged.load(Ordering::Relaxed);
            if bytes <= flow.told_acknowledged {
                return None;
            }
            flow.told_acknowledged = bytes;
            let flow = Some(translate::to_flow(&flow.opened.flow));
            Some(Report::Acknowledged(v1::Acknowledged { flow, bytes }))
        });
        reports.collect()
    }

    fn allow(&mut self, flow: &FlowKey, window: Option<u32>, lease: Span) {
        let number = self.numbers.get(flow);
        if let Some(flow) = number.and_then(|number| self.open.get_mut(number)) {
            flow.window = window;
            flow.pass_allowance(lease);
        }
    }

    /// Renews the windows in force.
    fn renew(&mut self, lease: Span) {
        let governed = self.open.values().filter(|flow| flow.window.is_some());
        governed.for_each(|flow| flow.pass_allowance(lease));
    }

    /// Resets the controller's state. Its orders hold until their lease is over, which transports check
    /// themselves.
    fn forget_controller(&mut self) {
        for flow in self.open.values_mut() {
            (flow.window, flow.reported_at) = (None, None);
        }
    }
}

impl OpenFlow {
    /// Returns the flow's report.
    fn report(&self) -> Option<Report> {
        let (due, told_at) = (self.due?, self.reported_at?);
        let within = due.at.saturating_duration_since(told_at);
        let demand = Demand {
            size: due.demand.size,
            // A deadline that has passed expires at once.
            within: span(within).max(Span::from_nanos(1)),
        };
        Some(Report::Flow(v1::SenderFlow {
            flow: Some(translate::to_flow(&self.opened.flow)),
            segment_bytes: self.opened.segment,
            demand: Some(translate::to_demand(&demand)),
        }))
    }

    fn pass_allowance(&self, lease: Span) {
        (self.opened.callback)(match self.window {
            None => Allowance::Unlimited,
            Some(window) => Allowance::AtMost {
                window: ByteSize::from_bytes(window.into()),
                lease,
            },
        });
    }
}

/// Sends the reports, if there are any.
async fn send_if_any(
    attached: &Attached,
    reports: &mut Vec<Report>,
) -> Result<(), DisconnectCause> {
    if reports.is_empty() {
        Ok(())
    } else {
        send_reports(attached, reports).await
    }
}

/// Sends the reports, or an empty heartbeat.
async fn send_reports(
    attached: &Attached,
    reports: &mut Vec<Report>,
) -> Result<(), DisconnectCause> {
    let reports = reports.drain(..).map(|report| v1::SenderReport {
        report: Some(report),
    });
    let reports = v1::SenderReports {
        reports: reports.collect(),
        beat: attached.lease.beat(Instant::now()),
    };
    let message = v1::FromSender {
        message: Some(ToController::Reports(reports)),
    };
    attached.send(message).await
}
