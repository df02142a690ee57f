//! The accept queue: connections from clients, or clients to decide about, until the application takes
//! them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What the application has not taken yet.
pub(crate) struct Incoming<T> {
    waiting: Mutex<VecDeque<T>>,
    arrived: Notify,
    /// Nothing arrives any more.
    has_ended: AtomicBool,
}

impl<T> Default for Incoming<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Notify::new(),
            has_ended: AtomicBool::new(false),
        }
    }
}

impl<T> Incoming<T> {
    /// Adds an arrival; returns it where the queue has ended.
    pub(crate) fn push(&self, arrival: T) -> Option<T> {
        let mut waiting = self.lock();
        if self.has_ended.load(Ordering::Relaxed) {
            return Some(arrival);
        }
        waiting.push_back(arrival);
        drop(waiting);
        self.arrived.notify_one();
        None
    }

    fn pop(&self) -> Option<T> {
        let mut waiting = self.lock();
        let arrival = waiting.pop_front();
        // One notification may stand for several arrivals.
        if !waiting.is_empty() {
            self.arrived.notify_one();
        }
        arrival
    }

    /// Returns the next arrival; `None` once there will be none.
    pub(crate) async fn next(&self) -> Option<T> {
        loop {
            let arrived = self.arrived.notified();
            if let Some(arrival) = self.pop() {
                return Some(arrival);
            }
            if self.has_ended.load(Ordering::Relaxed) {
                // Other tasks may wait for the same notification.
                self.arrived.notify_one();
                return None;
            }
            arrived.await;
        }
    }

    /// Returns what nobody has taken yet.
    pub(crate) fn take_all(&self) -> VecDeque<T> {
        std::mem::take(&mut *self.lock())
    }

    /// Ends the queue; returns what nobody has taken.
    pub(crate) fn end(&self) -> VecDeque<T> {
        let mut waiting = self.lock();
        self.has_ended.store(true, Ordering::Relaxed);
        let untaken = std::mem::take(&mut *waiting);
        drop(waiting);
        self.arrived.notify_waiters();
        self.arrived.notify_one();
        untaken
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
