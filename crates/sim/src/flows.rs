//! The flow table: size, start, end and counters of each flow.

use weir_counters::FlowCounters;
use weir_network::DueTransfer;
use weir_results::TransferTime;
use weir_scenario::HostIndex;
use weir_units::{ByteSize, Duration, Rate, Time};

/// A flow: a slot in the table, which is reused, and a number, which is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId {
    pub(crate) slot: u32,
    pub(crate) number: u32,
}

/// The source and the destination host of a flow.
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

/// A map from flows to values, indexed by slot.
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
        let slot = self.0.get_mut(id.slot as usize)?;
        slot.take_if(|(found, _)| *found == id)
            .map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        self.0.iter().flatten().map(|(id, value)| (*id, value))
    }
}

/// An open flow.
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
    /// When all its data had arrived.
    pub(crate) end: Option<Time>,
    /// When all its data must have arrived.
    pub(crate) deadline: Option<Time>,
    /// Its size; `None` for an endless flow.
    pub(crate) size: Option<ByteSize>,
    /// How long its data would take on the empty network, if it has a size.
    pub(crate) ideal: Option<Duration>,
    /// What it had counted earlier, if anything.
    earlier: Option<Box<EarlierCounters>>,
    /// A number that spreads flows over the links of their hosts.
    pub(crate) spread: u32,
    /// How often it has moved to another link.
    pub(crate) moves: u32,
    /// Whether its connection is closed and it waits for another one.
    pub(crate) connection_closed: bool,
}

/// Counters of a flow that most flows do not have.
#[derive(Clone, Copy, Debug, Default)]
struct EarlierCounters {
    /// At the end of the warm-up.
    warm_up: FlowCounters,
    /// Of its earlier connections.
    connections: FlowCounters,
}

/// The RTT estimates of a flow's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathView {
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
}

/// A flow that has ended, or was open at the end of the run.
#[derive(Clone, Debug)]
pub(crate) struct FlowReport {
    pub(crate) flow: Flow,
    pub(crate) achieved: FlowCounters,
    pub(crate) path: PathView,
}

/// The statistics of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupStats {
    /// The number of its flows so far.
    pub(crate) flows: u64,
    /// The number of its connections so far that began without a handshake.
    pub(crate) without_handshake: u64,
    /// The counters of its closed flows.
    pub(crate) closed: FlowCounters,
    /// The durations of completed transfers.
    pub(crate) completions: Vec<Duration>,
    /// Its closed flows with a size.
    pub(crate) transfers: Vec<TransferTime>,
    /// The goodputs of its closed flows without a size, each over its time.
    pub(crate) goodputs: Vec<Rate>,
    /// The number of closed flows with a time-out.
    pub(crate) with_timeout: u64,
    /// The closed flows with a deadline.
    pub(crate) due: Vec<DueTransfer>,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct FlowTable {
    /// The open flows.
    pub(crate) open: FlowMap<Flow>,
    free: Vec<u32>,
    slots: u32,
    next_number: u32,
    /// When the warm-up ended; zero until then.
    pub(crate) measured_from: Time,
    /// By group.
    pub(crate) group_stats: Vec<GroupStats>,
}

impl Flow {
    /// Creates a flow that has just begun.
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
            ideal: None,
            earlier: None,
            spread: 0,
            moves: 0,
            connection_closed: false,
        }
    }

    fn earlier(&self) -> EarlierCounters {
        self.earlier.as_deref().copied().unwrap_or_default()
    }

    /// Returns its counters at the end of the warm-up.
    pub(crate) fn before(&self) -> FlowCounters {
        self.earlier().warm_up
    }

    /// Sets its counters at the end of the warm-up.
    pub(crate) fn set_before(&mut self, counters: FlowCounters) {
        self.earlier.get_or_insert_default().warm_up = counters;
    }

    /// Returns the counters of its earlier connections.
    pub(crate) fn of_earlier_connections(&self) -> FlowCounters {
        self.earlier().connections
    }

    /// Sets the counters of its earlier connections.
    pub(crate) fn set_of_earlier_connections(&mut self, counters: FlowCounters) {
        self.earlier.get_or_insert_default().connections = counters;
    }

    /// Returns its size, and the time that it took if it is complete; `None` without a size, and if it ended before
    /// `from`.
    pub(crate) fn transfer_time(&self, from: Time) -> Option<TransferTime> {
        if self.end.is_some_and(|end| end < from) {
            return None;
        }
        Some(TransferTime {
            size: self.size?,
            ideal: self.ideal?,
            took: self.end.map(|end| end.since(self.start)),
        })
    }

    /// Returns the goodput of a flow without a size over the part of its time from `from` to `until`; `None` if there
    /// is no such part.
    pub(crate) fn goodput(&self, achieved: FlowCounters, from: Time, until: Time) -> Option<Rate> {
        let span = self.end.unwrap_or(until).since(self.start.max(from));
        let is_measured = self.size.is_none() && !span.is_zero();
        is_measured.then(|| achieved.since(self.before()).goodput(span))
    }

    /// Returns its size and deadline, if it has a deadline.
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
            measured_from: Time::ZERO,
            group_stats: vec![GroupStats::default(); groups],
        }
    }

    /// Adds a flow to the table and numbers it within its group.
    pub(crate) fn enter(&mut self, mut flow: Flow) -> FlowId {
        let slot = self.free.pop().unwrap_or(self.slots);
        self.slots = self.slots.max(slot + 1);
        let id = self.number(slot);
        flow.spread = id.number;
        let stats = &mut self.group_stats[flow.group as usize];
        flow.index = stats.flows;
        stats.flows += 1;
        self.open.insert(id, flow);
        id
    }

    fn number(&mut self, slot: u32) -> FlowId {
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        FlowId { slot, number }
    }

    /// Gives a flow a new number, as its old endpoints are gone.
    pub(crate) fn renumber(&mut self, id: FlowId) -> Option<FlowId> {
        let flow = self.open.remove(id)?;
        let id = self.number(id.slot);
        self.open.insert(id, flow);
        Some(id)
    }

    /// Removes a flow with these counters from the table.
    pub(crate) fn close(&mut self, now: Time, id: FlowId, achieved: FlowCounters) -> Option<Flow> {
        let flow = self.open.remove(id)?;
        self.free.push(id.slot);
        let stats = &mut self.group_stats[flow.group as usize];
        let from = self.measured_from;
        stats.transfers.extend(flow.transfer_time(from));
        let goodput = flow.goodput(achieved, from, now);
        stats.goodputs.extend(goodput);
        stats.closed += achieved;
        stats.with_timeout += u64::from(achieved.timeouts > 0);
        stats.due.extend(flow.due_transfer());
        Some(flow)
    }

    /// Records a completed transfer of a group and its duration.
    pub(crate) fn count_completion(&mut self, group: u32, took: Duration) {
        self.group_stats[group as usize].completions.push(took);
    }

    /// Discards the completed transfers so far: the end of the warm-up.
    pub(crate) fn forget_completions(&mut self, now: Time) {
        self.measured_from = now;
        for stats in &mut self.group_stats {
            stats.completions.clear();
            stats.transfers.clear();
            stats.goodputs.clear();
            stats.with_timeout = 0;
            stats.due.clear();
        }
    }
}
