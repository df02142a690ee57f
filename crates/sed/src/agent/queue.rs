//! The queues of a switch: which are congested (Figure 3), and which dropped packets wait for duplicate
//! ACKs.

use std::collections::BTreeMap;

use weir_fabric::{ConnectionId, Direction, PortIndex};
use weir_units::Time;
use weir_wire::tcp::Sequence;

/// A dropped packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DroppedPacket {
    pub(super) id: ConnectionId,
    /// The direction of its data.
    pub(super) direction: Direction,
    pub(super) sequence: Sequence,
}

/// The state of one queue.
#[derive(Debug, Default)]
struct QueueState {
    /// While it is congested (CNG), when it may no longer be; otherwise (NOM) `None`.
    congested_until: Option<Time>,
    /// Packets that wait for duplicate ACKs, and when to check them again.
    waiting: Vec<DroppedPacket>,
    next_repeat: Option<Time>,
}

/// The queues of a switch; queues without state have no entry.
#[derive(Debug, Default)]
pub(super) struct QueueMonitor(BTreeMap<PortIndex, QueueState>);

impl QueueMonitor {
    /// Whether no queue has state.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_congested(&self, port: PortIndex) -> bool {
        let state = self.0.get(&port);
        state.is_some_and(|state| state.congested_until.is_some())
    }

    pub(super) fn any_congested(&self) -> bool {
        self.congested().next().is_some()
    }

    pub(super) fn congested(&self) -> impl Iterator<Item = PortIndex> {
        let congested = self
            .0
            .iter()
            .filter(|(_, state)| state.congested_until.is_some());
        congested.map(|(port, _)| *port)
    }

    /// Sets a queue as congested until then at least, or as not congested.
    pub(super) fn set_congested(&mut self, port: PortIndex, until: Option<Time>) {
        self.0.entry(port).or_default().congested_until = until;
        self.tidy(port);
    }

    /// Returns a congested queue that is to be checked.
    pub(super) fn due(&self, now: Time) -> Option<PortIndex> {
        let is_due = |state: &QueueState| state.congested_until.is_some_and(|until| until <= now);
        let (port, _) = self.0.iter().find(|(_, state)| is_due(state))?;
        Some(*port)
    }

    pub(super) fn wait(&mut self, port: PortIndex, repeat: DroppedPacket) {
        self.0.entry(port).or_default().waiting.push(repeat);
    }

    /// Schedules a check of the waiting packets. An existing schedule stays: it paces the duplicate
    /// ACKs.
    pub(super) fn schedule_check(&mut self, port: PortIndex, time: Time) {
        if let Some(state) = self.0.get_mut(&port)
            && !state.waiting.is_empty()
        {
            state.next_repeat.get_or_insert(time);
        }
    }

    /// Returns a queue whose packets are to be checked, and clears its schedule until the next
    /// [`Self::schedule_check`].
    pub(super) fn repeat_due(&mut self, now: Time) -> Option<PortIndex> {
        let is_due = |state: &QueueState| state.next_repeat.is_some_and(|time| time <= now);
        let (port, state) = self.0.iter_mut().find(|(_, state)| is_due(state))?;
        state.next_repeat = None;
        Some(*port)
    }

    /// Removes and returns the first waiting packet that is due; drops those for which `is_due` returns
    /// `None`.
    pub(super) fn next_ready(
        &mut self,
        port: PortIndex,
        mut is_due: impl FnMut(&DroppedPacket) -> Option<bool>,
    ) -> Option<DroppedPacket> {
        let state = self.0.get_mut(&port)?;
        let mut ready = None;
        state.waiting.retain(|repeat| {
            if ready.is_some() {
                return true;
            }
            match is_due(repeat) {
                None => false,
                Some(false) => true,
                Some(true) => {
                    ready = Some(*repeat);
                    false
                }
            }
        });
        self.tidy(port);
        ready
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        let times = self
            .0
            .values()
            .flat_map(|state| [state.congested_until, state.next_repeat]);
        times.flatten().min()
    }

    /// Removes a queue without state.
    fn tidy(&mut self, port: PortIndex) {
        if let Some(state) = self.0.get(&port)
            && state.congested_until.is_none()
            && state.waiting.is_empty()
        {
            self.0.remove(&port);
        }
    }
}
