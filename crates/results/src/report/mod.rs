//! The report of an experiment: one self-contained HTML page that needs no network.

mod axis;
mod chart;
mod completions;
mod fairness;
mod html;
mod missed;
mod plot;
mod plots;
mod slowdown;
mod slowdown_figures;
#[cfg(test)]
mod tests;
mod varied;

use std::fmt::Write as _;

use indexmap::IndexMap;
use weir_units::{ByteSize, Time};

use crate::overview::{self, Grid, OWN};
use crate::quantity::{percent, time};
use crate::{RunSummary, Summary, Traces, Value};

pub(crate) use html::Escaped;
pub(crate) use plot::Size;
pub(crate) use plots::{Overlay, overlay};
pub(crate) use slowdown::of_runs as draw_slowdowns;

/// The contents of a page.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The results of the experiment.
    pub summary: &'a Summary,
    /// The scenario's settings, key and value, in display order.
    pub parameters: &'a [(String, String)],
    /// The data to plot of each run, in the order of [`Summary::runs`]. A run without an entry has
    /// no plots.
    pub runs: Vec<RunPlots<'a>>,
}

/// The data to plot of a run.
#[derive(Clone, Debug)]
pub struct RunPlots<'a> {
    /// Its samples.
    pub traces: &'a Traces,
    /// The thresholds of the ports' queues, by the port's name.
    pub thresholds: IndexMap<String, Vec<Threshold>>,
    /// The values of the keys that variants change, by column name; none without variants.
    pub values: &'a [(String, Value)],
}

/// A queue length at which the queue's behaviour changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Its name: `ECN`, `RED min`, `buffer`.
    pub name: String,
    /// The queue length.
    pub queue: ByteSize,
    /// From when on it applies.
    pub from: Time,
    /// Until when; `None` for the end of the run.
    pub until: Option<Time>,
}

impl Report<'_> {
    /// Returns the page.
    pub fn to_html(&self) -> String {
        let mut out = String::new();
        let summary = self.summary;
        head(&mut out, &summary.title);
        heading(&mut out, summary);
        for grid in overview::all(summary) {
            table(&mut out, &grid);
        }
        remarks(&mut out, summary);
        missed::draw(&mut out, summary);
        let values: Vec<_> = self.runs.iter().map(|run| run.values).collect();
        slowdown::of_variants(&mut out, summary, &values);
        if let Some(run) = self.runs.first() {
            plots::of_run(
                &mut out,
                &summary.run,
                run,
                Size::Wide,
                plots::AxisExtent::default(),
            );
        }
        self.variants(&mut out);
        parameters(&mut out, self.parameters);
        foot(
            &mut out,
            "The numbers are in summary.json, the flows in flows.parquet, the samples in \
             samples.parquet.",
        );
        out
    }

    /// Writes small plots of every run, on the same axes.
    fn variants(&self, out: &mut String) {
        if self.summary.variants.is_empty() || self.runs.len() < 2 {
            return;
        }
        let reach = plots::AxisExtent::of(&self.runs);
        let _ = writeln!(out, "<h2>Variants</h2>\n<div class=\"variants\">");
        for ((name, run), plots) in self.summary.runs().zip(&self.runs) {
            let _ = writeln!(out, "<section><h3>{}</h3>", Escaped(name.unwrap_or(OWN)));
            settings(out, run);
            plots::of_run(out, run, plots, Size::Small, reach);
            out.push_str("</section>\n");
        }
        out.push_str("</div>\n");
    }
}

/// Writes the end of a page, with a footer text.
pub(crate) fn foot(out: &mut String, text: &str) {
    let _ = write!(
        out,
        "<footer>Written by weir. {text}</footer>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("hover.js")
    );
}

/// Writes the beginning of a page.
pub(crate) fn head(out: &mut String, title: &str) {
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        Escaped(title),
        include_str!("style.css")
    );
}

fn heading(out: &mut String, summary: &Summary) {
    let run = &summary.run;
    let _ = writeln!(out, "<h1>{}</h1>", Escaped(&summary.title));
    if !summary.source.is_empty() {
        let _ = writeln!(out, "<p class=\"source\">{}</p>", Escaped(&summary.source));
    }
    settings(out, run);
    for (name, run) in summary.runs().filter(|(_, run)| run.interrupted) {
        let _ = writeln!(
            out,
            "<p class=\"warning\">{} was interrupted after {} of simulated time: this is what there \
             was.</p>",
            Escaped(name.unwrap_or("The run")),
            time(run.simulated)
        );
    }
    if let Some(reduction) = run.reduction {
        let _ = writeln!(out, "<p>Reduction: {}</p>", percent(reduction));
    }
    if let Some(emulation) = run.emulation.as_ref().filter(|found| !found.faithful) {
        let reasons = emulation.reasons.join("; ");
        let _ = writeln!(
            out,
            "<p class=\"warning\">The emulation was not faithful: {}.</p>",
            Escaped(&reasons)
        );
    }
    let facts = [
        (run.world.name(), time(run.simulated)),
        ("warm-up, not counted", time(run.warm_up)),
        ("seed", run.seed.to_string()),
        ("CPU time", time(run.cpu)),
    ];
    out.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    out.push_str("</dl>\n<h2>Results</h2>\n");
}

fn settings(out: &mut String, run: &RunSummary) {
    if run.settings.is_empty() {
        return;
    }
    let settings = run
        .settings
        .iter()
        .map(|(key, value)| format!("{key} = {value}"));
    let settings = settings.collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "<p class=\"settings\">{}</p>", Escaped(&settings));
}

/// Writes a table.
pub(crate) fn table(out: &mut String, grid: &Grid) {
    if grid.rows.is_empty() {
        return;
    }
    let class = |index| {
        if index < grid.names {
            " class=\"name\""
        } else {
            ""
        }
    };
    out.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for (index, title) in grid.header.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class(index), Escaped(title));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &grid.rows {
        out.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(index), Escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// Writes what the tables leave out.
fn remarks(out: &mut String, summary: &Summary) {
    for (name, run) in summary.runs() {
        for remark in overview::remarks(run) {
            let of = name.map_or_else(String::new, |name| format!("{name}: "));
            let _ = writeln!(
                out,
                "<p class=\"aside\">{}{}.</p>",
                Escaped(&of),
                Escaped(&remark)
            );
        }
    }
}

fn parameters(out: &mut String, parameters: &[(String, String)]) {
    if parameters.is_empty() {
        return;
    }
    out.push_str("<h2>Parameters</h2>\n<div class=\"wide\"><table class=\"parameters\">\n");
    for (key, value) in parameters {
        let (key, value) = (Escaped(key), Escaped(value));
        let _ = writeln!(out, "<tr><th>{key}</th><td>{value}</td></tr>");
    }
    out.push_str("</table></div>\n");
}
