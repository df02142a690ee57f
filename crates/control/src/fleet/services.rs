//! The gRPC services: check certificates and messages, and pass them to the task.

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tonic::{Code, Request, Response, Status, Streaming};
use weir_rollout::{Push, PushError, UndoError};
use weir_scenario::parse_policy;

use super::StoreError;
use super::session::{AttachedHost, WAITING};
use super::task::{FleetAnswer, FleetInput};
use super::translate::{self, FleetDecodeError};
use crate::controller::{Peer, RefusedClients};
use crate::policy_v1 as v1;
use crate::policy_v1::from_host::Message as FromHost;
use crate::policy_v1::hosts_server::Hosts;
use crate::policy_v1::policies_server::Policies;
use crate::role::Role;
use crate::stream::ReceivedBoxes;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FleetRefusal {
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error("{0}")]
    Policy(String),
    #[error("there is no version {0}: `weir policy log` lists them")]
    NoVersion(u64),
    #[error(transparent)]
    Malformed(#[from] FleetDecodeError),
    #[error("the first message is a hello, and there is one only")]
    Hello,
    #[error("the certificate is not one for {0}")]
    Role(String),
    #[error(
        "the certificate is for no publisher: NAME.publisher.weir, as `weir sed certificates --publisher NAME` makes"
    )]
    NoPublisher,
    #[error(
        "the host has version {version} of the fleet {theirs}, and this controller's is {own}: remove the host's state \
         file to hand it over, or bring the controller's store back"
    )]
    OtherFleet {
        theirs: String,
        version: u64,
        own: String,
    },
    #[error("this controller does not lead: another one does")]
    NotLeader,
    #[error("the store cannot be used: {0}")]
    Store(String),
    #[error("this controller has no policies")]
    Ending,
}

impl FleetRefusal {
    pub(super) fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::NotLeader => Self::NotLeader,
            error => Self::Store(error.to_string()),
        }
    }
}

impl From<FleetRefusal> for Status {
    fn from(refusal: FleetRefusal) -> Self {
        let code = match &refusal {
            FleetRefusal::Role(_) | FleetRefusal::NoPublisher => Code::PermissionDenied,
            FleetRefusal::Policy(_) | FleetRefusal::Malformed(_) | FleetRefusal::Hello => {
                Code::InvalidArgument
            }
            FleetRefusal::NoVersion(_) => Code::NotFound,
            FleetRefusal::Push(_) | FleetRefusal::Undo(_) | FleetRefusal::OtherFleet { .. } => {
                Code::FailedPrecondition
            }
            FleetRefusal::NotLeader | FleetRefusal::Ending | FleetRefusal::Store(_) => {
                Code::Unavailable
            }
        };
        Self::new(code, refusal.to_string())
    }
}

/// The services; clones are handles.
#[derive(Clone, Debug)]
pub(crate) struct FleetServices {
    task: mpsc::Sender<FleetInput>,
    refused: RefusedClients,
}

/// How long a connected host may take to send hello.
const HELLO: std::time::Duration = std::time::Duration::from_secs(5);
/// Entries of the log in an answer.
const USUAL_ENTRIES: u32 = 100;
const MOST_ENTRIES: u32 = 10_000;
/// Hosts in an answer.
const MOST_HOSTS: u32 = 100_000;

impl FleetServices {
    pub(crate) fn new(task: mpsc::Sender<FleetInput>, refused: RefusedClients) -> Self {
        Self { task, refused }
    }

    async fn ask<T>(
        &self,
        input: impl FnOnce(FleetAnswer<T>) -> FleetInput,
    ) -> Result<T, FleetRefusal> {
        let (sender, answer) = oneshot::channel();
        let sent = self.task.send(input(sender)).await;
        sent.map_err(|_| FleetRefusal::Ending)?;
        answer.await.map_err(|_| FleetRefusal::Ending)?
    }

    fn peer<T>(request: &Request<T>) -> Result<Peer, FleetRefusal> {
        Peer::of(request).map_err(|_| FleetRefusal::Role("anybody".to_owned()))
    }

    fn note(&self, peer: &Peer, refusal: FleetRefusal) -> FleetRefusal {
        self.refused.note(peer.address, &refusal.to_string());
        refusal
    }

    /// Returns the name of a caller that may push.
    fn publisher<T>(&self, request: &Request<T>) -> Result<String, FleetRefusal> {
        let peer = Self::peer(request)?;
        let name = Role::publisher_of(peer.certificate());
        name.ok_or_else(|| self.note(&peer, FleetRefusal::NoPublisher))
    }

    /// Refuses a caller that may not look.
    fn require_reader<T>(&self, request: &Request<T>) -> Result<(), FleetRefusal> {
        let peer = Self::peer(request)?;
        let may_look = Role::Operator.is_held(peer.certificate())
            || Role::publisher_of(peer.certificate()).is_some();
        if may_look {
            return Ok(());
        }
        Err(self.note(&peer, FleetRefusal::Role(Role::Operator.to_string())))
    }

    /// Passes a host's reports to the task until it or the task ends the session.
    async fn follow(
        self,
        mut stream: Streaming<v1::FromHost>,
        host: String,
        attached: AttachedHost,
        answers: mpsc::WeakSender<Box<Result<v1::ToHost, Status>>>,
    ) {
        let AttachedHost { session, mut over } = attached;
        loop {
            let message = tokio::select! {
                message = stream.message() => message,
                _ = &mut over => break,
            };
            let Ok(Some(message)) = message else { break };
            let input = match report(&host, session, message) {
                Ok(input) => input,
                Err(refusal) => {
                    tracing::debug!(host, %refusal, "a message makes no sense");
                    // The session ends with the reason, if there is room for it.
                    if let Some(answers) = answers.upgrade() {
                        let _ = answers.try_send(Box::new(Err(refusal.into())));
                    }
                    break;
                }
            };
            if self.task.send(input).await.is_err() {
                return;
            }
        }
        let _ = self.task.send(FleetInput::Detach { host, session }).await;
    }
}

fn report(host: &str, session: u64, message: v1::FromHost) -> Result<FleetInput, FleetRefusal> {
    let host = host.to_owned();
    match message
        .message
        .ok_or(FleetDecodeError::Missing("message"))?
    {
        FromHost::Hello(_) => Err(FleetRefusal::Hello),
        FromHost::Taken(taken) => Ok(FleetInput::Taken {
            host,
            session,
            version: taken.version,
        }),
        FromHost::Refused(refused) => Ok(FleetInput::Refused {
            host,
            session,
            version: refused.version,
            reason: refused.reason.chars().take(LONGEST_REASON).collect(),
        }),
        FromHost::Metrics(metrics) => {
            let (version, snapshot) = translate::metrics(metrics)?;
            Ok(FleetInput::Metrics {
                host,
                session,
                version,
                snapshot: Box::new(snapshot),
            })
        }
    }
}

/// Characters of a refusal's reason that are kept.
const LONGEST_REASON: usize = 1000;

#[tonic::async_trait]
impl Hosts for FleetServices {
    type AttachStream = ReceivedBoxes<Result<v1::ToHost, Status>>;

    async fn attach(
        &self,
        request: Request<Streaming<v1::FromHost>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let peer = Self::peer(&request)?;
        let mut stream = request.into_inner();
        let first = timeout(HELLO, stream.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no hello has come"))??;
        let Some(FromHost::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(FleetRefusal::Hello.into());
        };
        let hello = translate::hello(hello).map_err(FleetRefusal::from)?;
        let role = Role::Host(hello.name.clone());
        if !role.is_held(peer.certificate()) {
            return Err(self
                .note(&peer, FleetRefusal::Role(role.to_string()))
                .into());
        }
        let (outgoing, messages) = mpsc::channel(WAITING);
        let (host, answers) = (hello.name.clone(), outgoing.downgrade());
        let attached = self
            .ask(|answer| FleetInput::Attach {
                hello,
                outgoing,
                answer,
            })
            .await?;
        tokio::spawn(self.clone().follow(stream, host, attached, answers));
        Ok(Response::new(ReceivedBoxes(messages)))
    }
}

#[tonic::async_trait]
impl Policies for FleetServices {
    async fn push(
        &self,
        request: Request<v1::PushRequest>,
    ) -> Result<Response<v1::Pushed>, Status> {
        let author = self.publisher(&request)?;
        let request = request.into_inner();
        if let Err(error) = parse_policy("policy", &request.text) {
            return Err(FleetRefusal::Policy(error.to_string()).into());
        }
        let push = Box::new(Push {
            author,
            message: request.message,
            text: request.text,
            plan: translate::plan(request.plan).map_err(FleetRefusal::from)?,
            simulated: Some(request.simulated).filter(|simulated| !simulated.is_empty()),
            supersede: request.supersede,
        });
        let pushed = self.ask(|answer| FleetInput::Push { push, answer }).await?;
        Ok(Response::new(pushed))
    }

    async fn undo(
        &self,
        request: Request<v1::UndoRequest>,
    ) -> Result<Response<v1::Pushed>, Status> {
        let author = self.publisher(&request)?;
        let message = request.into_inner().message;
        let undone = self.ask(|answer| FleetInput::Undo {
            author,
            message,
            answer,
        });
        Ok(Response::new(undone.await?))
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::Version>, Status> {
        self.require_reader(&request)?;
        let version = request.into_inner().version;
        let found = self.ask(|answer| FleetInput::Get { version, answer });
        Ok(Response::new(found.await?))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<v1::Versions>, Status> {
        self.require_reader(&request)?;
        let found = self.ask(|answer| FleetInput::List { answer });
        Ok(Response::new(found.await?))
    }

    async fn log(
        &self,
        request: Request<v1::LogRequest>,
    ) -> Result<Response<v1::LogEntries>, Status> {
        self.require_reader(&request)?;
        let v1::LogRequest { from, count } = request.into_inner();
        let count = match count {
            0 => USUAL_ENTRIES,
            count => count.min(MOST_ENTRIES),
        };
        let found = self.ask(|answer| FleetInput::Log {
            from,
            count,
            answer,
        });
        Ok(Response::new(found.await?))
    }

    async fn status(
        &self,
        request: Request<v1::FleetStatusRequest>,
    ) -> Result<Response<v1::FleetStatus>, Status> {
        self.require_reader(&request)?;
        let hosts = request.into_inner().hosts.min(MOST_HOSTS);
        let found = self.ask(|answer| FleetInput::Status { hosts, answer });
        Ok(Response::new(found.await?))
    }
}
