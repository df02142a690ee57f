//! `weir tunnel client`

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use serde::Serialize;
use weir_tunnel::control::Controlled;
use weir_tunnel::handover::Handover;
use weir_tunnel::tls::{ClientCredentials, ClientTls, Fingerprint, SpiffeId};
use weir_tunnel::{
    APPLICATION_PROTOCOL, Client as Listening, ClientOptions, DEFAULT_PORT, Destination,
    LocalAddress, Tunnel,
};
use weir_units::Duration;

use super::redirection::{Attached, RedirectionArguments};
use super::running::{Process, Surroundings};
use super::{Common, roots};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir tunnel client`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir tunnel client --listen 127.0.0.1:6379 --to redis.svc:6379 --via gate1 --pin 3f5a…
  weir tunnel client --listen 127.0.0.1:6379 --to redis.svc:6379 \\
                     --listen 127.0.0.1:5432 --to db.svc:5432 --via gate1 --ca ca.pem
  weir tunnel client … --local 10.0.1.5%eth0 --local 10.0.2.5%eth1    survives the loss of one
  weir tunnel client --cgroup /system.slice/web.service --redirect 10.0.0.0/8:6379 --via gate1 --pin 3f5a…
  weir tunnel client … --ca bundle.pem --spiffe-id spiffe://prod/gate --certificate svid.pem --key svid.key

Each --listen belongs to the --to at the same place. There is one --via for all, or one for each. The
server resolves the name of --to, and has to allow it. With --cgroup the processes of a control group connect
to the destinations of --redirect as ever, and the client's programs in the kernel lead them here: it takes
root, and they end with the client. The server is verified by --pin, --ca, or both
--ca and --spiffe-id. SIGHUP reads all certificates again. After SIGTERM no connections are accepted, and
those that are open go on until they end or --drain-limit has passed.")]
pub(crate) struct Client {
    /// TCP address for the applications; a port alone is on 127.0.0.1 (repeatable)
    #[arg(long, value_name = "[ADDRESS:]PORT", required_unless_present = "cgroup", requires = "to", value_parser = weir_metrics::parse_address)]
    listen: Vec<SocketAddr>,

    /// Destination, which the server connects to (repeatable)
    #[arg(long, value_name = "HOST:PORT", requires = "listen")]
    to: Vec<Destination>,

    /// Server (repeatable)
    #[arg(long, value_name = "HOST[:PORT]", required = true, value_parser = parse_server)]
    via: Vec<Destination>,

    #[command(flatten)]
    redirection: RedirectionArguments,

    /// Fingerprint of the server's certificate, as the server prints it
    #[arg(long, value_name = "FINGERPRINT", conflicts_with_all = ["ca", "spiffe_id"])]
    pin: Option<Fingerprint>,

    /// Authorities of the server's certificate, PEM or DER
    #[arg(long, value_name = "FILE", required_unless_present = "pin")]
    ca: Option<PathBuf>,

    /// Workload or trust domain of the server, instead of its name (repeatable)
    #[arg(long, value_name = "ID", requires = "ca")]
    spiffe_id: Vec<SpiffeId>,

    /// Name in the server's certificate, where it is not that of --via
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// Address that packets leave from; with several, connections survive the loss of one (repeatable)
    #[arg(long, value_name = "ADDRESS[%INTERFACE]")]
    local: Vec<Local>,

    /// DCQUIC connections to each server
    #[arg(long, value_name = "N", default_value = "2")]
    connections: NonZeroUsize,

    /// Carry UDP too, from the addresses of --listen
    #[arg(long)]
    udp: bool,

    /// Do not use TLS over TCP while UDP does not pass
    #[arg(long)]
    no_fallback: bool,

    #[command(flatten)]
    common: Common,

    /// Print the listening addresses as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// A client that runs.
struct Running {
    client: Listening,
    credentials: ClientCredentials,
    attached: Mutex<Option<Attached>>,
    drain_limit: Duration,
}

impl Running {
    /// Redirects no connection any more.
    fn detach(&self) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut attached) = attached.take() {
            attached.detach();
        }
    }
}

impl Controlled for Running {
    fn status(&self) -> weir_tunnel::Status {
        self.client.status()
    }

    fn hand_over(&self) -> Result<Handover, String> {
        self.client.hand_over().map_err(|error| error.to_string())
    }

    /// Its listening sockets are open still, and so are those of a successor.
    fn keep(&self) {}
}

impl Process for Running {
    async fn work(&self) {
        self.client.run().await;
    }

    async fn drain(&self) -> bool {
        self.detach();
        self.client.accept_waiting().await;
        self.client.drain(self.drain_limit).await
    }

    fn reload(&self) -> String {
        match self.credentials.reload() {
            Ok(_) => "certificates were read again".to_owned(),
            Err(_) => "certificates cannot be read again: see the log".to_owned(),
        }
    }
}

/// The line of JSON at the start.
#[derive(Serialize)]
struct Announcement {
    listening: Vec<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
}

/// An address, with the interface that it is bound to.
#[derive(Clone, Debug)]
struct Local(LocalAddress);

impl FromStr for Local {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, interface) = match text.split_once('%') {
            Some((address, interface)) => (address, Some(interface.to_owned())),
            None => (text, None),
        };
        let parsed = address.parse::<IpAddr>();
        let address = parsed.map_err(|_| format!("`{address}` is no address of this machine"))?;
        Ok(Self(LocalAddress {
            address: SocketAddr::new(address, 0),
            interface,
        }))
    }
}

/// Parses a server; without a port it has the default one.
fn parse_server(text: &str) -> Result<Destination, String> {
    let with_port = |text: &str| format!("{text}:{DEFAULT_PORT}").parse::<Destination>();
    let is_bare_version_6 = text.parse::<std::net::Ipv6Addr>().is_ok();
    let parsed = if is_bare_version_6 {
        with_port(&format!("[{text}]"))
    } else {
        text.parse().or_else(|_| with_port(text))
    };
    parsed.map_err(|_| format!("`{text}` is no server such as gate1 or 10.0.0.2:{DEFAULT_PORT}"))
}

impl Client {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let tunnels = self.tunnels()?;
        let credentials = self.credentials()?;
        let mut surroundings = Surroundings::new(&self.common).await?;
        let (attached, redirected) = self.redirection.attach(&self.via[0])?.unzip();
        let options = ClientOptions {
            tunnels,
            redirected,
            credentials: credentials.clone(),
            server_name: self.server_name.clone(),
            local: self.local.iter().map(|local| local.0.clone()).collect(),
            connections: self.connections,
            over_tcp: !self.no_fallback,
            congestion: self.common.congestion.clone(),
            threads: self.common.threads,
            qlog: self.common.qlog.clone(),
            registry: surroundings.registry(),
        };
        let client = Listening::follow(options, surroundings.inheritance()).map_err(Failure::of)?;
        self.announce(&client, surroundings.metrics())?;
        let ready = match self.redirection.announcement() {
            Some(redirected) => format!("{} tunnels, {}", self.listen.len(), redirected.trim_end()),
            None => format!("{} tunnels", self.listen.len()),
        };
        let process = Running {
            client,
            credentials,
            attached: Mutex::new(attached),
            drain_limit: self.common.drain_limit,
        };
        surroundings.run(&process, &ready).await
    }

    fn tunnels(&self) -> Result<Vec<Tunnel>, Failure> {
        let count = self.listen.len();
        if self.to.len() != count {
            let problem = format!(
                "{} destinations for {count} --listen: write one for each",
                self.to.len()
            );
            return Err(Failure::option("to", problem));
        }
        if self.redirection.is_wanted() && self.via.len() != 1 {
            let problem =
                "redirected connections go to one server, and so do the others: write one";
            return Err(Failure::option("via", problem));
        }
        if ![1, count].contains(&self.via.len()) {
            let problem = format!(
                "{} servers for {count} --listen: write one for all, or one for each",
                self.via.len()
            );
            return Err(Failure::option("via", problem));
        }
        let ends = self
            .listen
            .iter()
            .zip(&self.to)
            .zip(self.via.iter().cycle());
        let tunnels = ends.map(|((listen, to), via)| Tunnel {
            listen: *listen,
            to: to.clone(),
            via: via.clone(),
            udp: self.udp,
        });
        Ok(tunnels.collect())
    }

    fn credentials(&self) -> Result<ClientCredentials, Failure> {
        let tls = match (&self.pin, &self.ca) {
            (Some(pin), _) => ClientTls::pinned(*pin),
            (None, Some(ca)) => {
                let roots = roots("ca", ca)?;
                if self.spiffe_id.is_empty() {
                    ClientTls::with_roots(roots).map_err(|error| Failure::option("ca", error))?
                } else {
                    ClientTls::with_spiffe(roots, self.spiffe_id.iter().cloned())
                }
            }
            // Clap has refused it.
            (None, None) => return Err(Failure::option("pin", "it is missing")),
        };
        let mut tls = tls.application_protocols([APPLICATION_PROTOCOL]);
        if let Some(identity) = self.common.identity()? {
            tls = tls.identity(identity);
        }
        if let Some(crls) = self.common.crls()? {
            tls = tls.crls(crls);
        }
        tls.build().map_err(Failure::of)
    }

    fn announce(&self, client: &Listening, metrics: Option<SocketAddr>) -> Result<(), Failure> {
        let listening = client.local_addresses().to_vec();
        if self.json {
            return output::print_json_line(&Announcement { listening, metrics });
        }
        let lines = listening.iter().zip(&self.to);
        let lines: String = lines
            .map(|(address, to)| format!("{address} leads to {to}\n"))
            .chain(self.redirection.announcement())
            .collect();
        output::print(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_the_default_port() {
        let parsed = |text| parse_server(text).unwrap().to_string();
        assert_eq!(parsed("gate1"), format!("gate1:{DEFAULT_PORT}"));
        assert_eq!(parsed("gate1:1"), "gate1:1");
        assert_eq!(parsed("::1"), format!("[::1]:{DEFAULT_PORT}"));
        assert_eq!(parsed("[::1]:1"), "[::1]:1");
        assert!(parse_server("a/b").unwrap_err().contains("a/b"));
    }

    #[test]
    fn a_local_address_may_have_an_interface() {
        let local: Local = "10.0.0.1%eth0".parse().unwrap();
        assert_eq!(local.0.interface.as_deref(), Some("eth0"));
        let local: Local = "::1".parse().unwrap();
        assert_eq!(local.0.address, "[::1]:0".parse().unwrap());
        assert!("eth0".parse::<Local>().is_err());
    }
}
