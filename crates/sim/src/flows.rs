//! The books on flows: what each was to carry, when it started and ended, and what it achieved.

use weir_counters::FlowCounters;
use weir_network::DueTransfer;
use weir_scenario::HostIndex;
use weir_units::{ByteSize, Duration, Time};

/// A flow: a place in the books, which is used again, and a number, which is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId {
    pub(crate) slot: u32,
    pub(crate) number: u32,
}

/// From where to where a flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostPair {
    pub(crate) from: HostIndex,
    pub(crate) to: HostIndex,
}

impl HostPair {
    pub(crate) fn reversed(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }
}

/// Something of each flow, found by its place.
#[derive(Clone, Debug)]
pub(crate) struct FlowMap<T>(Vec<Option<(FlowId, T)>>);

impl<T> Default for FlowMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FlowMap<T> {
    pub(crate) fn insert(&mut self, id: FlowId, value: T) {
        let slot = id.slot as usize;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some((id, value));
    }

    pub(crate) fn get(&self, id: FlowId) -> Option<&T> {
        match self.0.get(id.slot as usize)? {
            Some((found, value)) if *found == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut T> {
        match self.0.get_mut(id.slot as usize)? {
            Some((found, value)) if *found == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, id: FlowId) -> Option<T> {
        let place = self.0.get_mut(id.slot as usize)?;
        place
            .take_if(|(found, _)| *found == id)
            .map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        self.0.iter().flatten().map(|(id, value)| (*id, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut T)> {
        self.0.iter_mut().flatten().map(|(id, value)| (*id, value))
    }
}

/// A flow that is open.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) group: u32,
    /// Its number within the group.
    pub(crate) index: u64,
    pub(crate) pair: HostPair,
    /// The positions of its endpoints.
    pub(crate) initiator: u32,
    pub(crate) responder: u32,
    pub(crate) start: Time,
    /// When everything had arrived.
    pub(crate) end: Option<Time>,
    /// When everything has to have arrived.
    pub(crate) deadline: Option<Time>,
    /// What it has to carry; `None` for a flow without end.
    pub(crate) size: Option<ByteSize>,
    /// What it had achieved at the end of the warm-up.
    pub(crate) before: FlowCounters,
    /// What its earlier connections have achieved.
    pub(crate) earlier: FlowCounters,
    /// Tells apart flows that are spread over several links of their hosts.
    pub(crate) spread: u32,
    /// How many links it has left for the next one.
    pub(crate) moves: u32,
    /// Whether its connection is closed and it waits for another one.
    pub(crate) hung_up: bool,
}

/// What is known of a flow's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathView {
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
}

/// A flow that is over, or that the end of the run cut off.
#[derive(Clone, Debug)]
pub(crate) struct FlowReport {
    pub(crate) flow: Flow,
    pub(crate) achieved: FlowCounters,
    pub(crate) path: PathView,
}

/// What the books hold on a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupStats {
    /// How many flows it has had.
    pub(crate) flows: u64,
    /// What those that are over have achieved.
    pub(crate) closed: FlowCounters,
    /// How long transfers took that were completed.
    pub(crate) completions: Vec<Duration>,
    /// How many of those that are over have had a time-out.
    pub(crate) with_timeout: u64,
    /// Those that are over and had a deadline.
    pub(crate) due: Vec<DueTransfer>,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct FlowTable {
    /// Those that are open.
    pub(crate) open: FlowMap<Flow>,
    free: Vec<u32>,
    slots: u32,
    next_number: u32,
    /// What the books hold on each group.
    pub(crate) accounts: Vec<GroupStats>,
}

impl Flow {
    /// A flow that has just begun, of which nothing is known but this.
    pub(crate) fn new(group: u32, pair: HostPair, start: Time, size: Option<ByteSize>) -> Self {
        Self {
            group,
            index: 0,
            pair,
            initiator: u32::MAX,
            responder: u32::MAX,
            start,
            end: None,
            deadline: None,
            size,
            before: FlowCounters::ZERO,
            earlier: FlowCounters::ZERO,
            spread: 0,
            moves: 0,
            hung_up: false,
        }
    }

    /// What it has to carry and by when, if it has a deadline.
    pub(crate) fn due_transfer(&self) -> Option<DueTransfer> {
        Some(DueTransfer {
            start: self.start,
            deadline: self.deadline?,
            end: self.end,
            size: self.size?,
            from: self.pair.from,
            to: self.pair.to,
        })
    }
}

impl FlowTable {
    pub(crate) fn new(groups: usize) -> Self {
        Self {
            open: FlowMap::default(),
            free: Vec::new(),
            slots: 0,
            next_number: 0,
            accounts: vec![GroupStats::default(); groups],
        }
    }

    /// Enters a flow into the books, which gives it its number in the group.
    pub(crate) fn enter(&mut self, mut flow: Flow) -> FlowId {
        let slot = self.free.pop().unwrap_or(self.slots);
        self.slots = self.slots.max(slot + 1);
        let id = self.number(slot);
        flow.spread = id.number;
        let account = &mut self.accounts[flow.group as usize];
        flow.index = account.flows;
        account.flows += 1;
        self.open.insert(id, flow);
        id
    }

    fn number(&mut self, slot: u32) -> FlowId {
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        FlowId { slot, number }
    }

    /// The flow goes on under another number, as what it was known by is no more.
    pub(crate) fn renumber(&mut self, id: FlowId) -> Option<FlowId> {
        let flow = self.open.remove(id)?;
        let id = self.number(id.slot);
        self.open.insert(id, flow);
        Some(id)
    }

    /// Strikes a flow out of the books, which has achieved this.
    pub(crate) fn close(&mut self, id: FlowId, achieved: FlowCounters) -> Option<Flow> {
        let flow = self.open.remove(id)?;
        self.free.push(id.slot);
        let account = &mut self.accounts[flow.group as usize];
        account.closed += achieved;
        account.with_timeout += u64::from(achieved.timeouts > 0);
        account.due.extend(flow.due_transfer());
        Some(flow)
    }

    /// A group completed a transfer, which took this long.
    pub(crate) fn count_completion(&mut self, group: u32, took: Duration) {
        self.accounts[group as usize].completions.push(took);
    }

    /// Forgets which transfers were completed so far: the end of the warm-up.
    pub(crate) fn forget_completions(&mut self) {
        for account in &mut self.accounts {
            account.completions.clear();
            account.with_timeout = 0;
            account.due.clear();
        }
    }
}
