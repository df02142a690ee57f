//! The controller as a process.

mod clock;
mod metrics;
mod refusal;
mod senders;
mod services;
mod status;
mod switches;
mod task;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use weir_metrics::Registry;
use weir_sed::{ControllerConfig, DemandRule, DemandTable};

use crate::credentials::Credentials;
use crate::leader_epoch::EpochFile;
use crate::v1::agents_server::AgentsServer;
use crate::v1::flows_server::FlowsServer;
use crate::v1::operation_server::OperationServer;
use metrics::ControllerMetrics;
use services::Services;
use task::ControllerTask;

/// What a controller needs.
#[derive(Debug)]
pub struct ControllerOptions {
    /// Where it listens; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// What it proves to be, and whose certificates it believes.
    pub credentials: Credentials,
    /// Its name and term.
    pub state: EpochFile,
    /// How it decides.
    pub config: ControllerConfig,
    /// What flows demand whose applications say nothing.
    pub rules: Vec<DemandRule>,
    /// How many flows each address may have registered.
    pub flows_per_client: usize,
    /// Where it counts.
    pub metrics: Option<Registry>,
}

/// Why a controller cannot begin, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Another socket has the address.
    #[error("{0} is in use: if that is a controller, stop it first (`weir sed status` shows it)")]
    AddressInUse(SocketAddr),
    /// The socket could not be set up.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// TLS cannot work with the certificates, or the server broke.
    #[error("gRPC: {}", with_causes(.0))]
    Transport(#[from] tonic::transport::Error),
    /// There is a later one.
    #[error(
        "a controller of the same name with the later term {later} has taken over the switch {switch} (this \
         one's is {own}): two of them run; this one ends"
    )]
    Superseded {
        /// Who said so.
        switch: String,
        /// The later term.
        later: u64,
        /// The term of this one.
        own: u64,
    },
}

/// An error with what lies behind it, which gRPC's errors do not say themselves.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A controller that listens, and works while it is [run](Self::run).
///
/// ```no_run
/// use weir_control::{Controller, ControllerOptions, Credentials, DEFAULT_PORT, State};
/// use weir_sed::ControllerConfig;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let controller = Controller::bind(ControllerOptions {
///     listen: ([0, 0, 0, 0], DEFAULT_PORT).into(),
///     credentials: Credentials::from_directory("/etc/weir/sed".as_ref(), "controller")?,
///     state: State::claim("/var/lib/weir/sed".as_ref())?,
///     config: ControllerConfig::paper(),
///     rules: Vec::new(),
///     flows_per_client: 10_000,
///     metrics: None,
/// })
/// .await?;
/// controller.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Controller {
    address: SocketAddr,
    incoming: TcpIncoming,
    server: Server,
    services: Services,
    task: ControllerTask,
    inputs: mpsc::Receiver<task::ControllerInput>,
    sender: mpsc::Sender<task::ControllerInput>,
}

/// What can be changed of a controller while it works.
#[derive(Clone, Debug)]
pub struct ControllerHandle(mpsc::WeakSender<task::ControllerInput>);

impl ControllerHandle {
    /// Has other rules hold, for flows that begin from now on; tells whether the controller still works.
    pub async fn set_rules(&self, rules: Vec<DemandRule>) -> bool {
        match self.0.upgrade() {
            Some(task) => task
                .send(task::ControllerInput::SetRules(rules))
                .await
                .is_ok(),
            None => false,
        }
    }
}

/// How many messages wait for the task: enough for it to be slow for a moment, and few enough for agents to
/// notice if it is for longer.
const WAITING: usize = 1024;

/// How long connections may be silent before HTTP asks whether anybody is there, and for an answer.
const KEEPALIVE: Duration = Duration::from_secs(10);

impl Controller {
    /// Listens.
    ///
    /// # Errors
    /// [`ControllerError`]: the address, or the certificates.
    pub async fn bind(options: ControllerOptions) -> Result<Self, ControllerError> {
        let address = options.listen;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ControllerError::AddressInUse(address),
            _ => ControllerError::Listen { address, source },
        };
        let server = Server::builder()
            .tls_config(options.credentials.server())?
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let (sender, inputs) = mpsc::channel(WAITING);
        let config = ControllerConfig {
            remember: true,
            ..options.config
        };
        let demands = DemandTable::new(options.rules, options.flows_per_client);
        let logic = weir_sed::Controller::new(config, demands);
        let metrics = ControllerMetrics::new(&options.metrics.unwrap_or_default());
        Ok(Self {
            address,
            incoming,
            server,
            services: Services::new(sender.clone()),
            task: ControllerTask::new(logic, options.state, metrics),
            inputs,
            sender,
        })
    }

    /// What can be changed while it works.
    pub fn handle(&self) -> ControllerHandle {
        ControllerHandle(self.sender.downgrade())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Works until `stop` is there. Windows in force stay so for the rest of their lease, so that a
    /// controller that is started again finds them.
    ///
    /// # Errors
    /// [`ControllerError::Superseded`] where another one has taken its place;
    /// [`ControllerError::Transport`] if the server breaks.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ControllerError> {
        let Self {
            incoming,
            mut server,
            services,
            task,
            inputs,
            ..
        } = self;
        let router = server
            .add_service(AgentsServer::new(services.clone()))
            .add_service(FlowsServer::new(services.clone()))
            .add_service(OperationServer::new(services));
        tokio::select! {
            served = router.serve_with_incoming(incoming) => served.map_err(Into::into),
            ended = task.run(inputs) => ended,
            () = stop => Ok(()),
        }
    }
}
