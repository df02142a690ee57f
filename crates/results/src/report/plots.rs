//! The plots of a run.

use std::fmt::Write as _;

use indexmap::{IndexMap, IndexSet};
use weir_units::Duration;

use super::completions;
use super::fairness;
use super::html::Escaped;
use super::plot::{Level, Mark, Plot, Series, Size, XAxis};
use super::slowdown;
use super::{RunPlots, Threshold};
use crate::quantity::{INDEX, RATES, SIZES, TIMES, in_scale};
use crate::trace::{COLUMNS, EpochTrace, GroupTrace, PortTrace};
use crate::{ChangeRecord, RunSummary, Traces};

/// The number of colours in the page's style sheet.
pub(super) const COLOURS: usize = 8;

/// The minimum extents of the value axes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AxisExtent {
    goodput: f64,
    queue: f64,
    epochs: f64,
}

impl AxisExtent {
    /// Returns the extents that fit all of these runs.
    pub(super) fn of(runs: &[RunPlots<'_>]) -> Self {
        let run = RunSummary::default();
        let mut reach = Self::default();
        for plots in runs {
            let goodput = goodput(&run, plots, Size::Small, 0.0);
            reach.goodput = reach.goodput.max(goodput.largest());
            let epochs = epochs(&run, plots.traces, Size::Small, 0.0);
            let longest = epochs.map_or(0.0, |plot| plot.largest());
            reach.epochs = reach.epochs.max(longest);
            for name in plots.traces.ports.keys() {
                let queue = queue(&run, plots, name, Size::Small, 0.0);
                reach.queue = reach.queue.max(queue.map_or(0.0, |plot| plot.largest()));
            }
        }
        reach
    }
}

/// Writes the plots of slowdown, completion times, goodput, fairness between groups, the queue of each port, and epochs.
pub(super) fn of_run(
    out: &mut String,
    run: &RunSummary,
    plots: &RunPlots<'_>,
    size: Size,
    reach: AxisExtent,
) {
    // Those of variants are drawn together.
    if size == Size::Wide {
        slowdown::by_size(out, run);
        completions::draw(out, run, plots.traces);
    }
    let goodput = goodput(run, plots, size, reach.goodput);
    if !goodput.series.is_empty() {
        heading(out, size, "Goodput by group");
        if goodput.has_legend() {
            legend(out, &goodput);
        }
        figure(out, &goodput);
    }
    if size == Size::Wide
        && let Some(plot) = fairness(run, plots.traces, size)
    {
        heading(out, size, &plot.title);
        figure(out, &plot);
    }
    for name in plots.traces.ports.keys() {
        if let Some(plot) = queue(run, plots, name, size, reach.queue) {
            heading(out, size, &plot.title);
            figure(out, &plot);
        }
    }
    if let Some(plot) = epochs(run, plots.traces, size, reach.epochs) {
        heading(out, size, &plot.title);
        figure(out, &plot);
    }
}

/// One of two experiments that share the same plots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlay<'a> {
    /// Its label.
    pub(crate) label: &'static str,
    pub(crate) run: &'a RunSummary,
    pub(crate) traces: &'a Traces,
}

/// Writes the plots of two runs, each with the lines of both. A plot that only one run has shows
/// that run.
pub(crate) fn overlay(out: &mut String, sides: &[Overlay<'_>; 2], size: Size) {
    let plots = sides.map(|side| RunPlots {
        traces: side.traces,
        thresholds: IndexMap::new(),
        values: &[],
    });
    let both = |plot: &dyn Fn(&RunSummary, &RunPlots<'_>) -> Option<Plot>| {
        let [one, other] = [0, 1].map(|index| {
            let found = plot(sides[index].run, &plots[index])?;
            Some(labelled(found, sides[index].label, index == 1))
        });
        merged(one, other)
    };
    let mut drawn = Vec::new();
    drawn.extend(both(&|run, plots| Some(goodput(run, plots, size, 0.0))));
    let names: IndexSet<&String> = (sides.iter())
        .flat_map(|side| side.traces.ports.keys())
        .collect();
    for name in names {
        drawn.extend(both(&|run, plots| queue(run, plots, name, size, 0.0)));
    }
    drawn.extend(both(&|run, plots| epochs(run, plots.traces, size, 0.0)));
    for plot in drawn.iter().filter(|plot| !plot.series.is_empty()) {
        heading(out, size, &plot.title);
        if plot.has_legend() {
            legend(out, plot);
        }
        figure(out, plot);
    }
}

/// Labels a plot as one of two experiments. Bands are removed because two would hide each other.
fn labelled(mut plot: Plot, label: &str, is_second: bool) -> Plot {
    for series in &mut plot.series {
        series.name = format!("{} ({label})", series.name);
        series.is_second = is_second;
        series.band.clear();
    }
    plot
}

fn merged(one: Option<Plot>, other: Option<Plot>) -> Option<Plot> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.end = one.end.max(other.end);
            one.warm_up = one.warm_up.min(other.warm_up);
            one.series.extend(other.series);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// Returns the plot of the groups' epoch completion times.
fn epochs(run: &RunSummary, traces: &Traces, size: Size, reach: f64) -> Option<Plot> {
    let end = traces.epochs.values().map(EpochTrace::end).max()?;
    let series = traces.epochs.iter().enumerate();
    let series = series.map(|(index, (name, trace))| {
        let columns: Vec<_> = trace.columns(per_step(size)).collect();
        let has_several = columns.iter().any(|column| column.min < column.max);
        let band = columns
            .iter()
            .map(|column| (column.first as f64, column.min, column.max));
        Series {
            name: name.clone(),
            colour: index % COLOURS,
            line: columns
                .iter()
                .map(|column| (column.first as f64, column.mean))
                .collect(),
            band: band.filter(|_| has_several).collect(),
            is_second: false,
        }
    });
    Some(Plot {
        title: "Completion time by epoch".to_owned(),
        across: XAxis::Epochs,
        scale: TIMES,
        series: series.collect(),
        end: end as f64,
        // The warm-up is in seconds; the samples do not record which epochs it covers.
        warm_up: 0.0,
        marks: Vec::new(),
        min_extent: reach,
        ..base(run, traces, size)
    })
}

fn heading(out: &mut String, size: Size, text: &str) {
    let _ = match size {
        Size::Wide => writeln!(out, "<h2>{}</h2>", Escaped(text)),
        Size::Small => writeln!(out, "<p class=\"aside\">{}</p>", Escaped(text)),
    };
}

fn legend(out: &mut String, plot: &Plot) {
    out.push_str("<ul class=\"legend\">");
    for series in &plot.series {
        let (colour, name) = (series.colour, Escaped(&series.name));
        let _ = write!(out, "<li><i class=\"s{colour}\"></i>{name}</li>");
    }
    out.push_str("</ul>\n");
}

/// Writes a plot, and a caption for the levels that it cannot show.
fn figure(out: &mut String, plot: &Plot) {
    let _ = write!(out, "<figure>{}", plot.svg());
    let hidden = plot.levels.iter().filter(|level| !plot.shows(level));
    let hidden =
        hidden.map(|level| format!("{} {}", level.name, in_scale(level.value, plot.scale)));
    let hidden = hidden.collect::<Vec<_>>().join(", ");
    let has_band = plot.series.iter().any(|series| !series.band.is_empty());
    let mut caption = Vec::new();
    if has_band && plot.size == Size::Wide {
        caption.push("Line: mean of the samples; shade: least to largest.".to_owned());
    }
    if !hidden.is_empty() {
        caption.push(format!("Far above: {}.", Escaped(&hidden)));
    }
    if !caption.is_empty() {
        let _ = write!(out, "<figcaption>{}</figcaption>", caption.join(" "));
    }
    out.push_str("</figure>\n");
}

/// Returns the number of trace columns per plot column.
const fn per_step(size: Size) -> usize {
    match size {
        Size::Wide => 1,
        Size::Small => 4,
    }
}

fn base(run: &RunSummary, traces: &Traces, size: Size) -> Plot {
    // An interrupted run ends before its planned time, and one with epochs may.
    let is_cut = run.simulated < traces.span && !run.simulated.is_zero();
    let end = if is_cut { run.simulated } else { traces.span };
    Plot {
        title: String::new(),
        across: XAxis::Time,
        scale: RATES,
        series: Vec::new(),
        levels: Vec::new(),
        marks: run.changes.iter().map(Mark::of).collect(),
        end: end.as_secs_f64(),
        warm_up: run.warm_up.as_secs_f64(),
        min_extent: 0.0,
        size,
    }
}

fn goodput(run: &RunSummary, plots: &RunPlots<'_>, size: Size, reach: f64) -> Plot {
    let groups = plots.traces.groups.iter().enumerate();
    let series = groups.map(|(index, (name, trace))| Series {
        name: name.clone(),
        colour: index % COLOURS,
        line: goodput_line(trace, per_step(size)),
        band: Vec::new(),
        is_second: false,
    });
    Plot {
        title: "Goodput by group over time".to_owned(),
        series: series.collect(),
        min_extent: reach,
        ..base(run, plots.traces, size)
    }
}

/// Returns the fairness plot of two or more groups.
fn fairness(run: &RunSummary, traces: &Traces, size: Size) -> Option<Plot> {
    let line = fairness::line(run, traces, per_step(size));
    if line.is_empty() {
        return None;
    }
    let series = Series {
        name: "Jain's index".to_owned(),
        line,
        ..Series::default()
    };
    Some(Plot {
        title: "Fairness between the groups' flows".to_owned(),
        scale: INDEX,
        series: vec![series],
        min_extent: 1.0,
        ..base(run, traces, size)
    })
}

/// Returns a line that is constant over each interval.
fn goodput_line(trace: &GroupTrace, per_step: usize) -> Vec<(f64, f64)> {
    let seconds = |time: weir_units::Time| time.since(weir_units::Time::ZERO).as_secs_f64();
    let stretches = trace.goodput(per_step);
    let points = stretches.flat_map(|stretch| {
        let rate = stretch.rate.bits_per_second() as f64;
        [(seconds(stretch.start), rate), (seconds(stretch.end), rate)]
    });
    points.collect()
}

fn queue(
    run: &RunSummary,
    plots: &RunPlots<'_>,
    name: &str,
    size: Size,
    reach: f64,
) -> Option<Plot> {
    let trace = plots.traces.ports.get(name)?;
    let thresholds = plots.thresholds.get(name).map_or(&[][..], Vec::as_slice);
    Some(Plot {
        title: format!("Queue of port {name}"),
        scale: SIZES,
        series: vec![queue_series(name, trace, per_step(size), plots.traces.span)],
        levels: thresholds.iter().map(Threshold::level).collect(),
        min_extent: reach,
        ..base(run, plots.traces, size)
    })
}

fn queue_series(name: &str, trace: &PortTrace, per_step: usize, span: Duration) -> Series {
    let width = span.as_secs_f64() * per_step as f64 / COLUMNS as f64;
    let columns = || {
        let columns = trace.columns(per_step);
        columns.map(|(index, extent)| ((index as f64 + 0.5) * width, extent))
    };
    Series {
        name: name.to_owned(),
        colour: 0,
        line: columns()
            .map(|(time, extent)| (time, extent.mean))
            .collect(),
        band: columns()
            .map(|(time, extent)| (time, extent.min as f64, extent.max as f64))
            .collect(),
        is_second: false,
    }
}

impl Threshold {
    fn level(&self) -> Level {
        let seconds = |time: weir_units::Time| time.since(weir_units::Time::ZERO).as_secs_f64();
        Level {
            name: self.name.clone(),
            value: self.queue.bytes() as f64,
            from: seconds(self.from),
            until: self.until.map(seconds),
        }
    }
}

impl Mark {
    /// Marks a change of settings.
    fn of(change: &ChangeRecord) -> Self {
        Self {
            at: change.at.as_secs_f64(),
            text: change.to_string(),
        }
    }
}
