//! A queue that wakes the driver: connections on which it has to send, datagrams of other engines.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use weir_units::{Duration, Time};

/// What the driver has to handle, and the driver's waker.
pub(crate) struct DriverQueue<T> {
    inner: Mutex<QueueInner<T>>,
}

struct QueueInner<T> {
    items: Vec<T>,
    /// Since when items wait that the driver shares with others.
    since: Option<Time>,
    driver: Option<Waker>,
}

impl<T> Default for DriverQueue<T> {
    fn default() -> Self {
        let inner = QueueInner {
            items: Vec::new(),
            since: None,
            driver: None,
        };
        Self {
            inner: Mutex::new(inner),
        }
    }
}

impl<T> DriverQueue<T> {
    /// Adds an item and wakes the driver.
    pub(crate) fn push(&self, item: T) {
        self.push_within(usize::MAX, item);
    }

    /// Adds an item and wakes the driver, unless `limit` items wait already; returns whether it was
    /// added.
    pub(crate) fn push_within(&self, limit: usize, item: T) -> bool {
        let mut inner = self.lock();
        if inner.items.len() >= limit {
            return false;
        }
        inner.items.push(item);
        let driver = inner.driver.take();
        drop(inner);
        driver.into_iter().for_each(Waker::wake);
        true
    }

    /// Adds an item if the driver is awake; returns whether it is.
    pub(crate) fn push_to_awake(&self, item: impl FnOnce() -> T) -> bool {
        let mut inner = self.lock();
        let is_awake = inner.driver.is_none();
        if is_awake {
            inner.items.push(item());
        }
        is_awake
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        let driver = self.lock().driver.take();
        driver.into_iter().for_each(Waker::wake);
    }

    /// Whether nothing waits for the driver.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// Moves all items to the end of `items`.
    pub(crate) fn take(&self, items: &mut Vec<T>) {
        let mut inner = self.lock();
        inner.since = None;
        items.append(&mut inner.items);
    }

    /// Returns all items where some have waited for as long as `limit`: the driver does not come.
    pub(crate) fn take_late(&self, now: Time, limit: Duration) -> Vec<T> {
        let mut inner = self.lock();
        let since = *inner.since.get_or_insert(now);
        if now.since(since) < limit {
            return Vec::new();
        }
        inner.since = None;
        mem::take(&mut inner.items)
    }

    /// Registers the driver's waker before it sleeps. `false` where the queue is not empty.
    pub(crate) fn sleep(&self, driver: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.items.is_empty() {
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

    fn lock(&self) -> MutexGuard<'_, QueueInner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
