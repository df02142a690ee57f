//! Configuration of a channel.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_channel::{BackoffConfig, Balancing, ChannelError, Resolver, RetryConfig, ServersBuilder};
use weir_net::Endpoint;
use weir_units::Duration;

use super::protocol::Rpc;
use super::{Channel, Settings, Shared};
use crate::wire::Limits;

/// Builds a channel: [`Channel::builder`], [`Channel::to_addresses`] or [`Channel::resolved_by`]
/// begin, [`ChannelBuilder::connect`] ends.
#[must_use = "nothing happens before `connect`"]
pub struct ChannelBuilder {
    servers: ServersBuilder,
    settings: Settings,
}

impl Channel {
    /// Builds a channel to the servers behind a name and port, as in `kv.example:4433`. The name is
    /// resolved by the system, again after an interval and when a connection failed.
    pub fn builder(name: impl Into<String>) -> ChannelBuilder {
        ChannelBuilder::new(ServersBuilder::to_name(name))
    }

    /// Builds a channel to the servers at these addresses, in order of preference.
    pub fn to_addresses(addresses: impl IntoIterator<Item = SocketAddr>) -> ChannelBuilder {
        ChannelBuilder::new(ServersBuilder::to_addresses(addresses))
    }

    /// Builds a channel to the servers that a resolver finds.
    pub fn resolved_by(resolver: impl Resolver + 'static) -> ChannelBuilder {
        ChannelBuilder::new(ServersBuilder::resolved_by(resolver))
    }
}

impl ChannelBuilder {
    fn new(servers: ServersBuilder) -> Self {
        Self {
            servers,
            settings: Settings {
                limits: Limits::default(),
                deadline: None,
                wait_for_ready: false,
            },
        }
    }

    /// Sets the name in the servers' certificates; by default the name that is resolved, or a
    /// server's address where there is none.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.servers = self.servers.server_name(name);
        self
    }

    /// Sets which server gets a call; [`Balancing::LeastLoaded`] by default.
    pub fn balancing(mut self, balancing: Balancing) -> Self {
        self.servers = self.servers.balancing(balancing);
        self
    }

    /// Sets after which time the name is resolved again even if no connection failed; 30 s by
    /// default, zero for never.
    pub fn resolve_interval(mut self, interval: impl Into<Duration>) -> Self {
        self.servers = self.servers.resolve_interval(interval);
        self
    }

    /// Sets when failed calls are made again.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.servers = self.servers.retry(retry);
        self
    }

    /// Sets the waits between attempts to connect; from 20 ms to 2 s by default.
    pub fn reconnect(mut self, backoff: BackoffConfig) -> Self {
        self.servers = self.servers.reconnect(backoff);
        self
    }

    /// Sets how long an attempt to connect may take; 2 s by default.
    pub fn connect_timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.servers = self.servers.connect_timeout(timeout);
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
        Ok(Channel {
            shared: Arc::new(Shared {
                servers: self.servers.connect(endpoint, Rpc)?,
                settings: self.settings,
                counters: Default::default(),
            }),
        })
    }
}
