//! What a controller shows of itself to those who want to see it.

use weir_units::{ByteSize, Duration, Rate, Time};

use super::{Controller, PortState};
use crate::message::PortId;
use crate::table::Entry;

/// How a flow stands to its deadline, at the window that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slack {
    /// The rest will be there so long before it.
    Early(Duration),
    /// The rest will be there so long after it.
    Late(Duration),
}

impl Controller {
    /// The ports that are looked after, and how each stands.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, PortState)> {
        self.ports.iter().map(|(id, port)| (*id, port.state))
    }

    /// How a port stands, if it is looked after.
    pub fn port(&self, id: PortId) -> Option<PortState> {
        Some(self.ports.get(&id)?.state)
    }

    /// The flows of a port by priority.
    pub fn flows(&self, port: PortId) -> impl Iterator<Item = &Entry> {
        let port = self.ports.get(&port);
        port.into_iter().flat_map(|port| port.table.iter())
    }

    /// How many flows are in its tables.
    pub fn flow_count(&self) -> usize {
        self.places.len()
    }
}

impl Entry {
    /// The window in bytes, if it is governed.
    pub fn window_size(&self) -> Option<ByteSize> {
        let segments = self.window?;
        Some(ByteSize::from_bytes(
            u64::from(segments) * u64::from(self.segment),
        ))
    }

    /// How it stands to its deadline with a window's worth in each round-trip time; nothing without a
    /// deadline or without a window.
    pub fn slack(&self, now: Time, rtt: Duration) -> Option<Slack> {
        let job = self.job(now)?;
        let window = self.window_size().filter(|window| !window.is_zero())?;
        let rate = Rate::from_size_over(window, rtt);
        let needed = rate.time_for(job.size);
        let late_by = now.checked_since(self.deadline()).unwrap_or(Duration::ZERO);
        Some(match job.due.checked_sub(needed) {
            Some(slack) if late_by.is_zero() => Slack::Early(slack),
            _ => {
                let late = needed.abs_diff(job.due).checked_add(late_by);
                Slack::Late(late.unwrap_or(Duration::MAX))
            }
        })
    }
}
