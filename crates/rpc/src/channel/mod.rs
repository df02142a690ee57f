//! A channel: calls to servers behind a name.

mod backoff;
mod builder;
mod call;
mod error;
mod exchange;
mod health;
mod maintain;
mod pool;
mod resolution;
mod resolver;
mod retry;
mod stats;
mod stream;
mod subchannel;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use weir_net::{Connection, Endpoint};
use weir_units::{Duration, Time};

use crate::random::Random;
use crate::wire::Limits;

pub use backoff::BackoffConfig;
pub use builder::{ChannelBuilder, ChannelError};
pub use call::{Call, Response};
pub use error::CallError;
pub use pool::Balancing;
pub use resolver::{ResolveError, Resolver, Resolving, SystemResolver};
pub use retry::RetryConfig;
pub use stats::{ChannelStats, ServerInfo, ServerState};
pub use stream::{RequestSender, ResponseReceiver, StreamClosed};

use pool::{Link, Pool};
use resolution::Resolution;
use retry::RetryBudget;
use stats::Counters;

/// Makes calls to servers behind a name. Clones are handles to the same channel.
///
/// Connections are opened ahead, and again when they are lost, for as long as there is a handle.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
    _upkeep: Arc<Upkeep>,
}

/// The tasks that keep a channel's connections; ends with the last handle.
struct Upkeep(AbortHandle);

struct Shared {
    endpoint: Endpoint,
    resolver: Box<dyn Resolver>,
    /// The name in the servers' certificates; their address where there is none.
    server_name: Option<String>,
    settings: Settings,
    state: Mutex<State>,
    /// Changes with each state of a connection.
    changed: watch::Sender<()>,
    /// A connection failed.
    resolve: Notify,
    counters: Counters,
    random: Random,
    epoch: Instant,
}

#[derive(Clone, Debug)]
struct Settings {
    limits: Limits,
    retry: RetryConfig,
    reconnect: BackoffConfig,
    connect_timeout: Duration,
    deadline: Option<Duration>,
    wait_for_ready: bool,
}

struct State {
    pool: Pool<Connection>,
    resolution: Resolution,
    budget: RetryBudget,
}

impl Link for Connection {
    fn is_usable(&self) -> bool {
        self.error().is_none() && !self.is_draining()
    }
}

impl Shared {
    fn now(&self) -> Time {
        Time::ZERO + self.epoch.elapsed().into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pool, and wakes the calls and connections that wait for that.
    fn update(&self, change: impl FnOnce(&mut Pool<Connection>)) {
        change(&mut self.state().pool);
        self.changed.send_replace(());
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("resolver", &self.shared.resolver)
            .finish_non_exhaustive()
    }
}
