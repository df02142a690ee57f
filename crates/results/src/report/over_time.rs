//! The figures of a run over time, and over epochs.

use indexmap::IndexMap;

use super::fairness;
use super::figure::{AxisKind, Detail, Figure, Kind, Level, Line};
use super::ranking::{Ranking, flow_name};
use super::{RunPlots, Threshold};
use crate::trace::{
    COLUMNS, CounterTrace, EpochTrace, FlowTrace, GaugeTrace, GroupTrace, PortTrace,
};
use crate::{RunSummary, Traces};

const BAND: &str = "Line: mean of the samples; shade: least to greatest.";

/// The figures of one run at one detail.
struct Run<'r> {
    plots: &'r RunPlots<'r>,
    ranking: &'r Ranking,
    detail: Detail,
}

/// Returns the figures over time, without those that have no lines.
pub(super) fn figures(
    run: &RunSummary,
    plots: &RunPlots<'_>,
    ranking: &Ranking,
    detail: Detail,
) -> Vec<Figure> {
    let of_run = Run {
        plots,
        ranking,
        detail,
    };
    let figures = [
        of_run.queue(),
        of_run.goodput(),
        of_run.window(),
        of_run.port_rates("marks", "Marks of ports", 0),
        of_run.port_rates("drops", "Drops of ports", 1),
        fairness(run, plots.traces, detail),
        of_run.epochs(),
        of_run.flow_window(),
        of_run.flow_goodput(),
        of_run.flow_rtt(),
    ];
    let drawn = figures
        .into_iter()
        .filter(|figure| !figure.lines.is_empty());
    drawn.collect()
}

impl Run<'_> {
    /// Returns the lines of all ports, the worst first.
    fn of_ports(&self, line: impl Fn(&str, &PortTrace, usize) -> Line) -> Vec<Line> {
        self.lines(Kind::Ports, |name, per_point| {
            Some(line(name, self.plots.traces.ports.get(name)?, per_point))
        })
    }

    /// Returns the lines of all groups, the worst first.
    fn of_groups(&self, line: impl Fn(&str, &GroupTrace, usize) -> Line) -> Vec<Line> {
        self.lines(Kind::Groups, |name, per_point| {
            Some(line(name, self.plots.traces.groups.get(name)?, per_point))
        })
    }

    fn lines(&self, kind: Kind, line: impl Fn(&str, usize) -> Option<Line>) -> Vec<Line> {
        let names = self.ranking.entries(kind).keys().enumerate();
        let lines = names.filter_map(|(rank, name)| line(name, self.detail.per_point(rank)?));
        lines.filter(|line| !line.x.is_empty()).collect()
    }

    fn queue(&self) -> Figure {
        let thresholds = self.plots.thresholds.iter();
        let levels = thresholds
            .flat_map(|(port, levels)| levels.iter().map(|threshold| threshold.level(port)));
        Figure {
            of: Some(Kind::Ports),
            caption: BAND.to_owned(),
            lines: self.of_ports(|name, port, per_point| self.gauge(name, &port.queue, per_point)),
            levels: levels.collect(),
            ..Figure::over_time("queue", "Queue of ports", "bytes")
        }
    }

    fn goodput(&self) -> Figure {
        Figure {
            of: Some(Kind::Groups),
            lines: self
                .of_groups(|name, group, per_point| goodput(name, &group.delivered, per_point)),
            ..Figure::over_time("goodput", "Goodput by group", "bits/s")
        }
    }

    fn window(&self) -> Figure {
        Figure {
            of: Some(Kind::Groups),
            caption: format!("The mean of the group's open flows. {BAND}"),
            lines: self
                .of_groups(|name, group, per_point| self.gauge(name, &group.window, per_point)),
            ..Figure::over_time("window", "Congestion window by group", "bytes")
        }
    }

    /// Returns the rates of a counter of ports; none if it never counted.
    fn port_rates(&self, id: &'static str, title: &str, counter: usize) -> Figure {
        let line = |name: &str, port: &PortTrace, per_point| {
            let rates = port.marks_and_drops.rates(per_point);
            Line::through(
                name,
                rates.map(|rates| (rates.middle(), rates.per_second[counter])),
            )
        };
        let mut figure = Figure {
            of: Some(Kind::Ports),
            per: "/s",
            lines: self.of_ports(line),
            ..Figure::over_time(id, title, "count")
        };
        if figure.greatest() <= 0.0 {
            figure.lines.clear();
        }
        figure
    }

    fn gauge(&self, name: &str, trace: &GaugeTrace, per_point: usize) -> Line {
        let width = self.plots.traces.span.as_secs_f64() * per_point as f64 / COLUMNS as f64;
        let columns: Vec<_> = trace.columns(per_point).collect();
        let middles = columns
            .iter()
            .map(|(index, _)| (*index as f64 + 0.5) * width);
        let ranges = || columns.iter().map(|(_, range)| range);
        Line {
            name: name.to_owned(),
            x: middles.collect(),
            y: ranges().map(|range| range.mean).collect(),
            band: has_extent(ranges().map(|range| (range.min as f64, range.max as f64))),
            ..Line::default()
        }
    }

    /// Returns the lines of the flows that were sampled, the worst first.
    fn of_flows(&self, line: impl Fn(&str, &FlowTrace, usize) -> Line) -> Vec<Line> {
        let groups = self.plots.traces.flows.iter();
        let flows = groups.flat_map(|(group, flows)| {
            let flows = flows.iter();
            flows.map(|(index, flow)| (flow_name(group, *index), flow))
        });
        let flows: IndexMap<String, &FlowTrace> = flows.collect();
        self.lines(Kind::Flows, |name, per_point| {
            Some(line(name, flows.get(name)?, per_point))
        })
    }

    /// Whether a group has several flows that were sampled: the lines of groups tell less than theirs.
    fn has_flows(&self) -> bool {
        (self.plots.traces.flows.values()).any(|flows| flows.len() > 1)
    }

    fn flow_window(&self) -> Figure {
        let line =
            |name: &str, flow: &FlowTrace, per_point| self.gauge(name, &flow.window, per_point);
        Figure {
            of: Some(Kind::Flows),
            caption: BAND.to_owned(),
            lines: if self.has_flows() {
                self.of_flows(line)
            } else {
                Vec::new()
            },
            ..Figure::over_time("flow-window", "Congestion window by flow", "bytes")
        }
    }

    fn flow_goodput(&self) -> Figure {
        let line =
            |name: &str, flow: &FlowTrace, per_point| goodput(name, &flow.delivered, per_point);
        Figure {
            of: Some(Kind::Flows),
            lines: if self.has_flows() {
                self.of_flows(line)
            } else {
                Vec::new()
            },
            ..Figure::over_time("flow-goodput", "Goodput by flow", "bits/s")
        }
    }

    fn flow_rtt(&self) -> Figure {
        let line = |name: &str, flow: &FlowTrace, per_point| {
            let mut line = self.gauge(name, &flow.rtt, per_point);
            let ends = line.band.iter_mut().flatten();
            let values = ends.flatten().chain(&mut line.y);
            values.for_each(|value| *value /= 1e9);
            line
        };
        Figure {
            of: Some(Kind::Flows),
            caption: BAND.to_owned(),
            lines: self.of_flows(line),
            ..Figure::over_time("flow-rtt", "Smoothed RTT by flow", "seconds")
        }
    }

    fn epochs(&self) -> Figure {
        let line = |name: &str, trace: &EpochTrace, per_point| {
            let columns: Vec<_> = trace.columns(per_point).collect();
            Line {
                band: has_extent(columns.iter().map(|column| (column.min, column.max))),
                ..Line::through(
                    name,
                    columns
                        .iter()
                        .map(|column| (column.first as f64, column.mean)),
                )
            }
        };
        Figure {
            of: Some(Kind::Groups),
            axis: AxisKind::Epoch,
            caption: BAND.to_owned(),
            lines: self.lines(Kind::Groups, |name, per_point| {
                Some(line(name, self.plots.traces.epochs.get(name)?, per_point))
            }),
            ..Figure::over_time("epochs", "Completion time by epoch", "seconds")
        }
    }
}

/// Returns the line of the goodput that delivered bytes make.
fn goodput(name: &str, delivered: &CounterTrace<1>, per_point: usize) -> Line {
    let rates = delivered.rates(per_point);
    Line::through(
        name,
        rates.map(|rates| (rates.middle(), 8.0 * rates.per_second[0])),
    )
}

/// Returns the least and the greatest values; `None` if they are the same everywhere.
fn has_extent(extents: impl Iterator<Item = (f64, f64)>) -> Option<[Vec<f64>; 2]> {
    let (least, most): (Vec<f64>, Vec<f64>) = extents.unzip();
    (least != most).then_some([least, most])
}

/// Returns the fairness between the flows of two or more groups.
fn fairness(run: &RunSummary, traces: &Traces, detail: Detail) -> Figure {
    let line = fairness::line(run, traces, detail.first);
    let line = Line::through("Jain's index", line.into_iter());
    Figure {
        top: Some(1.0),
        lines: if line.x.is_empty() {
            Vec::new()
        } else {
            vec![line]
        },
        ..Figure::over_time("fairness", "Fairness between the groups' flows", "ratio")
    }
}

impl Threshold {
    fn level(&self, port: &str) -> Level {
        let seconds = |time: weir_units::Time| time.since(weir_units::Time::ZERO).as_secs_f64();
        Level {
            of: port.to_owned(),
            label: self.name.clone(),
            value: self.queue.bytes() as f64,
            from: seconds(self.from),
            until: self.until.map(seconds),
        }
    }
}
