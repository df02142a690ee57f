//! `weir tunnel server`

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use weir_policy::{AccessPolicy, AccessRule, Prefix};
use weir_scenario::load_access;
use weir_tunnel::control::Controlled;
use weir_tunnel::destination::Host;
use weir_tunnel::handover::Handover;
use weir_tunnel::tls::{Fingerprint, Identity, ServerCredentials, ServerTls, SpiffeId};
use weir_tunnel::{
    APPLICATION_PROTOCOL, Access, DEFAULT_PORT, Destination, KnownClientsConfig,
    Server as Listening, ServerOptions,
};
use weir_units::Duration;

use super::running::{Process, Surroundings};
use super::{Common, roots};
use crate::failure::Failure;
use crate::{arguments, logging, output};

/// The arguments of `weir tunnel server`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir tunnel server --allow 127.0.0.1:6379                 for clients on this machine; prints what they need
  weir tunnel server --bind 0.0.0.0 --allow redis.svc:6379 --client-pin 3f5a…
  weir tunnel server --bind 0.0.0.0 --policy access.toml --client-ca ca.pem --certificate c.pem --key k.pem
  weir tunnel server --bind 0.0.0.0 --policy access.toml --client-ca bundle.pem \\
      --client-spiffe-id spiffe://prod --certificate svid.pem --key svid.key --control /run/weir/tunnel.sock

What no rule allows is refused. Without --client-ca or --client-pin every client that reaches the port is
accepted, and rules for clients match none. SIGHUP reads the policy and all certificates again. After
SIGTERM new connections are refused, and those that are open go on until they end or --drain-limit has
passed. docs/tunnel.md describes the policy file.")]
pub(crate) struct Server {
    /// Address to listen on, by UDP, and by TCP for clients whose UDP does not pass
    #[arg(long, short = 'B', default_value = "127.0.0.1", value_name = "ADDRESS")]
    bind: IpAddr,

    /// Port to listen on; 0 selects any free port
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    port: u16,

    /// Destination that every accepted client may reach (repeatable)
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "policy")]
    allow: Vec<Destination>,

    /// File that says which client may reach what; its rules come before --allow
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Accept only clients with a certificate of these authorities, PEM or DER
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Accept only these workloads or trust domains of --client-ca (repeatable)
    #[arg(long, value_name = "ID", requires = "client_ca")]
    client_spiffe_id: Vec<SpiffeId>,

    /// Accept only clients with a certificate of this fingerprint (repeatable)
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "client_ca")]
    client_pin: Vec<Fingerprint>,

    /// Tell destinations the application's address by the PROXY protocol, version 2
    #[arg(long)]
    proxy_protocol: bool,

    /// Carry UDP too
    #[arg(long)]
    udp: bool,

    /// Do not listen on TCP for clients whose UDP does not pass
    #[arg(long)]
    no_fallback: bool,

    /// Connect from the applications' addresses in this network, and refuse others; takes CAP_NET_ADMIN, and
    /// routes for the replies: docs/tunnel.md (repeatable)
    #[arg(long, value_name = "NETWORK", conflicts_with = "proxy_protocol")]
    transparent: Vec<Prefix>,

    /// Do not accept clients without a handshake: several behind one address look alike
    #[arg(long)]
    no_known_peers: bool,

    /// The most connections of applications at the same time
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_connections: usize,

    /// How long a destination may take to accept a connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = arguments::limit)]
    connect_timeout: Duration,

    /// Directory for the secret by which clients notice a restart at once
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    #[command(flatten)]
    common: Common,

    /// Print the listening address as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// A server that runs.
struct Running<'a> {
    arguments: &'a Server,
    server: Listening,
    access: Access,
    credentials: ServerCredentials,
}

impl Controlled for Running<'_> {
    fn status(&self) -> weir_tunnel::Status {
        self.server.status()
    }

    fn hand_over(&self) -> Result<Handover, String> {
        self.server.hand_over().map_err(|error| error.to_string())
    }

    fn keep(&self) {
        if let Err(error) = self.server.keep_port() {
            tracing::warn!("{error}");
        }
    }
}

impl Process for Running<'_> {
    async fn work(&self) {
        self.server.run().await;
    }

    async fn drain(&self) -> bool {
        self.server.drain(self.arguments.common.drain_limit).await
    }

    /// Reads the policy and the certificates again; what cannot be used changes nothing.
    fn reload(&self) -> String {
        // Counted and logged where it happens.
        let certificates = self.credentials.reload();
        match self.arguments.access() {
            Ok(policy) => {
                let count = policy.rules.len();
                self.access.replace(policy);
                tracing::info!("SIGHUP: {count} rules in force for connections from now on");
                match certificates {
                    Ok(_) => format!("{count} rules in force"),
                    Err(_) => "certificates cannot be read again: see the log".to_owned(),
                }
            }
            Err(error) => {
                let mistakes = logging::in_one_line(&error);
                tracing::warn!("SIGHUP: {mistakes}; the rules before it stay in force");
                "the policy has mistakes: see the log".to_owned()
            }
        }
    }
}

/// The line of JSON at the start.
#[derive(Serialize)]
struct Announcement {
    listening: SocketAddr,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
}

impl Server {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        if self.common.take_over && self.common.certificate.is_none() {
            let problem = "a successor has the identity of its predecessor: give both --certificate and --key";
            return Err(Failure::option("take-over", problem));
        }
        let access = Access::new(self.access()?);
        let identity = match self.common.identity()? {
            Some(identity) => identity,
            None => Identity::self_signed(["weir-tunnel"]).map_err(Failure::of)?,
        };
        let fingerprint = identity.fingerprint();
        let credentials = self.credentials(identity)?;
        let mut surroundings = Surroundings::new(&self.common).await?;
        let options = ServerOptions {
            bind: SocketAddr::new(self.bind, self.port),
            credentials: credentials.clone(),
            access: access.clone(),
            max_connections: self.max_connections,
            connect_timeout: self.connect_timeout,
            proxy_protocol: self.proxy_protocol,
            transparent: self.transparent.clone(),
            udp: self.udp,
            over_tcp: !self.no_fallback,
            congestion: self.common.congestion.clone(),
            threads: self.common.threads,
            state_directory: self.state.clone(),
            qlog: self.common.qlog.clone(),
            registry: surroundings.registry(),
        };
        let server = Listening::follow(options, surroundings.inheritance()).map_err(Failure::of)?;
        self.announce(server.local_address(), fingerprint, surroundings.metrics())?;
        let ready = format!("listens on {}", server.local_address());
        let process = Running {
            arguments: self,
            server,
            access,
            credentials,
        };
        surroundings.run(&process, &ready).await
    }

    /// Returns the rules of the file, and those of the command line behind them.
    fn access(&self) -> Result<AccessPolicy, Failure> {
        let policy = self.policy.as_deref().map(load_access).transpose();
        let mut policy = policy.map_err(Failure::of)?.unwrap_or_default();
        for destination in &self.allow {
            policy.rules.push(rule(destination)?);
        }
        Ok(policy)
    }

    fn credentials(&self, identity: Identity) -> Result<ServerCredentials, Failure> {
        let mut tls = ServerTls::new(identity)
            .application_protocols([APPLICATION_PROTOCOL])
            .client_fingerprints(self.client_pin.iter().copied())
            .client_spiffe_ids(self.client_spiffe_id.iter().cloned());
        if !self.no_known_peers {
            tls = tls.known_peers(KnownClientsConfig::default());
        }
        if let Some(file) = &self.client_ca {
            tls = tls.client_roots(roots("client-ca", file)?);
        }
        if let Some(crls) = self.common.crls()? {
            tls = tls.client_crls(crls);
        }
        tls.build().map_err(Failure::of)
    }

    fn announce(
        &self,
        address: SocketAddr,
        fingerprint: Fingerprint,
        metrics: Option<SocketAddr>,
    ) -> Result<(), Failure> {
        if self.json {
            return output::print_json_line(&Announcement {
                listening: address,
                fingerprint: fingerprint.to_string(),
                metrics,
            });
        }
        let host = match address.ip() {
            ip if ip.is_unspecified() => "HOST".to_owned(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        let to = match self.allow.first() {
            Some(destination) => destination.to_string(),
            None => "HOST:PORT".to_owned(),
        };
        output::print(&format!(
            "listening on {address}\n\nweir tunnel client --listen 127.0.0.1:PORT --to {to} \
             --via {host}:{} --pin {fingerprint}\n\n",
            address.port()
        ))
    }
}

/// Returns a rule that lets everybody reach a destination.
fn rule(destination: &Destination) -> Result<AccessRule, Failure> {
    let wrong = |error: String| Failure::option("allow", error);
    let port = destination.port().to_string();
    let mut rule = AccessRule {
        line: 0,
        clients: Vec::new(),
        from: Vec::new(),
        to: Vec::new(),
        hosts: Vec::new(),
        to_ports: vec![port.parse().map_err(|error| wrong(format!("{error}")))?],
        allow: true,
    };
    match destination.host() {
        Host::Name(name) => {
            let host = name.parse().map_err(|error| wrong(format!("{error}")))?;
            rule.hosts.push(host);
        }
        Host::Address(address) => {
            let prefix = address.to_string().parse();
            rule.to
                .push(prefix.map_err(|error| wrong(format!("{error}")))?);
        }
    }
    Ok(rule)
}
