//! Records in any order, repeated, lost, and many of them.

use proptest::prelude::*;

use super::*;
use crate::GroupStatistics;
use crate::connections::{MOST_COMPLETED, MOST_OPEN};

const SPAN: Duration = Duration::from_secs(30);

fn open(connection: u64, sent: u64, retransmitted: u64) -> ConnectionRecord {
    ConnectionRecord {
        segments_sent: sent,
        segments_retransmitted: retransmitted,
        state: ConnectionState::Open,
        ..record(connection)
    }
}

#[test]
fn a_window_has_what_was_done_in_it() {
    let mut statistics = GroupStatistics::new(SPAN);
    statistics.record(at(0), &open(1, 100, 10));
    statistics.record(at(0), &record(2));
    statistics.record(at(40_000), &open(1, 150, 11));
    statistics.record(at(40_000), &open(3, 7, 0));
    let summary = statistics.summary_of_last(at(40_500), SPAN);
    let counts = (
        summary.segments_sent,
        summary.segments_retransmitted,
        summary.connections,
    );
    assert_eq!(counts, (57, 1, 2));
    let summary = statistics.summary_of_all();
    let counts = (
        summary.segments_sent,
        summary.segments_retransmitted,
        summary.connections,
    );
    assert_eq!(counts, (167, 11, 3));
    let summary = statistics.summary_of_last(at(80_000), SPAN);
    assert_eq!((summary.segments_sent, summary.connections), (0, 0));
    assert_eq!((summary.retransmits, summary.rtt), (None, None));
}

#[test]
fn only_short_connections_that_delivered_and_ended_count_as_completions() {
    let mut statistics = GroupStatistics::new(SPAN);
    let with = |connection, bytes| ConnectionRecord {
        delivered: ByteSize::from_bytes(bytes),
        ..record(connection)
    };
    statistics.record(at(0), &with(1, 100_000));
    statistics.record(at(0), &with(2, 100_001));
    statistics.record(at(0), &with(3, 0));
    statistics.record(at(0), &open(4, 1, 0));
    let summary = statistics.summary_of_all();
    assert_eq!(summary.completion.unwrap().connections, 1);
    assert_eq!(
        (summary.completed, summary.rtt.unwrap().connections),
        (3, 4)
    );
}

#[test]
fn memory_is_bounded() {
    let mut statistics = GroupStatistics::new(SPAN);
    let many = MOST_OPEN as u64 + 1000;
    for connection in 0..many {
        statistics.record(at(connection), &open(connection, 10, 1));
    }
    for connection in many..many + 20_000 {
        statistics.record(at(2 * connection), &record(connection));
    }
    assert_eq!(statistics.kept(), (30, MOST_OPEN, MOST_COMPLETED));
    // The last record of a connection that found no place counts in full.
    let before = statistics.summary_of_all();
    let late = ConnectionRecord {
        segments_sent: 500,
        ..record(MOST_OPEN as u64 + 5)
    };
    statistics.record(at(3 * many), &late);
    let after = statistics.summary_of_all();
    assert_eq!(after.segments_sent - before.segments_sent, 500);
    statistics.forget_old(at(3 * many) + Duration::from_secs(1000));
    assert_eq!(statistics.kept(), (0, 0, MOST_COMPLETED));
}

/// A report of one of a few connections: its counts after so many steps, and whether it has ended.
fn reports() -> impl Strategy<Value = Vec<(u64, ConnectionRecord)>> {
    let one = (0_u64..6, 0_u64..60, 0_u64..50_000);
    proptest::collection::vec(one, 0..60).prop_map(|steps| {
        let reports = steps.into_iter().map(|(connection, step, millis)| {
            let state = match step {
                50.. => ConnectionState::Completed,
                _ => ConnectionState::Open,
            };
            // The last record is the same, whenever it is repeated.
            let step = step.min(50);
            let delivered = ByteSize::from_bytes(step * 1000);
            let record = open(connection, step * (connection + 1), step / 3);
            (
                millis,
                ConnectionRecord {
                    delivered,
                    state,
                    ..record
                },
            )
        });
        reports.collect()
    })
}

proptest! {
    /// Whatever the order of the records, each connection counts once, with its highest counts.
    #[test]
    fn totals_do_not_depend_on_the_order(reports in reports(), seed: u64) {
        let mut shuffled = reports.clone();
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        for place in (1..shuffled.len()).rev() {
            shuffled.swap(place, (random.next_u64() % (place as u64 + 1)) as usize);
        }
        let total = |reports: &[(u64, ConnectionRecord)]| {
            let mut statistics = GroupStatistics::new(SPAN);
            for (millis, record) in reports {
                statistics.record(at(*millis), record);
            }
            statistics.summary_of_all()
        };
        let (one, other) = (total(&reports), total(&shuffled));
        let highest = |connection: u64| {
            let of = reports.iter().filter(|(_, record)| record.connection == connection);
            of.map(|(_, record)| record.segments_sent).max()
        };
        let known: Vec<_> = (0..6).filter_map(highest).collect();
        prop_assert_eq!(one.segments_sent, known.iter().sum::<u64>());
        prop_assert_eq!(one.connections, known.len() as u64);
        let counts = |summary: &crate::Summary| {
            let crate::Summary { segments_sent, segments_retransmitted, delivered, connections, completed, .. } = summary;
            (*segments_sent, *segments_retransmitted, *delivered, *connections, *completed)
        };
        prop_assert_eq!(counts(&one), counts(&other));
        prop_assert_eq!(one.retransmits, other.retransmits);
    }
}
