//! An endpoint's single task: receives, runs timers, and sends what no other task has sent. It is
//! the same for every [`Protocol`].
//!
//! A turn is one receive batch, or several where many connections have something to receive. The driver
//! hands the batch to its connections and wakes the waiting tasks. Then it yields once before it
//! sends: so the application's answer carries the acknowledgment, and mostly leaves from the
//! application's own task.

mod unreachable;

use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use quinn_udp::RecvMeta;
use tokio::runtime::RuntimeFlavor;
use tokio::task::JoinHandle;
use weir_units::Time;
use weir_wire::{BatchContents, Ecn, Transmit};

use crate::buffers::{BATCH, Message, RecvBuffers};
use crate::engines::ForwardedDatagram;
use crate::error_queue::Undelivered;
use crate::protocol::{DatagramMeta, Protocol, Route};
use crate::shared::SharedEndpoint;
use crate::shared_connection::{SendProgress, SharedConnection};
use crate::small_datagrams::SmallDatagrams;
use crate::socket::{Socket, Writable, canonical, ecn_of};
use crate::sockets::OpenSockets;

/// The messages for which expired timers wait while each turn receives a batch or more from all sockets
/// together: a packet among those to read next may be what a timer waits for. A host that stood still for
/// some milliseconds would otherwise probe all of its connections, and answer the probes of all peers,
/// before it reads their ACKs.
const MESSAGES_BEFORE_TIMERS: usize = 64 * BATCH;

/// The most batches of a socket in a turn. With 8 of them, what the tasks of a turn use outgrows the caches: an
/// overloaded pair of hosts makes a tenth fewer calls.
const BATCHES_OF_TURN: usize = 3;
/// A turn that has received a full batch goes on to the next one if at least so many of the batch's messages
/// were the first ones of their connections in this turn. An overloaded host has much to do for each
/// connection that it visits, and the more calls of a connection come together, the fewer visits there are. A
/// single connection's data should be acknowledged meanwhile.
const NEW_CONNECTIONS: usize = BATCH / 4;

/// The most timers that expire in a turn: each may send a probe, which takes as long as to receive. A host
/// with thousands of connections that wait would otherwise do nothing but probe.
const TIMERS_OF_TURN: usize = 32;

pub(crate) struct Driver<P: Protocol> {
    shared: Arc<SharedEndpoint<P, SharedConnection<P>>>,
    /// The interface watch, aborted with this task.
    interface_watch: Option<JoinHandle<()>>,
    buffers: P::Buffers,
    /// Connections of the receive batch.
    touched: Vec<Arc<SharedConnection<P>>>,
    /// Connections that may have something to send.
    pending: Vec<Arc<SharedConnection<P>>>,
    /// The same list while the driver iterates over it.
    sending: Vec<Arc<SharedConnection<P>>>,
    /// What several of them send together.
    small: SmallDatagrams,
    /// Datagrams that other engines received.
    forwarded: Vec<ForwardedDatagram>,
    /// Datagrams that came back.
    undelivered: Vec<Undelivered>,
    due: Vec<usize>,
    /// Messages received since timers were last checked.
    received_without_timers: usize,
    woken: Vec<Waker>,
    /// The open sockets when last checked.
    open: OpenSockets,
    /// Sockets with full send buffers.
    full: Vec<(Arc<Socket>, Writable)>,
    /// When the driver began to poll for a reply instead of sleeping.
    spinning: Option<Time>,
    /// Whether it has woken tasks, and has a last turn before it sleeps.
    lingers: bool,
}

/// What follows a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextStep {
    /// There is more to do.
    Again,
    /// Sleep until the socket, the timer or the application wakes the driver.
    Sleep,
}

impl<P: Protocol> Driver<P> {
    pub(crate) fn new(
        shared: Arc<SharedEndpoint<P, SharedConnection<P>>>,
        watching: Option<JoinHandle<()>>,
    ) -> Self {
        Self {
            shared,
            interface_watch: watching,
            buffers: P::Buffers::default(),
            touched: Vec::new(),
            pending: Vec::new(),
            sending: Vec::new(),
            small: SmallDatagrams::default(),
            forwarded: Vec::new(),
            undelivered: Vec::new(),
            due: Vec::new(),
            received_without_timers: 0,
            woken: Vec::new(),
            open: OpenSockets::default(),
            full: Vec::new(),
            spinning: None,
            lingers: false,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> NextStep {
        self.update_sockets();
        let mut sent_at = None;
        let mut next = self.send(cx, &mut sent_at);
        self.shared.timers.drain_events(cx);
        let (mut received, received_at) = self.receive_all(cx);
        let now = received_at.or(sent_at);
        let now = now.unwrap_or_else(|| self.shared.clock.now());
        received += self.receive_forwarded(now);
        self.handle_undelivered(cx, now);
        if received >= BATCH && self.received_without_timers < MESSAGES_BEFORE_TIMERS {
            self.received_without_timers += received;
        } else {
            self.received_without_timers = 0;
            if self.expire_timers(now) {
                next = NextStep::Again;
            }
        }
        if !self.woken.is_empty() {
            // These tasks run before this one does again, and may send pending data. The runtime
            // queues its tasks in the order of their wake-ups; a future that `block_on` runs, or a
            // waker of another kind, needs the driver to yield, which costs an `epoll_wait`. `send`
            // finds out where that was wrong: the tasks of a `LocalSet` are a future of `block_on`.
            let is_task = |waker: &Waker| waker.vtable() == cx.waker().vtable();
            if !self.woken.iter().all(is_task) {
                self.shared.yield_once.store(true, Ordering::Relaxed);
            }
            self.woken.drain(..).for_each(Waker::wake);
            self.lingers = true;
            return NextStep::Again;
        }
        if received > 0 || self.send(cx, &mut None) == NextStep::Again || !self.woken.is_empty() {
            next = NextStep::Again;
        } else if mem::take(&mut self.lingers) {
            // The tasks that it woke may have woken others, which send in the meantime.
            next = NextStep::Again;
        }
        next
    }

    /// Updates the list of sockets when it has changed.
    fn update_sockets(&mut self) {
        if self.shared.sockets.generation() != self.open.generation {
            self.open = self.shared.sockets.open();
            let open = &self.open.sockets;
            self.full
                .retain(|(full, _)| open.iter().any(|socket| Arc::ptr_eq(socket, full)));
        }
    }

    /// Receives from each socket, and handles what came. Returns the number of messages, and the time of
    /// the last batch.
    fn receive_all(&mut self, cx: &mut Context<'_>) -> (usize, Option<Time>) {
        let open = mem::take(&mut self.open);
        let (mut received, mut now) = (0, None);
        for socket in &open.sockets {
            let (count, last) = self.receive_batches(cx, socket);
            let Some(last) = last else {
                continue;
            };
            received += count;
            now = Some(last);
            self.end_batch(last);
            if open.is_replacement(socket) {
                self.shared.sockets.close_retired();
            }
        }
        self.open = open;
        (received, now)
    }

    /// Receives a batch from a socket, or several of them. Returns the number of messages, and the time of
    /// the last batch.
    fn receive_batches(&mut self, cx: &mut Context<'_>, socket: &Socket) -> (usize, Option<Time>) {
        let (mut received, mut now) = (0, None);
        for _ in 0..BATCHES_OF_TURN {
            let count = self.receive(cx, socket);
            if count == 0 {
                break;
            }
            received += count;
            let touched = self.touched.len();
            let time = *now.insert(self.shared.clock.now());
            let datagrams = self.handle(time, socket, count, P::route);
            let counters = &self.shared.counters;
            counters.datagrams.fetch_add(datagrams, Ordering::Relaxed);
            counters.batches.fetch_add(1, Ordering::Relaxed);
            if count < BATCH || self.touched.len() < touched + NEW_CONNECTIONS {
                break;
            }
        }
        (received, now)
    }

    /// Receives one batch; returns the number of messages.
    fn receive(&mut self, cx: &mut Context<'_>, socket: &Socket) -> usize {
        if self.spinning.is_some() {
            return socket.receive_now(&mut self.buffers);
        }
        match socket.poll_receive(cx, &mut self.buffers) {
            Poll::Ready(Ok(count)) => count,
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "receiving failed");
                cx.waker().wake_by_ref();
                0
            }
            Poll::Pending => 0,
        }
    }

    /// Handles what other engines have received for this one; returns the number of datagrams.
    fn receive_forwarded(&mut self, now: Time) -> usize {
        let Some(inbox) = self.shared.engines.inbox() else {
            return 0;
        };
        inbox.take(&mut self.forwarded);
        let (open, mut forwarded) = (mem::take(&mut self.open), mem::take(&mut self.forwarded));
        let count = forwarded.len();
        for datagram in forwarded.drain(..) {
            let mut sockets = open.sockets.iter();
            let Some(socket) = sockets.find(|socket| socket.local == datagram.socket) else {
                continue;
            };
            self.buffers.set_message(datagram.meta, &datagram.contents);
            let route = if datagram.is_reset {
                P::route_reset
            } else {
                P::route
            };
            let datagrams = self.handle(now, socket, 1, route);
            self.end_batch(now);
            (self.shared.counters.forwarded).fetch_add(datagrams, Ordering::Relaxed);
        }
        self.forwarded = forwarded;
        self.open = open;
        count
    }

    /// Hands the first `count` messages to their connections, which `find_route` finds; returns the
    /// number of datagrams in them. [`Self::end_batch`] ends the batch for the connections.
    fn handle(
        &mut self,
        now: Time,
        socket: &Socket,
        count: usize,
        find_route: FindRoute<P>,
    ) -> u64 {
        let Self {
            shared,
            buffers,
            touched,
            ..
        } = self;
        let mut datagrams_seen = 0;
        let mut known: Option<(P::Key, Arc<SharedConnection<P>>)> = None;
        for (meta, mut rest) in buffers.messages(count) {
            let arrival = DatagramMeta {
                remote: canonical(meta.addr),
                local: socket.local_of(&meta),
                ecn: ecn_of(&meta),
            };
            let stride = meta.stride.max(1);
            while !rest.as_ref().is_empty() {
                let mut datagram = rest.take(stride);
                datagrams_seen += 1;
                let key = P::key(&arrival, datagram.as_ref());
                let found = match (&known, key) {
                    (Some((known, connection)), Some(key)) if *known == key => {
                        RoutedDatagram::To(connection.clone())
                    }
                    _ => {
                        let received = Received {
                            socket,
                            meta: &meta,
                            arrival: &arrival,
                        };
                        received.route(shared, now, datagram.as_mut(), find_route)
                    }
                };
                let (connection, first) = match found {
                    RoutedDatagram::To(connection) => (connection, Some(datagram)),
                    RoutedDatagram::New(connection) => (connection, None),
                    RoutedDatagram::Nowhere => continue,
                };
                // Datagrams that GRO joined mostly belong to one connection.
                let following = std::iter::from_fn(|| {
                    let next = rest.as_ref();
                    let next = next.get(..stride).unwrap_or(next);
                    if key.is_none() || P::key(&arrival, next) != key {
                        return None;
                    }
                    datagrams_seen += 1;
                    Some(rest.take(stride))
                });
                let datagrams = first.into_iter().chain(following);
                if connection.handle_datagrams(now, &arrival, datagrams) {
                    touched.push(connection.clone());
                }
                if let Some(key) = key {
                    known = Some((key, connection));
                }
            }
        }
        datagrams_seen
    }

    /// Ends the receive batch of the connections that had part in it.
    fn end_batch(&mut self, now: Time) {
        let Self {
            touched,
            pending,
            woken,
            ..
        } = self;
        for connection in touched.drain(..) {
            let mut locked = connection.lock_at(Some(now));
            locked.end_batch();
            if locked.mark_queued() {
                pending.push(connection.clone());
            }
            locked.settle_into(woken);
        }
    }

    /// Handles expired timers; returns whether there are more.
    fn expire_timers(&mut self, now: Time) -> bool {
        let Self {
            shared,
            due,
            pending,
            woken,
            ..
        } = self;
        if !shared.timers.is_due(now) {
            return false;
        }
        shared.timers.expire(now, TIMERS_OF_TURN, due);
        for index in due.drain(..) {
            let connection = shared.routing().connection(index).cloned();
            let Some(connection) = connection else {
                continue;
            };
            let mut locked = connection.lock_at(Some(now));
            locked.on_timer();
            if locked.mark_queued() {
                pending.push(connection.clone());
            }
            locked.settle_into(woken);
        }
        shared.timers.is_due(now)
    }

    /// Sends pending data of connections that had an event; sets `sent_at` to the time if there are
    /// any.
    fn send(&mut self, cx: &mut Context<'_>, sent_at: &mut Option<Time>) -> NextStep {
        let Self {
            shared,
            pending,
            sending,
            small,
            woken,
            open,
            full,
            ..
        } = self;
        shared.queue.take(pending);
        if pending.is_empty() {
            return NextStep::Sleep;
        }
        full.retain(|(_, writable)| writable.poll(cx).is_pending());
        if !full.is_empty() && full.len() == open.sockets.len() {
            return NextStep::Sleep;
        }
        mem::swap(pending, sending);
        let now = *sent_at.insert(shared.clock.now());
        let mut next = NextStep::Sleep;
        for connection in sending.drain(..) {
            let mut locked = connection.lock_to_send(Some(now));
            if locked
                .waits_for()
                .is_some_and(|socket| is_full(full, socket))
            {
                drop(locked);
                pending.push(connection);
                continue;
            }
            if locked.take_awaits_tasks() {
                drop(locked);
                shared.yield_once.store(true, Ordering::Relaxed);
                pending.push(connection);
                next = NextStep::Again;
                continue;
            }
            if locked.take_awaits_answers() {
                drop(locked);
                pending.push(connection);
                next = NextStep::Again;
                continue;
            }
            locked.mark_taken();
            let progress = locked.transmit_changes(small);
            if progress != SendProgress::Done {
                locked.mark_queued();
                pending.push(connection.clone());
            }
            if progress == SendProgress::More {
                next = NextStep::Again;
            }
            let blocked = locked.waits_for().cloned();
            locked.settle_into(woken);
            let blocked = blocked.filter(|socket| !is_full(full, socket));
            if let Some(socket) = blocked {
                match Writable::new(&socket) {
                    Ok(waiting) if waiting.poll(cx).is_pending() => full.push((socket, waiting)),
                    Ok(_) => next = NextStep::Again,
                    Err(error) => {
                        tracing::error!(%error, "cannot wait for room in a socket's send buffer");
                        next = NextStep::Again;
                    }
                }
            }
        }
        small.flush(&shared.sockets);
        next
    }

    /// Whether to poll on for an expected reply instead of sleeping, if the endpoint is set to.
    fn keep_polling(&mut self) -> bool {
        let Some(spin) = &self.shared.spin else {
            return false;
        };
        let now = self.shared.clock.now();
        let since = self.spinning.take();
        if let Some(since) = since {
            spin.add_spent(now.since(since));
        }
        if spin.is_on(now) {
            if since.is_some() {
                rustix::thread::sched_yield();
            }
            self.spinning = Some(now);
            return true;
        }
        // The last poll of the socket did not register a waker for this task.
        since.is_some()
    }

    fn is_finished(&self) -> bool {
        self.shared.handles_dropped.load(Ordering::Relaxed) && self.shared.routing().open == 0
    }
}

impl<P: Protocol> Future for Driver<P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        driver.shared.timers.wake();
        // The order matters: events after `sleep` wake this task.
        let again = driver.turn(cx) == NextStep::Again
            || !driver.shared.queue.sleep(cx.waker())
            || !(driver.shared.engines.inbox()).is_none_or(|inbox| inbox.sleep(cx.waker()))
            || driver.shared.sockets.generation() != driver.open.generation
            || driver.keep_polling();
        let yields = again && driver.shared.yield_once.swap(false, Ordering::Relaxed);
        if yields && is_runtime_of_one_thread() {
            // Every task runs before this one does again, including that of `block_on`.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
        } else if again {
            cx.waker().wake_by_ref();
        } else if driver.is_finished() {
            return Poll::Ready(());
        } else {
            driver.shared.timers.sleep();
        }
        Poll::Pending
    }
}

impl<P: Protocol> Drop for Driver<P> {
    /// The runtime may end before the connections do.
    fn drop(&mut self) {
        if let Some(watching) = &self.interface_watch {
            watching.abort();
        }
        let connections = self.shared.routing().take_all();
        for connection in connections {
            connection.abandon();
        }
        P::on_endpoint_ended(&self.shared);
        self.shared.shutting_down.store(true, Ordering::Relaxed);
        self.shared.engines.incoming.end();
        self.shared.idle.notify_waiters();
    }
}

/// Whether all tasks share a thread. With several, a task that yields stays with its thread until that
/// is out of work, and a task woken by itself goes on wherever a thread is free.
pub(crate) fn is_runtime_of_one_thread() -> bool {
    let runtime = tokio::runtime::Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread)
}

/// Whether a socket waits for send buffer space already.
fn is_full(full: &[(Arc<Socket>, Writable)], socket: &Arc<Socket>) -> bool {
    full.iter().any(|(known, _)| Arc::ptr_eq(known, socket))
}

/// The destination of a datagram.
enum RoutedDatagram<P: Protocol> {
    To(Arc<SharedConnection<P>>),
    New(Arc<SharedConnection<P>>),
    Nowhere,
}

/// Finds the destination of a datagram.
type FindRoute<P> = fn(
    &mut <P as Protocol>::Endpoint,
    Time,
    &DatagramMeta,
    &mut [u8],
) -> Route<<P as Protocol>::Engine, <P as Protocol>::Undecided>;

/// A received datagram, without its contents.
struct Received<'d> {
    socket: &'d Socket,
    meta: &'d RecvMeta,
    arrival: &'d DatagramMeta,
}

impl Received<'_> {
    /// Finds its destination, and does what else its route says.
    fn route<P: Protocol>(
        &self,
        shared: &Arc<SharedEndpoint<P, SharedConnection<P>>>,
        now: Time,
        contents: &mut [u8],
        find_route: FindRoute<P>,
    ) -> RoutedDatagram<P> {
        let mut routing = shared.routing();
        let route = find_route(&mut routing.engine, now, self.arrival, contents);
        let is_routable = match route {
            Route::Connection(index) => match routing.connection(index) {
                Some(connection) => return RoutedDatagram::To(connection.clone()),
                None => true,
            },
            Route::New(index, engine) => {
                let connection = SharedConnection::new(index, shared.clone(), engine);
                let connection = routing.insert(index, connection);
                let open = routing.open;
                drop(routing);
                shared.sockets.make_room(open);
                // Where nobody accepts any more, those who end the endpoint find it in the table.
                drop(shared.engines.incoming.push(connection.clone()));
                return RoutedDatagram::New(connection);
            }
            Route::Undecided(undecided) => {
                drop(routing);
                P::on_undecided(shared, undecided);
                true
            }
            Route::Kept => true,
            Route::Reply(reply) => {
                drop(routing);
                self.reply(&reply);
                true
            }
            Route::Engine(engine) => {
                drop(routing);
                let socket = self.socket.local;
                (shared.engines).forward(engine, socket, self.meta, contents)
            }
            Route::EveryEngine(reply) => {
                drop(routing);
                let socket = self.socket.local;
                shared.engines.offer_reset(socket, self.meta, contents);
                self.reply(&reply);
                true
            }
            Route::Draining => true,
            Route::Drop => false,
        };
        if !is_routable {
            shared.counters.unroutable.fetch_add(1, Ordering::Relaxed);
        }
        RoutedDatagram::Nowhere
    }

    /// Answers it without a connection.
    fn reply(&self, reply: &[u8]) {
        let transmit = Transmit {
            remote: self.arrival.remote,
            local: self.arrival.local,
            ecn: Ecn::NotEct,
            size: reply.len(),
            segment_size: None,
        };
        if (self.socket)
            .send(&transmit, &BatchContents::Whole(reply))
            .is_err()
        {
            tracing::debug!(remote = %self.arrival.remote, "a stateless reply could not be sent");
        }
    }
}
