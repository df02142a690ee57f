//! A connection shared by driver and application: the protocol's state behind a lock.
//!
//! The holder of the lock may send: a write leaves from the task that made it, without waiting for
//! the driver's. [`SharedConnection::lock`] returns a [`WriteGuard`], which passes on the engine's
//! events and sets the timer on drop; [`SharedConnection::peek`] is for reading. Locks are taken in
//! this order: a connection's, then one of the endpoint's (routing, timers, queue), which are
//! leaves. No lock is held across an `await`, and tasks are woken after it is released.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use weir_units::{Duration, Time};
use weir_wire::{BatchContents, Transmit};

use crate::buffers::RecvBuffers;
use crate::clock::LazyNow;
use crate::driver::is_runtime_of_one_thread;
use crate::protocol::{DatagramMeta, Protocol};
use crate::shared::SharedEndpoint;
use crate::small_datagrams::SmallDatagrams;
use crate::socket::{SendError, Socket};
use crate::sockets::{SendSocket, Sockets};

/// Written data are sent in batches of this many bytes, as long as more may follow.
const FULL_BATCH: usize = 64 * 1024;
/// A message waits for others that leave with it for this long at most. Where calls take long to execute,
/// the peer would else stand still until the last answer of a batch, and this host until the next batch. A
/// batch costs both hosts some 20 µs of system calls.
const LONGEST_WAIT: Duration = Duration::from_micros(150);
/// Batches of one connection that are sent before the next connection's turn.
const TURN: usize = 16;

thread_local! {
    /// The buffer for batches. One per thread, as it is in use only while a lock is held.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection behind its lock.
pub(crate) struct SharedConnection<P: Protocol> {
    index: usize,
    pub(crate) shared: Arc<SharedEndpoint<P, Self>>,
    inner: Mutex<LockedState<P>>,
}

/// The state behind the lock.
struct LockedState<P> {
    connection: P,
    /// The socket by which packets leave.
    send_socket: SendSocket,
    /// A batch that found the socket full.
    unsent: Option<(Transmit, Vec<u8>)>,
    /// Bytes written since everything was last sent.
    corked: usize,
    /// Whether the connection is in the driver's queue.
    queued: bool,
    /// Whether nothing has changed since all that can be sent was sent.
    is_flushed: bool,
    /// Whether it is part of the current receive batch.
    in_batch: bool,
    /// Whether a task has ended a message, and sent it, since the last receive batch.
    has_sent_message: bool,
    /// The messages that the last receive batch with any has brought, less those sent since.
    answers_awaited: u64,
    /// Since when a message waits for others.
    waits_since: Option<Time>,
    /// Whether the driver has woken tasks that have not come since.
    awaits_tasks: bool,
    /// Whether the driver leaves the first answers to the messages of the last receive batch another turn.
    awaits_answers: bool,
    /// Whether it counts among the connections with an expected reply.
    reply_due: bool,
    /// When the endpoint's timers fire for it; [`Time::MAX`] for never.
    deadline: Time,
    /// Whether the endpoint has forgotten the connection.
    is_removed: bool,
}

/// The result of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    /// Nothing is left to send now.
    Done,
    /// More is left, but the turn is over.
    More,
    /// The socket is full.
    Blocked,
}

/// The socket is full.
struct SocketBlocked;

impl<P: Protocol> SharedConnection<P> {
    pub(crate) fn new(
        index: usize,
        shared: Arc<SharedEndpoint<P, Self>>,
        engine: Box<P::Engine>,
    ) -> Self {
        let inner = LockedState {
            connection: P::new(engine),
            send_socket: SendSocket::default(),
            unsent: None,
            corked: 0,
            queued: false,
            is_flushed: false,
            in_batch: false,
            has_sent_message: false,
            answers_awaited: 0,
            waits_since: None,
            awaits_tasks: false,
            awaits_answers: false,
            reply_due: false,
            deadline: Time::MAX,
            is_removed: false,
        };
        Self {
            index,
            shared,
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, LockedState<P>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the connection for changes by the application.
    pub(crate) fn lock(self: &Arc<Self>) -> WriteGuard<'_, P> {
        let mut locked = self.lock_at(None);
        locked.inner.awaits_tasks = false;
        locked
    }

    /// As [`Self::lock`], for changes after which there is no more to send than before.
    pub(crate) fn lock_to_forget(self: &Arc<Self>) -> WriteGuard<'_, P> {
        let mut locked = self.lock_to_send(None);
        locked.inner.awaits_tasks = false;
        locked
    }

    /// Locks the connection at a known time, for the driver.
    pub(crate) fn lock_at(self: &Arc<Self>, now: Option<Time>) -> WriteGuard<'_, P> {
        let mut locked = self.lock_to_send(now);
        locked.inner.is_flushed = false;
        locked
    }

    /// Locks the connection at a known time, for the driver to send what has changed before.
    pub(crate) fn lock_to_send(self: &Arc<Self>, now: Option<Time>) -> WriteGuard<'_, P> {
        WriteGuard {
            connection: self,
            now: self.shared.clock.lazy_now(now),
            inner: self.inner(),
            woken: WakeOnDrop::default(),
            is_settled: false,
        }
    }

    /// Locks the connection for reading.
    pub(crate) fn peek(&self) -> impl Deref<Target = P> {
        ReadGuard(self.inner())
    }

    /// Passes datagrams of a receive batch to the engine; returns `true` for the batch's first.
    /// [`WriteGuard::end_batch`] ends the batch.
    pub(crate) fn handle_datagrams<'b>(
        &self,
        now: Time,
        arrival: &DatagramMeta,
        datagrams: impl Iterator<Item = <P::Buffers as RecvBuffers>::ReceivedBatch<'b>>,
    ) -> bool {
        let mut inner = self.inner();
        for datagram in datagrams {
            inner.connection.handle_datagram(now, arrival, datagram);
        }
        !mem::replace(&mut inner.in_batch, true)
    }

    /// Sends what the driver was to send, unless another thread has the connection; returns whether nothing is
    /// left.
    fn send_queued(self: &Arc<Self>, now: Time) -> bool {
        let Ok(inner) = self.inner.try_lock() else {
            return false;
        };
        let mut locked = WriteGuard {
            connection: self,
            now: self.shared.clock.lazy_now(Some(now)),
            inner,
            woken: WakeOnDrop::default(),
            is_settled: false,
        };
        locked.mark_taken();
        let is_done = locked.transmit(None) == SendProgress::Done;
        if !is_done {
            locked.mark_queued();
        }
        is_done
    }

    /// Closes a connection that was not accepted.
    pub(crate) fn close_unused(self: &Arc<Self>) {
        let mut locked = self.lock();
        let now = locked.now();
        if locked.close_unused(now) {
            locked.send();
        }
    }

    /// Ends the connection after its driver: it makes no progress any more.
    pub(crate) fn abandon(&self) {
        let mut woken = WakeOnDrop::default();
        self.inner().connection.on_driver_ended(&mut woken.0);
    }
}

/// A read lock on a connection.
struct ReadGuard<'l, P>(MutexGuard<'l, LockedState<P>>);

impl<P> Deref for ReadGuard<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0.connection
    }
}

/// A write lock on a connection. On drop, the engine's events are passed to the waiting tasks, the
/// timer is set, and tasks are woken.
pub(crate) struct WriteGuard<'l, P: Protocol> {
    /// The connection's shared reference.
    pub(crate) connection: &'l Arc<SharedConnection<P>>,
    now: LazyNow<'l>,
    inner: MutexGuard<'l, LockedState<P>>,
    /// Declared after the lock, so that the lock is released before they run.
    woken: WakeOnDrop,
    is_settled: bool,
}

/// Tasks to wake on drop.
#[derive(Default)]
struct WakeOnDrop(Vec<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

impl<P: Protocol> Deref for WriteGuard<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.inner.connection
    }
}

impl<P: Protocol> DerefMut for WriteGuard<'_, P> {
    fn deref_mut(&mut self) -> &mut P {
        &mut self.inner.connection
    }
}

impl<P: Protocol> Drop for WriteGuard<'_, P> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl<'l, P: Protocol> WriteGuard<'l, P> {
    /// Returns the time of this operation.
    pub(crate) fn now(&mut self) -> Time {
        self.now.get()
    }

    /// Sends all that can be sent, up to a turn's limit; the driver sends the rest.
    pub(crate) fn send(&mut self) {
        if self.transmit(None) != SendProgress::Done {
            self.queue();
        }
    }

    /// Sends a message that is complete. After a receive batch with several messages the answers leave
    /// together: in the driver's next turn, or with the last of them. After a batch with one, the first
    /// message leaves at once, and others in the driver's next turn, where that comes after the tasks that
    /// run now. None waits longer than [`LONGEST_WAIT`] while others follow.
    pub(crate) fn send_message(&mut self) {
        let is_first = !mem::replace(&mut self.inner.has_sent_message, true);
        let awaited = self.inner.answers_awaited;
        self.inner.answers_awaited = awaited.saturating_sub(1);
        if self.has_waited_long() {
            self.send();
        } else if awaited > 1 {
            self.queue();
        } else if awaited == 1 || is_first && !self.follows_others() || !self.leave_to_driver() {
            self.send();
        }
    }

    /// Whether other connections wait for the driver, and all tasks of this moment before it, so that this
    /// one may as well: where a runtime has one thread.
    fn follows_others(&self) -> bool {
        !self.connection.shared.queue.is_empty() && is_runtime_of_one_thread()
    }

    /// Returns whether a message has waited for others for as long as it may; notes that one waits, if
    /// none has.
    fn has_waited_long(&mut self) -> bool {
        let now = self.now.get();
        let since = *self.inner.waits_since.get_or_insert(now);
        now.since(since) >= LONGEST_WAIT
    }

    /// Leaves what is written to the driver, if it is awake, or goes behind all tasks that run now when it
    /// is woken: that is so where a runtime has one thread. There, thousands of calls that begin together
    /// would otherwise be a system call each. With several threads a task that is woken mostly goes before
    /// the others.
    fn leave_to_driver(&mut self) -> bool {
        let queue = &self.connection.shared.queue;
        if !self.inner.queued {
            self.inner.queued = queue.push_to_awake(|| self.connection.clone());
        }
        if is_runtime_of_one_thread() {
            if !self.inner.queued {
                self.queue();
            }
            self.help_driver();
        }
        self.inner.queued
    }

    /// Sends what connections have left to the driver, where it does not come for [`LONGEST_WAIT`]: thousands
    /// of tasks may run before it.
    fn help_driver(&mut self) {
        let now = self.now.get();
        let queue = &self.connection.shared.queue;
        for other in queue.take_late(now, LONGEST_WAIT) {
            if Arc::ptr_eq(&other, self.connection) || !other.send_queued(now) {
                queue.push(other);
            }
        }
    }

    /// Notes that `count` bytes were written: sends full batches, and holds the rest back for more
    /// data. The driver sends it when the task yields.
    pub(crate) fn on_written(&mut self, count: usize) {
        self.inner.corked += count;
        let sockets = &self.connection.shared.sockets;
        while self.inner.corked >= FULL_BATCH {
            let now = self.now.get();
            match self.inner.transmit_batch(sockets, now, None) {
                Ok(Some(size)) => self.inner.corked = self.inner.corked.saturating_sub(size),
                // Blocked data leave when the engine's state changes.
                Ok(None) => self.inner.corked = 0,
                Err(SocketBlocked) => return self.queue(),
            }
        }
        if self.inner.corked > 0 {
            self.queue();
        }
    }

    /// Sends data that were held back.
    pub(crate) fn flush(&mut self) {
        if self.inner.corked > 0 {
            self.send();
        }
    }

    /// Queues the connection for the driver, which sends once this task yields.
    pub(crate) fn queue(&mut self) {
        self.inner.is_flushed = false;
        if self.mark_queued() {
            self.connection.shared.queue.push(self.connection.clone());
        }
    }

    /// Returns whether the connection has to be put into the driver's queue.
    pub(crate) fn mark_queued(&mut self) -> bool {
        !mem::replace(&mut self.inner.queued, true)
    }

    /// Notes that the driver took the connection off its queue.
    pub(crate) fn mark_taken(&mut self) {
        self.inner.queued = false;
    }

    /// Sends up to a turn's limit of batches; small datagrams by way of `small`, if there is one.
    pub(crate) fn transmit(&mut self, mut small: Option<&mut SmallDatagrams>) -> SendProgress {
        let now = self.now.get();
        self.inner.corked = 0;
        self.inner.waits_since = None;
        for _ in 0..TURN {
            let sockets = &self.connection.shared.sockets;
            match (self.inner).transmit_batch(sockets, now, small.as_deref_mut()) {
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.inner.is_flushed = true;
                    return SendProgress::Done;
                }
                Err(SocketBlocked) => return SendProgress::Blocked,
            }
        }
        SendProgress::More
    }

    /// As [`Self::transmit`], for the driver: the application may have sent everything meanwhile.
    pub(crate) fn transmit_changes(&mut self, small: &mut SmallDatagrams) -> SendProgress {
        if self.inner.is_flushed {
            return SendProgress::Done;
        }
        let small = (!self.inner.connection.travels_alone()).then_some(small);
        self.transmit(small)
    }

    /// Ends the receive batch.
    pub(crate) fn end_batch(&mut self) {
        let now = self.now.get();
        self.inner.in_batch = false;
        self.inner.has_sent_message = false;
        self.inner.connection.end_batch(now);
    }

    /// Handles the endpoint's timer.
    pub(crate) fn on_timer(&mut self) {
        self.inner.deadline = Time::MAX;
        let now = self.now.get();
        self.inner.connection.handle_timeout(now, &mut self.woken.0);
    }

    /// Whether the endpoint has forgotten the connection.
    pub(crate) fn is_removed(&self) -> bool {
        self.inner.is_removed
    }

    /// Returns the full socket that the connection waits for.
    pub(crate) fn waits_for(&self) -> Option<&Arc<Socket>> {
        self.inner.unsent.as_ref()?;
        self.inner.send_socket.socket()
    }

    /// Drops the reference to a socket, so that a closed one really closes.
    pub(crate) fn forget_socket(&mut self) {
        self.inner.send_socket.forget();
    }

    /// Returns whether the driver has woken tasks that have not come since; only once.
    pub(crate) fn take_awaits_tasks(&mut self) -> bool {
        mem::take(&mut self.inner.awaits_tasks)
    }

    /// Returns whether messages of the last receive batch have no answer yet; only once. A task that has come
    /// may have left them to others, which run before the driver's next turn.
    pub(crate) fn take_awaits_answers(&mut self) -> bool {
        mem::take(&mut self.inner.awaits_answers) && self.inner.answers_awaited > 0
    }

    /// Ends the operation, and leaves the tasks to be woken to the caller.
    pub(crate) fn settle_into(mut self, woken: &mut Vec<Waker>) {
        self.settle();
        self.is_settled = true;
        let arrived = self.inner.connection.take_arrived();
        if arrived > 0 {
            self.inner.answers_awaited = arrived;
            self.inner.awaits_answers = true;
        }
        self.inner.awaits_tasks |= !self.woken.0.is_empty();
        woken.append(&mut self.woken.0);
    }

    fn settle(&mut self) {
        if self.is_settled {
            return;
        }
        let (shared, inner, woken) = (&self.connection.shared, &mut *self.inner, &mut self.woken.0);
        if inner.connection.take_events(&mut self.now, woken) {
            shared.yield_once.store(true, Ordering::Relaxed);
        }
        while let Some(event) = inner.connection.poll_endpoint_event() {
            let is_last = P::is_last(event);
            if is_last {
                // Before another connection gets the index.
                inner.set_deadline(Time::MAX, self.connection);
                inner.is_removed = true;
            }
            shared.on_endpoint_event(self.connection.index, event);
            if is_last {
                inner.connection.on_removed(woken);
            }
        }
        // The driver visits a connection in its queue before it sleeps. The packets that it sends
        // then, or the application before it, mostly carry the ACK that the deadline is for.
        if (!inner.queued || inner.unsent.is_some()) && !inner.is_removed {
            let is_blocked = inner.unsent.is_some();
            let next = inner.connection.timeout(&mut self.now, is_blocked);
            inner.set_deadline(next.unwrap_or(Time::MAX), self.connection);
        }
        self.note_reply_due();
    }

    fn note_reply_due(&mut self) {
        let shared = &self.connection.shared;
        if let Some(spin) = &shared.spin {
            let due = self.inner.connection.is_reply_due();
            let was_due = mem::replace(&mut self.inner.reply_due, due);
            spin.note(was_due, due, self.now.get(), &shared.queue);
        }
    }
}

impl<P: Protocol> LockedState<P> {
    fn set_deadline(&mut self, deadline: Time, connection: &SharedConnection<P>) {
        if deadline != self.deadline {
            self.deadline = deadline;
            connection.shared.timers.set(connection.index, deadline);
        }
    }

    /// Sends one batch; returns its size.
    fn transmit_batch(
        &mut self,
        sockets: &Sockets,
        now: Time,
        small: Option<&mut SmallDatagrams>,
    ) -> Result<Option<usize>, SocketBlocked> {
        // Data for an abandoned path are retransmitted on another one anyway.
        let unsent = self.unsent.take();
        if let Some((transmit, contents)) =
            unsent.filter(|(unsent, _)| self.connection.is_worth_keeping(unsent))
        {
            let whole = BatchContents::Whole(&contents);
            let sent = self.send_socket.send(sockets, &transmit, &whole);
            return self.after_send(now, sent, transmit, Some(contents));
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            let most = self.send_socket.max_datagrams(sockets);
            let due = self.connection.poll_transmit(now, buffer, most);
            let Some((transmit, contents)) = due else {
                return Ok(None);
            };
            if let (Some(small), BatchContents::Whole(contents)) = (small, &contents)
                && small.take(sockets, &transmit, contents)
            {
                return Ok(Some(transmit.size));
            }
            let sent = self.send_socket.send(sockets, &transmit, &contents);
            let kept = (sent == Err(SendError::Full)).then(|| contents.to_vec());
            self.after_send(now, sent, transmit, kept)
        })
    }

    /// Handles the result of a send; keeps the batch where the socket was full.
    fn after_send(
        &mut self,
        now: Time,
        sent: Result<(), SendError>,
        transmit: Transmit,
        contents: Option<Vec<u8>>,
    ) -> Result<Option<usize>, SocketBlocked> {
        match (sent, contents) {
            (Err(SendError::Full), Some(contents))
                if self.connection.is_worth_keeping(&transmit) =>
            {
                self.unsent = Some((transmit, contents));
                return Err(SocketBlocked);
            }
            (Err(SendError::TooLarge), _) => self.connection.on_too_large(now, &transmit),
            // A probe on another path is not worth waiting for: the path in use could go on. Without
            // a socket it is a loss: the address may come back before the connection times out.
            (Ok(()) | Err(SendError::Full | SendError::NoSocket), _) => {}
        }
        Ok(Some(transmit.size))
    }
}
