//! `weir perf`

mod client;
mod report;
mod server;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use weir_control::FollowedPolicy;
use weir_policy::PolicySource;
use weir_traffic::throughput::{PreSharedKey, read_key};

use crate::failure::Failure;
use crate::interrupt;
use crate::logging::in_one_line;
use crate::policy::{HostArguments, Plane, named};

/// Throughput tests.
#[derive(Debug, Subcommand)]
pub(crate) enum Perf {
    /// Wait for clients and run their tests, one at a time
    Server(server::Server),
    /// Run a test against a server
    Client(client::Client),
}

impl Perf {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let runtime = Runtime::new().map_err(Failure::of)?;
        match self {
            Self::Server(server) => runtime.block_on(server.run()),
            Self::Client(client) => {
                interrupt::end_on_signals()?;
                runtime.block_on(client.run())
            }
        }
    }
}

/// Reads the key from a file.
fn shared_key(path: &Path) -> Result<Arc<PreSharedKey>, Failure> {
    let key = read_key(path);
    let key = key.map_err(|error| Failure::option("key-file", error))?;
    Ok(Arc::new(key))
}

/// How long a client that has no version yet waits for one.
const FIRST_VERSION: Duration = Duration::from_secs(2);

/// The policy of the endpoints.
#[derive(Debug, Args)]
struct PolicyArguments {
    /// dcquic: congestion control of the connections, by a policy file (docs/policy.md); a server's overrides the
    /// client's choice
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    #[command(flatten)]
    host: HostArguments,
}

impl PolicyArguments {
    /// Returns the name of the option that asks for a policy.
    fn option(&self) -> Option<&'static str> {
        if self.host.is_used() {
            Some("controller")
        } else {
            self.policy.as_ref().map(|_| "policy")
        }
    }

    /// Reads the policy from the file, and prints warnings; or starts to follow the controller.
    fn source(&self) -> Result<Option<Arc<dyn PolicySource>>, Failure> {
        match &self.policy {
            Some(file) => {
                // The endpoints are bound to no interface.
                let checked = Plane::Dcquic.load(file, &[]);
                for warning in checked.warnings {
                    eprintln!("warning: {warning}");
                }
                Ok(Some(Arc::new(checked.policy.map_err(Failure::of)?)))
            }
            None => Ok(self
                .followed()?
                .map(|followed| Arc::new(followed) as Arc<dyn PolicySource>)),
        }
    }

    /// Starts to follow the controller, if there is one, and waits for the first version.
    async fn first(&self) -> Result<Option<Arc<dyn PolicySource>>, Failure> {
        let Some(followed) = self.followed()? else {
            return self.source();
        };
        let mut version = followed.version();
        let _ = tokio::time::timeout(FIRST_VERSION, version.wait_for(Option::is_some)).await;
        match *version.borrow() {
            Some(version) => eprintln!("{}", named(version)),
            None => eprintln!("warning: no version has come from a controller: there is no policy"),
        }
        Ok(Some(Arc::new(followed)))
    }

    fn followed(&self) -> Result<Option<FollowedPolicy>, Failure> {
        if !self.host.is_used() {
            return Ok(None);
        }
        let (options, file) = self.host.options("perf")?;
        let followed = FollowedPolicy::start(options, file, |text| {
            let checked = Plane::Dcquic.read("version", text, &[]);
            for warning in checked.warnings {
                tracing::warn!("{warning}");
            }
            checked.policy.map_err(|error| in_one_line(&error))
        });
        followed.map(Some).map_err(Failure::of)
    }
}
