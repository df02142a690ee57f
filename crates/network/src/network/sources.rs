//! The event sources beside the packets on the links: ports that hold their packets, and the elements of
//! switches. Networks without faults and elements have none.

use weir_units::Time;

use crate::event_queue::EventQueue;

/// An event source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSource {
    /// A port that holds its packets delivers one.
    Port(u32),
    /// The elements of a switch have a timeout.
    Elements(u32),
}

/// The next event of each source. At the same time the lower port comes first, and elements last.
#[derive(Debug)]
pub(super) struct EventSources {
    sources: Vec<EventSource>,
    /// By port of the topology, then by switch.
    numbers: Vec<u32>,
    ports: usize,
    event_queue: EventQueue,
}

/// What has no events of its own.
const NONE: u32 = u32::MAX;

impl EventSources {
    /// Creates the sources of a network with this number of ports.
    pub(super) fn new(ports: usize, holding: &[usize], with_elements: &[usize]) -> Self {
        let switches = with_elements.last().map_or(0, |last| last + 1);
        let mut numbers = vec![NONE; ports + switches];
        let mut sources = Vec::new();
        for port in holding {
            numbers[*port] = sources.len() as u32;
            sources.push(EventSource::Port(*port as u32));
        }
        for switch in with_elements {
            numbers[ports + switch] = sources.len() as u32;
            sources.push(EventSource::Elements(*switch as u32));
        }
        Self {
            event_queue: EventQueue::new(sources.len()),
            sources,
            numbers,
            ports,
        }
    }

    /// Returns the first event.
    #[inline]
    pub(super) fn first(&self) -> Option<(Time, EventSource)> {
        let (time, number) = self.event_queue.first();
        if time >= self.event_queue.horizon() {
            return None;
        }
        Some((time, *self.sources.get(number)?))
    }

    /// Returns the first time that cannot be simulated.
    pub(super) fn horizon(&self) -> Time {
        self.event_queue.horizon()
    }

    /// Sets when a port that holds its packets delivers next.
    #[inline]
    pub(super) fn set_port(&mut self, port: u32, time: Option<Time>) {
        self.set(port as usize, time);
    }

    /// Sets the timeout of a switch's elements.
    #[inline]
    pub(super) fn set_elements(&mut self, switch: u32, time: Time) {
        self.set(self.ports + switch as usize, Some(time));
    }

    #[inline]
    fn set(&mut self, index: usize, time: Option<Time>) {
        if let Some(number) = self.numbers.get(index).filter(|number| **number != NONE) {
            let time = time.unwrap_or(Time::MAX);
            self.event_queue.set(*number as usize, time);
        }
    }
}

impl Default for EventSources {
    fn default() -> Self {
        Self::new(0, &[], &[])
    }
}
