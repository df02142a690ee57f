//! The part of a closed loop in which all connections are open: only then do calls use the whole load
//! that the transport can carry, and not handshakes a part of it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Counts the calls since all connections are open.
#[derive(Debug)]
pub(super) struct Saturation {
    /// Connections that are still to be opened.
    missing: Cell<u32>,
    /// The time since when all are open.
    since: Cell<Option<Instant>>,
    /// The calls since then, and the end of the last one.
    calls: Cell<u64>,
    last: Cell<Option<Instant>>,
}

impl Saturation {
    /// Returns a count that begins with the last of `connections`.
    pub(super) fn new(connections: u32) -> Self {
        Self {
            missing: Cell::new(connections),
            since: Cell::new(None),
            calls: Cell::new(0),
            last: Cell::new(None),
        }
    }

    /// Notes that a connection is open.
    pub(super) fn opened(&self) {
        self.missing.set(self.missing.get().saturating_sub(1));
        if self.missing.get() == 0 {
            self.since.set(Some(Instant::now()));
        }
    }

    /// Notes that a call has succeeded.
    pub(super) fn called(&self) {
        if self.since.get().is_some() {
            self.calls.set(self.calls.get() + 1);
            self.last.set(Some(Instant::now()));
        }
    }

    /// Returns the calls since all connections were open; zero if one could not be opened.
    pub(super) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// Returns the time from then to the end of the last call.
    pub(super) fn elapsed(&self) -> Duration {
        let both = self.since.get().zip(self.last.get());
        both.map_or(Duration::ZERO, |(since, last)| last - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_once_all_connections_are_open() {
        let saturation = Saturation::new(2);
        saturation.opened();
        saturation.called();
        assert_eq!(
            (saturation.calls(), saturation.elapsed()),
            (0, Duration::ZERO)
        );
        saturation.opened();
        saturation.called();
        saturation.called();
        assert_eq!(saturation.calls(), 2);
    }
}
