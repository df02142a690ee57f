//! A server of a channel, as its calls know it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_units::Time;

use crate::health::Health;
use crate::sources::Sources;

/// A server: its calls that are under way, and whether it answers them.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    outstanding: AtomicUsize,
    health: Mutex<Health>,
    /// Whether there was a failure since the last answer. Calls to a server that answers take no
    /// lock.
    has_failed: AtomicBool,
    sources: Arc<Sources>,
}

/// Counts a call of a server while it is under way.
#[derive(Debug)]
pub(crate) struct Outstanding(Arc<Server>);

impl Server {
    pub(crate) fn new(address: SocketAddr, sources: Arc<Sources>) -> Self {
        Self {
            address,
            outstanding: AtomicUsize::new(0),
            health: Mutex::new(Health::new()),
            has_failed: AtomicBool::new(false),
            sources,
        }
    }

    /// Returns the number of calls under way.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Relaxed)
    }

    pub(crate) fn on_answer(&self) {
        if self.has_failed.load(Ordering::Relaxed) {
            let mut health = self.health();
            health.on_answer();
            self.has_failed.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn on_failure(&self) {
        self.on_failure_at(self.sources.now(), self.sources.random.next());
    }

    pub(crate) fn on_failure_at(&self, now: Time, random: u64) {
        let mut health = self.health();
        health.on_failure(now, random);
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether calls avoid the server; asks for the time only where that matters.
    pub(crate) fn is_avoided(&self, now: impl FnOnce() -> Time) -> bool {
        self.has_failed.load(Ordering::Relaxed) && self.health().is_avoided(now())
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outstanding {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        server.outstanding.fetch_add(1, Ordering::Relaxed);
        Self(server.clone())
    }

    pub(crate) fn server(&self) -> &Server {
        &self.0
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.outstanding.fetch_sub(1, Ordering::Relaxed);
    }
}
