//! The tasks that wait for events of a connection.

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;

use weir_quic::{Direction, StreamEvent, StreamId, StreamTable};
use weir_units::Time;

/// How a stream's sending half ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The peer has acknowledged all of it.
    Finished,
    /// The peer stopped it.
    Stopped(u64),
}

/// State that lives as long as a stream's [`SendStream`](crate::SendStream).
#[derive(Debug, Default)]
pub(crate) struct SendWatch {
    pub(crate) outcome: Option<SendOutcome>,
    pub(crate) waker: Option<Waker>,
}

/// The tasks that wait on one connection.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    pub(crate) readers: StreamTable<Waker>,
    pub(crate) writers: StreamTable<Waker>,
    pub(crate) sends: StreamTable<SendWatch>,
    /// For streams that the peer opens, by direction.
    pub(crate) accepting: [Vec<Waker>; 2],
    /// For permission to open a stream, by direction.
    pub(crate) opening: [Vec<Waker>; 2],
    /// For datagrams.
    pub(crate) datagrams: Vec<Waker>,
    /// For the end of the handshake.
    pub(crate) connecting: Vec<Waker>,
    /// Until no more streams may be opened.
    pub(crate) draining: Vec<Waker>,
    /// For the end of the connection.
    pub(crate) closing: Vec<Waker>,
    /// Calls by deadline, distinguished by a number.
    deadlines: BTreeMap<(Time, u64), Waker>,
    calls: u64,
}

impl Waiters {
    /// Moves the tasks that wait for this event to `woken`.
    pub(crate) fn on_stream(&mut self, event: StreamEvent, woken: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened(direction) => woken.append(self.accepting(direction)),
            StreamEvent::Available(direction) => woken.append(self.opening(direction)),
            StreamEvent::Readable(id) => woken.extend(self.readers.remove(id)),
            StreamEvent::Writable(id) => woken.extend(self.writers.remove(id)),
            StreamEvent::Finished(id) => self.on_outcome(id, SendOutcome::Finished, woken),
            StreamEvent::Stopped { id, code } => {
                woken.extend(self.writers.remove(id));
                self.on_outcome(id, SendOutcome::Stopped(code), woken);
            }
        }
    }

    fn on_outcome(&mut self, id: StreamId, outcome: SendOutcome, woken: &mut Vec<Waker>) {
        if let Some(watch) = self.sends.get_mut(id) {
            watch.outcome.get_or_insert(outcome);
            woken.extend(watch.waker.take());
        }
    }

    /// Returns a number for a call with a deadline.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Wakes a task at `deadline`, unless [`Waiters::forget_deadline`] is called with the same two
    /// first.
    pub(crate) fn add_deadline(&mut self, deadline: Time, number: u64, task: &Waker) {
        self.deadlines.insert((deadline, number), task.clone());
    }

    pub(crate) fn forget_deadline(&mut self, deadline: Time, number: u64) {
        self.deadlines.remove(&(deadline, number));
    }

    /// Moves all tasks that wait for the handshake to `woken`.
    pub(crate) fn on_connected(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.connecting);
        self.opening
            .iter_mut()
            .for_each(|tasks| woken.append(tasks));
    }

    /// Moves all tasks to `woken`, as every wait ends now or has to be checked again.
    pub(crate) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        self.on_connected(woken);
        self.accepting
            .iter_mut()
            .for_each(|tasks| woken.append(tasks));
        woken.append(&mut self.datagrams);
        woken.append(&mut self.draining);
        woken.extend(mem::take(&mut self.readers).into_values());
        woken.extend(mem::take(&mut self.writers).into_values());
        woken.extend(
            self.sends
                .values_mut()
                .filter_map(|watch| watch.waker.take()),
        );
        woken.extend(mem::take(&mut self.deadlines).into_values());
    }

    /// Moves the calls whose deadline has passed to `woken`.
    pub(crate) fn handle_timeout(&mut self, now: Time, woken: &mut Vec<Waker>) {
        while let Some(entry) = self.deadlines.first_entry() {
            if entry.key().0 > now {
                break;
            }
            woken.push(entry.remove());
        }
    }

    /// Returns when [`Waiters::handle_timeout`] is due next.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.deadlines
            .first_key_value()
            .map(|((deadline, _), _)| *deadline)
    }

    pub(crate) fn accepting(&mut self, direction: Direction) -> &mut Vec<Waker> {
        &mut self.accepting[direction as usize]
    }

    pub(crate) fn opening(&mut self, direction: Direction) -> &mut Vec<Waker> {
        &mut self.opening[direction as usize]
    }
}

/// Adds a task to the waiting ones, once.
pub(crate) fn wait(tasks: &mut Vec<Waker>, task: &Waker) {
    if !tasks.iter().any(|known| known.will_wake(task)) {
        tasks.push(task.clone());
    }
}
