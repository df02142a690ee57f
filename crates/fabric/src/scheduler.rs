//! Schedulers: which of several queues sends next is decided when the link becomes free.
//!
//! The packets of each class wait in a FIFO of their own. Each queue has rules for arriving packets, as any
//! [`Queue`], and may have [`Codel`] for those that leave.

use std::collections::VecDeque;

use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;

use crate::codel::{Codel, CodelSettings, CodelVerdict};
use crate::counters::{DropReason, PacketCount};
use crate::packet::Packet;
use crate::queue::{Admission, Queue};
use crate::rule::{Class, Rule};

/// The queues of a port under strict priorities: the first queue with packets sends next. A packet that is
/// being sent is not interrupted. With one queue it is a FIFO, which may have CoDel.
#[derive(Debug)]
pub struct Scheduler<P> {
    queues: Vec<ClassFifo<P>>,
    backlog: PacketCount,
}

/// One queue of a [`Scheduler`].
#[derive(Clone, Debug)]
pub struct ClassQueue {
    /// The packets that wait in it, unless an earlier queue takes them.
    pub classifier: Classifier,
    /// The rules for arriving packets, and the counters.
    pub queue: Queue,
    /// CoDel for packets that leave.
    pub codel: Option<CodelSettings>,
}

/// The packets of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// By the ECN codepoint.
    Ecn(Class),
    /// With a differentiated services code point from `first` to `last` (RFC 2474).
    Dscp {
        /// The lowest.
        first: u8,
        /// The highest.
        last: u8,
    },
}

/// A queue and the packets that wait in it.
#[derive(Debug)]
struct ClassFifo<P> {
    classifier: Classifier,
    queue: Queue,
    codel: Option<Codel>,
    packets: VecDeque<WaitingPacket<P>>,
}

/// A packet that waits.
#[derive(Debug)]
struct WaitingPacket<P> {
    arrival: Time,
    /// The length that was counted on arrival.
    length: ByteSize,
    packet: P,
}

/// A packet that has left its queue.
#[derive(Debug)]
pub(crate) struct Dequeued<P> {
    pub(crate) packet: P,
    pub(crate) length: ByteSize,
    pub(crate) verdict: CodelVerdict,
}

impl Classifier {
    /// Every packet.
    pub const EVERY: Self = Self::Ecn(Class::Every);

    /// Whether a packet belongs to the class.
    #[inline]
    pub fn contains(self, packet: &impl Packet) -> bool {
        match self {
            Self::Ecn(class) => class.contains(packet.ecn()),
            Self::Dscp { first, last } => (first..=last).contains(&packet.dscp()),
        }
    }
}

impl<P: Packet> Scheduler<P> {
    /// One queue, first in, first out, with CoDel at dequeue.
    pub fn codel(queue: Queue, codel: CodelSettings) -> Self {
        Self::strict_priority(
            [],
            ClassQueue {
                classifier: Classifier::EVERY,
                queue,
                codel: Some(codel),
            },
        )
    }

    /// Queues of strict priority, the highest first. The `lowest` takes the packets of no other class.
    pub fn strict_priority(higher: impl Into<Vec<ClassQueue>>, lowest: ClassQueue) -> Self {
        let queues = higher.into().into_iter().chain([lowest]);
        Self {
            queues: queues.map(ClassFifo::new).collect(),
            backlog: PacketCount::ZERO,
        }
    }

    /// Returns the queues, the highest priority first. Their counters are those of the port, class by class.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = &Queue> {
        self.queues.iter().map(|fifo| &fifo.queue)
    }

    /// Changes the rules of each queue for packets to come: see [`Queue::change_rules`].
    pub(crate) fn change_rules(&mut self, rules: &[Rule]) {
        for fifo in &mut self.queues {
            fifo.queue.change_rules(rules);
        }
    }

    /// Changes the settings of CoDel.
    pub(crate) fn change_codel(&mut self, settings: CodelSettings) {
        let queues = self.queues.iter_mut();
        for codel in queues.filter_map(|fifo| fifo.codel.as_mut()) {
            codel.change(settings);
        }
    }

    /// Whether no packet waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.backlog.packets == 0
    }

    /// Iterates over the packets that wait.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &P> {
        let packets = self.queues.iter().flat_map(|fifo| &fifo.packets);
        packets.map(|waiting| &waiting.packet)
    }

    /// Returns the number of the queue of a packet.
    pub(crate) fn classify(&self, packet: &P) -> usize {
        let mut queues = self.queues.iter();
        let found = queues.position(|fifo| fifo.classifier.contains(packet));
        found.unwrap_or(self.queues.len().saturating_sub(1))
    }

    /// Decides about a packet that arrives at this queue.
    pub(crate) fn arrive(
        &mut self,
        queue: usize,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
    ) -> Admission {
        match self.queues.get_mut(queue) {
            Some(fifo) => fifo.queue.arrive(now, length, ecn, ByteSize::MAX),
            None => Admission::Queued,
        }
    }

    /// Appends an admitted packet to this queue.
    pub(crate) fn push(&mut self, queue: usize, now: Time, length: ByteSize, packet: P) {
        if let Some(fifo) = self.queues.get_mut(queue) {
            self.backlog.record(length);
            fifo.queue.enter(now, length);
            fifo.packets.push_back(WaitingPacket {
                arrival: now,
                length,
                packet,
            });
        }
    }

    /// Lets an admitted packet through to an idle link: it does not wait.
    pub(crate) fn pass(&mut self, queue: usize, now: Time, ecn: Ecn) {
        let codel = self
            .queues
            .get_mut(queue)
            .and_then(|fifo| fifo.codel.as_mut());
        if let Some(codel) = codel {
            codel.on_dequeue(now, Duration::ZERO, ByteSize::ZERO, ecn);
        }
    }

    /// Takes the next packet out at `now`, with CoDel's decision about it.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Dequeued<P>> {
        let mut queues = self.queues.iter_mut();
        let dequeued = queues.find_map(|fifo| fifo.pop(now))?;
        self.backlog.remove(dequeued.length);
        Some(dequeued)
    }
}

impl<P: Packet> ClassFifo<P> {
    fn new(class: ClassQueue) -> Self {
        let mut queue = class.queue;
        queue.keep_backlog();
        Self {
            classifier: class.classifier,
            queue,
            codel: class.codel.map(Codel::new),
            packets: VecDeque::new(),
        }
    }

    fn pop(&mut self, now: Time) -> Option<Dequeued<P>> {
        let WaitingPacket {
            arrival,
            length,
            mut packet,
        } = self.packets.pop_front()?;
        self.queue.leave(now, length);
        let ecn = packet.ecn();
        let mut verdict = CodelVerdict::Pass;
        if let Some(codel) = &mut self.codel {
            let backlog = self.queue.backlog().size;
            verdict = codel.on_dequeue(now, now.since(arrival), backlog, ecn);
        }
        match verdict {
            CodelVerdict::Drop => self.queue.record_drop(DropReason::Codel, length),
            // It has the mark already.
            CodelVerdict::Mark if ecn == Ecn::Ce => verdict = CodelVerdict::Pass,
            CodelVerdict::Mark => {
                packet.set_ecn(Ecn::Ce);
                self.queue.record_mark(length);
            }
            CodelVerdict::Pass => {}
        }
        Some(Dequeued {
            packet,
            length,
            verdict,
        })
    }
}
