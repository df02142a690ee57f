//! The gRPC services: check requests, and pass them to the task.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tonic::{Request, Response, Status, Streaming};
use weir_sed::{FlowPattern, SwitchReport};
use weir_wire::FlowKey;

use super::peer::Peer;
use super::refusal::Refusal;
use super::refused_clients::RefusedClients;
use super::switches::{Hello, ReplySender, leader_epoch};
use super::task::{AdmittedPeer, ControllerInput, SenderReport};
use crate::role::Role;
use crate::stream::Received;
use crate::translate::{self, DecodeError};
use crate::v1;
use crate::v1::agents_server::Agents;
use crate::v1::flows_server::Flows;
use crate::v1::from_agent::Message as AgentMessage;
use crate::v1::from_sender::Message as SenderMessage;
use crate::v1::operation_server::Operation;
use crate::v1::sender_report::Report as SenderKind;

/// All services; clones are handles.
#[derive(Clone, Debug)]
pub(super) struct Services {
    task: mpsc::Sender<ControllerInput>,
    refused: RefusedClients,
}

/// The most messages that wait to be sent to a peer.
const WAITING: usize = 64;
/// How long a connected peer may take to send hello.
const HELLO: Duration = Duration::from_secs(5);

type Messages = Received<Result<v1::FromController, Status>>;
impl Services {
    pub(super) fn new(task: mpsc::Sender<ControllerInput>, refused: RefusedClients) -> Self {
        Self { task, refused }
    }

    /// Refuses a peer whose certificate does not have this role.
    fn require(&self, peer: &Peer, role: &Role) -> Result<(), Refusal> {
        let required = peer.require(role);
        if let Err(refusal) = &required {
            self.refused.note(peer.address, &refusal.to_string());
        }
        required
    }

    async fn send_to_task(&self, input: ControllerInput) -> Result<(), Refusal> {
        self.task.send(input).await.map_err(|_| Refusal::Ending)
    }

    async fn ask<T>(
        &self,
        input: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> ControllerInput,
    ) -> Result<T, Refusal> {
        let (sender, answer) = oneshot::channel();
        self.send_to_task(input(sender)).await?;
        answer.await.map_err(|_| Refusal::Ending)?
    }

    /// Has the task accept a peer, and follows its stream.
    async fn admit<T: Send + 'static>(
        &self,
        stream: Streaming<T>,
        whose: String,
        attach: impl FnOnce(
            ReplySender,
            oneshot::Sender<Result<AdmittedPeer, Refusal>>,
        ) -> ControllerInput,
        read: impl Fn(u64, T) -> Result<ControllerInput, Refusal> + Send + 'static,
    ) -> Result<Response<Messages>, Status> {
        let (outgoing, messages) = mpsc::channel(WAITING);
        let admitted = self.ask(|answer| attach(outgoing, answer)).await?;
        tokio::spawn(self.clone().follow(stream, whose, admitted, read));
        Ok(Response::new(Received(messages)))
    }

    /// Passes a peer's messages to the task, decoded by `read`, until the peer or the task ends the
    /// stream.
    async fn follow<T>(
        self,
        mut stream: Streaming<T>,
        whose: String,
        admitted: AdmittedPeer,
        read: impl Fn(u64, T) -> Result<ControllerInput, Refusal>,
    ) {
        let AdmittedPeer { session, mut over } = admitted;
        let result = loop {
            let message = tokio::select! {
                message = stream.message() => message,
                _ = &mut over => break Ok(()),
            };
            let input = match message {
                Ok(Some(message)) => read(session, message),
                Ok(None) | Err(_) => break Ok(()),
            };
            match input {
                Ok(input) => {
                    if self.send_to_task(input).await.is_err() {
                        return;
                    }
                }
                Err(refusal) => break Err(refusal),
            }
        };
        if let Err(refusal) = result {
            let _ = self
                .send_to_task(ControllerInput::Malformed { whose, refusal })
                .await;
        }
        // A task that has ended has no sessions anyway.
        let _ = self.send_to_task(ControllerInput::Detach { session }).await;
    }
}

fn reports(session: u64, message: v1::FromAgent) -> Result<ControllerInput, Refusal> {
    let Some(AgentMessage::Reports(message)) = message.message else {
        return Err(Refusal::Hello);
    };
    let reports = message.reports.into_iter().map(translate::report);
    Ok(ControllerInput::Reports {
        session,
        beat: message.beat,
        reports: reports.collect::<Result<Vec<SwitchReport>, DecodeError>>()?,
    })
}

fn sender_reports(
    session: u64,
    peer: &Peer,
    message: v1::FromSender,
) -> Result<ControllerInput, Refusal> {
    let Some(SenderMessage::Reports(message)) = message.message else {
        return Err(Refusal::Hello);
    };
    let reports = message.reports.into_iter();
    Ok(ControllerInput::SenderReports {
        session,
        beat: message.beat,
        reports: reports
            .map(|report| sender_report(peer, report))
            .collect::<Result<_, Refusal>>()?,
    })
}

fn sender_report(peer: &Peer, report: v1::SenderReport) -> Result<SenderReport, Refusal> {
    Ok(match report.report.ok_or(DecodeError::Missing("report"))? {
        SenderKind::Flow(reported) => {
            let flow: FlowKey = translate::flow(reported.flow)?;
            let demand = reported
                .demand
                .map(|demand| translate::demand(Some(demand)));
            let client = peer.client(&FlowPattern::from(flow));
            if client != flow.source {
                return Err(weir_sed::DemandError::NotOwner { client }.into());
            }
            SenderReport::Flow {
                client,
                flow,
                segment: reported.segment_bytes,
                demand: demand.transpose()?,
            }
        }
        SenderKind::Acknowledged(reported) => SenderReport::Acknowledged {
            flow: translate::flow(reported.flow)?,
            bytes: reported.bytes,
        },
        SenderKind::Closed(flow) => SenderReport::Closed {
            flow: translate::flow(Some(flow))?,
        },
    })
}

/// Returns the first message of a stream.
async fn first<T>(stream: &mut Streaming<T>) -> Result<T, Status> {
    match tokio::time::timeout(HELLO, stream.message()).await {
        Ok(message) => message?.ok_or_else(|| Refusal::Hello.into()),
        Err(_) => Err(Refusal::Silent.into()),
    }
}

#[tonic::async_trait]
impl Agents for Services {
    type AttachStream = Messages;

    async fn attach(
        &self,
        request: Request<Streaming<v1::FromAgent>>,
    ) -> Result<Response<Messages>, Status> {
        let peer = Peer::of(&request)?;
        let mut stream = request.into_inner();
        let Some(AgentMessage::Hello(hello)) = first(&mut stream).await?.message else {
            return Err(Refusal::Hello.into());
        };
        self.require(&peer, &Role::Switch(hello.name.clone()))?;
        let hello = Hello::parse(hello)?;
        let name = hello.name.clone();
        let attach = |outgoing, answer| ControllerInput::Attach {
            hello,
            outgoing,
            answer,
        };
        self.admit(stream, name, attach, reports).await
    }
}

#[tonic::async_trait]
impl Flows for Services {
    type SendStream = Messages;

    async fn register(
        &self,
        request: Request<v1::Registration>,
    ) -> Result<Response<v1::Registered>, Status> {
        let peer = Peer::of(&request)?;
        self.require(&peer, &Role::Application)?;
        let registration = request.into_inner();
        let flows = translate::pattern(registration.flows).map_err(Refusal::from)?;
        let demand = translate::demand(registration.demand).map_err(Refusal::from)?;
        let client = peer.client(&flows);
        let registered = self.ask(|answer| ControllerInput::Register {
            client,
            flows,
            demand,
            answer,
        });
        registered.await?;
        Ok(Response::new(v1::Registered {}))
    }

    async fn withdraw(
        &self,
        request: Request<v1::Pattern>,
    ) -> Result<Response<v1::Withdrawn>, Status> {
        let peer = Peer::of(&request)?;
        self.require(&peer, &Role::Application)?;
        let flows = translate::pattern(Some(request.into_inner())).map_err(Refusal::from)?;
        let client = peer.client(&flows);
        let withdrawn = self.ask(|answer| ControllerInput::Withdraw {
            client,
            flows,
            answer,
        });
        let was_there = withdrawn.await?;
        Ok(Response::new(v1::Withdrawn { was_there }))
    }

    async fn send(
        &self,
        request: Request<Streaming<v1::FromSender>>,
    ) -> Result<Response<Messages>, Status> {
        let peer = Peer::of(&request)?;
        self.require(&peer, &Role::Application)?;
        let mut stream = request.into_inner();
        let Some(SenderMessage::Hello(hello)) = first(&mut stream).await?.message else {
            return Err(Refusal::Hello.into());
        };
        let leader_epoch = hello.leader_epoch.map(leader_epoch);
        let attach = |outgoing, answer| ControllerInput::AttachSender {
            leader_epoch,
            outgoing,
            answer,
        };
        let whose = peer.address.to_string();
        let read = move |session, message| sender_reports(session, &peer, message);
        self.admit(stream, whose, attach, read).await
    }
}

#[tonic::async_trait]
impl Operation for Services {
    async fn show(
        &self,
        request: Request<v1::StatusQuestion>,
    ) -> Result<Response<v1::Status>, Status> {
        self.require(&Peer::of(&request)?, &Role::Operator)?;
        let flows = request.into_inner().flows as usize;
        let status = self.ask(|answer| ControllerInput::Show { flows, answer });
        Ok(Response::new(status.await?))
    }
}
