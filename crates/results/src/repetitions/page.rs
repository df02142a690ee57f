//! Repetitions as a self-contained HTML page.

use std::fmt::Write as _;

use super::Repetitions;
use super::text::{KINDS, bistable};
use crate::overview::OWN;
use crate::report::{Escaped, foot, head, table};

impl Repetitions {
    /// Returns the page: the mean of each measure with its 95 % confidence interval, for all runs.
    pub fn to_html(&self) -> String {
        let mut out = String::new();
        head(&mut out, &self.title);
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
                table(&mut out, &grid);
            }
        }
        foot(
            &mut out,
            "Intervals are Student's, of 95 % confidence; the numbers are in repetitions.json, and each seed has a \
             directory with its report.",
        );
        out
    }
}
