//! A comparison as text for a terminal.

use std::fmt::{self, Write as _};

use super::{Comparison, ValuePair};
use crate::measures;
use crate::overview::{Grid, OWN};
use crate::text::{safe, table};
use crate::{ExperimentId, Ratio};

impl Comparison {
    /// Returns the comparison as text for a terminal.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.first.title);
        for (label, about) in [("A", &self.first), ("B", &self.second)] {
            let _ = writeln!(out, "{label}: {about}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        for (_, grid) in self.grids() {
            let _ = write!(out, "\n{}", table(grid));
        }
        safe(out)
    }

    /// Returns a table of the groups and one of the ports, with titles. Measures that are zero on both sides
    /// are omitted.
    pub(super) fn grids(&self) -> Vec<(&'static str, Grid)> {
        let kinds = [("Groups", "group"), ("Ports", "port")];
        let grids = kinds.map(|(title, kind)| (title, self.grid(kind)));
        grids
            .into_iter()
            .filter(|(_, grid)| !grid.rows.is_empty())
            .collect()
    }

    fn grid(&self, kind: &'static str) -> Grid {
        let has_variants = self.runs.len() > 1;
        let mut header = Vec::new();
        header.extend(has_variants.then_some("variant"));
        header.extend([kind, "measure"]);
        let names = header.len();
        let repeats = self.first.repetitions > 1 || self.second.repetitions > 1;
        header.extend(if repeats {
            &[
                "A",
                "± 95 %",
                "B",
                "± 95 %",
                "difference",
                "95 % interval",
                "verdict",
            ][..]
        } else {
            &["A", "B", "difference"]
        });
        let mut rows = Vec::new();
        for (variant, run) in &self.runs {
            let variant = match variant.as_str() {
                super::OWN => OWN,
                name => name,
            };
            let things = match kind {
                "group" => &run.groups,
                _ => &run.ports,
            };
            for (name, pairs) in things {
                let shown = pairs.iter().filter(|(_, pair)| !pair.is_nothing());
                rows.extend(shown.map(|(key, pair)| {
                    let mut row = Vec::with_capacity(header.len());
                    row.extend(has_variants.then(|| variant.to_owned()));
                    row.extend([name.clone(), (*key).to_owned()]);
                    row.extend(pair.cells(key));
                    row
                }));
            }
            if let Some(pair) = run.reduction.filter(|_| kind == "group") {
                let mut row: Vec<String> = Vec::new();
                row.extend(has_variants.then(|| variant.to_owned()));
                row.extend([String::new(), "reduction".to_owned()]);
                row.extend(pair.cells("reduction"));
                rows.push(row);
            }
        }
        Grid {
            header,
            rows,
            names,
        }
    }
}

impl ValuePair {
    fn cells(&self, key: &str) -> Vec<String> {
        let signed = |ratio: Ratio| format!("{:+.1} %", ratio.value() * 100.0);
        let difference = self.difference.map_or_else(String::new, signed);
        let [first, second] = [self.first, self.second].map(|value| measures::shown(key, value));
        let Some(statistics) = &self.statistics else {
            return vec![first, second, difference];
        };
        let half =
            |half: Option<f64>| half.map_or_else(String::new, |half| measures::shown(key, half));
        let interval = statistics
            .difference_interval
            .map_or_else(String::new, |[low, high]| {
                format!("{} to {}", signed(low), signed(high))
            });
        vec![
            first,
            half(statistics.first_half_width),
            second,
            half(statistics.second_half_width),
            difference,
            interval,
            statistics.verdict.words().to_owned(),
        ]
    }
}

impl fmt::Display for ExperimentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.directory, self.world.name())?;
        if self.repetitions > 1 {
            write!(f, ", {} runs", self.repetitions)?;
        }
        Ok(())
    }
}
