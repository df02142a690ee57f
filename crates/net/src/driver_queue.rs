//! The queue of connections on which the driver has to send.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Connections on which the driver has something to send, and the driver's waker.
pub(crate) struct SendQueue<L> {
    inner: Mutex<QueueInner<L>>,
}

struct QueueInner<L> {
    connections: Vec<Arc<L>>,
    driver: Option<Waker>,
}

impl<L> Default for SendQueue<L> {
    fn default() -> Self {
        let inner = QueueInner {
            connections: Vec::new(),
            driver: None,
        };
        Self {
            inner: Mutex::new(inner),
        }
    }
}

impl<L> SendQueue<L> {
    /// Adds a connection and wakes the driver.
    pub(crate) fn push(&self, connection: Arc<L>) {
        let mut inner = self.lock();
        inner.connections.push(connection);
        let driver = inner.driver.take();
        drop(inner);
        driver.into_iter().for_each(Waker::wake);
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        let driver = self.lock().driver.take();
        driver.into_iter().for_each(Waker::wake);
    }

    /// Moves the list to the end of `connections`.
    pub(crate) fn take(&self, connections: &mut Vec<Arc<L>>) {
        connections.append(&mut self.lock().connections);
    }

    /// Registers the driver's waker before it sleeps. `false` where the queue is not empty.
    pub(crate) fn sleep(&self, driver: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.connections.is_empty() {
            return false;
        }
        if !inner
            .driver
            .as_ref()
            .is_some_and(|known| known.will_wake(driver))
        {
            inner.driver = Some(driver.clone());
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, QueueInner<L>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
