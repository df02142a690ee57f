//! Configuration of a channel.

use std::net::SocketAddr;

use http::uri::Authority;
use weir_channel::{BackoffConfig, Balancing, ChannelError, Resolver, RetryConfig, ServersBuilder};
use weir_net::{Duration, Endpoint};

use super::channel::{Channel, Origin};
use super::protocol::Http;

/// Builds a channel: [`Channel::builder`], [`Channel::to_addresses`] or [`Channel::resolved_by`]
/// begin, [`ChannelBuilder::connect`] ends.
#[must_use = "nothing happens before `connect`"]
pub struct ChannelBuilder {
    servers: ServersBuilder,
    /// What the URIs of requests name.
    authority: String,
    wait_for_ready: bool,
}

impl Channel {
    /// Builds a channel to the servers behind a name and port, as in `kv.example:4433`. The name is
    /// resolved by the system, again after an interval and when a connection failed.
    pub fn builder(name: impl Into<String>) -> ChannelBuilder {
        let name = name.into();
        ChannelBuilder::new(ServersBuilder::to_name(name.clone()), name)
    }

    /// Builds a channel to the servers at these addresses, in order of preference.
    pub fn to_addresses(addresses: impl IntoIterator<Item = SocketAddr>) -> ChannelBuilder {
        let addresses: Vec<_> = addresses.into_iter().collect();
        let authority = addresses.first().map(SocketAddr::to_string);
        let servers = ServersBuilder::to_addresses(addresses);
        ChannelBuilder::new(servers, authority.unwrap_or_default())
    }

    /// Builds a channel to the servers that a resolver finds; `authority` is the name that requests
    /// have in their URIs.
    pub fn resolved_by(
        resolver: impl Resolver + 'static,
        authority: impl Into<String>,
    ) -> ChannelBuilder {
        ChannelBuilder::new(ServersBuilder::resolved_by(resolver), authority.into())
    }
}

impl ChannelBuilder {
    fn new(servers: ServersBuilder, authority: String) -> Self {
        Self {
            servers,
            authority,
            wait_for_ready: false,
        }
    }

    fn map(mut self, change: impl FnOnce(ServersBuilder) -> ServersBuilder) -> Self {
        self.servers = change(self.servers);
        self
    }

    /// Sets the name in the servers' certificates, and in the URIs of requests, instead of the name or
    /// address that they are reached by.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.authority.clone_from(&name);
        self.map(|servers| servers.server_name(name))
    }

    /// Sets which server gets a request; [`Balancing::LeastLoaded`] by default.
    pub fn balancing(self, balancing: Balancing) -> Self {
        self.map(|servers| servers.balancing(balancing))
    }

    /// Sets after which time the name is resolved again even if no connection failed; 30 s by
    /// default, zero for never.
    pub fn resolve_interval(self, interval: impl Into<Duration>) -> Self {
        self.map(|servers| servers.resolve_interval(interval))
    }

    /// Sets when failed requests are sent again.
    pub fn retry(self, retry: RetryConfig) -> Self {
        self.map(|servers| servers.retry(retry))
    }

    /// Sets the waits between attempts to connect; from 20 ms to 2 s by default.
    pub fn reconnect(self, backoff: BackoffConfig) -> Self {
        self.map(|servers| servers.reconnect(backoff))
    }

    /// Sets how long an attempt to connect may take; 2 s by default.
    pub fn connect_timeout(self, timeout: impl Into<Duration>) -> Self {
        self.map(|servers| servers.connect_timeout(timeout))
    }

    /// Sets whether requests wait while no server can be reached, instead of failing at once, which is
    /// the default.
    pub fn wait_for_ready(mut self, wait: bool) -> Self {
        self.wait_for_ready = wait;
        self
    }

    /// Builds the channel and begins to connect, from this endpoint. Its TLS configuration has to
    /// offer [`APPLICATION_PROTOCOL`](crate::APPLICATION_PROTOCOL) alone.
    ///
    /// # Errors
    /// [`ChannelError`] where the name is none, and outside of a tokio runtime.
    pub fn connect(self, endpoint: &Endpoint) -> Result<Channel, ChannelError> {
        let authority = Authority::try_from(self.authority.as_str());
        let authority = authority.map_err(|_| ChannelError::Name(self.authority.clone()))?;
        let servers = self.servers.connect(endpoint, Http)?;
        let origin = Origin { authority };
        Ok(Channel::new(servers, origin, self.wait_for_ready))
    }
}
