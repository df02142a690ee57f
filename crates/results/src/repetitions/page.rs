//! Repetitions as a self-contained HTML page.

use std::fmt::Write as _;

use super::text::{KINDS, bistable};
use super::{Repetitions, run_of};
use crate::overview::OWN;
use crate::report::{self, Escaped, Order, Page};
use crate::{RunSummary, Summary, Value};

impl Repetitions {
    /// Returns the page: the mean of each measure with its 95 % confidence interval, for all runs, and slowdowns as
    /// plots. `summaries` are those of the repetitions, and `values` has for each run the values of the keys that
    /// variants change.
    pub fn to_html(&self, summaries: &[&Summary], values: &[&[(String, Value)]]) -> String {
        let runs = self.runs.keys().map(|name| {
            let own = (!name.is_empty()).then_some(name.as_str());
            let repetitions = summaries.iter().filter_map(|summary| run_of(summary, own));
            let repetitions: Vec<&RunSummary> = repetitions.collect();
            (own.unwrap_or(OWN).to_owned(), repetitions)
        });
        let data = report::repeated(&runs.collect::<Vec<_>>(), values);
        let has_figures = data.is_some();
        Page {
            title: &self.title,
            data,
            footer: "Intervals are Student's, of 95 % confidence; the numbers are in repetitions.json, and each seed \
                     has a directory with its report.",
        }
        .write(|out, most_rows| self.write(out, most_rows, has_figures))
    }

    /// Writes what needs no script.
    fn write(&self, out: &mut String, most_rows: usize, has_figures: bool) {
        let _ = write!(
            out,
            "<h1>{}</h1>\n<p class=\"source\">{}, {}</p>\n",
            Escaped(&self.title),
            self.world.name(),
            Escaped(&self.how_often()),
        );
        for (name, run) in &self.runs {
            let of = if name.is_empty() { OWN } else { name };
            for (group, two) in &run.bistable {
                let _ = writeln!(
                    out,
                    "<p class=\"warning\">{}: {}: the mean describes neither.</p>",
                    Escaped(of),
                    Escaped(&bistable(group, two))
                );
            }
        }
        for (kind, title) in KINDS {
            let grid = self.grid(kind);
            if !grid.rows.is_empty() {
                let _ = writeln!(out, "<h2>{title}</h2>");
                let order = Order {
                    most_rows,
                    // All measures of the first ones.
                    rank: &|_| 0,
                };
                report::table(out, title, &grid, &order);
            }
        }
        if has_figures {
            report::figures(out);
        }
    }
}
