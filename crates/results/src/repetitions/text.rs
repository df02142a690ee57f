//! Repetitions as text for a terminal.

use std::fmt::Write as _;

use weir_units::Rate;

use super::{MeanInterval, RepeatedRun, Repetitions, TwoGroups};
use crate::measures::shown;
use crate::overview::{Grid, OWN};
use crate::quantity::rate;
use crate::text::{safe, table};

/// What has measures, and the heading of its table.
pub(super) const KINDS: [(&str, &str); 3] = [
    ("group", "Groups of flows"),
    ("links", "Loads of links"),
    ("port", "Ports"),
];

impl Repetitions {
    /// Returns the statistics as text for a terminal.
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "{}\n{}, {}\n",
            self.title,
            self.world.name(),
            self.how_often()
        );
        for (name, run) in &self.runs {
            let of = match name.as_str() {
                "" => String::new(),
                name => format!("{name}: "),
            };
            for (group, two) in &run.bistable {
                let _ = writeln!(out, "{of}{}", bistable(group, two));
            }
        }
        for (kind, _) in KINDS {
            let grid = self.grid(kind);
            if !grid.rows.is_empty() {
                let _ = write!(out, "\n{}", table(grid));
            }
        }
        safe(out)
    }

    /// Returns how many runs there are, and with which seeds.
    pub(super) fn how_often(&self) -> String {
        format!("{} runs, {}", self.seeds.len(), seeds(&self.seeds))
    }

    /// Returns the table of all measures of one of [`KINDS`].
    pub(super) fn grid(&self, kind: &'static str) -> Grid {
        let has_variants = self.runs.len() > 1;
        let mut header = Vec::new();
        header.extend(has_variants.then_some("variant"));
        header.extend([kind, "measure"]);
        let names = header.len();
        header.extend(["mean", "± 95 %", "least", "most"]);
        let mut rows = Vec::new();
        for (variant, run) in &self.runs {
            let variant = if variant.is_empty() { OWN } else { variant };
            for (name, key, interval) in entries(run, kind) {
                let mut row = Vec::with_capacity(header.len());
                row.extend(has_variants.then(|| variant.to_owned()));
                row.extend([name.to_owned(), key.to_owned()]);
                row.push(shown(key, interval.mean));
                let half = interval.half_width;
                row.push(half.map_or_else(String::new, |half| shown(key, half)));
                row.extend([interval.min, interval.max].map(|value| shown(key, value)));
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

/// Iterates over the measures of groups, links or ports; those that are always zero are omitted.
fn entries<'r>(
    run: &'r RepeatedRun,
    kind: &str,
) -> impl Iterator<Item = (&'r str, &'static str, &'r MeanInterval)> {
    let things = match kind {
        "group" => &run.groups,
        "links" => &run.loads,
        _ => &run.ports,
    };
    things.iter().flat_map(|(name, measures)| {
        let counted = measures
            .iter()
            .filter(|(_, interval)| interval.min != 0.0 || interval.max != 0.0);
        counted.map(|(key, interval)| (name.as_str(), *key, interval))
    })
}

/// Says that a scenario is bistable.
pub(crate) fn bistable(group: &str, two: &TwoGroups) -> String {
    let goodput = |value: f64| rate(Rate::from_bits_per_second(value as u64));
    format!(
        "bistable: the goodput of {group} is {} in {} runs and {} in {}",
        goodput(two.low),
        two.low_count,
        goodput(two.high),
        two.high_count
    )
}

/// `seed 1`, `seeds 1 and 2`, `seeds 1 to 8`, or all of them.
fn seeds(seeds: &[u64]) -> String {
    let is_range = seeds
        .windows(2)
        .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    match seeds {
        [one] => format!("seed {one}"),
        [one, other] => format!("seeds {one} and {other}"),
        [first, .., last] if is_range => format!("seeds {first} to {last}"),
        all if all.windows(2).all(|pair| pair[0] == pair[1]) => format!("seed {}", all[0]),
        all => {
            let all: Vec<_> = all.iter().map(u64::to_string).collect();
            format!("seeds {}", all.join(", "))
        }
    }
}
