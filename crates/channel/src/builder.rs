//! Configuration: which servers, and how they are connected to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::{Notify, watch};
use weir_net::Endpoint;
use weir_units::Duration;

use crate::backoff::BackoffConfig;
use crate::pool::{Balancing, Pool};
use crate::protocol::Protocol;
use crate::random::NoRandomness;
use crate::resolution::Resolution;
use crate::resolver::{Resolver, SystemResolver};
use crate::retry::{RetryBudget, RetryConfig};
use crate::servers::{Servers, Settings, Shared};
use crate::sources::Sources;

/// Why a channel cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The name is not a host and a port.
    #[error("{0:?} is no name and port, such as kv.example:4433")]
    Name(String),
    /// There is no tokio runtime.
    #[error("channels are made within a tokio runtime")]
    NoRuntime,
    /// The system returns no random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// Says which servers there are, and how they are connected to; [`ServersBuilder::connect`] begins.
#[derive(Debug)]
#[must_use = "nothing happens before `connect`"]
pub struct ServersBuilder {
    target: Target,
    server_name: Option<String>,
    balancing: Balancing,
    resolve_interval: Duration,
    settings: Settings,
}

#[derive(Debug)]
enum Target {
    Name(String),
    Resolver(Box<dyn Resolver>),
}

impl ServersBuilder {
    /// The servers behind a name and port, as in `kv.example:4433`. The name is resolved by the
    /// system, again after an interval and when a connection failed.
    pub fn to_name(name: impl Into<String>) -> Self {
        Self::new(Target::Name(name.into()))
    }

    /// The servers at these addresses, in order of preference.
    pub fn to_addresses(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let addresses: Vec<_> = addresses.into_iter().collect();
        Self::new(Target::Resolver(Box::new(addresses)))
    }

    /// The servers that a resolver finds.
    pub fn resolved_by(resolver: impl Resolver + 'static) -> Self {
        Self::new(Target::Resolver(Box::new(resolver)))
    }

    fn new(target: Target) -> Self {
        Self {
            target,
            server_name: None,
            balancing: Balancing::default(),
            resolve_interval: Duration::from_secs(30),
            settings: Settings {
                retry: RetryConfig::default(),
                reconnect: BackoffConfig {
                    first: Duration::from_millis(20),
                    longest: Duration::from_secs(2),
                },
                connect_timeout: Duration::from_secs(2),
            },
        }
    }

    /// Sets the name in the servers' certificates; by default the name that is resolved, or a
    /// server's address where there is none.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets which server gets a call; [`Balancing::LeastLoaded`] by default.
    pub fn balancing(mut self, balancing: Balancing) -> Self {
        self.balancing = balancing;
        self
    }

    /// Sets after which time the name is resolved again even if no connection failed; 30 s by
    /// default, zero for never.
    pub fn resolve_interval(mut self, interval: impl Into<Duration>) -> Self {
        self.resolve_interval = interval.into();
        self
    }

    /// Sets when failed calls are made again.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Sets the waits between attempts to connect; from 20 ms to 2 s by default.
    pub fn reconnect(mut self, backoff: BackoffConfig) -> Self {
        self.settings.reconnect = backoff;
        self
    }

    /// Sets how long an attempt to connect may take, until calls can use it; 2 s by default.
    pub fn connect_timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.settings.connect_timeout = timeout.into();
        self
    }

    /// Begins to connect, from this endpoint. Its TLS configuration has to offer the protocol's ALPN
    /// alone.
    ///
    /// # Errors
    /// [`ChannelError`] where the name is none, and outside of a tokio runtime.
    pub fn connect<P: Protocol>(
        self,
        endpoint: &Endpoint,
        protocol: P,
    ) -> Result<Servers<P>, ChannelError> {
        let runtime = tokio::runtime::Handle::try_current();
        let runtime = runtime.map_err(|_| ChannelError::NoRuntime)?;
        let (resolver, server_name): (Box<dyn Resolver>, _) = match self.target {
            Target::Resolver(resolver) => (resolver, self.server_name),
            Target::Name(name) => {
                let host = host_of(&name)?;
                let server_name = self.server_name.unwrap_or_else(|| host.to_owned());
                (Box::new(SystemResolver { name }), Some(server_name))
            }
        };
        let sources = Arc::new(Sources::new()?);
        let seed = sources.random.next();
        let shared = Shared {
            protocol,
            endpoint: endpoint.clone(),
            resolver,
            server_name,
            resolution: Mutex::new(Resolution::new(self.resolve_interval)),
            pool: RwLock::new(Pool::new(self.balancing, seed, sources.clone())),
            changed: watch::Sender::new(()),
            resolve: Notify::new(),
            budget: RetryBudget::new(&self.settings.retry),
            settings: self.settings,
            counters: Default::default(),
            sources,
        };
        Ok(Servers::new(shared, &runtime))
    }
}

/// Returns the host of `host:port`; `[::1]` is `::1`.
fn host_of(name: &str) -> Result<&str, ChannelError> {
    let invalid = || ChannelError::Name(name.to_owned());
    let (host, port) = name.rsplit_once(':').ok_or_else(invalid)?;
    let unbracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = unbracketed.unwrap_or(host);
    let is_valid = !host.is_empty() && port.parse::<u16>().is_ok();
    is_valid.then_some(host).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hosts_and_ports() {
        assert_eq!(host_of("kv.example:4433"), Ok("kv.example"));
        assert_eq!(host_of("[::1]:4433"), Ok("::1"));
        for name in ["kv.example", ":4433", "kv.example:", "kv.example:65536", ""] {
            assert_eq!(host_of(name), Err(ChannelError::Name(name.to_owned())));
        }
    }
}
