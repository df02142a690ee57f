//! The connections to the servers behind a name, and the choice between them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use weir_net::Endpoint;
use weir_units::Duration;

use crate::backoff::BackoffConfig;
use crate::picked::Picked;
use crate::pool::{Pick, Pool};
use crate::protocol::Protocol;
use crate::random::Random;
use crate::resolution::Resolution;
use crate::resolver::Resolver;
use crate::retry::{RetryBudget, RetryConfig};
use crate::sources::Sources;
use crate::stats::Counters;

/// The servers behind a name, with a connection to each. Clones are handles to the same ones.
///
/// Connections are opened ahead, and again when they are lost or drain, for as long as there is a
/// handle.
pub struct Servers<P: Protocol> {
    shared: Arc<Shared<P>>,
    _upkeep: Arc<Upkeep>,
}

/// No server can be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no server can be reached: {0}")]
pub struct NoServer(
    /// Why the last one could not be.
    pub String,
);

/// The tasks that keep the connections; ends with the last handle.
struct Upkeep(AbortHandle);

pub(crate) struct Shared<P: Protocol> {
    pub(crate) protocol: P,
    pub(crate) endpoint: Endpoint,
    pub(crate) resolver: Box<dyn Resolver>,
    /// The name in the servers' certificates; their address where there is none.
    pub(crate) server_name: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) resolution: Mutex<Resolution>,
    /// Written when a connection or the addresses change; calls only read.
    pub(crate) pool: RwLock<Pool<P::Link>>,
    /// Changes with the pool.
    pub(crate) changed: watch::Sender<()>,
    /// A connection failed.
    pub(crate) resolve: Notify,
    pub(crate) budget: RetryBudget,
    pub(crate) counters: Counters,
    pub(crate) sources: Arc<Sources>,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) retry: RetryConfig,
    pub(crate) reconnect: BackoffConfig,
    pub(crate) connect_timeout: Duration,
}

impl<P: Protocol> Servers<P> {
    /// Begins to connect.
    pub(crate) fn new(shared: Shared<P>, runtime: &tokio::runtime::Handle) -> Self {
        let shared = Arc::new(shared);
        let upkeep = runtime.spawn(crate::maintain::run(shared.clone()));
        Self {
            shared,
            _upkeep: Arc::new(Upkeep(upkeep.abort_handle())),
        }
    }

    /// Returns a connection for a call: to a server that was not tried, where one is ready. Waits
    /// while connections are being established; with `wait_for_ready` also while no server can be
    /// reached.
    ///
    /// # Errors
    /// [`NoServer`] where all have failed, unless `wait_for_ready` is set.
    pub async fn pick(
        &self,
        tried: &[SocketAddr],
        wait_for_ready: bool,
    ) -> Result<Picked<P::Link>, NoServer> {
        let mut changes = None;
        loop {
            match self.shared.pick(tried) {
                Pick::Ready { link, call } => return Ok(Picked::new(link, call)),
                Pick::Failed(reason) if !wait_for_ready => {
                    // A caller that tries again at once would otherwise never let its thread go on to
                    // the tasks that connect, and to timers.
                    tokio::task::yield_now().await;
                    return Err(NoServer(reason));
                }
                Pick::Failed(_) | Pick::Wait => {}
            }
            match &mut changes {
                // What has changed before this is seen by another look.
                None => changes = Some(self.shared.changed.subscribe()),
                // The sender lives as long as the servers.
                Some(changes) => drop(changes.changed().await),
            }
        }
    }

    /// Returns whether each server is one of these.
    pub fn has_tried_all(&self, tried: &[SocketAddr]) -> bool {
        let pool = self.shared.pool();
        let mut members = pool.members().iter();
        members.all(|member| tried.contains(&member.server().address))
    }

    /// Returns how often a call is sent at most.
    pub(crate) fn max_attempts(&self) -> u32 {
        self.shared.settings.retry.max_attempts
    }

    /// Returns the budget of retries, to which each call contributes.
    pub(crate) fn retry_budget(&self) -> &RetryBudget {
        &self.shared.budget
    }

    /// Returns the generator of random numbers, such as for the waits between a call's attempts.
    pub(crate) fn random(&self) -> &Random {
        &self.shared.sources.random
    }

    pub(crate) fn shared(&self) -> &Shared<P> {
        &self.shared
    }
}

impl<P: Protocol> Shared<P> {
    pub(crate) fn pool(&self) -> RwLockReadGuard<'_, Pool<P::Link>> {
        self.pool.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn resolution(&self) -> MutexGuard<'_, Resolution> {
        let resolution = self.resolution.lock();
        resolution.unwrap_or_else(PoisonError::into_inner)
    }

    fn pick(&self, tried: &[SocketAddr]) -> Pick<P::Link> {
        let pool = self.pool();
        if !pool.members().is_empty() {
            return pool.pick(tried, || self.sources.now());
        }
        drop(pool);
        match self.resolution().error() {
            Some(error) => Pick::Failed(error.to_owned()),
            None => Pick::Wait,
        }
    }

    /// Changes the pool, and wakes the calls and connections that wait for that. Return links that
    /// leave it: dropping one may take a while.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Pool<P::Link>) -> T) -> T {
        let mut pool = self.pool.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut pool);
        drop(pool);
        self.changed.send_replace(());
        result
    }
}

impl<P: Protocol> Clone for Servers<P> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _upkeep: self._upkeep.clone(),
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<P: Protocol> std::fmt::Debug for Servers<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers")
            .field("resolver", &self.shared.resolver)
            .finish_non_exhaustive()
    }
}
