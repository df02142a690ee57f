//! `weir controller`, which `weir sed controller` is a name for

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use weir_control::{
    Controller as Process, ControllerOptions, DEFAULT_PORT, EpochFile, StoreLocation,
};
use weir_metrics::{Exporter, Registry};
use weir_sed::{ControllerConfig, LatePolicy, Method};
use weir_units::{ByteSize, Duration};

use super::{CertificateArguments, rules};
use crate::arguments::{limit, size};
use crate::failure::Failure;
use crate::service_manager;

/// The arguments of `weir controller`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sed certificates /etc/weir/sed --host web1 --publisher alice --switch tor1
  weir controller --listen 0.0.0.0:9600                 hosts and switches attach to it
  weir controller --store etcd://etcd1,etcd2,etcd3      one of several controllers leads: docs/controller.md
  weir controller --rtt 100us --best-effort 10 --metrics 9101
  weir controller --allocation paper --retransmit       RSED as in its paper
  weir controller --rules deadlines.toml                docs/deadlines.md; SIGHUP reads it again
  weir controller --crl /etc/weir/sed/crl.pem           certificates in it are refused

It holds the policy of all hosts, which `weir policy push` changes and `weir enforce --controller` follows, and
SED's windows. `weir sed controller` is another name for it.

Agents listen to it as long as it lives: what it has ordered holds for a lease after it was last heard of,
and a controller that is started again learns of flows and deadlines from the switches. Certificates, key and
revocation list are read again every ten seconds and at SIGHUP; what cannot be used changes nothing.")]
pub(crate) struct Controller {
    /// Address to listen on; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    certificates: CertificateArguments,

    /// Directory with its name, its term and its versions of the policy, locked by one controller at a time
    #[arg(
        long,
        alias = "dir",
        value_name = "DIR",
        default_value = "/var/lib/weir/sed"
    )]
    state: PathBuf,

    /// Where versions of the policy and the audit log are: etcd://HOST:PORT,HOST:PORT/PREFIX, or file:PATH
    /// [default: policy.redb in the state directory]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreLocation>,

    /// Directory with ca.pem, client.pem and client.key, for TLS to etcd
    #[arg(long, value_name = "DIR", requires = "store")]
    store_certificates: Option<PathBuf>,

    /// File with sizes and deadlines of flows whose applications do not register them
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Round-trip time of the empty network
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "200us")]
    rtt: Duration,

    /// Queue length at which congestion begins: K
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "45KB")]
    threshold: ByteSize,

    /// Queue length below which congestion ends [default: half of K]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    recovery: Option<ByteSize>,

    /// Allocation of windows
    #[arg(long, value_enum, default_value_t = Allocation::EarliestDeadline)]
    allocation: Allocation,

    /// Least share of all flows without deadline together, in percent, with earliest-deadline [default: 5]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    best_effort: Option<u8>,

    /// Policy for late flows
    #[arg(long, value_enum, default_value_t = LateFlowPolicy::Spare)]
    late: LateFlowPolicy,

    /// Make senders retransmit dropped packets at once (RSED)
    #[arg(long)]
    retransmit: bool,

    /// Time for which orders stay valid without a message from the controller
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "2s")]
    lease: Duration,

    /// Maximum number of registered flows per address
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    flows_per_client: usize,

    /// Serve Prometheus metrics by HTTP at /metrics; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    metrics: Option<SocketAddr>,
}

/// The allocation of windows.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Allocation {
    /// The earliest deadline first among those that can be met; no flow is stopped
    EarliestDeadline,
    /// Algorithm 2: the window that each flow needs
    Paper,
    /// In turns; flows that can meet their deadline come before those that cannot
    Planned,
}

/// The policy for late flows.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LateFlowPolicy {
    /// They share the remaining capacity
    Spare,
    /// They are stopped
    Stop,
}

/// Shorter leases would expire between two messages of the controller.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

impl Controller {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let config = self.config()?;
        let rules = self.rules.as_deref().map(rules::load).transpose();
        let rules = rules.map_err(Failure::of)?.unwrap_or_default();
        let credentials = self.certificates.credentials("controller")?;
        let state =
            EpochFile::claim(&self.state).map_err(|error| Failure::option("state", error))?;
        let leader_epoch = state.leader_epoch().clone();
        let registry = Registry::new();
        let exporter = match self.metrics {
            Some(address) => {
                let exporter = Exporter::bind(address, registry.clone()).await;
                Some(exporter.map_err(Failure::of)?)
            }
            None => None,
        };
        let listen = self.listen.unwrap_or(([127, 0, 0, 1], DEFAULT_PORT).into());
        let process = Process::bind(ControllerOptions {
            listen,
            credentials,
            state,
            config,
            rules,
            flows_per_client: self.flows_per_client,
            policies: Some(self.store()?),
            metrics: Some(registry),
        });
        let process = process.await.map_err(Failure::of)?;
        tracing::info!(
            "controller {} with term {} listens on {}",
            leader_epoch.name,
            leader_epoch.term,
            process.address()
        );
        if let Some(exporter) = &exporter {
            tracing::info!("metrics at http://{}/metrics", exporter.local_address());
        }
        let hangup = signal(SignalKind::hangup()).map_err(Failure::of)?;
        let reload = rules::reload(self.rules.clone(), hangup, process.handle());
        tokio::spawn(reload);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::of)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(Failure::of)?;
        // It is ready when signals have their handlers.
        service_manager::ready(&format!("listens on {}", process.address()));
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        let stop = async {
            stop.await;
            service_manager::stopping();
        };
        process.run(stop).await.map_err(Failure::logged)?;
        tracing::info!(
            "ended; windows in force hold for {} more at most",
            self.lease
        );
        Ok(())
    }

    fn store(&self) -> Result<StoreLocation, Failure> {
        let own = StoreLocation::File(self.state.join("policy.redb"));
        match (self.store.clone().unwrap_or(own), &self.store_certificates) {
            (
                StoreLocation::Etcd {
                    endpoints, prefix, ..
                },
                certificates,
            ) => Ok(StoreLocation::Etcd {
                endpoints,
                prefix,
                certificates: certificates.clone(),
            }),
            (StoreLocation::File(_), Some(_)) => {
                let problem = "a file needs none: they are for --store etcd://…";
                Err(Failure::option("store-certificates", problem))
            }
            (file, None) => Ok(file),
        }
    }

    fn config(&self) -> Result<ControllerConfig, Failure> {
        let recovery = self.recovery.unwrap_or(self.threshold / 2);
        if self.threshold.is_zero() {
            return Err(Failure::option("threshold", "it must be above zero"));
        }
        if recovery > self.threshold {
            let problem = format!("{recovery} is more than --threshold {}", self.threshold);
            return Err(Failure::option("recovery", problem));
        }
        if self.lease < SHORTEST_LEASE {
            return Err(Failure::option(
                "lease",
                format!("it is at least {SHORTEST_LEASE}"),
            ));
        }
        let usual = match self.allocation {
            Allocation::EarliestDeadline => ControllerConfig::earliest_deadline(),
            Allocation::Paper | Allocation::Planned if self.best_effort.is_some() => {
                let problem =
                    "it has no effect: only --allocation earliest-deadline leaves a share";
                return Err(Failure::option("best-effort", problem));
            }
            Allocation::Paper | Allocation::Planned => ControllerConfig::paper(),
        };
        let best_effort = self.best_effort.map(|percent| f64::from(percent) / 100.0);
        Ok(ControllerConfig {
            threshold: self.threshold,
            recovery,
            rtt: self.rtt,
            method: match self.allocation {
                Allocation::EarliestDeadline => Method::EarliestDeadline,
                Allocation::Paper => Method::Paper,
                Allocation::Planned => Method::Planned,
            },
            late: match self.late {
                LateFlowPolicy::Spare => LatePolicy::Spare,
                LateFlowPolicy::Stop => LatePolicy::Stop,
            },
            retransmit: self.retransmit,
            lease: self.lease,
            best_effort: best_effort.unwrap_or(usual.best_effort),
            ..usual
        })
    }
}
