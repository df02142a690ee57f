//! What connections did in some time, in a form that can be sent and merged with that of other hosts.

use weir_units::{ByteSize, Duration};

use crate::histogram::Histogram;
use crate::segments::SegmentCounts;
use crate::{ConnectionRecord, ConnectionState, SHORT, Summary};

/// A nanosecond, in seconds.
const NANOSECOND: f64 = 1e-9;
/// What busy parts of processors are counted in.
const MILLIONTH: f64 = 1e-6;

/// What a group of connections did in some time, on one host or on several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub(crate) segments: SegmentCounts,
    pub(crate) delivered: ByteSize,
    pub(crate) connections: u64,
    pub(crate) completed: u64,
    pub(crate) values: Values,
    pub(crate) cpu: Histogram,
}

/// The numbers of a [`Snapshot`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotParts {
    /// Segments sent and retransmitted, of at most 32 batches of connections.
    pub segments: Vec<(u64, u64)>,
    /// Bytes acknowledged.
    pub delivered: u64,
    /// Connections that ended, or were reported as open.
    pub connections: u64,
    /// Of these, those that ended.
    pub completed: u64,
    /// The bins of the distributions and how many values are in each: of smoothed and minimum round-trip times,
    /// delivery rates, durations of short connections, and busy parts of processors.
    pub distributions: [Vec<(u16, u64)>; 5],
}

impl Snapshot {
    /// Returns the same with the busy part of a host's processors, from 0 to 1.
    pub fn with_cpu(mut self, busy: f64) -> Self {
        self.cpu = Histogram::default();
        self.cpu
            .add((busy.clamp(0.0, 1.0) / MILLIONTH).round() as u64);
        self
    }

    /// Adds what other connections did. Counts stop at the largest number.
    pub fn merge(&mut self, other: &Self) {
        self.segments.merge(&other.segments);
        let delivered = self.delivered.bytes();
        self.delivered = ByteSize::from_bytes(delivered.saturating_add(other.delivered.bytes()));
        self.connections = self.connections.saturating_add(other.connections);
        self.completed = self.completed.saturating_add(other.completed);
        self.values.merge(&other.values);
        self.cpu.merge(&other.cpu);
    }

    /// Returns the figures.
    pub fn summary(&self) -> Summary {
        let Self {
            segments,
            values,
            connections,
            ..
        } = self;
        let (sent, retransmitted) = segments.totals();
        Summary {
            connections: *connections,
            completed: self.completed,
            segments_sent: sent,
            segments_retransmitted: retransmitted,
            delivered: self.delivered,
            retransmits: segments.estimate(*connections),
            rtt: values.rtt.quantile(0.5, NANOSECOND),
            rtt_min: values.rtt_min.quantile(0.5, NANOSECOND),
            delivery_rate: values.delivery_rate.quantile(0.5, 1.0),
            completion: values.completion.quantile(0.5, NANOSECOND),
            completion_p99: values.completion.quantile(0.99, NANOSECOND),
            cpu: self.cpu.quantile(0.5, MILLIONTH),
        }
    }

    /// Returns the numbers.
    pub fn parts(&self) -> SnapshotParts {
        let distributions = [
            &self.values.rtt,
            &self.values.rtt_min,
            &self.values.delivery_rate,
            &self.values.completion,
            &self.cpu,
        ];
        SnapshotParts {
            segments: self.segments.batches().collect(),
            delivered: self.delivered.bytes(),
            connections: self.connections,
            completed: self.completed,
            distributions: distributions.map(|histogram| histogram.bins().collect()),
        }
    }

    /// Creates a snapshot from its numbers; `None` if there are no such batches or bins.
    pub fn of_parts(parts: SnapshotParts) -> Option<Self> {
        let [rtt, rtt_min, delivery_rate, completion, cpu] =
            parts.distributions.map(Histogram::of_bins);
        Some(Self {
            segments: SegmentCounts::of_batches(&parts.segments)?,
            delivered: ByteSize::from_bytes(parts.delivered),
            connections: parts.connections,
            completed: parts.completed,
            values: Values {
                rtt: rtt?,
                rtt_min: rtt_min?,
                delivery_rate: delivery_rate?,
                completion: completion?,
            },
            cpu: cpu?,
        })
    }
}

/// The distributions of what each connection has one value of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    pub(crate) rtt: Histogram,
    pub(crate) rtt_min: Histogram,
    pub(crate) delivery_rate: Histogram,
    pub(crate) completion: Histogram,
}

impl Values {
    /// Adds the connection of a record.
    pub(crate) fn add(&mut self, record: &ConnectionRecord) {
        let mut add_time = |histogram: fn(&mut Self) -> &mut Histogram, time: Option<Duration>| {
            if let Some(time) = time {
                histogram(self).add(time.as_nanos());
            }
        };
        add_time(|values| &mut values.rtt, record.rtt_smoothed);
        add_time(|values| &mut values.rtt_min, record.rtt_min);
        add_time(|values| &mut values.completion, completion(record));
        if let Some(rate) = record.delivery_rate {
            self.delivery_rate.add(rate.bits_per_second());
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.rtt.merge(&other.rtt);
        self.rtt_min.merge(&other.rtt_min);
        self.delivery_rate.merge(&other.delivery_rate);
        self.completion.merge(&other.completion);
    }
}

/// Returns the duration of a short connection that has delivered something and has ended.
fn completion(record: &ConnectionRecord) -> Option<Duration> {
    let is_short = record.delivered > ByteSize::ZERO && record.delivered <= SHORT;
    (is_short && record.state == ConnectionState::Completed).then_some(record.duration)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_policy::Group;
    use weir_units::Time;

    use super::*;
    use crate::{GroupStatistics, RuleId};

    fn statistics(records: &[(u64, u16, u16)]) -> GroupStatistics {
        let mut statistics = GroupStatistics::new(Duration::from_secs(30));
        for (connection, sent, micros) in records {
            statistics.record(
                Time::ZERO,
                &ConnectionRecord {
                    rule: RuleId(0),
                    group: Group::Treated,
                    connection: *connection,
                    segments_sent: u64::from(*sent) + 1,
                    segments_retransmitted: u64::from(*sent) / 2,
                    rtt_smoothed: Some(Duration::from_micros(u64::from(*micros))),
                    rtt_min: None,
                    delivery_rate: None,
                    duration: Duration::from_micros(2 * u64::from(*micros)),
                    delivered: ByteSize::from_bytes(1000),
                    state: ConnectionState::Completed,
                },
            );
        }
        statistics
    }

    fn of(records: &[(u64, u16, u16)]) -> Snapshot {
        statistics(records).snapshot_of_last(Time::ZERO, Duration::from_secs(10))
    }

    proptest! {
        /// What hosts have counted apart is what one would have counted of all their connections.
        #[test]
        fn merged_snapshots_are_those_of_all_connections(
            one in proptest::collection::btree_map(0_u64..1000, any::<(u16, u16)>(), 0..60),
            other in proptest::collection::btree_map(1000_u64..2000, any::<(u16, u16)>(), 0..60),
        ) {
            let list = |map: &std::collections::BTreeMap<u64, (u16, u16)>| -> Vec<_> {
                map.iter().map(|(connection, (sent, micros))| (*connection, *sent, *micros)).collect()
            };
            let (one, other) = (list(&one), list(&other));
            let mut merged = of(&one);
            merged.merge(&of(&other));
            prop_assert_eq!(&merged, &of(&[one, other].concat()));
            prop_assert_eq!(Snapshot::of_parts(merged.parts()), Some(merged));
        }

        #[test]
        fn any_numbers_are_a_snapshot_or_refused(
            segments in proptest::collection::vec(any::<(u64, u64)>(), 0..40),
            bins in proptest::collection::vec(any::<(u16, u64)>(), 0..40),
            connections: u64,
        ) {
            let distributions = std::array::from_fn(|_| bins.clone());
            let parts = SnapshotParts { segments, delivered: u64::MAX, connections, completed: u64::MAX, distributions };
            if let Some(mut snapshot) = Snapshot::of_parts(parts) {
                let other = snapshot.clone();
                snapshot.merge(&other);
                snapshot.summary();
            }
        }
    }

    #[test]
    fn processors_are_compared_by_their_busy_parts() {
        let mut hosts = Snapshot::default();
        for host in 0..40 {
            hosts.merge(&Snapshot::default().with_cpu(0.5 + f64::from(host % 2) / 1000.0));
        }
        let cpu = hosts.summary().cpu.unwrap();
        assert!(
            (cpu.value - 0.5).abs() < 0.01 && cpu.connections == 40,
            "{cpu:?}"
        );
    }
}
