//! The connections whose last record is still to come.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use weir_units::{ByteSize, Duration, Time};

use crate::{ConnectionRecord, ConnectionState};

/// The number of open connections that are followed; of others, only the last record counts.
pub(crate) const MOST_OPEN: usize = 65_536;
/// How many of those that completed last are remembered: late records of them do not count.
pub(crate) const MOST_COMPLETED: usize = 8_192;
/// A connection without a record for so long has ended unnoticed.
const SILENCE: Duration = Duration::from_secs(600);

/// What a record adds to those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Increase {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) delivered: ByteSize,
}

/// The last records of connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: FxHashMap<u64, (Time, ConnectionRecord)>,
    completed: FxHashSet<u64>,
    /// The same, in the order in which they completed.
    order: VecDeque<u64>,
}

impl Connections {
    /// Takes a record in, and returns what it adds; `None` if it does not count.
    pub(crate) fn update(&mut self, at: Time, record: &ConnectionRecord) -> Option<Increase> {
        if self.completed.contains(&record.connection) {
            return None;
        }
        let known = self.open.get(&record.connection);
        if known.is_none() && record.state == ConnectionState::Open && self.open.len() >= MOST_OPEN
        {
            return None;
        }
        let increase = known.map_or(whole(record), |(_, known)| since(known, record));
        match record.state {
            ConnectionState::Completed => {
                self.open.remove(&record.connection);
                self.remember(record.connection);
            }
            ConnectionState::Open => self.keep(at, record),
        }
        Some(increase)
    }

    fn keep(&mut self, at: Time, record: &ConnectionRecord) {
        let entry = self.open.entry(record.connection);
        let (newest, kept) = entry.or_insert_with(|| (at, record.clone()));
        let highest = |record: &ConnectionRecord, other: &ConnectionRecord| ConnectionRecord {
            segments_sent: record.segments_sent.max(other.segments_sent),
            segments_retransmitted: { record.segments_retransmitted }
                .max(other.segments_retransmitted),
            delivered: record.delivered.max(other.delivered),
            ..record.clone()
        };
        // A record may be overtaken by a newer one.
        if at >= *newest {
            *newest = at;
            *kept = highest(record, kept);
        } else {
            *kept = highest(kept, record);
        }
    }

    fn remember(&mut self, connection: u64) {
        self.completed.insert(connection);
        self.order.push_back(connection);
        if self.order.len() > MOST_COMPLETED
            && let Some(oldest) = self.order.pop_front()
        {
            self.completed.remove(&oldest);
        }
    }

    /// Forgets the connections that have been silent for long.
    pub(crate) fn forget_silent(&mut self, now: Time) {
        self.open.retain(|_, (at, _)| now.since(*at) < SILENCE);
    }

    /// Returns the last records that are not older than `since`.
    pub(crate) fn reported_since(&self, since: Time) -> impl Iterator<Item = &ConnectionRecord> {
        let open = self.open.values();
        open.filter(move |(at, _)| *at >= since)
            .map(|(_, record)| record)
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.open.len(), self.order.len())
    }
}

fn whole(record: &ConnectionRecord) -> Increase {
    Increase {
        sent: record.segments_sent,
        retransmitted: record.segments_retransmitted,
        delivered: record.delivered,
    }
}

fn since(known: &ConnectionRecord, record: &ConnectionRecord) -> Increase {
    let more = |new: u64, old: u64| new.saturating_sub(old);
    Increase {
        sent: more(record.segments_sent, known.segments_sent),
        retransmitted: more(record.segments_retransmitted, known.segments_retransmitted),
        delivered: ByteSize::from_bytes(more(record.delivered.bytes(), known.delivered.bytes())),
    }
}
