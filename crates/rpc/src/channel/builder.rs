//! Configuration of a channel.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use weir_net::Endpoint;
use weir_units::Duration;

use super::backoff::BackoffConfig;
use super::pool::{Balancing, Pool};
use super::resolution::Resolution;
use super::resolver::{Resolver, SystemResolver};
use super::retry::{RetryBudget, RetryConfig};
use super::{Channel, Settings, Shared, State, Upkeep};
use crate::random::{NoRandomness, Random};
use crate::wire::Limits;

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

/// Builds a channel: [`Channel::builder`], [`Channel::to_addresses`] or [`Channel::resolved_by`]
/// begin, [`ChannelBuilder::connect`] ends.
#[must_use = "nothing happens before `connect`"]
pub struct ChannelBuilder {
    target: Target,
    server_name: Option<String>,
    balancing: Balancing,
    resolve_interval: Duration,
    settings: Settings,
}

enum Target {
    Name(String),
    Resolver(Box<dyn Resolver>),
}

impl Channel {
    /// Builds a channel to the servers behind a name and port, as in `kv.example:4433`. The name is
    /// resolved by the system, again after an interval and when a connection failed.
    pub fn builder(name: impl Into<String>) -> ChannelBuilder {
        ChannelBuilder::new(Target::Name(name.into()))
    }

    /// Builds a channel to the servers at these addresses, in order of preference.
    pub fn to_addresses(addresses: impl IntoIterator<Item = SocketAddr>) -> ChannelBuilder {
        let addresses: Vec<_> = addresses.into_iter().collect();
        ChannelBuilder::new(Target::Resolver(Box::new(addresses)))
    }

    /// Builds a channel to the servers that a resolver finds.
    pub fn resolved_by(resolver: impl Resolver + 'static) -> ChannelBuilder {
        ChannelBuilder::new(Target::Resolver(Box::new(resolver)))
    }
}

impl ChannelBuilder {
    fn new(target: Target) -> Self {
        Self {
            target,
            server_name: None,
            balancing: Balancing::default(),
            resolve_interval: Duration::from_secs(30),
            settings: Settings {
                limits: Limits::default(),
                retry: RetryConfig::default(),
                reconnect: BackoffConfig {
                    first: Duration::from_millis(20),
                    longest: Duration::from_secs(2),
                },
                connect_timeout: Duration::from_secs(2),
                deadline: None,
                wait_for_ready: false,
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

    /// Sets how long an attempt to connect may take; 2 s by default.
    pub fn connect_timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.settings.connect_timeout = timeout.into();
        self
    }

    /// Sets the deadline of calls that set none themselves; none by default.
    pub fn deadline(mut self, span: impl Into<Duration>) -> Self {
        self.settings.deadline = Some(span.into());
        self
    }

    /// Sets whether calls wait while no server can be reached, instead of failing at once, which is
    /// the default.
    pub fn wait_for_ready(mut self, wait: bool) -> Self {
        self.settings.wait_for_ready = wait;
        self
    }

    /// Sets the sizes of statuses and messages that the channel takes.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Builds the channel and begins to connect, from this endpoint. Its TLS configuration has to
    /// offer [`APPLICATION_PROTOCOL`](crate::wire::APPLICATION_PROTOCOL) alone.
    ///
    /// # Errors
    /// [`ChannelError`] where the name is none, and outside of a tokio runtime.
    pub fn connect(self, endpoint: &Endpoint) -> Result<Channel, ChannelError> {
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
        let shared = Arc::new(Shared {
            endpoint: endpoint.clone(),
            resolver,
            server_name,
            state: Mutex::new(State {
                pool: Pool::new(self.balancing),
                resolution: Resolution::new(self.resolve_interval),
                budget: RetryBudget::new(&self.settings.retry),
            }),
            settings: self.settings,
            changed: watch::Sender::new(()),
            resolve: Notify::new(),
            counters: Default::default(),
            random: Random::new()?,
            epoch: Instant::now(),
        });
        let upkeep = runtime.spawn(super::maintain::run(shared.clone()));
        Ok(Channel {
            shared,
            _upkeep: Arc::new(Upkeep(upkeep.abort_handle())),
        })
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
