//! The scheduled faults of a run, by time and by epoch.

use weir_fabric::PortChange;
use weir_network::faults;
use weir_scenario::{PortIndex, Scenario};
use weir_units::Time;

/// An event at a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PortEvent {
    /// Its link changes.
    Change(PortChange),
    /// Its host gets another address at this port.
    Address,
}

/// The pending events, the next one last.
#[derive(Debug)]
pub(super) struct EventSchedule {
    by_time: Vec<(Time, PortIndex, PortEvent)>,
    by_epoch: Vec<(u32, PortIndex, PortEvent)>,
}

impl EventSchedule {
    /// Schedules a scenario's faults.
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            by_time: merged(faults::changes(scenario), faults::address_changes(scenario)),
            by_epoch: merged(
                faults::epoch_changes(scenario),
                faults::epoch_address_changes(scenario),
            ),
        }
    }

    /// Returns the time of the next event.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.by_time.last().map(|(time, ..)| *time)
    }

    /// Takes the next event that is due by `now`.
    pub(super) fn due(&mut self, now: Time) -> Option<(PortIndex, PortEvent)> {
        let next = self.by_time.pop_if(|(time, ..)| *time <= now)?;
        Some((next.1, next.2))
    }

    /// Takes the next event that is due at the start of this epoch.
    pub(super) fn due_in_epoch(&mut self, epoch: u64) -> Option<(PortIndex, PortEvent)> {
        let next = self
            .by_epoch
            .pop_if(|(number, ..)| u64::from(*number) <= epoch)?;
        Some((next.1, next.2))
    }
}

/// Merges both lists, the latest event first.
fn merged<T: Ord + Copy>(
    changes: Vec<(T, PortIndex, PortChange)>,
    addresses: Vec<(T, PortIndex)>,
) -> Vec<(T, PortIndex, PortEvent)> {
    let changes = changes.into_iter();
    let changes = changes.map(|(at, port, change)| (at, port, PortEvent::Change(change)));
    let addresses = addresses.into_iter();
    let addresses = addresses.map(|(at, port)| (at, port, PortEvent::Address));
    let mut all: Vec<_> = changes.chain(addresses).collect();
    // The sort is stable: simultaneous events keep the file's order.
    all.sort_by_key(|(at, ..)| *at);
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use weir_units::Duration;

    use super::*;

    #[test]
    fn events_are_ordered_by_time_and_by_epoch() {
        let text = r#"
            title = "A script"
            source = "a test"
            duration = "10s"
            [dumbbell]
            rate = "1Gbps"
            queue = { kind = "drop-tail", buffer = "100KB" }
            [dumbbell.senders.sender]
            rtt = "100us"
            [groups.steps]
            from = "sender"
            to = "receiver"
            workload = { kind = "epochs", request = "100B", response = "1KB", count = 10 }
            [[faults]]
            kind = "down"
            ports = "bottleneck"
            at = "1s"
            until = "2s"
            [[faults]]
            kind = "address"
            ports = "sender->switch"
            at = "1500ms"
            [[faults]]
            kind = "delay"
            ports = "bottleneck"
            at_epoch = 3
            until_epoch = 5
            delay = "1ms"
        "#;
        let scenario = Scenario::parse("test.toml", text, &[]).unwrap().scenario;
        let mut script = EventSchedule::new(&scenario);
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        assert_eq!(script.timeout(), Some(at(1000)));
        assert_eq!(script.due(at(999)), None);
        let due: Vec<_> = std::iter::from_fn(|| script.due(at(5000)))
            .map(|(_, happening)| happening)
            .collect();
        assert_eq!(
            due,
            [
                PortEvent::Change(PortChange::Down(true)),
                PortEvent::Address,
                PortEvent::Change(PortChange::Down(false))
            ]
        );
        assert_eq!(script.timeout(), None);
        assert_eq!(script.due_in_epoch(2), None);
        assert!(script.due_in_epoch(3).is_some() && script.due_in_epoch(4).is_none());
        assert!(script.due_in_epoch(9).is_some() && script.due_in_epoch(9).is_none());
    }
}
