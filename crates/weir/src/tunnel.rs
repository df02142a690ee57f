//! `weir tunnel`

mod client;
mod redirection;
mod running;
mod server;
mod status;

use std::num::NonZeroU8;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use weir_tunnel::AlgorithmSpec;
use weir_tunnel::tls::{Crls, Identity, Roots};
use weir_units::Duration;

use crate::arguments;
use crate::failure::Failure;

/// TCP applications over DCQUIC, without a change to them.
#[derive(Debug, Subcommand)]
pub(crate) enum Tunnel {
    /// Accept the connections of applications, and carry them to a server
    Client(client::Client),
    /// Connect what clients carry to its destinations
    Server(server::Server),
    /// Show the tunnels of a running client or server
    Status(status::Status),
}

impl Tunnel {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Client(client) => runtime()?.block_on(client.run()),
            Self::Server(server) => runtime()?.block_on(server.run()),
            Self::Status(status) => status.run(),
        }
    }
}

/// One thread: a packet and the bytes that it carries need no other one. `--threads` adds more.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(Failure::of)
}

/// What clients and servers have in common.
#[derive(Debug, Args)]
struct Common {
    /// Certificate chain of this end, PEM or DER
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// The certificate's private key, PEM or DER
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Revoked certificates, PEM or DER, which are refused
    #[arg(long, value_name = "FILE")]
    crl: Option<PathBuf>,

    /// Congestion control of what this end sends: one of `weir algorithms`
    #[arg(long, value_name = "NAME")]
    congestion: Option<AlgorithmSpec>,

    /// Threads that carry data
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroU8,

    /// How long open connections may go on after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = arguments::seconds)]
    drain_limit: Duration,

    /// Socket for `weir tunnel status`; none by default
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,

    /// Take the place of the process at --control, if there is one: its sockets come here, and it goes on with
    /// the connections that it has, for its --drain-limit at most
    #[arg(long, requires = "control")]
    take_over: bool,

    /// Serve Prometheus metrics by HTTP at /metrics; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    metrics: Option<std::net::SocketAddr>,

    /// Directory for a qlog file of each DCQUIC connection
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
}

impl Common {
    /// Returns the identity of this end, if it has one.
    fn identity(&self) -> Result<Option<Identity>, Failure> {
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Ok(None);
        };
        let identity = Identity::from_files(certificate, key);
        identity.map(Some).map_err(Failure::of)
    }

    fn crls(&self) -> Result<Option<Crls>, Failure> {
        let crls = self.crl.as_ref().map(|file| Crls::from_files([file]));
        crls.transpose()
            .map_err(|error| Failure::option("crl", error))
    }
}

/// Reads authorities.
fn roots(option: &str, file: &std::path::Path) -> Result<Roots, Failure> {
    Roots::from_file(file).map_err(|error| Failure::option(option, error))
}
