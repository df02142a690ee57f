//! A controller, a switch with senders and receivers in real time, and a connection between the two
//! that can be cut.

pub(crate) mod plane;
pub(crate) mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use weir_control::certificates::Authority;
use weir_control::{
    Client, Controller, ControllerError, ControllerHandle, ControllerOptions, Credentials,
    EpochFile, Role, v1,
};
use weir_sed::ControllerConfig;
use weir_units::Duration as Span;

/// Short, for tests that wait for its end.
pub(crate) const LEASE: Duration = Duration::from_millis(800);

/// The lifetime of certificates.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// Certificates for all roles.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open(directory.path()).unwrap();
        for (name, role) in [
            ("controller", Role::Controller),
            ("switch", Role::Switch("tor".to_owned())),
            ("application", Role::Application),
            ("operator", Role::Operator),
        ] {
            authority.issue(name, &[role], &[], DAY).unwrap();
        }
        let own = ["10.0.0.1".parse().unwrap()];
        let role = [Role::Application];
        authority.issue("host", &role, &own, DAY).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn of(&self, name: &str) -> Credentials {
        Credentials::from_directory(self.0.path(), name).unwrap()
    }
}

pub(crate) fn config() -> ControllerConfig {
    ControllerConfig {
        lease: Span::from(LEASE),
        ..ControllerConfig::paper()
    }
}

/// A controller in a runtime of its own, which ends like a killed process.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ControllerHandle,
    runtime: Option<Runtime>,
    ended: mpsc::Receiver<Result<(), ControllerError>>,
}

impl Process {
    pub(crate) fn start(certificates: &Certificates, state: EpochFile) -> Self {
        Self::start_with(certificates, state, config(), 1000)
    }

    pub(crate) fn start_with(
        certificates: &Certificates,
        state: EpochFile,
        config: ControllerConfig,
        flows_per_client: usize,
    ) -> Self {
        Self::start_options(ControllerOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            credentials: certificates.of("controller"),
            state,
            config,
            rules: Vec::new(),
            flows_per_client,
            policies: None,
            metrics: None,
        })
    }

    pub(crate) fn start_options(options: ControllerOptions) -> Self {
        let runtime = Runtime::new().unwrap();
        let controller = runtime.block_on(Controller::bind(options)).unwrap();
        let (address, handle) = (controller.address(), controller.handle());
        let (sender, ended) = mpsc::channel();
        runtime.spawn(async move {
            let result = controller.run(std::future::pending()).await;
            let _ = sender.send(result);
        });
        Self {
            address,
            handle,
            runtime: Some(runtime),
            ended,
        }
    }

    /// Returns the result with which it ended by itself.
    pub(crate) fn ended(&self) -> Result<(), ControllerError> {
        self.ended.recv_timeout(PATIENCE).unwrap()
    }

    pub(crate) fn kill(mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The timeout for expected events, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "it does not come to {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the status for an operator.
pub(crate) fn status(
    runtime: &Runtime,
    certificates: &Certificates,
    address: SocketAddr,
) -> v1::Status {
    let credentials = certificates.of("operator");
    runtime.block_on(async {
        let client = Client::connect(&address.to_string(), &credentials)
            .await
            .unwrap();
        client.status(0).await.unwrap()
    })
}
