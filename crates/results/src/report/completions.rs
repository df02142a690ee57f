//! The distribution of completion times.

use weir_units::{Duration, Time};

use super::figure::{AxisKind, Detail, Figure, Kind, Line};
use super::ranking::Ranking;
use crate::{RunSummary, Traces};

/// The number of points of a line at the finest detail.
const POINTS: usize = 240;

/// Returns the cumulative distribution of each group's completion times after the warm-up, over all transfers that began:
/// with unfinished ones it ends below 1. `None` if none is complete.
pub(super) fn figure(
    run: &RunSummary,
    traces: &Traces,
    ranking: &Ranking,
    detail: Detail,
) -> Option<Figure> {
    let from = Time::ZERO + run.warm_up;
    let mut unfinished = 0;
    let mut lines = Vec::new();
    for (name, trace) in &traces.transfers {
        let (times, of_group) = trace.since(from);
        unfinished += of_group;
        let per_point = detail.per_point(ranking.rank(Kind::Groups, name));
        if let Some(per_point) = per_point.filter(|_| !times.is_empty()) {
            lines.push(distribution(name, &times, of_group, per_point));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let mut caption = "The part of the transfers that took as long or less.".to_owned();
    if unfinished > 0 {
        caption += &format!(" {unfinished} unfinished ones are counted: the lines end below 1.");
    }
    Some(Figure {
        of: Some(Kind::Groups),
        axis: AxisKind::Completion,
        top: Some(1.0),
        caption,
        lines,
        ..Figure::over_time("completions", "Completion times (CDF)", "ratio")
    })
}

/// Returns the line of these times in ascending order.
fn distribution(name: &str, times: &[Duration], unfinished: u64, per_point: usize) -> Line {
    let began = times.len() as f64 + unfinished as f64;
    let points = (POINTS / per_point).clamp(4, times.len().max(4));
    let ranks = (0..=points).map(|step| (times.len() * step).div_ceil(points).max(1));
    let mut ranks: Vec<usize> = ranks.collect();
    ranks.dedup();
    Line::through(
        name,
        ranks.into_iter().map(|rank| {
            let time = times[rank - 1].as_secs_f64();
            (time.max(1e-9), rank as f64 / began)
        }),
    )
}

#[cfg(test)]
mod tests {
    use weir_counters::FlowCounters;
    use weir_units::{ByteSize, Rate};

    use super::*;
    use crate::FlowRecord;

    fn flow(start: u64, end: Option<u64>) -> FlowRecord<'static> {
        let at = |millis| Time::from_nanos(millis * 1_000_000);
        FlowRecord {
            group: "web",
            index: 0,
            source: "a",
            destination: "b",
            start: at(start),
            end: end.map(at),
            size: Some(ByteSize::from_bytes(1_000)),
            ideal: None,
            counters: FlowCounters::ZERO,
            goodput: Rate::ZERO,
            smoothed_rtt: None,
            min_rtt: None,
        }
    }

    #[test]
    fn unfinished_transfers_keep_the_line_below_the_top() {
        let mut traces = Traces::new(Duration::from_secs(1));
        // One of the warm-up, one of 10 ms, one of 100 ms, and two that did not end.
        let flows = [
            (0, Some(5)),
            (20, Some(30)),
            (20, Some(120)),
            (1, None),
            (30, None),
        ];
        for (start, end) in flows {
            traces.flow(&flow(start, end));
        }
        let run = RunSummary {
            warm_up: Duration::from_millis(10),
            ..RunSummary::default()
        };
        let figure = |traces| figure(&run, traces, &Ranking::default(), Detail::ALL[0]);
        let found = figure(&traces).unwrap();
        assert!(found.caption.contains("2 unfinished ones"));
        let line = &found.lines[0];
        assert_eq!(line.name, "web");
        assert_eq!(
            (&line.x[..], &line.y[..]),
            (&[0.01, 0.1][..], &[0.25, 0.5][..])
        );
        assert!(figure(&Traces::new(Duration::from_secs(1))).is_none());
    }

    #[test]
    fn the_slowest_transfer_is_in_every_line() {
        let times: Vec<_> = (1..=100_000).map(Duration::from_micros).collect();
        for per_point in [1, 16, 1_000] {
            let line = distribution("g", &times, 0, per_point);
            assert_eq!(line.x.last(), Some(&0.1));
            assert_eq!(line.y.last(), Some(&1.0));
            assert!(line.x.len() <= POINTS + 1);
        }
    }
}
