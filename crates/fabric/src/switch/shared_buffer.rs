//! A buffer that the queues of several ports share.
//!
//! Ports dequeue lazily, so the backlogs of the other ports have to be brought up to date before a
//! packet is admitted. A heap has one entry for each port with a queue: a time before which nothing
//! leaves it. Usually the earliest is still to come, and nothing has to be done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use weir_units::{ByteSize, Time};

use crate::egress_port::EgressPort;
use crate::packet::Packet;

use super::error::SwitchError;
use super::routes::PortIndex;

/// A shared buffer. A packet leaves it when its transmission starts.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    size: ByteSize,
    limit: PortLimit,
}

/// The most that one port may hold.
#[derive(Clone, Debug)]
enum PortLimit {
    /// A fixed limit per port.
    Static(Vec<ByteSize>),
    /// A multiple of the free space.
    Dynamic(f64),
}

/// An invalid factor for dynamic thresholds.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{alpha} cannot multiply the free space: a finite number above 0 is needed")]
pub struct BufferError {
    /// The number given.
    pub alpha: f64,
}

impl SharedBuffer {
    /// Creates a buffer of `size` with a fixed limit for each port.
    pub fn with_limits(size: ByteSize, limits: impl Into<Vec<ByteSize>>) -> Self {
        Self {
            size,
            limit: PortLimit::Static(limits.into()),
        }
    }

    /// Creates a buffer of `size` with dynamic thresholds (Choudhury & Hahne 1998): a port may hold
    /// `alpha` times the space that is free before the packet.
    pub fn dynamic(size: ByteSize, alpha: f64) -> Result<Self, BufferError> {
        if alpha.is_finite() && alpha > 0.0 {
            Ok(Self {
                size,
                limit: PortLimit::Dynamic(alpha),
            })
        } else {
            Err(BufferError { alpha })
        }
    }

    /// Returns how long the queue of a port with `backlog` may become while all ports hold `used`.
    fn room(&self, port: PortIndex, backlog: ByteSize, used: ByteSize) -> ByteSize {
        let free = self.size - used;
        let limit = match &self.limit {
            PortLimit::Static(limits) => {
                limits.get(port.index()).copied().unwrap_or(ByteSize::ZERO)
            }
            PortLimit::Dynamic(alpha) => free.mul_f64(*alpha),
        };
        limit.min(backlog + free)
    }
}

/// The use of the buffer by the ports.
#[derive(Debug)]
pub(super) struct BufferUsage {
    buffer: SharedBuffer,
    /// The sum of all backlogs, as far as they are up to date.
    used: ByteSize,
    /// For each port with a queue, a time before which nothing leaves it.
    departures: BinaryHeap<Reverse<(Time, PortIndex)>>,
    /// Which ports have an entry there.
    watched: Vec<bool>,
}

impl BufferUsage {
    pub(super) fn new<P: Packet + Clone>(
        buffer: SharedBuffer,
        egress_ports: &[EgressPort<P>],
    ) -> Result<Self, SwitchError> {
        if let PortLimit::Static(limits) = &buffer.limit
            && limits.len() != egress_ports.len()
        {
            return Err(SwitchError::Limits {
                limits: limits.len(),
                ports: egress_ports.len(),
            });
        }
        let mut usage = Self {
            buffer,
            used: egress_ports
                .iter()
                .map(|egress_port| egress_port.queue().backlog().size)
                .sum(),
            departures: BinaryHeap::with_capacity(egress_ports.len()),
            watched: vec![false; egress_ports.len()],
        };
        for (port, egress_port) in (0..).map(PortIndex::new).zip(egress_ports) {
            usage.watch(port, egress_port);
        }
        Ok(usage)
    }

    /// Replaces the size and the limits for packets to come. Packets that wait stay.
    pub(super) fn change(&mut self, buffer: SharedBuffer) {
        self.buffer = buffer;
    }

    /// Lets `act` send a packet by `port`, whose queue may then be as long as its second argument says.
    pub(super) fn admit<P: Packet + Clone, T>(
        &mut self,
        egress_ports: &mut [EgressPort<P>],
        now: Time,
        port: PortIndex,
        act: impl FnOnce(&mut EgressPort<P>, ByteSize) -> Option<T>,
    ) -> Option<T> {
        self.advance_all(egress_ports, now);
        let egress_port = egress_ports.get_mut(port.index())?;
        let before = egress_port.queue().backlog().size;
        let room = self.buffer.room(port, before, self.used);
        let result = act(egress_port, room);
        self.used += egress_port.queue().backlog().size - before;
        self.watch(port, egress_port);
        result
    }

    /// Releases the space of packets that have left.
    #[inline]
    pub(super) fn release(&mut self, size: ByteSize) {
        self.used -= size;
    }

    /// Adds an entry for a port with a queue.
    #[inline]
    pub(super) fn watch<P: Packet + Clone>(
        &mut self,
        port: PortIndex,
        egress_port: &EgressPort<P>,
    ) {
        if let Some(watched) = self.watched.get_mut(port.index())
            && !*watched
            && let Some(departure) = egress_port.next_departure()
        {
            *watched = true;
            self.departures.push(Reverse((departure, port)));
        }
    }

    /// Removes the packets that have left by `now`.
    #[inline]
    fn advance_all<P: Packet + Clone>(&mut self, egress_ports: &mut [EgressPort<P>], now: Time) {
        while let Some(mut first) = self.departures.peek_mut() {
            let Reverse((time, port)) = *first;
            if time > now {
                break;
            }
            let next = egress_ports.get_mut(port.index()).and_then(|egress_port| {
                let before = egress_port.queue().backlog().size;
                egress_port.start_queued(now);
                self.used -= before - egress_port.queue().backlog().size;
                egress_port.next_departure()
            });
            match next {
                Some(next) => *first = Reverse((next, port)),
                None => {
                    PeekMut::pop(first);
                    if let Some(watched) = self.watched.get_mut(port.index()) {
                        *watched = false;
                    }
                }
            }
        }
    }
}
