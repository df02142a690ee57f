//! A socket's one task: receives, keeps time, and sends what nobody else has sent.
//!
//! A turn is one receive batch. What arrived is handed to its connections and the tasks that wait for
//! it are woken before anything is sent. It sleeps until the socket, the timer or the application
//! says that there is more.

use std::future::Future;
use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use weir_dcudp::Route;
use weir_units::Time;
use weir_wire::{Ecn, Transmit};

use super::landing::OwnedBuffers;
use super::link::{Link, Progress};
use super::shared::Shared;
use crate::socket::{Writable, ecn_of};

pub(super) struct Driver {
    shared: Arc<Shared>,
    buffers: OwnedBuffers,
    /// Connections of the receive batch.
    touched: Vec<Arc<Link>>,
    /// Connections that may have something to send.
    pending: Vec<Arc<Link>>,
    /// The same list while it is gone through.
    sending: Vec<Arc<Link>>,
    due: Vec<(Time, usize)>,
    woken: Vec<Waker>,
    /// While the socket's send buffer is full.
    full: Option<Writable>,
}

/// What comes after a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// There is more to do.
    Again,
    /// Nothing until the socket, the timer or the application says so.
    Sleep,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            buffers: OwnedBuffers::new(),
            touched: Vec::new(),
            pending: Vec::new(),
            sending: Vec::new(),
            due: Vec::new(),
            woken: Vec::new(),
            full: None,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Next {
        let mut next = self.send(cx);
        self.shared.timers.hear(cx);
        let received = self.receive(cx);
        let now = self.shared.clock.now();
        self.handle(now, received);
        self.keep_time(now);
        if !self.woken.is_empty() {
            // They run before this task does again, and may send what is pending.
            self.woken.drain(..).for_each(Waker::wake);
            return Next::Again;
        }
        if received > 0 || self.send(cx) == Next::Again || !self.woken.is_empty() {
            next = Next::Again;
        }
        next
    }

    /// Receives one batch; gives the number of messages.
    fn receive(&mut self, cx: &mut Context<'_>) -> usize {
        match self.shared.socket.poll_receive(cx, &mut self.buffers) {
            Poll::Ready(Ok(count)) => count,
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "receiving failed");
                cx.waker().wake_by_ref();
                0
            }
            Poll::Pending => 0,
        }
    }

    /// Hands the first `count` messages to their connections.
    fn handle(&mut self, now: Time, count: usize) {
        let Self {
            shared,
            buffers,
            touched,
            pending,
            woken,
            ..
        } = self;
        // Datagrams that follow each other mostly belong to one connection.
        let mut known: Option<(SocketAddr, [u8; 4], Arc<Link>)> = None;
        for (meta, mut rest) in buffers.take(count) {
            let (remote, ecn) = (meta.addr, ecn_of(&meta));
            let local = shared.socket.local_of(&meta);
            let stride = meta.stride.max(1);
            while !rest.is_empty() {
                let datagram = next(&mut rest, stride);
                let name = name_of(&datagram);
                let (link, is_new) = match &known {
                    Some((from, known, link)) if *from == remote && name == Some(*known) => {
                        (link.clone(), false)
                    }
                    _ => match route(shared, now, remote, local, &datagram) {
                        Routed::To(link) => (link, false),
                        Routed::New(link) => (link, true),
                        Routed::Nowhere => continue,
                    },
                };
                let mut core = link.lock();
                if !is_new {
                    core.engine.handle_datagram(now, remote, ecn, datagram);
                }
                while name.is_some() && name_of(rest.get(..stride).unwrap_or(&rest)) == name {
                    let datagram = next(&mut rest, stride);
                    core.engine.handle_datagram(now, remote, ecn, datagram);
                }
                if core.enter_batch() {
                    touched.push(link.clone());
                }
                drop(core);
                known = name.map(|name| (remote, name, link));
            }
        }
        for link in touched.drain(..) {
            let mut core = link.lock();
            core.end_batch();
            if core.mark_queued() {
                pending.push(link.clone());
            }
            link.settle(core, now, woken);
        }
    }

    /// Does what the time has come for.
    fn keep_time(&mut self, now: Time) {
        let Self {
            shared,
            due,
            pending,
            woken,
            ..
        } = self;
        if !shared.timers.is_due(now) {
            return;
        }
        shared.timers.expire(now, due);
        for (deadline, index) in due.drain(..) {
            let link = shared.routing().link(index).cloned();
            let Some(link) = link else { continue };
            let mut core = link.lock();
            link.on_timer(&mut core, deadline, now);
            if core.mark_queued() {
                pending.push(link.clone());
            }
            link.settle(core, now, woken);
        }
    }

    /// Sends what waits on the connections that had something happen to them.
    fn send(&mut self, cx: &mut Context<'_>) -> Next {
        self.shared.queue.take(&mut self.pending);
        if self.pending.is_empty() {
            return Next::Sleep;
        }
        if let Some(full) = &self.full {
            if full.poll(cx).is_pending() {
                return Next::Sleep;
            }
            self.full = None;
        }
        mem::swap(&mut self.pending, &mut self.sending);
        let now = self.shared.clock.now();
        let mut next = Next::Sleep;
        for link in self.sending.drain(..) {
            let mut core = link.lock();
            core.mark_taken();
            let progress = link.transmit(&mut core, now);
            if progress != Progress::Done {
                core.mark_queued();
                self.pending.push(link.clone());
            }
            if progress == Progress::More {
                next = Next::Again;
            }
            let is_blocked = core.is_blocked();
            link.settle(core, now, &mut self.woken);
            if is_blocked && self.full.is_none() {
                match Writable::new(&self.shared.socket) {
                    Ok(waiting) if waiting.poll(cx).is_pending() => self.full = Some(waiting),
                    Ok(_) => next = Next::Again,
                    Err(error) => {
                        tracing::error!(%error, "cannot wait for room in a socket's send buffer");
                        next = Next::Again;
                    }
                }
            }
        }
        next
    }

    fn is_finished(&self) -> bool {
        self.shared.orphaned.load(Ordering::Relaxed) && self.shared.routing().open() == 0
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        driver.shared.timers.wake();
        // In this order: what is said after `sleep` wakes this task.
        if driver.turn(cx) == Next::Again || !driver.shared.queue.sleep(cx.waker()) {
            cx.waker().wake_by_ref();
        } else if driver.is_finished() {
            return Poll::Ready(());
        } else {
            driver.shared.timers.sleep(|| driver.shared.clock.now());
        }
        Poll::Pending
    }
}

impl Drop for Driver {
    /// The runtime may end before the connections do.
    fn drop(&mut self) {
        let links = self.shared.routing().take_all();
        for link in links {
            link.abandon();
        }
        self.shared.shutting_down.store(true, Ordering::Relaxed);
        self.shared.incoming.take_all();
        self.shared.incoming.arrived.notify_waiters();
        self.shared.idle.notify_waiters();
    }
}

/// Where a datagram belongs.
enum Routed {
    To(Arc<Link>),
    New(Arc<Link>),
    Nowhere,
}

fn route(
    shared: &Arc<Shared>,
    now: Time,
    remote: SocketAddr,
    local: Option<SocketAddr>,
    datagram: &[u8],
) -> Routed {
    let mut routing = shared.routing();
    match routing.engine.route(now, remote, local, datagram) {
        Route::Connection(handle) => match routing.link(handle.0) {
            Some(link) => Routed::To(link.clone()),
            None => Routed::Nowhere,
        },
        Route::New(handle, engine) => {
            let link = routing.insert(handle.0, Link::new(handle, shared.clone(), *engine));
            drop(routing);
            shared.incoming.push(link.clone());
            Routed::New(link)
        }
        Route::Reply(reply) => {
            drop(routing);
            let transmit = Transmit {
                remote,
                local,
                ecn: Ecn::NotEct,
                size: reply.len(),
                segment_size: None,
            };
            if shared.socket.send(&transmit, &reply).is_err() {
                tracing::debug!(%remote, "a stateless reply could not be sent");
            }
            Routed::Nowhere
        }
        Route::Drop => Routed::Nowhere,
    }
}

/// The name in a packet of the connection that it is for; zero names none.
fn name_of(datagram: &[u8]) -> Option<[u8; 4]> {
    let name = datagram.get(12..16)?.first_chunk().copied()?;
    (name != [0; 4]).then_some(name)
}

/// Takes the next datagram of a batch.
fn next(rest: &mut BytesMut, stride: usize) -> BytesMut {
    rest.split_to(stride.min(rest.len()))
}
