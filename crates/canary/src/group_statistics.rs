//! The statistics of one group of connections: in the last seconds, and since the beginning.

use std::collections::BTreeMap;

use weir_units::{ByteSize, Duration, Time};

use crate::connections::Connections;
use crate::segments::SegmentCounts;
use crate::snapshot::Values;
use crate::{ConnectionRecord, ConnectionState, Snapshot, Summary};

/// Connections that deliver at most so much are short: their durations are compared.
pub const SHORT: ByteSize = ByteSize::from_bytes(100_000);

/// The statistics of a group, in memory that does not grow with the number of connections or with time.
#[derive(Debug)]
pub struct GroupStatistics {
    /// The whole seconds that are kept.
    window: u64,
    seconds: BTreeMap<u64, Period>,
    total: Period,
    connections: Connections,
}

/// What was counted in a second, or since the beginning.
#[derive(Clone, Debug, Default)]
struct Period {
    segments: SegmentCounts,
    delivered: ByteSize,
    completed: u64,
    values: Values,
}

impl Period {
    fn merge(&mut self, other: &Self) {
        self.segments.merge(&other.segments);
        self.delivered += other.delivered;
        self.completed += other.completed;
        self.values.merge(&other.values);
    }
}

impl GroupStatistics {
    /// Creates the statistics of a group of which the last `window` can be summarized, in whole seconds.
    pub fn new(window: Duration) -> Self {
        Self {
            window: seconds(window).max(1),
            seconds: BTreeMap::new(),
            total: Period::default(),
            connections: Connections::default(),
        }
    }

    /// Takes in a record that was made at a time. Records may come in any order.
    pub fn record(&mut self, at: Time, record: &ConnectionRecord) {
        let Some(increase) = self.connections.update(at, record) else {
            return;
        };
        let add = |period: &mut Period| {
            let (sent, retransmitted) = (increase.sent, increase.retransmitted);
            (period.segments).add(record.connection, sent, retransmitted);
            period.delivered += increase.delivered;
            if record.state == ConnectionState::Completed {
                period.completed += 1;
                period.values.add(record);
            }
        };
        add(&mut self.total);
        let second = second(at);
        let newest = self
            .seconds
            .last_key_value()
            .map_or(second, |(newest, _)| *newest);
        if second + self.window > newest {
            add(self.seconds.entry(second).or_default());
            self.drop_before(newest.max(second));
        }
    }

    /// Forgets seconds that have left the window, and connections that have been silent for long.
    pub fn forget_old(&mut self, now: Time) {
        self.drop_before(second(now));
        self.connections.forget_silent(now);
    }

    fn drop_before(&mut self, newest: u64) {
        let first = (newest + 1).saturating_sub(self.window);
        while let Some(entry) = self
            .seconds
            .first_entry()
            .filter(|entry| *entry.key() < first)
        {
            entry.remove();
        }
    }

    /// Returns what happened in the last seconds: this one and those before it in the span, which is at most the
    /// window. An open connection counts if it has been reported since.
    pub fn snapshot_of_last(&self, now: Time, span: Duration) -> Snapshot {
        let first = (second(now) + 1).saturating_sub(seconds(span));
        let mut period = Period::default();
        for (_, other) in self.seconds.range(first..) {
            period.merge(other);
        }
        self.snapshot(period, Time::ZERO + Duration::from_secs(first))
    }

    /// Summarizes the same.
    pub fn summary_of_last(&self, now: Time, span: Duration) -> Summary {
        self.snapshot_of_last(now, span).summary()
    }

    /// Summarizes everything since the beginning.
    pub fn summary_of_all(&self) -> Summary {
        self.snapshot(self.total.clone(), Time::ZERO).summary()
    }

    /// Adds the open connections that have been reported since a time.
    fn snapshot(&self, period: Period, since: Time) -> Snapshot {
        let Period {
            segments,
            delivered,
            completed,
            mut values,
        } = period;
        let mut connections = completed;
        for record in self.connections.reported_since(since) {
            connections += 1;
            values.add(record);
        }
        Snapshot {
            segments,
            delivered,
            connections,
            completed,
            values,
            ..Snapshot::default()
        }
    }

    /// Returns how many seconds, open connections and completed connections are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize, usize) {
        let (open, completed) = self.connections.kept();
        (self.seconds.len(), open, completed)
    }
}

/// Returns the second that a time is in.
fn second(at: Time) -> u64 {
    seconds(at.since(Time::ZERO))
}

/// Returns the whole seconds of a span.
fn seconds(span: Duration) -> u64 {
    span.as_nanos() / 1_000_000_000
}
