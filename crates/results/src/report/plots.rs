//! Which plots a run has.

use std::fmt::Write as _;

use weir_units::Duration;

use super::html::Escaped;
use super::plot::{Level, Plot, Series, Size};
use super::{RunPlots, Threshold};
use crate::RunSummary;
use crate::quantity::{RATES, SIZES, in_scale};
use crate::trace::{COLUMNS, GroupTrace, PortTrace};

/// The colours of the page's style sheet.
const COLOURS: usize = 8;

/// How far the value axes go at least.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    goodput: f64,
    queue: f64,
}

impl Reach {
    /// As far as all of these runs need.
    pub(super) fn of(runs: &[RunPlots<'_>]) -> Self {
        let run = RunSummary::default();
        let mut reach = Self::default();
        for plots in runs {
            let goodput = goodput(&run, plots, Size::Small, 0.0);
            reach.goodput = reach.goodput.max(goodput.largest());
            for name in plots.traces.ports().keys() {
                let queue = queue(&run, plots, name, Size::Small, 0.0);
                reach.queue = reach.queue.max(queue.map_or(0.0, |plot| plot.largest()));
            }
        }
        reach
    }
}

/// The goodput of the groups, and the queue of each port.
pub(super) fn of_run(
    out: &mut String,
    run: &RunSummary,
    plots: &RunPlots<'_>,
    size: Size,
    reach: Reach,
) {
    let goodput = goodput(run, plots, size, reach.goodput);
    if !goodput.series.is_empty() {
        heading(out, size, "Goodput by group");
        if goodput.has_legend() {
            legend(out, &goodput);
        }
        figure(out, &goodput);
    }
    for name in plots.traces.ports().keys() {
        if let Some(plot) = queue(run, plots, name, size, reach.queue) {
            heading(out, size, &plot.title);
            figure(out, &plot);
        }
    }
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

/// A plot, and what cannot be seen in it.
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

/// How many columns of a trace become one of a plot.
const fn per_step(size: Size) -> usize {
    match size {
        Size::Wide => 1,
        Size::Small => 4,
    }
}

fn plot(run: &RunSummary, plots: &RunPlots<'_>, size: Size) -> Plot {
    // An interrupted run ends before its samples' time does.
    let is_cut = run.interrupted && !run.simulated.is_zero();
    let end = if is_cut {
        run.simulated
    } else {
        plots.traces.span()
    };
    Plot {
        title: String::new(),
        scale: RATES,
        series: Vec::new(),
        levels: Vec::new(),
        end: end.as_secs_f64(),
        warm_up: run.warm_up.as_secs_f64(),
        reach: 0.0,
        size,
    }
}

fn goodput(run: &RunSummary, plots: &RunPlots<'_>, size: Size, reach: f64) -> Plot {
    let groups = plots.traces.groups().iter().enumerate();
    let series = groups.map(|(index, (name, trace))| Series {
        name: name.clone(),
        colour: index % COLOURS,
        line: goodput_line(trace, per_step(size)),
        band: Vec::new(),
    });
    Plot {
        title: "Goodput by group over time".to_owned(),
        series: series.collect(),
        reach,
        ..plot(run, plots, size)
    }
}

/// Level over each stretch.
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
    let trace = plots.traces.ports().get(name)?;
    let thresholds = plots.thresholds.get(name).map_or(&[][..], Vec::as_slice);
    Some(Plot {
        title: format!("Queue of port {name}"),
        scale: SIZES,
        series: vec![queue_series(
            name,
            trace,
            per_step(size),
            plots.traces.span(),
        )],
        levels: thresholds.iter().map(Threshold::level).collect(),
        reach,
        ..plot(run, plots, size)
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
    }
}

impl Threshold {
    fn level(&self) -> Level {
        Level {
            name: self.name.clone(),
            value: self.queue.bytes() as f64,
        }
    }
}
