//! The controller process.

mod accept;
mod admission;
mod client_connection;
mod clock;
mod metrics;
mod peer;
mod refusal;
mod refused_clients;
mod senders;
mod services;
mod status;
mod switches;
mod task;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tonic::transport::Server;
use weir_metrics::Registry;
use weir_net::tls::{Reload, TlsError};
use weir_sed::{ControllerConfig, DemandRule, DemandTable};

use crate::credentials::{Credentials, CredentialsError};
use crate::fleet::{self, FleetMetrics, FleetServices, FleetTask, StoreError, StoreLocation};
use crate::leader_epoch::EpochFile;
use crate::policy_v1::hosts_server::HostsServer;
use crate::policy_v1::policies_server::PoliciesServer;
use crate::stream::Received;
use crate::v1::agents_server::AgentsServer;
use crate::v1::flows_server::FlowsServer;
use crate::v1::operation_server::OperationServer;
use admission::Admission;
use metrics::ControllerMetrics;
pub use metrics::register_controller_metrics;
pub(crate) use peer::Peer;
pub(crate) use refused_clients::RefusedClients;
use services::Services;
use task::ControllerTask;

/// Options of a controller.
#[derive(Debug)]
pub struct ControllerOptions {
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Its certificate and key, and the authority that it trusts.
    pub credentials: Credentials,
    /// Its name and term.
    pub state: EpochFile,
    /// Settings of the decisions.
    pub config: ControllerConfig,
    /// Demands of flows whose applications register nothing.
    pub rules: Vec<DemandRule>,
    /// The most registrations per address.
    pub flows_per_client: usize,
    /// Where versions of the policy are kept; `None` to have none.
    pub policies: Option<StoreLocation>,
    /// The registry of its metrics.
    pub metrics: Option<Registry>,
}

/// Why a controller cannot start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The address is in use.
    #[error("{0} is in use: if that is a controller, stop it first (`weir sed status` shows it)")]
    AddressInUse(SocketAddr),
    /// The socket could not be set up.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Versions of the policy cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// TLS cannot use the certificates.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The server failed.
    #[error("gRPC: {}", with_causes(.0))]
    Transport(#[from] tonic::transport::Error),
    /// A later controller of the same name has taken over.
    #[error(
        "a controller of the same name with the later term {later} has taken over the switch {switch} (this \
         one's is {own}): two of them run; this one ends"
    )]
    Superseded {
        /// The switch that announced it.
        switch: String,
        /// The later term.
        later: u64,
        /// The term of this controller.
        own: u64,
    },
}

/// Returns an error with its causes, which gRPC's errors do not print themselves. A cause that says what the
/// error before it says is left out.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.dedup();
    texts.join(": ")
}

/// A controller that listens, and works while it [runs](Self::run).
///
/// ```no_run
/// use weir_control::{Controller, ControllerOptions, Credentials, DEFAULT_PORT, EpochFile};
/// use weir_sed::ControllerConfig;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let controller = Controller::bind(ControllerOptions {
///     listen: ([0, 0, 0, 0], DEFAULT_PORT).into(),
///     credentials: Credentials::from_directory("/etc/weir/sed".as_ref(), "controller")?,
///     state: EpochFile::claim("/var/lib/weir/sed".as_ref())?,
///     config: ControllerConfig::paper(),
///     rules: Vec::new(),
///     flows_per_client: 10_000,
///     policies: None,
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
    listener: TcpListener,
    admission: Arc<Admission>,
    reload_interval: Duration,
    server: Server,
    services: Services,
    task: ControllerTask,
    inputs: mpsc::Receiver<task::ControllerInput>,
    sender: mpsc::Sender<task::ControllerInput>,
    fleet: FleetParts,
}

/// The controller of policies: its services answer that there are none if there is no task.
#[derive(Debug)]
struct FleetParts {
    services: FleetServices,
    task: Option<(FleetTask, mpsc::Receiver<fleet::FleetInput>)>,
}

impl FleetParts {
    fn new(
        options: &ControllerOptions,
        registry: &Registry,
        refused: RefusedClients,
    ) -> Result<Self, StoreError> {
        let (sender, inputs) = mpsc::channel(WAITING);
        let task = options.policies.as_ref().map(|location| {
            let epoch = options.state.leader_epoch();
            let name = format!("{}, term {}", epoch.name, epoch.term);
            let store = fleet::open(location, &name)?;
            let task = FleetTask::new(store, name, FleetMetrics::new(registry));
            Ok::<_, StoreError>((task, inputs))
        });
        Ok(Self {
            services: FleetServices::new(sender, refused),
            task: task.transpose()?,
        })
    }

    async fn run(
        task: Option<(FleetTask, mpsc::Receiver<fleet::FleetInput>)>,
    ) -> Result<(), ControllerError> {
        match task {
            Some((task, inputs)) => task.run(inputs).await.map_err(Into::into),
            None => std::future::pending().await,
        }
    }
}

/// A handle for changes to a running controller.
#[derive(Clone, Debug)]
pub struct ControllerHandle {
    task: mpsc::WeakSender<task::ControllerInput>,
    admission: Arc<Admission>,
}

impl ControllerHandle {
    /// Replaces the rules, for flows that begin from now on. Returns whether the controller still runs.
    pub async fn set_rules(&self, rules: Vec<DemandRule>) -> bool {
        match self.task.upgrade() {
            Some(task) => task
                .send(task::ControllerInput::SetRules(rules))
                .await
                .is_ok(),
            None => false,
        }
    }

    /// Reads certificates, key and revocation list again at once, as the controller does every ten seconds
    /// ([`Credentials::reload_every`]). Connections whose certificate is not accepted any more end.
    ///
    /// # Errors
    /// [`TlsError`], with the file's name; it is logged too, and nothing has changed.
    pub fn reload_credentials(&self) -> Result<Reload, TlsError> {
        self.admission.reload()
    }
}

/// The most messages that wait for the task: enough for a short delay, and few enough for agents to
/// notice a long one.
const WAITING: usize = 1024;

/// How long a connection may be silent before an HTTP/2 ping, and how long the reply may take.
const KEEPALIVE: Duration = Duration::from_secs(10);

impl Controller {
    /// Binds the listener.
    ///
    /// # Errors
    /// [`ControllerError`]: the address, or the certificates.
    pub async fn bind(options: ControllerOptions) -> Result<Self, ControllerError> {
        let address = options.listen;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ControllerError::AddressInUse(address),
            _ => ControllerError::Listen { address, source },
        };
        let credentials = options.credentials.server()?;
        let server = Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (sender, inputs) = mpsc::channel(WAITING);
        let registry = options.metrics.clone().unwrap_or_default();
        let metrics = ControllerMetrics::new(&registry);
        let refused = RefusedClients::new(metrics.refused_clients());
        let fleet = FleetParts::new(&options, &registry, refused.clone())?;
        let config = ControllerConfig {
            remember: true,
            ..options.config
        };
        let demands = DemandTable::new(options.rules, options.flows_per_client);
        let logic = weir_sed::Controller::new(config, demands);
        Ok(Self {
            address,
            listener,
            admission: Arc::new(Admission::new(credentials, refused.clone())),
            reload_interval: options.credentials.reload_interval().into(),
            server,
            services: Services::new(sender.clone(), refused),
            task: ControllerTask::new(logic, options.state, metrics),
            inputs,
            sender,
            fleet,
        })
    }

    /// Returns a handle for changes while it runs.
    pub fn handle(&self) -> ControllerHandle {
        ControllerHandle {
            task: self.sender.downgrade(),
            admission: self.admission.clone(),
        }
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs until `stop` completes. Windows in force hold for the rest of their lease, so that a
    /// restarted controller finds them.
    ///
    /// # Errors
    /// [`ControllerError::Superseded`] if another controller has taken over;
    /// [`ControllerError::Transport`] if the server fails.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ControllerError> {
        let Self {
            listener,
            admission,
            reload_interval,
            mut server,
            services,
            task,
            inputs,
            fleet,
            ..
        } = self;
        let router = server
            .add_service(AgentsServer::new(services.clone()))
            .add_service(FlowsServer::new(services.clone()))
            .add_service(OperationServer::new(services))
            .add_service(HostsServer::new(fleet.services.clone()))
            .add_service(PoliciesServer::new(fleet.services));
        let (accepted, incoming) = mpsc::channel(WAITING);
        let accepting = accept::run(listener, admission.clone(), accepted);
        // It ends only with the server.
        let accepting = async {
            accepting.await;
            std::future::pending().await
        };
        tokio::select! {
            served = router.serve_with_incoming(Received(incoming)) => served.map_err(Into::into),
            ended = task.run(inputs) => ended,
            ended = FleetParts::run(fleet.task) => ended,
            ended = reload_every(reload_interval, admission) => match ended {},
            ended = accepting => ended,
            () = stop => Ok(()),
        }
    }
}

/// Reads the credentials again at this interval.
async fn reload_every(interval: Duration, admission: Arc<Admission>) -> std::convert::Infallible {
    loop {
        sleep(interval).await;
        let admission = admission.clone();
        // It is logged; the next round may succeed.
        let _ = tokio::task::spawn_blocking(move || admission.reload()).await;
    }
}
