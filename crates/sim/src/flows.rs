//! The books on flows: what each was to carry, when it started and ended, and what it achieved.

use std::ops::{Add, Sub};

use weir_units::{ByteSize, Duration, Time};

use crate::workloads::Pair;

/// A flow: a place in the books, which is used again, and a number, which is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId {
    pub(crate) slot: u32,
    pub(crate) number: u32,
}

/// A flow that is open.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    pub(crate) group: u32,
    /// Its number within the group.
    pub(crate) index: u64,
    pub(crate) pair: Pair,
    /// The positions of its endpoints.
    pub(crate) initiator: u32,
    pub(crate) responder: u32,
    pub(crate) start: Time,
    /// When everything had arrived.
    pub(crate) end: Option<Time>,
    /// What it has to carry; `None` for a flow without end.
    pub(crate) size: Option<ByteSize>,
    /// What it had achieved at the end of the warm-up.
    pub(crate) before: Achieved,
}

/// What flows have achieved so far, both ends together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Achieved {
    /// Bytes delivered in order.
    pub(crate) delivered: u64,
    /// Segments sent again.
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    /// Packets that arrived with a CE mark.
    pub(crate) marks: u64,
}

/// What is known of a flow's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathView {
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) window: Option<ByteSize>,
}

/// A flow that is over, or that the end of the run cut off.
#[derive(Clone, Debug)]
pub(crate) struct FlowReport {
    pub(crate) flow: Flow,
    pub(crate) achieved: Achieved,
    pub(crate) path: PathView,
}

/// What the flows of a group that are over have left behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed {
    pub(crate) achieved: Achieved,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Flows {
    open: Vec<Option<Flow>>,
    free: Vec<u32>,
    next_number: u32,
    /// For each group, how many flows it has had.
    opened: Vec<u64>,
    closed: Vec<Closed>,
}

impl Add for Achieved {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            marks: self.marks + other.marks,
        }
    }
}

impl Sub for Achieved {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            delivered: self.delivered - earlier.delivered,
            retransmits: self.retransmits - earlier.retransmits,
            timeouts: self.timeouts - earlier.timeouts,
            marks: self.marks - earlier.marks,
        }
    }
}

impl Flows {
    pub(crate) fn new(groups: usize) -> Self {
        Self {
            open: Vec::new(),
            free: Vec::new(),
            next_number: 0,
            opened: vec![0; groups],
            closed: vec![Closed::default(); groups],
        }
    }

    /// Enters a flow into the books; `flow` makes it of its identity and its number in the group.
    pub(crate) fn open(&mut self, group: u32, flow: impl FnOnce(FlowId, u64) -> Flow) -> FlowId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() as u32 - 1
        });
        let id = FlowId {
            slot,
            number: self.next_number,
        };
        self.next_number = self.next_number.wrapping_add(1);
        let count = &mut self.opened[group as usize];
        self.open[slot as usize] = Some(flow(id, *count));
        *count += 1;
        id
    }

    /// An open flow.
    pub(crate) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.open
            .get(id.slot as usize)?
            .as_ref()
            .filter(|flow| flow.id == id)
    }

    /// An open flow.
    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.open
            .get_mut(id.slot as usize)?
            .as_mut()
            .filter(|flow| flow.id == id)
    }

    /// Strikes a flow out of the books, which has achieved this.
    pub(crate) fn close(&mut self, id: FlowId, achieved: Achieved) -> Option<Flow> {
        let place = self.open.get_mut(id.slot as usize)?;
        let flow = place.take_if(|flow| flow.id == id)?;
        self.free.push(id.slot);
        let closed = &mut self.closed[flow.group as usize];
        closed.achieved = closed.achieved + achieved;
        Some(flow)
    }

    /// The open flows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.open.iter().flatten()
    }

    /// How many places there are: the identities of all open flows are below.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.open.iter_mut().flatten()
    }

    /// What the flows of a group that are over have achieved.
    pub(crate) fn closed(&self, group: u32) -> Achieved {
        self.closed[group as usize].achieved
    }

    /// How many flows a group has had.
    pub(crate) fn opened(&self, group: u32) -> u64 {
        self.opened[group as usize]
    }
}
