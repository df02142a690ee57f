//! What an endpoint's handles, its connections and its driver share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use weir_quic::{ConnectionHandle, EndpointEvent};
use weir_sed::Allocator;

use crate::clock::Clock;
use crate::handle::Handle;
use crate::incoming::Incoming;
use crate::link::Link;
use crate::observe::LostEvents;
use crate::queue::Queue;
use crate::routing::Routing;
use crate::sockets::Sockets;
use crate::spin::Spin;
use crate::timers::Timers;

pub(crate) struct Shared {
    pub(crate) sockets: Sockets,
    /// Clients find this endpoint at its addresses.
    pub(crate) is_server: bool,
    /// Changes of the machine's addresses are noticed.
    pub(crate) is_watched: bool,
    pub(crate) clock: Clock,
    pub(crate) timers: Timers,
    pub(crate) queue: Queue<Link>,
    /// Who decides what connections with deadlines may have on their way.
    pub(crate) allocator: Option<Arc<dyn Allocator>>,
    /// Set with the low-latency setting.
    pub(crate) spin: Option<Spin>,
    routing: Mutex<Routing<weir_quic::Endpoint, Link>>,
    pub(crate) incoming: Incoming<Link>,
    /// A handshake is complete: the driver gives way to the application before it sends, so that
    /// the first request leaves in one datagram with the end of the handshake.
    pub(crate) give_way: AtomicBool,
    /// Notified when the last connection is gone.
    pub(crate) idle: Notify,
    /// No connection begins any more.
    pub(crate) shutting_down: AtomicBool,
    /// No [`Endpoint`](crate::Endpoint) is left: the driver ends with the last connection.
    pub(crate) orphaned: AtomicBool,
    pub(crate) counters: Counters,
    /// Counts what qlog files could not take, where they are written.
    pub(crate) lost_events: Option<Arc<LostEvents>>,
}

/// What the driver counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) datagrams: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) unroutable: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        sockets: Sockets,
        timers: Timers,
        spin: Option<Spin>,
        engine: weir_quic::Endpoint,
    ) -> Self {
        Self {
            sockets,
            is_server: false,
            is_watched: false,
            clock: Clock::start(),
            timers,
            queue: Queue::default(),
            spin,
            allocator: None,
            routing: Mutex::new(Routing::new(engine)),
            incoming: Incoming::default(),
            give_way: AtomicBool::new(false),
            idle: Notify::new(),
            shutting_down: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
            counters: Counters::default(),
            lost_events: None,
        }
    }

    /// A leaf lock: no connection is locked under it.
    pub(crate) fn routing(&self) -> MutexGuard<'_, Routing<weir_quic::Endpoint, Link>> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn on_endpoint_event(&self, handle: ConnectionHandle, event: EndpointEvent) {
        let mut routing = self.routing();
        routing.engine.handle_event(handle, event);
        if event == EndpointEvent::Drained && routing.remove(handle.0) {
            self.idle.notify_waiters();
            if self.orphaned.load(Ordering::Relaxed) {
                self.queue.wake();
            }
        }
    }

    /// Takes and begins no connections from now on; those that nobody accepted are closed.
    pub(crate) fn refuse_new(&self) {
        let mut routing = self.routing();
        self.shutting_down.store(true, Ordering::Relaxed);
        routing.engine.set_server(None);
        drop(routing);
        for link in self.incoming.take_all() {
            drop(Handle::new(link));
        }
        self.incoming.arrived.notify_one();
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.sockets.local()
    }
}
