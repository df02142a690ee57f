//! Windows: how the shards of a network run at the same time.
//!
//! What a shard does affects another one only by a packet on a link between them, no earlier than the
//! link's delay afterwards. From the time of the first event of all, the shards therefore run for the
//! smallest such delay, the lookahead, without knowing of each other: this is a window. Then they meet
//! at a barrier and take in each other's packets. A shard has its part of the events of the whole network in
//! the same order as one thread has them, so that the result is the same with any number of threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_network::Export;
use weir_units::{Duration, Time};

use crate::barrier::{Barrier, Participant};
use crate::packet::Packet;
use crate::shard::Shard;

/// The number of events for which other threads are worth starting, which takes as long as these.
const WORTH_THREADS: u64 = 1000;

/// How the shards of a network run together.
#[derive(Debug)]
pub(crate) struct Windows {
    lookahead: Duration,
    /// For each port, the shard at the far end of its link.
    receivers: Vec<u32>,
    /// Returns the CPU time of the calling thread.
    thread_time: fn() -> Duration,
    /// The CPU time of the threads other than the caller's.
    others_time: Duration,
    /// The number of events that were handled last, and the time that they span: how many are to be expected.
    /// This decides on which threads events are handled, and nothing else.
    recent: (u64, Duration),
}

/// Packets of one shard for another.
type Mailbox = Mutex<Vec<Export<Packet>>>;

/// What the threads share.
struct Exchange<'w> {
    windows: &'w Windows,
    shards: usize,
    end: Time,
    barrier: Barrier,
    /// For each parity of windows, sender and receiver: packets. A sender fills those of one parity
    /// while a receiver may still empty those of the other.
    mailboxes: [Vec<Mailbox>; 2],
    /// For each parity and shard: its first event, or the first that it causes elsewhere. In nanoseconds.
    first_events: [Vec<AtomicU64>; 2],
    others_time: AtomicU64,
    events: AtomicU64,
}

impl Windows {
    pub(crate) fn new(lookahead: Duration, receivers: Vec<u32>) -> Self {
        Self {
            lookahead,
            receivers,
            thread_time: || Duration::ZERO,
            others_time: Duration::ZERO,
            recent: (0, Duration::ZERO),
        }
    }

    /// Sets the clock of the threads' CPU time.
    pub(crate) fn set_thread_time(&mut self, thread_time: fn() -> Duration) {
        self.thread_time = thread_time;
    }

    /// Returns the CPU time of the threads other than the caller's.
    pub(crate) fn others_time(&self) -> Duration {
        self.others_time
    }

    /// Handles all events before `end`. Packets may run ahead before `ahead`. Afterwards the packets between
    /// shards are where they arrive.
    pub(crate) fn run_before(&mut self, end: Time, ahead: Time, shards: &mut [&mut Shard]) {
        for shard in shards.iter_mut() {
            shard.network.set_run_ahead(ahead);
            // Control events may have sent packets.
            shard.settle();
        }
        self.deliver_all(shards);
        loop {
            let first = shards.iter().map(|shard| shard.first_event()).min();
            let Some(first) = first.filter(|first| *first < end) else {
                return;
            };
            if self.expected_events(end.since(first)) >= WORTH_THREADS {
                return self.run_on_threads(first, end, shards);
            }
            let window_end = self.window_end(first, end);
            let mut events = 0;
            for shard in shards.iter_mut() {
                events += shard.run_before(window_end);
            }
            self.recent = (events, window_end.since(first));
            self.deliver_all(shards);
        }
    }

    /// Returns how many events are to be expected in a time of this length, from those before.
    fn expected_events(&self, span: Duration) -> u64 {
        let (events, before) = self.recent;
        let all = events.saturating_mul(span.as_nanos());
        all.checked_div(before.as_nanos()).unwrap_or(0)
    }

    fn window_end(&self, begin: Time, end: Time) -> Time {
        (begin + self.lookahead).min(end)
    }

    /// Takes the packets between shards to their receivers.
    fn deliver_all(&self, shards: &mut [&mut Shard]) {
        for sender in 0..shards.len() {
            let mut exports = Vec::new();
            shards[sender]
                .network
                .take_exports(|export| exports.push(export));
            for export in exports {
                let receiver = self.receivers[export.port as usize];
                shards[receiver as usize].network.import(export);
            }
        }
    }

    /// Runs each shard on a thread of its own, the first one on this thread.
    fn run_on_threads(&mut self, begin: Time, end: Time, shards: &mut [&mut Shard]) {
        let exchange = Exchange::new(self, end, shards.len());
        std::thread::scope(|scope| {
            // If there can be no more threads, those that there are do not wait.
            let _participant = Participant(&exchange.barrier);
            let mut numbered = (0..).zip(shards.iter_mut());
            let own = numbered.next();
            for (number, shard) in numbered {
                let exchange = &exchange;
                scope.spawn(move || {
                    let begin = (exchange.windows.thread_time)();
                    exchange.run(number, shard);
                    let took = (exchange.windows.thread_time)() - begin;
                    exchange
                        .others_time
                        .fetch_add(took.as_nanos(), Ordering::Relaxed);
                });
            }
            if let Some((number, shard)) = own {
                exchange.run(number, shard);
            }
        });
        let others_time = Duration::from_nanos(exchange.others_time.into_inner());
        let events = exchange.events.into_inner();
        self.others_time += others_time;
        self.recent = (events, end.since(begin));
    }
}

impl<'w> Exchange<'w> {
    fn new(windows: &'w Windows, end: Time, shards: usize) -> Self {
        let mailboxes = || (0..shards * shards).map(|_| Mutex::default()).collect();
        let first_events = || (0..shards).map(|_| AtomicU64::new(0)).collect();
        Self {
            windows,
            shards,
            end,
            barrier: Barrier::new(shards),
            mailboxes: [mailboxes(), mailboxes()],
            first_events: [first_events(), first_events()],
            others_time: AtomicU64::new(0),
            events: AtomicU64::new(0),
        }
    }

    /// Runs the windows of one shard.
    fn run(&self, number: usize, shard: &mut Shard) {
        let _participant = Participant(&self.barrier);
        let mut parity = 0;
        let mut caused = Time::MAX;
        loop {
            let first_events = &self.first_events[parity];
            let first = shard.first_event().min(caused);
            first_events[number].store(first.as_nanos(), Ordering::Relaxed);
            if !self.barrier.wait() {
                return;
            }
            self.receive(number, parity, shard);
            let times = first_events.iter().map(|time| time.load(Ordering::Relaxed));
            let first = times.min().map_or(Time::MAX, Time::from_nanos);
            if first >= self.end {
                return;
            }
            let events = shard.run_before(self.windows.window_end(first, self.end));
            self.events.fetch_add(events, Ordering::Relaxed);
            parity = 1 - parity;
            caused = self.send(number, parity, shard);
        }
    }

    /// Opens a mailbox, which no other thread uses at this time.
    fn open(&self, parity: usize, from: usize, to: usize) -> MutexGuard<'_, Vec<Export<Packet>>> {
        let mailbox = &self.mailboxes[parity][from * self.shards + to];
        mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a shard's packets for others into their mailboxes. Returns when the first one arrives.
    fn send(&self, number: usize, parity: usize, shard: &mut Shard) -> Time {
        let mut first = Time::MAX;
        let receivers = 0..self.shards;
        let mut mailboxes: Vec<_> = receivers.map(|to| self.open(parity, number, to)).collect();
        shard.network.take_exports(|export| {
            first = first.min(export.arrival);
            let receiver = self.windows.receivers[export.port as usize];
            mailboxes[receiver as usize].push(export);
        });
        first
    }

    /// Takes in what the others have sent to a shard.
    fn receive(&self, number: usize, parity: usize, shard: &mut Shard) {
        for from in 0..self.shards {
            for export in self.open(parity, from, number).drain(..) {
                shard.network.import(export);
            }
        }
    }
}
