//! A comparison as one HTML page, with both experiments in the same plots.

use std::fmt::Write as _;

use super::{Comparison, OWN};
use crate::overview;
use crate::report::{Escaped, Overlay, Size, foot, head, overlay, table};

impl Comparison {
    /// Returns the page; it is self-contained and needs no network.
    pub fn to_html(&self) -> String {
        let mut out = String::new();
        head(&mut out, &self.first.title);
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
        for grid in self.grids() {
            table(&mut out, &grid);
        }
        for name in self.runs.keys() {
            self.plots(&mut out, name);
        }
        foot(&mut out, "The numbers are those of both directories.");
        out
    }

    fn plots(&self, out: &mut String, name: &str) {
        let [one, other] = &self.sides;
        let (Some(first), Some(second)) = (one.overlay(name, "A"), other.overlay(name, "B")) else {
            return;
        };
        if name != OWN {
            let _ = writeln!(out, "<h2>{}</h2>", Escaped(name));
        } else if self.runs.len() > 1 {
            let _ = writeln!(out, "<h2>{}</h2>", Escaped(overview::OWN));
        }
        let sides: [Overlay<'_>; 2] = [first, second];
        overlay(out, &sides, Size::Wide);
    }
}
