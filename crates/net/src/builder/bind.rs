//! Binding: sockets, engines and their drivers.

use std::iter;
use std::mem;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use weir_quic::{
    ClientLimits, ClientTable, ConnectionIdLayout, EndpointConfig, EndpointSecret, KnownClients,
    ServerConfig,
};
use weir_units::Duration;

use super::EndpointBuilder;
use crate::clock::Clock;
use crate::dcquic::{CONNECTION_ID_LENGTH, EndpointSettings, Shared, SharedDcquicConnection};
use crate::driver::Driver;
use crate::endpoint::{ClientSettings, Endpoint};
use crate::engine_runtime::EngineRuntime;
use crate::engines::Engines;
use crate::error::EndpointError;
use crate::interfaces::{self, AddressWatcher};
use crate::observe::EndpointObservers;
use crate::policy_resolver::PolicyResolver;
use crate::port_sharing::PortSharing;
use crate::random::seed;
use crate::socket::{BindAddress, SocketOptions};
use crate::sockets::Sockets;
use crate::spin::Spin;
use crate::state_directory;
use crate::succession::{self, Succession};
use crate::timers::Timers;
use crate::undecided::UndecidedQueue;

/// The parts that all engines of an endpoint share.
struct SharedParts {
    clock: Clock,
    secret: EndpointSecret,
    observers: Option<Arc<EndpointObservers>>,
    known_clients: Option<Arc<KnownClients>>,
    clients: Arc<ClientTable>,
    undecided: Option<Arc<UndecidedQueue>>,
}

impl EndpointBuilder {
    /// Binds the address, and those of [`EndpointBuilder::also_at`], and starts the endpoint's task
    /// on the current tokio runtime, or on its threads ([`EndpointBuilder::threads`]). Port 0 takes
    /// any free port.
    ///
    /// # Errors
    /// [`EndpointError`], which describes the remedy.
    pub fn bind(mut self, address: SocketAddr) -> Result<Endpoint, EndpointError> {
        self.transport.validate()?;
        let runtimes = EngineRuntime::of_engines(self.threads)?;
        let first = BindAddress {
            address,
            interface: self.interface.take(),
        };
        let is_watched = self.is_watched();
        let more = mem::take(&mut self.more_addresses);
        let mut addresses: Vec<_> = iter::once(first).chain(more).collect();
        if let Some(policy) = self.policy.take() {
            let resolver = PolicyResolver::new(policy, &addresses);
            self.transport = resolver.applied_to(&self.transport);
        }
        let clock = Clock::start();
        let known_peers = self.server.as_ref().and_then(|server| server.known_peers);
        let mut parts = SharedParts {
            clock,
            secret: self.find_secret()?,
            observers: None,
            known_clients: None,
            clients: Arc::new(ClientTable::new(
                self.client_limits
                    .unwrap_or_else(|| ClientLimits::for_capacity(self.max_connections)),
            )),
            undecided: (self.max_undecided > 0).then(Arc::default),
        };
        let succession = self.succession()?;
        let mut shared = Vec::with_capacity(runtimes.len());
        let mut drivers = Vec::with_capacity(runtimes.len());
        for (engines, runtime) in Engines::new(self.threads).into_iter().zip(runtimes) {
            let entered = runtime.enter();
            let options = SocketOptions {
                buffers: self.buffers,
                receive_buffer_grows: self.receive_buffer_grows,
                sharing: match &succession {
                    Some(_) => succession::sharing(self.follows, engines.index(), self.threads),
                    None => PortSharing::of_engine(engines.index(), self.threads),
                },
                busy_poll: self.busy_poll,
                // A server alone waits for its clients: they are known to be gone soon enough.
                reads_errors: self.client.is_some() || self.server.is_none(),
            };
            let sockets = Sockets::bind(addresses, options)?;
            // The other engines bind the ports that the first one was given.
            let bound = sockets.bound_addresses().into_iter();
            addresses = bound.map(|(address, _)| address).collect();
            if parts.known_clients.is_none() {
                // An endpoint begins when it has the address: until then an older one may answer there.
                let begun = clock.now() + clock.epoch();
                parts.known_clients =
                    known_peers.map(|limits| Arc::new(KnownClients::new(limits, begun)));
                if let (Some(server), Some(clients)) = (&self.server, &parts.known_clients) {
                    server.follow(clients, clock);
                }
            }
            let watch = open_watch(is_watched);
            let generation = succession.as_ref().map(Succession::generation);
            let layout = ConnectionIdLayout::new(CONNECTION_ID_LENGTH)
                .of_engine(engines.index(), self.threads)
                .of_generation(generation);
            let is_watched = watch.is_some();
            let engine =
                self.engine(&mut parts, &runtime, sockets, (engines, layout), is_watched)?;
            let watching = watch.map(|watch| runtime.handle().spawn(watch.run(engine.clone())));
            let driver = Driver::new(engine.clone(), watching);
            drop(entered);
            drivers.push((runtime, driver));
            shared.push(engine);
        }
        let settings = ClientSettings {
            credentials: self.client,
            transport: self.transport,
            version: self.client_versions.0,
            versions: self.client_versions.1,
        };
        let endpoint = Endpoint::new(shared, settings, succession);
        for (runtime, driver) in drivers {
            runtime.run(driver)?;
        }
        Ok(endpoint)
    }

    /// Binds any free port, for clients: on all IPv4 and IPv6 addresses, or IPv4 only where the
    /// machine has no IPv6.
    ///
    /// # Errors
    /// [`EndpointError`], which describes the remedy.
    pub fn bind_any(self) -> Result<Endpoint, EndpointError> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        match self.clone().bind(any) {
            Err(EndpointError::Socket { .. } | EndpointError::AddressNotAvailable { .. }) => {
                self.bind(SocketAddr::from(([0, 0, 0, 0], 0)))
            }
            bound => bound,
        }
    }

    /// Returns what the endpoint follows and how it can be followed, if that is wanted.
    fn succession(&self) -> Result<Option<Succession>, EndpointError> {
        if !self.can_be_followed {
            return Ok(None);
        }
        let generation = match self.follows {
            Some(predecessor) => predecessor.generation.wrapping_add(1),
            None => {
                let [first, second, ..] = seed()?;
                u16::from_be_bytes([first, second])
            }
        };
        let follows = self.follows.is_some();
        Ok(Some(Succession::new(generation, self.threads, follows)))
    }

    /// Returns the endpoint's secret: the given one, a kept one, or a new one.
    fn find_secret(&self) -> Result<EndpointSecret, EndpointError> {
        match (self.secret, &self.state_directory) {
            (Some(secret), _) => Ok(secret),
            (None, Some(directory)) => state_directory::secret(directory),
            (None, None) => {
                if self.server.is_some() {
                    tracing::info!(
                        "this server has no state directory: after a crash, its clients wait for answers of \
                         its next run for about a second"
                    );
                }
                Ok(EndpointSecret::new(seed()?))
            }
        }
    }

    /// Whether the endpoint follows changes of the machine's addresses.
    fn is_watched(&self) -> bool {
        let is_client_alone = self.client.is_some() && self.server.is_none();
        let several = is_client_alone && !self.more_addresses.is_empty();
        self.watch_interfaces.unwrap_or(several)
    }

    /// Creates one of the endpoint's engines.
    fn engine(
        &self,
        parts: &mut SharedParts,
        runtime: &EngineRuntime,
        sockets: Sockets,
        (engines, connection_ids): (Engines<SharedDcquicConnection>, ConnectionIdLayout),
        is_watched: bool,
    ) -> Result<Arc<Shared>, EndpointError> {
        let clock = parts.clock;
        let timers = Timers::new(clock).map_err(EndpointError::Timer)?;
        let spin = self
            .low_latency
            .filter(|span| !span.is_zero())
            .map(Spin::new);
        let server = self.server.as_ref().map(|credentials| ServerConfig {
            max_connections: self.max_connections.div_ceil(self.threads.get().into()),
            retry: self.retry,
            token_lifetime: self.token_lifetime,
            versions: self.server_versions,
            preferred: self.preferred,
            known_clients: parts.known_clients.clone(),
            clients: Some(parts.clients.clone()),
            max_undecided: self.max_undecided,
            ..ServerConfig::new(credentials.crypto.clone(), self.transport.clone())
        });
        let config = EndpointConfig {
            connection_ids,
            secret: Some(parts.secret),
            epoch: clock.epoch(),
            // Who polls for 50 µs wants no timer to be late.
            timer_tick: if spin.is_some() {
                Duration::ZERO
            } else {
                clock.tick()
            },
            receive_burst: Some(sockets.buffers().burst()),
        };
        let mut engine = weir_quic::Endpoint::new(config, server, seed()?);
        let is_first = parts.observers.is_none();
        let observers = match &parts.observers {
            Some(observers) => observers.clone(),
            None => {
                let wanted = self.observers.clone();
                let observers = EndpointObservers::new(wanted, sockets.local(), config.epoch)?;
                parts.observers.insert(Arc::new(observers)).clone()
            }
        };
        engine.set_observers(Some(observers.clone()));
        engine.set_interfaces(interfaces::current().map(Arc::new).unwrap_or_default());
        let settings = EndpointSettings {
            runtime: runtime.handle().clone(),
            is_server: self.server.is_some(),
            is_watched,
            transport: self.transport.clone(),
            undecided: parts.undecided.clone(),
            allocator: self.allocator.clone(),
            lost_events: observers.lost_events().filter(|_| is_first),
            known_clients: parts.known_clients.clone().filter(|_| is_first),
            credentials: if is_first {
                (self.server.clone(), self.client.clone())
            } else {
                (None, None)
            },
            add_last_stats: OnceLock::new(),
        };
        let shared = Arc::new(Shared::new(
            sockets, clock, timers, spin, settings, engine, engines,
        ));
        observers.connect(self.observers.metrics.as_ref(), &shared);
        Ok(shared)
    }
}

fn open_watch(wanted: bool) -> Option<AddressWatcher> {
    let opened = wanted.then(AddressWatcher::open)?;
    opened
        .inspect_err(|error| {
            tracing::warn!(%error, "changes of network interfaces will not be noticed");
        })
        .ok()
}
