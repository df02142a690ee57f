//! A comparison as one HTML page, with both experiments in the same plots.

use std::fmt::Write as _;

use indexmap::IndexMap;

use super::{Comparison, OWN, ValuePair, Verdict};
use crate::overview;
use crate::report::{self, Escaped, Order, Overlay, Page};

impl Comparison {
    /// Returns the page; it is self-contained and needs no network.
    pub fn to_html(&self) -> String {
        let pairs = self.runs.keys().filter_map(|name| self.overlay(name));
        let pairs: Vec<_> = pairs.collect();
        Page {
            title: &self.first.title,
            data: Some(report::overlaid(&pairs)),
            footer: "The numbers are those of both directories.",
        }
        .write(|out, most_rows| self.write(out, most_rows))
    }

    /// Writes what needs no script.
    fn write(&self, out: &mut String, most_rows: usize) {
        let _ = writeln!(out, "<h1>{}</h1>", Escaped(&self.first.title));
        for (label, about) in [
            ("A, drawn through", &self.first),
            ("B, dashed", &self.second),
        ] {
            let _ = writeln!(
                out,
                "<p class=\"source\">{label}: {}</p>",
                Escaped(&about.to_string())
            );
        }
        for note in &self.notes {
            let _ = writeln!(out, "<p class=\"warning\">{}</p>", Escaped(note));
        }
        out.push_str("<h2>Results</h2>\n");
        self.verdicts(out);
        for (title, grid) in self.grids() {
            let rank = |row: &[String]| rank(row);
            let order = Order {
                most_rows,
                rank: &rank,
            };
            report::table(out, title, &grid, &order);
        }
        report::figures(out);
        if self.first.repetitions > 1 || self.second.repetitions > 1 {
            out.push_str(
                "<p class=\"aside\">Lines over time and distributions are those of the first repetition of each; \
                 slowdowns are means over all.</p>\n",
            );
        }
    }

    /// Writes how many measures agree and differ.
    fn verdicts(&self, out: &mut String) {
        let mut counts: IndexMap<Verdict, usize> = IndexMap::new();
        let pairs = self.runs.values().flat_map(|run| {
            let entries = run.groups.values().chain(run.ports.values());
            entries.flat_map(IndexMap::values).chain(&run.reduction)
        });
        for pair in pairs.filter(|pair| !pair.is_nothing()) {
            if let Some(statistics) = &pair.statistics {
                *counts.entry(statistics.verdict).or_default() += 1;
            }
        }
        if counts.is_empty() {
            out.push_str(
                "<p class=\"aside\">One run each: without repetitions (<code>weir run --seeds</code>) there are neither \
                 intervals nor verdicts.</p>\n",
            );
            return;
        }
        out.push_str("<ul class=\"verdicts\">");
        for verdict in [Verdict::Differ, Verdict::CannotTell, Verdict::Agree] {
            let count = counts.get(&verdict).copied().unwrap_or(0);
            let words = verdict.words();
            let class = words.replace(' ', "-");
            let _ = write!(
                out,
                "<li><span class=\"verdict {class}\">{words}</span> {count}</li>"
            );
        }
        out.push_str("</ul>\n");
    }

    /// Returns both sides of a run to draw.
    fn overlay(&self, name: &str) -> Option<(String, [Overlay<'_>; 2])> {
        let [one, other] = &self.sides;
        let title = match name {
            OWN if self.runs.len() > 1 => overview::OWN,
            name => name,
        };
        Some((title.to_owned(), [one.overlay(name)?, other.overlay(name)?]))
    }
}

/// Returns the place of a row: first what differs, then the larger relative differences.
fn rank(row: &[String]) -> usize {
    let verdicts = [Verdict::Differ, Verdict::CannotTell, Verdict::Agree];
    let verdict = row.last().map_or("", String::as_str);
    let place = verdicts.iter().position(|found| found.words() == verdict);
    let place = place.unwrap_or(verdicts.len());
    // The difference is the first cell with a sign.
    let difference = row
        .iter()
        .find_map(|cell| cell.strip_suffix(" %")?.parse::<f64>().ok());
    let percent = difference.unwrap_or(0.0).abs().min(1e9);
    place * 2_000_000_000 + (1_000_000_000 - percent as usize)
}

impl ValuePair {
    /// Whether both values are zero.
    pub(super) fn is_nothing(&self) -> bool {
        self.first == 0.0 && self.second == 0.0
    }
}
