//! The table of results: what both transports took, and their ratios.

use crate::contestant::Contestant;
use crate::load::Sample;

/// A table that is printed row by row.
pub(crate) struct Table {
    has_header: bool,
    title: &'static str,
    labels: [&'static str; 2],
}

/// The rounds of a row.
pub(crate) struct Row {
    labels: [String; 2],
    rounds: Vec<Vec<Sample>>,
}

/// A figure of a sample: its name, its unit, and its value.
type Figure = (&'static str, &'static str, fn(&Sample) -> f64);

const FIGURES: [Figure; 4] = [
    ("median", "µs", |sample| sample.median.as_secs_f64() * 1e6),
    ("p99", "µs", |sample| sample.p99.as_secs_f64() * 1e6),
    ("CPU", "µs", |sample| sample.cpu.as_secs_f64() * 1e6),
    ("calls", "/s", |sample| sample.per_second),
];

impl Row {
    pub(crate) fn new(labels: [String; 2]) -> Self {
        Self {
            labels,
            rounds: Vec::new(),
        }
    }

    /// Adds a round: a sample of each contestant.
    pub(crate) fn add(&mut self, round: Vec<Sample>) {
        self.rounds.push(round);
    }
}

impl Table {
    pub(crate) fn new(title: &'static str, labels: [&'static str; 2]) -> Self {
        Self {
            has_header: false,
            title,
            labels,
        }
    }

    pub(crate) fn print(&mut self, row: Row) {
        if !self.has_header {
            self.print_header();
            self.has_header = true;
        }
        let [first, second] = &row.labels;
        print!("{first:>8} {second:>12} ");
        for (_, _, figure) in FIGURES {
            let of = |contestant: usize| {
                let values = row.rounds.iter().filter_map(|round| round.get(contestant));
                median(values.map(figure).collect())
            };
            let ratios = row.rounds.iter().filter_map(|round| match round[..] {
                [other, ours] => Some(figure(&ours) / figure(&other)),
                _ => None,
            });
            let ratio = median(ratios.collect());
            print!("| {:>9.1} {:>9.1} {ratio:>5.2} ", of(0), of(1));
        }
        println!();
    }

    fn print_header(&self) {
        let [one, other] = Contestant::ALL.map(Contestant::name);
        println!("\n{}: {one}, {other}, {other} / {one}", self.title);
        let [first, second] = self.labels;
        print!("{first:>8} {second:>12} ");
        for (name, unit, _) in FIGURES {
            print!("| {:<25} ", format!("{name} ({unit})"));
        }
        println!();
    }
}

/// Returns the median, or zero.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
