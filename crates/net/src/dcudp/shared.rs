//! What a UDP socket's handles, connections and driver share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use weir_dcudp::{ConnectionHandle, EndpointEvent};

use super::link::Link;
use crate::clock::Clock;
use crate::incoming::Incoming;
use crate::queue::Queue;
use crate::routing::Routing;
use crate::socket::Socket;
use crate::timers::Timers;

pub(super) struct Shared {
    pub(super) socket: Socket,
    pub(super) clock: Clock,
    pub(super) timers: Timers,
    pub(super) queue: Queue<Link>,
    pub(super) incoming: Incoming<Link>,
    routing: Mutex<Routing<weir_dcudp::Endpoint, Link>>,
    /// Notified when the last connection is gone.
    pub(super) idle: Notify,
    /// No connection begins any more.
    pub(super) shutting_down: AtomicBool,
    /// No handle of the socket is left: the driver ends with the last connection.
    pub(super) orphaned: AtomicBool,
}

impl Shared {
    pub(super) fn new(socket: Socket, timers: Timers, engine: weir_dcudp::Endpoint) -> Self {
        Self {
            socket,
            clock: Clock::start(),
            timers,
            queue: Queue::default(),
            incoming: Incoming::default(),
            routing: Mutex::new(Routing::new(engine)),
            idle: Notify::new(),
            shutting_down: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
        }
    }

    /// A leaf lock: no connection is locked under it.
    pub(super) fn routing(&self) -> MutexGuard<'_, Routing<weir_dcudp::Endpoint, Link>> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn on_endpoint_event(&self, handle: ConnectionHandle, event: EndpointEvent) {
        let mut routing = self.routing();
        routing.engine.handle_event(handle, event);
        if routing.remove(handle.0) {
            self.idle.notify_waiters();
            if self.orphaned.load(Ordering::Relaxed) {
                self.queue.wake();
            }
        }
    }

    /// Takes no connections from now on; those that nobody accepted are cut off.
    pub(super) fn refuse_new(&self) {
        self.shutting_down.store(true, Ordering::Relaxed);
        if self.routing().engine.set_server(None).is_err() {
            tracing::error!("a server without settings has none to be wrong");
        }
        for link in self.incoming.take_all() {
            link.leave(false);
        }
        self.incoming.arrived.notify_one();
    }
}
