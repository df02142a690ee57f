//! The report of an experiment: one self-contained HTML page that needs no network. Tables are HTML; the data of the
//! figures is JSON, which the page's script draws with the plots of the studio (`crates/studio/page`).

mod completions;
mod fairness;
mod figure;
mod html;
mod missed;
mod over_time;
mod page;
mod page_data;
mod ranking;
mod sections;
mod slowdown;
mod slowdown_figures;
#[cfg(test)]
mod tests;
mod varied;

use std::fmt::Write as _;

use indexmap::IndexMap;
use weir_units::{ByteSize, Time};

use crate::overview;
use crate::quantity::{percent, time};
use crate::{RunSummary, Summary, Traces, Value};
use figure::Kind;
use ranking::Ranking;

pub(crate) use html::Escaped;
pub(crate) use page::{Order, Page, figures, table};
pub(crate) use sections::{Overlay, overlaid, repeated};

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
    /// Returns the page, which has at most 2 MB unless names or settings are very long.
    pub fn to_html(&self) -> String {
        let summary = self.summary;
        let ranking = self.ranking();
        let data = sections::of_report(self, &ranking);
        Page {
            title: &summary.title,
            data: Some(data),
            footer: "The numbers are in summary.json, the flows in flows.parquet, the samples in \
                     samples.parquet.",
        }
        .write(|out, most_rows| self.write(out, most_rows, &ranking))
    }

    fn ranking(&self) -> Ranking {
        let traces = self.runs.iter().map(|plots| Some(plots.traces));
        let traces = traces.chain(std::iter::repeat(None));
        let runs = self.summary.runs().map(|(_, run)| run);
        Ranking::of(runs.zip(traces))
    }

    /// Writes everything that needs no script, with at most so many rows of a table.
    fn write(&self, out: &mut String, most_rows: usize, ranking: &Ranking) {
        heading(out, self.summary);
        for (title, grid) in overview::all(self.summary) {
            let kind = match title {
                "Ports" => Kind::Ports,
                _ => Kind::Groups,
            };
            let order = Order {
                most_rows,
                rank: &|row| ranking.rank(kind, grid.subject(row)),
            };
            table(out, title, &grid, &order);
        }
        remarks(out, self.summary, most_rows);
        missed::draw(out, self.summary);
        figures(out);
        parameters(out, self.parameters, most_rows);
    }
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

/// Writes what the tables leave out.
fn remarks(out: &mut String, summary: &Summary, most: usize) {
    let remarks = summary.runs().flat_map(|(name, run)| {
        let of = name.map_or_else(String::new, |name| format!("{name}: "));
        let remarks = overview::remarks(run).into_iter();
        remarks.map(move |remark| format!("{of}{remark}"))
    });
    let remarks: Vec<String> = remarks.collect();
    for remark in remarks.iter().take(most) {
        let _ = writeln!(out, "<p class=\"aside\">{}.</p>", Escaped(remark));
    }
    if remarks.len() > most {
        let more = remarks.len() - most;
        let _ = writeln!(out, "<p class=\"aside\">And {more} more of the kind.</p>");
    }
}

fn parameters(out: &mut String, parameters: &[(String, String)], most: usize) {
    if parameters.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Parameters</h2>\n<div class=\"wide tall\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Parameters\"><table class=\"parameters\">\n",
    );
    for (key, value) in parameters.iter().take(most) {
        let (key, value) = (Escaped(key), Escaped(value));
        let _ = writeln!(out, "<tr><th scope=\"row\">{key}</th><td>{value}</td></tr>");
    }
    out.push_str("</table></div>\n");
    if parameters.len() > most {
        let more = parameters.len() - most;
        let _ = writeln!(
            out,
            "<p class=\"aside\">And {more} more, which the scenario file has.</p>"
        );
    }
}
