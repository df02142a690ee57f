//! The global information flow table (Figure 5): the controller's state of the flows of a port.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;

use crate::allocation::FlowDemand;
use crate::controller::INITIAL_WINDOW;
use crate::demand::Demand;
use crate::recent_max::RecentMax;
use crate::schedule::Job;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The sender and the receiver.
    pub flow: FlowKey,
    /// When its SYN passed (Time).
    pub started: Time,
    /// Its size and deadline (Deadline, Flow size).
    pub demand: Option<Demand>,
    /// Its acknowledged bytes.
    pub acknowledged: u64,
    /// The payload of a full segment, in bytes.
    pub segment: u32,
    /// Its bytes in flight; `None` if they are not reported.
    pub in_flight: Option<u32>,
    /// The most of the latest reports: hosts that wait for a processor take up ACKs and send data by turns.
    recent: RecentMax<u32>,
    /// The most bytes in flight since it last waited, and when they were that.
    peak: u32,
    peak_at: Time,
    /// Whether its bytes in flight grow quickly.
    pub is_growing: bool,
    /// Whether it has nothing to send, as far as that is reported.
    pub is_idle: bool,
    /// Its window in segments; `None` if it is not limited.
    pub window: Option<u32>,
    /// When it was last reported.
    pub reported_at: Time,
}

/// Bytes in flight grow quickly if they become more by one part of so many within this time: several round
/// trips, as one without an ACK is no sign of a slow sender.
const GROWTH: u32 = 8;
const GROWS_FOR: Duration = Duration::from_millis(50);

/// Reports count for one to two times as long.
const RECENT: Duration = Duration::from_millis(10);

/// The default of a full segment: RFC 894's 1500 bytes without headers.
const USUAL_SEGMENT: u32 = 1460;

impl Entry {
    fn new(now: Time, flow: FlowKey, started: Time, demand: Option<Demand>) -> Self {
        Self {
            flow,
            started,
            demand,
            acknowledged: 0,
            segment: USUAL_SEGMENT,
            in_flight: None,
            recent: RecentMax::default(),
            peak: 0,
            peak_at: now,
            is_growing: true,
            is_idle: false,
            window: None,
            reported_at: now,
        }
    }

    /// Returns its deadline; [`Time::MAX`] without one.
    pub fn deadline(&self) -> Time {
        let deadline = |demand: Demand| self.started.checked_add(demand.within);
        self.demand.and_then(deadline).unwrap_or(Time::MAX)
    }

    /// Returns the remaining bytes and time (RSize, RTime); no time if it is late.
    pub fn job(&self, now: Time) -> Option<Job> {
        let demand = self.demand?;
        let size = demand.size.bytes().saturating_sub(self.acknowledged);
        Some(Job {
            size: ByteSize::from_bytes(size),
            due: self.deadline().checked_since(now).unwrap_or(Duration::ZERO),
        })
    }

    /// Whether all of its demand has been acknowledged, and nothing more is in flight.
    pub fn is_complete(&self) -> bool {
        let is_there = |demand: Demand| self.acknowledged >= demand.size.bytes();
        self.demand.is_some_and(is_there) && self.in_flight == Some(0)
    }

    /// Notes its bytes in flight.
    pub(crate) fn note_in_flight(&mut self, now: Time, bytes: u32) {
        self.in_flight = Some(bytes);
        self.recent.update(now, RECENT, bytes);
        // One that has waited with one segment begins again.
        if bytes > self.peak.saturating_add(self.peak / GROWTH) || self.window == Some(1) {
            (self.peak, self.peak_at) = (bytes, now);
        }
        self.is_growing = now.since(self.peak_at) < GROWS_FOR;
    }

    /// Returns how much it can use within the next round trip, in segments: its congestion window at
    /// most doubles.
    fn usable(&self) -> u16 {
        let most = u32::from(WindowInput::UNLIMITED);
        let segments = match self.in_flight {
            _ if self.is_idle => 0,
            None => most,
            Some(_) => {
                let segments = self.recent.get().div_ceil(self.segment.max(1));
                segments.saturating_mul(2).saturating_add(INITIAL_WINDOW)
            }
        };
        segments.min(most) as u16
    }

    /// Whether its window is zero.
    pub fn is_stopped(&self) -> bool {
        self.window == Some(0)
    }
}

/// The fields of a row, beside its deadline, that the computation of windows needs. Rows are read by
/// priority, which is a random order in memory; a cache line holds four of these.
#[derive(Clone, Copy, Debug)]
struct WindowInput {
    /// The remaining bytes; [`Self::ENDLESS`] without a deadline.
    left: u64,
    /// As in the row; [`Self::OWN`] if it is not limited.
    window: u32,
    /// Segments are at most 65,535 bytes long.
    segment: u16,
    /// As in [`FlowDemand::usable`], with [`Self::GROWING`]; [`Self::UNLIMITED`] is no limit.
    usable: u16,
}

impl WindowInput {
    const ENDLESS: u64 = u64::MAX;
    const OWN: u32 = u32::MAX;
    /// The bit that says [`FlowDemand::is_growing`].
    const GROWING: u16 = 1 << 15;
    const UNLIMITED: u16 = Self::GROWING - 1;

    fn of(entry: &Entry) -> Self {
        let left = |demand: Demand| demand.size.bytes().saturating_sub(entry.acknowledged);
        Self {
            left: entry.demand.map_or(Self::ENDLESS, left),
            window: entry.window.unwrap_or(Self::OWN),
            segment: u16::try_from(entry.segment).unwrap_or(u16::MAX),
            usable: match (entry.usable(), entry.is_growing) {
                (0, _) => 0,
                (usable, false) => usable,
                (usable, true) => usable | Self::GROWING,
            },
        }
    }

    /// Returns the segments in flight; the largest number if they are unknown.
    fn in_flight(self) -> u32 {
        match self.usable & !Self::GROWING {
            Self::UNLIMITED => u32::MAX,
            // As `Entry::usable` has it.
            usable => u32::from(usable).saturating_sub(INITIAL_WINDOW) / 2,
        }
    }

    /// Returns how much of what is usable it will have in flight, in segments. If it does not fill its
    /// window, its congestion window limits it, and grows by a quarter.
    fn expected(self, usable: u32) -> u32 {
        let in_flight = self.in_flight();
        if in_flight.saturating_add(1) < self.window && self.window != Self::OWN {
            usable.min(in_flight + in_flight.div_ceil(4) + 1)
        } else {
            usable
        }
    }

    fn candidate(self, now: Time, deadline: Time) -> FlowDemand {
        let job = Job {
            size: ByteSize::from_bytes(self.left),
            due: deadline.checked_since(now).unwrap_or(Duration::ZERO),
        };
        let usable = match self.usable & !Self::GROWING {
            Self::UNLIMITED => u32::MAX,
            usable => usable.into(),
        };
        FlowDemand {
            segment: self.segment.into(),
            usable,
            in_flight: self.in_flight(),
            expected: self.expected(usable),
            is_growing: self.usable & Self::GROWING != 0,
            job: (self.left != Self::ENDLESS).then_some(job),
        }
    }
}

/// The inputs for the windows of a port's flows, by priority.
#[derive(Debug, Default)]
pub(crate) struct AllocationInput {
    pub(crate) candidates: Vec<FlowDemand>,
    /// The index of each row, and its window as in [`WindowInput::window`].
    places: Vec<(u32, u32)>,
}

/// The flows of a port, the earliest deadline first (Priority); those without deadline come last, in
/// the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct PortFlowTable {
    entries: Vec<Option<Entry>>,
    /// One for each of `entries`.
    loads: Vec<WindowInput>,
    free: Vec<u32>,
    places: FxHashMap<FlowKey, u32>,
    pub(crate) order: BTreeSet<(Time, Time, u32)>,
}

impl PortFlowTable {
    /// Adds a flow; replaces its row if there is one.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        flow: FlowKey,
        started: Time,
        demand: Option<Demand>,
    ) {
        self.remove(&flow);
        let entry = Entry::new(now, flow, started, demand);
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.loads.push(WindowInput::of(&entry));
            self.entries.len() as u32 - 1
        });
        self.order.insert(rank(&entry, index));
        self.places.insert(flow, index);
        self.note(index, &entry);
        if let Some(slot) = self.entries.get_mut(index as usize) {
            *slot = Some(entry);
        }
    }

    /// Removes a flow. Returns whether it was there.
    pub(crate) fn remove(&mut self, flow: &FlowKey) -> bool {
        let Some(index) = self.places.remove(flow) else {
            return false;
        };
        let slot = self.entries.get_mut(index as usize);
        if let Some(entry) = slot.and_then(Option::take) {
            self.order.remove(&rank(&entry, index));
            self.free.push(index);
        }
        true
    }

    /// Updates a flow's row. Returns whether it is there.
    pub(crate) fn update(&mut self, flow: &FlowKey, change: impl FnOnce(&mut Entry)) -> bool {
        let Some(index) = self.places.get(flow).copied() else {
            return false;
        };
        let slot = self.entries.get_mut(index as usize);
        if let Some(entry) = slot.and_then(Option::as_mut) {
            let before = rank(entry, index);
            change(entry);
            let (after, entry) = (rank(entry, index), *entry);
            if after != before {
                self.order.remove(&before);
                self.order.insert(after);
            }
            self.note(index, &entry);
        }
        true
    }

    fn note(&mut self, index: u32, entry: &Entry) {
        if let Some(load) = self.loads.get_mut(index as usize) {
            *load = WindowInput::of(entry);
        }
    }

    /// Returns all flows by priority.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let places = self.order.iter();
        places.filter_map(|(.., index)| self.entries.get(*index as usize)?.as_ref())
    }

    /// Replaces the contents of `survey` by the inputs of all flows. Returns whether any flow is
    /// stopped.
    pub(crate) fn survey(&self, now: Time, survey: &mut AllocationInput) -> bool {
        survey.candidates.clear();
        survey.places.clear();
        let mut is_any_stopped = false;
        for (deadline, _, index) in &self.order {
            if let Some(load) = self.loads.get(*index as usize) {
                is_any_stopped |= load.window == 0;
                survey.candidates.push(load.candidate(now, *deadline));
                survey.places.push((*index, load.window));
            }
        }
        is_any_stopped
    }

    /// Sets the window of each flow, in the order of the preceding survey, and calls `changed` for
    /// those that differ. The other rows, usually the majority, are not touched.
    pub(crate) fn set_windows(
        &mut self,
        survey: &AllocationInput,
        windows: impl IntoIterator<Item = Option<u32>>,
        mut changed: impl FnMut(&Entry),
    ) {
        for ((index, had), window) in survey.places.iter().zip(windows) {
            if *had == window.unwrap_or(WindowInput::OWN) {
                continue;
            }
            let slot = self.entries.get_mut(*index as usize);
            let load = self.loads.get_mut(*index as usize);
            if let (Some(entry), Some(load)) = (slot.and_then(Option::as_mut), load) {
                entry.window = window;
                *load = WindowInput::of(entry);
                changed(entry);
            }
        }
    }

    /// Returns the number of flows that have something to send.
    pub(crate) fn count_active(&self) -> usize {
        let loads = self.order.iter();
        let loads = loads.filter_map(|(.., index)| self.loads.get(*index as usize));
        loads.filter(|load| load.usable > 0).count()
    }

    /// Returns the flows without a report since `time`.
    pub(crate) fn silent_since(&self, time: Time) -> Vec<FlowKey> {
        let silent = self.iter().filter(|entry| entry.reported_at < time);
        silent.map(|entry| entry.flow).collect()
    }
}

fn rank(entry: &Entry, index: u32) -> (Time, Time, u32) {
    (entry.deadline(), entry.started, index)
}
