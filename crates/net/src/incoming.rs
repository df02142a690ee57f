//! The accept queue: connections from clients, until the application accepts them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Connections from clients that the application has not accepted yet.
pub(crate) struct Incoming<L> {
    waiting: Mutex<VecDeque<Arc<L>>>,
    pub(crate) arrived: Notify,
}

impl<L> Default for Incoming<L> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Notify::new(),
        }
    }
}

impl<L> Incoming<L> {
    pub(crate) fn push(&self, connection: Arc<L>) {
        self.lock().push_back(connection);
        self.arrived.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<Arc<L>> {
        let mut waiting = self.lock();
        let connection = waiting.pop_front();
        // One notification may stand for several arrivals.
        if !waiting.is_empty() {
            self.arrived.notify_one();
        }
        connection
    }

    pub(crate) fn take_all(&self) -> VecDeque<Arc<L>> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<L>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
