//! A connection as its driver and its application share it: the engine's state behind a lock.
//!
//! Whoever holds the lock may send: what is written leaves from the task that wrote it, as far as the
//! pacer lets it. A connection's lock is taken before one of the socket's (routing, timers, queue),
//! which are leaves; none is held across an `await`, and tasks are woken after it is released.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use weir_dcudp::{Connection as Engine, ConnectionHandle, Event, Transmit};
use weir_units::{ByteSize, Duration, Time};

use super::error::DcudpError;
use super::shared::Shared;
use crate::link::FULL_BATCH;
use crate::socket::NotSent;

/// How many batches of one connection are sent before it is another one's turn.
const TURN: usize = 16;

/// How often a connection is looked at while its socket is full.
const WHILE_FULL: Duration = Duration::from_millis(1);

thread_local! {
    /// Where batches are built. One per thread, as it is in use only while a lock is held.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection, shared.
pub(super) struct Link {
    pub(super) handle: ConnectionHandle,
    pub(super) shared: Arc<Shared>,
    core: Mutex<Core>,
}

/// What the lock protects.
pub(super) struct Core {
    pub(super) engine: Engine,
    /// How the connection ended, if it has.
    pub(super) end: Option<Result<(), DcudpError>>,
    /// The tasks that read and that write.
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Those that wait for the handshake or for the connection's end.
    pub(super) watchers: Vec<Waker>,
    /// A batch that the socket had no room for.
    unsent: Option<(Transmit, Vec<u8>)>,
    /// Bytes written since something was sent last.
    corked: usize,
    /// Whether the driver has the connection on its list.
    queued: bool,
    /// Whether it is part of the receive batch that is being handled.
    in_batch: bool,
    /// When the socket's timer fires for it.
    registered: Option<Time>,
}

/// How far sending came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is left to be sent now.
    Done,
    /// More is left, and it is another connection's turn.
    More,
    /// The socket is full.
    Blocked,
}

impl Link {
    pub(super) fn new(handle: ConnectionHandle, shared: Arc<Shared>, engine: Engine) -> Self {
        let core = Core {
            engine,
            end: None,
            reader: None,
            writer: None,
            watchers: Vec::new(),
            unsent: None,
            corked: 0,
            queued: false,
            in_batch: false,
            registered: None,
        };
        Self {
            handle,
            shared,
            core: Mutex::new(core),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// So many bytes were written: sends full batches, and leaves the rest for more to join it until
    /// the task yields.
    pub(super) fn on_written(self: &Arc<Self>, mut core: MutexGuard<'_, Core>, count: usize) {
        core.corked += count;
        if core.corked < FULL_BATCH {
            return self.queue(&mut core);
        }
        self.send(core);
    }

    /// Sends what can be sent, a turn's worth at most; the driver goes on with the rest.
    pub(super) fn send(self: &Arc<Self>, mut core: MutexGuard<'_, Core>) {
        let now = self.now();
        if self.transmit(&mut core, now) != Progress::Done {
            self.queue(&mut core);
        }
        let mut woken = Vec::new();
        self.settle(core, now, &mut woken);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Has the driver send what there is to send, once this task yields.
    pub(super) fn queue(self: &Arc<Self>, core: &mut Core) {
        if core.mark_queued() {
            self.shared.queue.push(self.clone());
        }
    }

    /// Sends at most a turn's worth of batches.
    pub(super) fn transmit(&self, core: &mut Core, now: Time) -> Progress {
        core.corked = 0;
        for _ in 0..TURN {
            match self.transmit_batch(core, now) {
                Ok(true) => {}
                Ok(false) => return Progress::Done,
                Err(Blocked) => return Progress::Blocked,
            }
        }
        Progress::More
    }

    /// Sends one batch; whether there was one.
    fn transmit_batch(&self, core: &mut Core, now: Time) -> Result<bool, Blocked> {
        if let Some((transmit, contents)) = core.unsent.take() {
            let sent = self.shared.socket.send(&transmit, &contents);
            return core.after_send(now, sent, transmit, || contents);
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            let most = self.shared.socket.max_datagrams();
            let due = core.engine.poll_transmit_in_place(now, buffer, most);
            let Some((transmit, contents)) = due else {
                return Ok(false);
            };
            let sent = self.shared.socket.send(&transmit, contents);
            let kept = matches!(sent, Err(NotSent::Full)).then(|| contents.to_vec());
            core.after_send(now, sent, transmit, || kept.unwrap_or_default())
        })
    }

    /// Ends an action on the connection: passes on what the engine has to tell, sets the timer, and
    /// gives the lock back. The tasks to be woken are left to the caller. Has to be called after
    /// everything that may change the engine.
    pub(super) fn settle(&self, mut core: MutexGuard<'_, Core>, now: Time, woken: &mut Vec<Waker>) {
        core.take_events(woken);
        while let Some(event) = core.engine.poll_endpoint_event() {
            self.shared.on_endpoint_event(self.handle, event);
            core.wake_all(woken);
        }
        // The driver comes back to a connection on its list before it sleeps.
        if !core.queued || core.unsent.is_some() {
            self.note_deadline(&mut core, now);
        }
    }

    fn note_deadline(&self, core: &mut Core, now: Time) {
        let Some(mut next) = core.engine.next_time() else {
            return;
        };
        if core.unsent.is_some() {
            // The pacer's time has come, and the socket's has not: that wakes the driver by itself.
            next = next.max(now + WHILE_FULL);
        }
        if core.registered.is_none_or(|registered| next < registered) {
            core.registered = Some(next);
            self.shared.timers.register(now, next, self.handle.0);
        }
    }

    /// The socket's timer fired for `deadline`.
    pub(super) fn on_timer(&self, core: &mut Core, deadline: Time, now: Time) {
        if core.registered == Some(deadline) {
            core.registered = None;
        }
        if core.engine.next_time().is_some_and(|next| next <= now) {
            core.engine.on_time(now);
        }
    }

    /// The application lets go: what it has finished is still delivered, anything else is cut off.
    pub(super) fn leave(self: &Arc<Self>, finished: bool) {
        let mut core = self.lock();
        if core.end.is_some() {
            return;
        }
        let now = self.now();
        match finished {
            true => core.engine.close(now),
            false => core.engine.abort(now, 0),
        }
        self.send(core);
    }

    /// The driver is gone: nothing will ever happen on this connection again.
    pub(super) fn abandon(&self) {
        let mut woken = Vec::new();
        let mut core = self.lock();
        core.end.get_or_insert(Err(DcudpError::EndpointGone));
        core.wake_all(&mut woken);
        drop(core);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Core {
    /// Whether the connection has to be put on the driver's list.
    pub(super) fn mark_queued(&mut self) -> bool {
        !mem::replace(&mut self.queued, true)
    }

    /// The driver took the connection off its list.
    pub(super) fn mark_taken(&mut self) {
        self.queued = false;
    }

    /// A datagram of a receive batch came in; `true` for the batch's first.
    pub(super) fn enter_batch(&mut self) -> bool {
        !mem::replace(&mut self.in_batch, true)
    }

    /// The receive batch is over.
    pub(super) fn end_batch(&mut self) {
        self.in_batch = false;
    }

    /// The socket has been given a batch. It is kept where there was no room for it; what the interface cannot
    /// carry would be lost for ever, and ends the connection.
    fn after_send(
        &mut self,
        now: Time,
        sent: Result<(), NotSent>,
        transmit: Transmit,
        contents: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, Blocked> {
        match sent {
            Ok(()) => {}
            Err(NotSent::Full) => {
                self.unsent = Some((transmit, contents()));
                return Err(Blocked);
            }
            Err(NotSent::TooLarge) => {
                let size = transmit.segment_size.unwrap_or(transmit.size);
                let error = DcudpError::PacketTooLarge {
                    remote: transmit.remote,
                    size: ByteSize::from_bytes(size as u64),
                };
                self.end.get_or_insert(Err(error));
                self.engine.abort(now, 0);
            }
        }
        Ok(true)
    }

    /// Whether a batch waits for room in the socket.
    pub(super) fn is_blocked(&self) -> bool {
        self.unsent.is_some()
    }

    /// Passes the engine's events on to those who wait for them.
    fn take_events(&mut self, woken: &mut Vec<Waker>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Connected => woken.append(&mut self.watchers),
                Event::Readable => woken.extend(self.reader.take()),
                Event::Writable => woken.extend(self.writer.take()),
                Event::Mode(mode) => tracing::trace!(?mode, "the sender's mode changed"),
                Event::Closed(cause) => {
                    let remote = self.engine.remote();
                    let error = cause.map(|cause| DcudpError::new(remote, cause));
                    self.end.get_or_insert(error.map_or(Ok(()), Err));
                    self.wake_all(woken);
                }
            }
        }
    }

    fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.reader.take());
        woken.extend(self.writer.take());
        woken.append(&mut self.watchers);
    }

    /// Why nothing more can be done on the connection, where that is so.
    pub(super) fn check_open(&self) -> Result<(), DcudpError> {
        match &self.end {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

/// The socket is full.
struct Blocked;
