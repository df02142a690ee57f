//! A connection as its driver and its application share it: the engine's state behind a lock.
//!
//! Whoever holds the lock may send: a write leaves from the task that made it, without waiting for
//! the driver's. Locks are taken in this order: a connection's, then one of the endpoint's
//! (routing, timers, queue), which are leaves. No lock is held across an `await`, and tasks are
//! woken after it is released.

use std::cell::RefCell;
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;
use weir_quic::{
    Connection as Engine, ConnectionHandle, Direction, EndpointEvent, Event, PathError, StreamId,
    Transmit,
};
use weir_sed::Allowance;
use weir_units::{ByteSize, Duration, Time};

use crate::allocation::{self, Allocation};
use crate::connection::Opened;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::paths::{Announcer, PathNews};
use crate::shared::Shared;
use crate::socket::{NotSent, Socket};
use crate::sockets::{Hold, Sockets, Way};
use crate::waiting::Waiting;

/// What is written is sent in batches of this many bytes, as long as more may follow.
pub(crate) const FULL_BATCH: usize = 64 * 1024;
/// How many batches of one connection are sent before it is another one's turn.
const TURN: usize = 16;

thread_local! {
    /// Where batches are built. One per thread, as it is in use only while a lock is held.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection, shared.
pub(crate) struct Link {
    pub(crate) handle: ConnectionHandle,
    pub(crate) shared: Arc<Shared>,
    core: Mutex<Core>,
}

/// What the lock protects.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) waiting: Waiting,
    /// Its deadlines, and what it may have on its way because of them.
    pub(crate) allocation: Allocation,
    /// Who hears of the connection's paths.
    pub(crate) announcer: Announcer,
    /// Why the connection is over.
    pub(crate) error: Option<ConnectionError>,
    /// The handshake is complete, and the driver does not know yet.
    connected: bool,
    /// Whether the server refused early data.
    pub(crate) early_data_rejected: bool,
    /// The socket by which packets leave.
    pub(crate) way: Way,
    /// The address of ours to go on from as soon as that is allowed; until then the old one's socket
    /// is held.
    rebind_to: Option<(SocketAddr, Hold)>,
    /// A batch that the socket had no room for.
    unsent: Option<(Transmit, Vec<u8>)>,
    /// Bytes written since everything was sent last.
    pub(crate) corked: usize,
    /// Whether the driver has the connection on its list.
    queued: bool,
    /// Whether it is part of the receive batch that is being handled.
    in_batch: bool,
    /// Whether it counts among the connections that a reply is due on.
    reply_due: bool,
    /// When the endpoint's timers fire for it.
    registered: Option<Time>,
}

/// How far sending came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is left to be sent now.
    Done,
    /// More is left, and it is another connection's turn.
    More,
    /// The socket is full.
    Blocked,
}

impl Link {
    pub(crate) fn new(handle: ConnectionHandle, shared: Arc<Shared>, engine: Engine) -> Self {
        let core = Core {
            engine,
            waiting: Waiting::default(),
            allocation: Allocation::default(),
            announcer: Announcer::default(),
            error: None,
            connected: false,
            early_data_rejected: false,
            way: Way::default(),
            rebind_to: None,
            unsent: None,
            corked: 0,
            queued: false,
            in_batch: false,
            reply_due: false,
            registered: None,
        };
        Self {
            handle,
            shared,
            core: Mutex::new(core),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Sends all that can be sent, a turn's worth at most; the driver goes on with the rest.
    pub(crate) fn send(self: &Arc<Self>, core: &mut Core, now: Time) {
        let progress = self.transmit(core, now);
        self.hand_over(core, progress);
    }

    /// Sends full batches of what was written, and leaves the rest for more to join it. The
    /// driver sends that when the task yields.
    pub(crate) fn send_full(self: &Arc<Self>, core: &mut Core, now: Time) {
        while core.corked >= FULL_BATCH {
            match self.transmit_batch(core, now) {
                Ok(Some(size)) => core.corked = core.corked.saturating_sub(size),
                // What may not be sent now goes when the engine's state changes.
                Ok(None) => core.corked = 0,
                Err(Blocked) => return self.hand_over(core, Progress::Blocked),
            }
        }
        if core.corked > 0 {
            self.queue(core);
        }
    }

    /// Has the driver send what there is to send, once this task yields.
    pub(crate) fn queue(self: &Arc<Self>, core: &mut Core) {
        if self.mark_queued(core) {
            self.shared.queue.push(self.clone());
        }
    }

    /// A stream has to carry so much more within a span, or nothing any more; without an allocator that is
    /// nobody's business.
    pub(crate) fn set_deadline(
        self: &Arc<Self>,
        core: &mut Core,
        id: StreamId,
        deadline: Option<(ByteSize, Duration)>,
    ) {
        let Some(allocator) = &self.shared.allocator else {
            return;
        };
        let (
            now,
            Core {
                allocation, engine, ..
            },
        ) = (self.now(), core);
        let Some((size, within)) = deadline else {
            return allocation.remove(now, engine, id);
        };
        let local = engine.local().unwrap_or(self.shared.local());
        let (ends, packet) = ((local, engine.remote()), engine.packet_size());
        let at = now.checked_add(within).unwrap_or(Time::MAX);
        allocation.add(now, engine, id, (size, at), || {
            allocation::open(allocator.as_ref(), self, ends, packet)
        });
    }

    /// Whether the connection has to be put on the driver's list.
    pub(crate) fn mark_queued(&self, core: &mut Core) -> bool {
        !mem::replace(&mut core.queued, true)
    }

    /// The driver took the connection off its list.
    pub(crate) fn mark_taken(&self, core: &mut Core) {
        core.queued = false;
    }

    /// Sends at most a turn's worth of batches.
    pub(crate) fn transmit(&self, core: &mut Core, now: Time) -> Progress {
        core.corked = 0;
        for _ in 0..TURN {
            match self.transmit_batch(core, now) {
                Ok(Some(_)) => {}
                Ok(None) => return Progress::Done,
                Err(Blocked) => return Progress::Blocked,
            }
        }
        Progress::More
    }

    /// Sends one batch; tells its size.
    fn transmit_batch(&self, core: &mut Core, now: Time) -> Result<Option<usize>, Blocked> {
        let sockets = &self.shared.sockets;
        // What was for another path is sent again on this one anyway.
        let unsent = core.unsent.take();
        if let Some((transmit, contents)) = unsent.filter(|(unsent, _)| core.is_in_use(unsent)) {
            return match core.pass_on(sockets, now, &transmit, &contents) {
                Ok(()) => Ok(Some(transmit.size)),
                Err(Blocked) => {
                    core.unsent = Some((transmit, contents));
                    Err(Blocked)
                }
            };
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            let batch = core.way.max_datagrams(sockets);
            let Some(transmit) = core.engine.poll_transmit(now, buffer, batch) else {
                return Ok(None);
            };
            match core.pass_on(sockets, now, &transmit, buffer) {
                Ok(()) => Ok(Some(transmit.size)),
                // A probe on another path is not worth waiting for: the path in use could go on.
                Err(Blocked) if !core.is_in_use(&transmit) => Ok(Some(transmit.size)),
                Err(Blocked) => {
                    core.unsent = Some((transmit, mem::take(buffer)));
                    Err(Blocked)
                }
            }
        })
    }

    fn hand_over(self: &Arc<Self>, core: &mut Core, progress: Progress) {
        if progress != Progress::Done {
            self.queue(core);
        }
    }

    /// Ends an action on the connection: passes on what the engine has to tell, sets the timer,
    /// and gives the lock back. Has to be called after everything that may change the engine.
    pub(crate) fn settle(&self, core: MutexGuard<'_, Core>, now: Time) {
        let mut woken = Vec::new();
        self.settle_into(core, now, &mut woken);
        woken.into_iter().for_each(Waker::wake);
    }

    /// As [`Link::settle`], but leaves the tasks to be woken to the caller.
    pub(crate) fn settle_into(
        &self,
        mut core: MutexGuard<'_, Core>,
        now: Time,
        woken: &mut Vec<Waker>,
    ) {
        core.take_events(woken);
        core.look_at_deadlines(now);
        if mem::take(&mut core.connected) {
            self.shared.give_way.store(true, Ordering::Relaxed);
        }
        while let Some(event) = core.engine.poll_endpoint_event() {
            self.shared.on_endpoint_event(self.handle, event);
            if event == EndpointEvent::Drained {
                woken.append(&mut core.waiting.closing);
            }
        }
        // The driver comes back to a connection on its list before it sleeps. What it sends then,
        // or the application before it, mostly carries the ACK that the deadline is for.
        if !core.queued || core.unsent.is_some() {
            self.note_deadline(&mut core, now);
        }
        self.note_reply_due(&mut core, now);
    }

    fn note_deadline(&self, core: &mut Core, now: Time) {
        let times = [
            core.engine.timeout(),
            core.waiting.next_deadline(),
            core.allocation.next_time(),
        ];
        let next = times.into_iter().flatten().min();
        let Some(next) = next else { return };
        if core.registered.is_none_or(|registered| next < registered) {
            core.registered = Some(next);
            self.shared.timers.register(now, next, self.handle.0);
        }
    }

    fn note_reply_due(&self, core: &mut Core, now: Time) {
        if let Some(spin) = &self.shared.spin {
            let due = core.engine.reply_due();
            let was_due = mem::replace(&mut core.reply_due, due);
            spin.note(was_due, due, now, &self.shared.queue);
        }
    }

    /// The endpoint's timer fired for `deadline`.
    pub(crate) fn on_timer(
        &self,
        core: &mut Core,
        deadline: Time,
        now: Time,
        woken: &mut Vec<Waker>,
    ) {
        if core.registered == Some(deadline) {
            core.registered = None;
        }
        core.waiting.on_time(now, woken);
        core.end_lease(now);
        if core.engine.timeout().is_some_and(|timeout| timeout <= now) {
            core.engine.handle_timeout(now);
        }
    }

    /// The driver is gone: nothing will ever happen on this connection again.
    pub(crate) fn abandon(&self) {
        let mut woken = Vec::new();
        let mut core = self.lock();
        core.error.get_or_insert(ConnectionError::EndpointGone);
        core.announcer.end();
        core.waiting.on_everything(&mut woken);
        woken.append(&mut core.waiting.closing);
        drop(core);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Core {
    /// A datagram of a receive batch came in; `true` for the batch's first.
    pub(crate) fn enter_batch(&mut self) -> bool {
        !mem::replace(&mut self.in_batch, true)
    }

    /// The receive batch is over.
    pub(crate) fn end_batch(&mut self, now: Time) {
        self.in_batch = false;
        self.engine.end_batch(now);
        if let Some((local, hold)) = self.rebind_to.take() {
            self.rebind(now, local, hold);
        }
    }

    /// Goes on from another address once the handshake is confirmed, which the peer need not accept
    /// before (RFC 9000, section 9). Where it forbids that, packets leave from there all the same:
    /// see [`Sockets::between`].
    pub(crate) fn rebind(&mut self, now: Time, local: SocketAddr, hold: Hold) {
        self.rebind_to = None;
        match self.engine.rebind(now, local) {
            Ok(()) => {}
            Err(PathError::NotConfirmed) => self.rebind_to = Some((local, hold)),
            Err(error) => {
                tracing::debug!(%error, %local, "a connection cannot announce its new address");
            }
        }
    }

    /// Somebody says what may be on its way.
    pub(crate) fn allow(&mut self, now: Time, allowance: Allowance) {
        self.allocation.allow(now, &mut self.engine, allowance);
    }

    /// Tells whoever decides about that how far streams with deadlines are.
    fn look_at_deadlines(&mut self, now: Time) {
        if self.error.is_some() {
            self.allocation = Allocation::default();
        }
        self.allocation.look(now, &mut self.engine);
    }

    fn end_lease(&mut self, now: Time) {
        self.allocation.on_time(now, &mut self.engine);
    }

    /// Passes the engine's events on to those who wait for them.
    fn take_events(&mut self, woken: &mut Vec<Waker>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Stream(event) => self.waiting.on_stream(event, woken),
                Event::Path(event) => {
                    tracing::debug!(%event, "the way to the peer changed");
                    self.announcer.tell(PathNews::Event(event));
                }
                Event::Moving(decision) => {
                    tracing::info!(%decision, "the connection moves");
                    self.announcer.tell(PathNews::Decision(*decision));
                }
                Event::DatagramsReadable => woken.append(&mut self.waiting.datagrams),
                Event::Connected => {
                    self.connected = true;
                    self.waiting.on_connected(woken);
                }
                Event::EarlyDataRejected => {
                    self.early_data_rejected = true;
                    self.waiting.on_everything(woken);
                }
                Event::Closed(cause) => {
                    let error = ConnectionError::new(self.engine.remote(), cause);
                    self.error.get_or_insert(error);
                    self.announcer.end();
                    self.rebind_to = None;
                    self.waiting.on_everything(woken);
                    woken.append(&mut self.waiting.closing);
                }
            }
        }
    }

    /// Gives a batch to its socket.
    fn pass_on(
        &mut self,
        sockets: &Sockets,
        now: Time,
        transmit: &Transmit,
        contents: &[u8],
    ) -> Result<(), Blocked> {
        match self.way.send(sockets, transmit, contents) {
            Ok(()) => Ok(()),
            Err(NotSent::Full) => Err(Blocked),
            Err(NotSent::TooLarge) => {
                self.engine.handle_too_large(now, transmit);
                Ok(())
            }
        }
    }

    /// Whether a batch goes over the path in use.
    fn is_in_use(&self, transmit: &Transmit) -> bool {
        transmit.local == self.engine.local() && transmit.remote == self.engine.remote()
    }

    /// The socket whose room the connection waits for.
    pub(crate) fn waits_for(&self) -> Option<&Arc<Socket>> {
        self.unsent.as_ref()?;
        self.way.socket()
    }

    /// Fails where the connection is over, with the reason.
    pub(crate) fn check_open(&self) -> Result<(), ConnectionError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Why the connection is over, if it is.
    pub(crate) fn closed(&self) -> Option<ConnectionError> {
        self.error.clone()
    }

    /// Opens a stream where the handshake, early data and the peer's limit allow it now.
    pub(crate) fn open(&mut self, direction: Direction, early: bool) -> Option<Opened> {
        let established = self.engine.is_established();
        let may_be_early = early && !self.early_data_rejected && self.engine.has_early_keys();
        if !established && !may_be_early {
            return None;
        }
        let id = self.engine.open(direction)?;
        Some(Opened {
            id,
            early: !established,
        })
    }

    /// Whether a stream went down with the early data that opened it. Its number may belong to
    /// another stream by now.
    pub(crate) fn is_rejected(&self, opened: Opened) -> bool {
        opened.early && self.early_data_rejected
    }

    /// Moves `data` into a stream, and finishes it with the last of them.
    pub(crate) fn write_and_finish(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        while !data.is_empty() {
            match self.engine.write_bytes(id, data) {
                Ok(_) => {}
                Err(weir_quic::WriteError::Blocked) => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(self.write_error(error))),
            }
        }
        let result = self.engine.finish(id);
        Poll::Ready(result.map_err(|error| self.write_error(error)))
    }

    pub(crate) fn write_error(&self, error: weir_quic::WriteError) -> WriteError {
        match (error, self.closed()) {
            (weir_quic::WriteError::Stopped(code), _) => WriteError::Stopped(code),
            (weir_quic::WriteError::EarlyDataRejected, _) => WriteError::EarlyDataRejected,
            (_, Some(error)) => error.into(),
            (_, None) => WriteError::Finished,
        }
    }

    pub(crate) fn read_error(&self, error: weir_quic::ReadError) -> ReadError {
        match (error, self.closed()) {
            (weir_quic::ReadError::Reset(code), _) => ReadError::Reset(code),
            (weir_quic::ReadError::EarlyDataRejected, _) => ReadError::EarlyDataRejected,
            (_, Some(error)) => error.into(),
            (_, None) => ReadError::Stopped,
        }
    }
}

/// The socket is full.
struct Blocked;
