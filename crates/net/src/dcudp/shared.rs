//! What a UDP socket's handles, connections and driver share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use weir_dcudp::{Connection as Engine, ConnectionHandle, EndpointEvent};

use super::link::Link;
use crate::clock::Clock;
use crate::incoming::Incoming;
use crate::queue::Queue;
use crate::socket::Socket;
use crate::timers::Timers;

pub(super) struct Shared {
    pub(super) socket: Socket,
    pub(super) clock: Clock,
    pub(super) timers: Timers,
    pub(super) queue: Queue<Link>,
    pub(super) incoming: Incoming<Link>,
    routing: Mutex<Routing>,
    /// Notified when the last connection is gone.
    pub(super) idle: Notify,
    /// No connection begins any more.
    pub(super) shutting_down: AtomicBool,
    /// No handle of the socket is left: the driver ends with the last connection.
    pub(super) orphaned: AtomicBool,
}

/// Which connection a datagram belongs to.
pub(super) struct Routing {
    pub(super) engine: weir_dcudp::Endpoint,
    links: Vec<Option<Arc<Link>>>,
    open: usize,
}

impl Routing {
    pub(super) fn link(&self, handle: ConnectionHandle) -> Option<&Arc<Link>> {
        self.links.get(handle.0)?.as_ref()
    }

    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Keeps a new connection.
    pub(super) fn insert(
        &mut self,
        handle: ConnectionHandle,
        shared: &Arc<Shared>,
        engine: Engine,
    ) -> Arc<Link> {
        let link = Arc::new(Link::new(handle, shared.clone(), engine));
        if self.links.len() <= handle.0 {
            self.links.resize_with(handle.0 + 1, || None);
        }
        self.links[handle.0] = Some(link.clone());
        self.open += 1;
        link
    }

    pub(super) fn take_all(&mut self) -> Vec<Arc<Link>> {
        self.open = 0;
        self.links.drain(..).flatten().collect()
    }
}

impl Shared {
    pub(super) fn new(socket: Socket, timers: Timers, engine: weir_dcudp::Endpoint) -> Self {
        Self {
            socket,
            clock: Clock::start(),
            timers,
            queue: Queue::default(),
            incoming: Incoming::default(),
            routing: Mutex::new(Routing {
                engine,
                links: Vec::new(),
                open: 0,
            }),
            idle: Notify::new(),
            shutting_down: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
        }
    }

    /// A leaf lock: no connection is locked under it.
    pub(super) fn routing(&self) -> MutexGuard<'_, Routing> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn on_endpoint_event(&self, handle: ConnectionHandle, event: EndpointEvent) {
        let mut routing = self.routing();
        routing.engine.handle_event(handle, event);
        let gone = routing.links.get_mut(handle.0).and_then(Option::take);
        if gone.is_none() {
            return;
        }
        routing.open -= 1;
        if routing.open == 0 {
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
