//! The plot of the distribution of completion times.

use std::fmt::Write as _;

use weir_units::{Duration, Time};

use super::chart::{Chart, Line, LogAxis, Point, Tick};
use super::plot::Size;
use super::plots::COLOURS;
use crate::quantity::{TIMES, in_scale};
use crate::{RunSummary, Traces};

/// The number of points of a line.
const POINTS: usize = 200;

/// Draws the cumulative distribution of each group's completion times after the warm-up, over all transfers that began:
/// with unfinished ones it ends below 100 %. Draws nothing if none is complete.
pub(super) fn draw(out: &mut String, run: &RunSummary, traces: &Traces) {
    let from = Time::ZERO + run.warm_up;
    let groups = traces.transfers.iter().map(|(name, trace)| {
        let (times, unfinished) = trace.since(from);
        (name, times, unfinished)
    });
    let groups: Vec<_> = groups.filter(|(_, times, _)| !times.is_empty()).collect();
    let seconds = |time: &Duration| time.as_secs_f64().max(1e-9);
    let all = || {
        groups
            .iter()
            .flat_map(|(_, times, _)| times.iter().map(seconds))
    };
    let (Some(least), Some(most)) = (all().reduce(f64::min), all().reduce(f64::max)) else {
        return;
    };
    let axis = LogAxis::around(least, most);
    let lines = groups
        .iter()
        .enumerate()
        .map(|(index, (name, times, unfinished))| {
            let began = times.len() as f64 + *unfinished as f64;
            let rank = |step: usize| (times.len() * step).div_ceil(POINTS).max(1);
            let points = (0..=POINTS).map(|step| {
                let rank = rank(step);
                Point {
                    x: axis.at(seconds(&times[rank - 1])),
                    y: rank as f64 / began,
                    text: String::new(),
                    ends: None,
                }
            });
            Line {
                label: (*name).clone(),
                colour: index % COLOURS,
                points: points.collect(),
                ..Line::default()
            }
        });
    let up = [0.0, 0.25, 0.5, 0.75, 1.0].map(|at| Tick {
        at,
        text: format!("{:.0} %", 100.0 * at),
    });
    let chart = Chart {
        title: "Completion times".to_owned(),
        across: axis.ticks(|time| in_scale(time, TIMES)),
        across_name: "completion time".to_owned(),
        up: up.into(),
        up_name: "of transfers".to_owned(),
        lines: lines.collect(),
    };
    let unfinished: u64 = groups.iter().map(|(.., unfinished)| unfinished).sum();
    let _ = write!(out, "<h2>{}</h2>\n<figure>", chart.title);
    chart.write(out, Size::Wide);
    let _ = write!(
        out,
        "<figcaption>The part of the transfers that took as long or less."
    );
    if unfinished > 0 {
        let _ = write!(
            out,
            " {unfinished} unfinished ones are counted: the lines end below 100 %."
        );
    }
    out.push_str("</figcaption></figure>\n");
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
        let mut out = String::new();
        draw(&mut out, &run, &traces);
        assert!(out.contains("2 unfinished ones"), "{out}");
        // From 12 to 244 pixels: the line ends at the half, from a quarter.
        let points = out.split("class=\"line s0\" points=\"").nth(1).unwrap();
        let points: Vec<_> = points.split('"').next().unwrap().split(' ').collect();
        assert_eq!(points[0], "58.0,186.0");
        assert_eq!(*points.last().unwrap(), "878.0,128.0");
        let mut out = String::new();
        draw(&mut out, &run, &Traces::new(Duration::from_secs(1)));
        assert_eq!(out, "");
    }
}
