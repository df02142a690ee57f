//! Read access to a controller's state.

use weir_units::{ByteSize, Duration, Rate, Time};

use super::{Controller, PortState};
use crate::message::PortId;
use crate::table::Entry;

/// The time between a flow's expected completion, at its current window, and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slack {
    /// It completes this long before the deadline.
    Early(Duration),
    /// It completes this long after the deadline.
    Late(Duration),
}

impl Controller {
    /// Returns the controlled ports with their state.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, PortState)> {
        self.ports.iter().map(|(id, port)| (*id, port.state))
    }

    /// Returns the state of a port, if it is controlled.
    pub fn port(&self, id: PortId) -> Option<PortState> {
        Some(self.ports.get(&id)?.state)
    }

    /// Returns the flows of a port by priority.
    pub fn flows(&self, port: PortId) -> impl Iterator<Item = &Entry> {
        let port = self.ports.get(&port);
        port.into_iter().flat_map(|port| port.table.iter())
    }

    /// Returns the number of flows in all tables.
    pub fn flow_count(&self) -> usize {
        self.egress_ports.len()
    }
}

impl Entry {
    /// Returns the window in bytes, if it is limited.
    pub fn window_size(&self) -> Option<ByteSize> {
        let segments = self.window?;
        Some(ByteSize::from_bytes(
            u64::from(segments) * u64::from(self.segment),
        ))
    }

    /// Returns the slack to the deadline with one window per RTT; `None` without a deadline or a
    /// window.
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
