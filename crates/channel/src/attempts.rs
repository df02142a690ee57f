//! The attempts of one call: which servers it was sent to, and whether it is made again.

use std::net::SocketAddr;

use tokio::time::sleep;
use weir_units::Duration;

use crate::backoff::{Backoff, BackoffConfig};
use crate::picked::Picked;
use crate::protocol::Protocol;
use crate::servers::{NoServer, Servers};

/// The waits before a call is made again.
const BETWEEN_ATTEMPTS: BackoffConfig = BackoffConfig {
    first: Duration::from_millis(5),
    longest: Duration::from_millis(500),
};

/// What a failure says about making the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not safe, or without use.
    Never,
    /// The call was not sent.
    NotSent,
    /// A draining server refused the call.
    Moved,
    /// The retry adds load.
    Costs,
}

/// Why a call is not made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRetried {
    /// That is not safe, or without use, or it was sent often enough.
    Final,
    /// The budget of retries is used up.
    BudgetExhausted,
}

/// The attempts of one call.
pub struct Attempts<P: Protocol> {
    servers: Servers<P>,
    tried: Vec<SocketAddr>,
    /// Attempts that may have been sent.
    sent: u32,
    backoff: Backoff,
}

impl<P: Protocol> Attempts<P> {
    /// Begins a call, which contributes to the budget of retries.
    pub fn new(servers: Servers<P>) -> Self {
        servers.retry_budget().deposit();
        Self {
            servers,
            tried: Vec::new(),
            sent: 0,
            backoff: Backoff::new(BETWEEN_ATTEMPTS),
        }
    }

    /// Returns how many attempts may have been sent.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Returns a connection for the next attempt: see [`Servers::pick`].
    ///
    /// # Errors
    /// [`NoServer`] where none can be reached, unless `wait_for_ready` is set.
    pub async fn pick(&self, wait_for_ready: bool) -> Result<Picked<P::Link>, NoServer> {
        self.servers.pick(&self.tried, wait_for_ready).await
    }

    /// The call may have been sent to this server.
    pub fn on_sent(&mut self, server: SocketAddr) {
        self.sent += 1;
        self.tried.push(server);
    }

    /// Waits until the call may be made again after a failure.
    ///
    /// # Errors
    /// [`NotRetried`] where it may not.
    pub async fn next(&mut self, retry: Retry) -> Result<(), NotRetried> {
        let has_attempts = self.sent < self.servers.max_attempts();
        let is_new = !self.servers.has_tried_all(&self.tried);
        match retry {
            Retry::NotSent => {}
            Retry::Moved if has_attempts && is_new => {}
            Retry::Moved if has_attempts => self.wait().await,
            Retry::Costs if has_attempts => {
                if !self.servers.retry_budget().withdraw() {
                    return Err(NotRetried::BudgetExhausted);
                }
                self.wait().await;
            }
            Retry::Never | Retry::Moved | Retry::Costs => return Err(NotRetried::Final),
        }
        Ok(())
    }

    async fn wait(&mut self) {
        let random = self.servers.random().next();
        sleep(self.backoff.next(random).into()).await;
    }
}

impl<P: Protocol> std::fmt::Debug for Attempts<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempts")
            .field("tried", &self.tried)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}
