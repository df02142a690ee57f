//! The state shared by an endpoint's handles, its connections and its driver.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use weir_units::Duration;

use crate::clock::Clock;
use crate::driver_queue::DriverQueue;
use crate::engines::Engines;
use crate::error::DeadlinePassed;
use crate::protocol::Protocol;
use crate::routing::Routing;
use crate::sockets::Sockets;
use crate::spin::Spin;
use crate::timers::Timers;

/// An engine of an endpoint, mostly its only one: protocol `P`, with connections of type `L`.
pub(crate) struct SharedEndpoint<P: Protocol, L> {
    pub(crate) sockets: Sockets,
    pub(crate) clock: Clock,
    pub(crate) timers: Timers,
    /// Connections on which the driver has to send.
    pub(crate) queue: DriverQueue<Arc<L>>,
    /// Set with the low-latency setting.
    pub(crate) spin: Option<Spin>,
    pub(crate) settings: P::Settings,
    routing: Mutex<Routing<P::Endpoint, L>>,
    pub(crate) engines: Engines<L>,
    /// Set when tasks were woken or a handshake completes: the driver yields to the application
    /// before it sends, so that a request leaves in one datagram with what is due anyway.
    pub(crate) yield_once: AtomicBool,
    /// Notified when the last connection is gone.
    pub(crate) idle: Notify,
    /// No connection begins any more.
    pub(crate) shutting_down: AtomicBool,
    /// No handle of the endpoint is left: the driver ends with the last connection.
    pub(crate) handles_dropped: AtomicBool,
    pub(crate) counters: DriverCounters,
}

/// The counters of the driver, and of its connections.
#[derive(Debug, Default)]
pub(crate) struct DriverCounters {
    pub(crate) datagrams: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) unroutable: AtomicU64,
    pub(crate) forwarded: AtomicU64,
    /// Calls whose handler panicked.
    pub(crate) failed_calls: AtomicU64,
}

impl<P: Protocol, L> SharedEndpoint<P, L> {
    pub(crate) fn new(
        sockets: Sockets,
        clock: Clock,
        timers: Timers,
        spin: Option<Spin>,
        settings: P::Settings,
        endpoint: P::Endpoint,
        engines: Engines<L>,
    ) -> Self {
        Self {
            sockets,
            clock,
            timers,
            queue: DriverQueue::default(),
            spin,
            settings,
            routing: Mutex::new(Routing::new(endpoint)),
            engines,
            yield_once: AtomicBool::new(false),
            idle: Notify::new(),
            shutting_down: AtomicBool::new(false),
            handles_dropped: AtomicBool::new(false),
            counters: DriverCounters::default(),
        }
    }

    /// Locks the routing table. A leaf lock: no connection is locked under it.
    pub(crate) fn routing(&self) -> MutexGuard<'_, Routing<P::Endpoint, L>> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event of a connection's engine.
    pub(crate) fn on_endpoint_event(&self, index: usize, event: P::EndpointEvent) {
        let mut routing = self.routing();
        P::on_endpoint_event(&mut routing.engine, index, event);
        if P::is_last(event) && routing.remove(index) {
            self.idle.notify_waiters();
            if self.handles_dropped.load(Ordering::Relaxed) {
                self.queue.wake();
            }
        }
    }

    /// Returns the next connection from a client; `None` once there will be none.
    pub(crate) async fn accept(&self) -> Option<Arc<L>> {
        self.engines.incoming.next().await
    }

    /// Accepts and starts no connections of this engine from now on. Returns those not accepted yet, to
    /// be closed. Once no engine accepts any, [`Incoming::end`](crate::incoming::Incoming::end) tells
    /// the tasks that wait for one.
    pub(crate) fn refuse_new(&self) -> VecDeque<Arc<L>> {
        let mut routing = self.routing();
        self.shutting_down.store(true, Ordering::Relaxed);
        P::stop_serving(&mut routing.engine);
        drop(routing);
        self.engines.incoming.take_all()
    }

    /// Waits until no connection is left.
    pub(crate) async fn become_idle(&self) {
        loop {
            let changed = self.idle.notified();
            if self.routing().open == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no connection is left, or for `limit` at most.
    pub(crate) async fn wait_idle(&self, limit: Duration) -> Result<(), DeadlinePassed> {
        let waited = tokio::time::timeout(limit.into(), self.become_idle()).await;
        waited.map_err(|_| DeadlinePassed)
    }

    /// Marks the endpoint as without handles: the driver ends with the last connection.
    pub(crate) fn on_last_handle_dropped(&self) {
        self.handles_dropped.store(true, Ordering::Relaxed);
        self.queue.wake();
    }
}
