//! Plots of slowdowns: over the size of transfers, and of several runs over the key that they vary.

use std::cmp::Ordering;
use std::fmt::Write as _;

use indexmap::{IndexMap, IndexSet};

use super::chart::{Chart, Line, LogAxis, Point, Tick};
use super::html::Escaped;
use super::plot::Size;
use super::plots::COLOURS;
use super::slowdown_figures::{FIGURES, Figures, GroupFigures, P99, of_groups};
use super::varied::{VariedKey, others};
use crate::overview::OWN;
use crate::summary::{SIZE_NAMES, size_end};
use crate::{MeanInterval, RunSummary, Summary, Value};

/// The figures of a line, by class of sizes.
type BySize = IndexMap<&'static str, Figures>;

/// A line of slowdowns before its axis is known.
struct SlowdownLine {
    colour: usize,
    label: String,
    is_dashed: bool,
    /// The horizontal position and the slowdown of each.
    points: Vec<(f64, MeanInterval)>,
}

/// A line over the classes of sizes.
struct SizesLine<'s> {
    colour: usize,
    label: String,
    is_dashed: bool,
    sizes: &'s BySize,
    /// A place in [`FIGURES`].
    figure: usize,
}

/// What the figures of a page say below the plots.
const CAPTION: &str = "Completion time divided by that on the empty network.";

/// Draws the medians and the 99th percentiles of a run's groups by size; nothing if no transfer with a size is
/// complete.
pub(super) fn by_size(out: &mut String, run: &RunSummary) {
    let found = of_groups(&[run]);
    let mut lines = Vec::new();
    for (colour, name) in run.groups.keys().enumerate() {
        let Some(group) = found.get(name) else {
            continue;
        };
        for (figure, (name_of_figure, _)) in FIGURES.into_iter().enumerate() {
            lines.push(SizesLine {
                colour: colour % COLOURS,
                label: format!("{name} {name_of_figure}"),
                is_dashed: figure == P99,
                sizes: &group.sizes,
                figure,
            });
        }
    }
    let Some(chart) = sizes_chart(lines, None) else {
        return;
    };
    let _ = write!(out, "<h2>Slowdown by size</h2>\n<figure>");
    chart.write(out, Size::Wide);
    let censored = unfinished([run]);
    let _ = writeln!(
        out,
        "<figcaption>{CAPTION} Line: median; dashed: 99th percentile.{censored}</figcaption></figure>"
    );
}

/// Draws the slowdowns of several runs: the 99th percentile by size, one plot for each value of the key that they
/// vary most; and over this key. `values` has the values of each run.
pub(super) fn of_variants(out: &mut String, summary: &Summary, values: &[&[(String, Value)]]) {
    let runs: Vec<(String, Vec<&RunSummary>)> = (summary.runs())
        .map(|(name, run)| (name.unwrap_or(OWN).to_owned(), vec![run]))
        .collect();
    of_runs(out, &runs, values);
}

/// Draws the same of several runs, each with all of its repetitions; means have their intervals.
pub(crate) fn of_runs(
    out: &mut String,
    runs: &[(String, Vec<&RunSummary>)],
    values: &[&[(String, Value)]],
) {
    let found: Vec<_> = runs.iter().map(|(_, run)| of_groups(run)).collect();
    if runs.len() < 2 || found.iter().all(IndexMap::is_empty) {
        return;
    }
    let key = VariedKey::of(values);
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let lines = RunLines::new(&names, &found, values, key.as_ref());
    if let Some(key) = &key {
        lines.over_key(out, key);
    }
    lines.by_size(out, key.as_ref());
    let all = runs.iter().flat_map(|(_, run)| run.iter().copied());
    let censored = unfinished(all);
    let intervals = if runs.iter().any(|(_, run)| run.len() > 1) {
        " Bars: 95 % confidence intervals of the means over the seeds."
    } else {
        ""
    };
    let _ = writeln!(out, "<p class=\"aside\">{CAPTION}{intervals}{censored}</p>");
}

/// Returns a remark on unfinished transfers.
fn unfinished<'r>(runs: impl IntoIterator<Item = &'r RunSummary>) -> String {
    let groups = runs.into_iter().flat_map(|run| run.groups.values());
    let unfinished: u64 = groups
        .filter_map(|group| Some(group.slowdown.as_ref()?.all.unfinished))
        .sum();
    match unfinished {
        0 => String::new(),
        count => format!(" Without {count} unfinished transfers."),
    }
}

/// Returns a chart with these lines over the classes of sizes; `most` is the upper end of the axis at least.
fn sizes_chart(lines: Vec<SizesLine<'_>>, most: Option<f64>) -> Option<Chart> {
    let has = |name: &str| lines.iter().any(|line| line.sizes.contains_key(name));
    let sizes: Vec<&str> = SIZE_NAMES.into_iter().filter(|name| has(name)).collect();
    let x = |position: usize| (position as f64 + 0.5) / sizes.len().max(1) as f64;
    let found = lines.into_iter().map(|line| {
        let points = sizes.iter().enumerate().filter_map(|(position, name)| {
            let figures = line.sizes.get(*name)?;
            Some((x(position), (*figures.get(line.figure)?)?))
        });
        SlowdownLine {
            colour: line.colour,
            label: line.label,
            is_dashed: line.is_dashed,
            points: points.collect(),
        }
    });
    let across = sizes.iter().enumerate().map(|(position, name)| Tick {
        at: x(position),
        text: size_end(name),
    });
    let across = across.collect();
    slowdown_chart(
        found.collect(),
        most,
        Chart {
            title: "Slowdown by size".to_owned(),
            across,
            across_name: "size up to".to_owned(),
            ..Chart::default()
        },
    )
}

/// Completes a chart with lines of slowdowns; `None` if all are empty.
fn slowdown_chart(lines: Vec<SlowdownLine>, most: Option<f64>, chart: Chart) -> Option<Chart> {
    let values = lines.iter().flat_map(|line| &line.points);
    let highest = values
        .map(|(_, value)| value.mean + value.half_width.unwrap_or(0.0))
        .reduce(f64::max)?;
    let axis = LogAxis::around(1.0, highest.max(most.unwrap_or(1.0)));
    let lines = lines.into_iter().filter(|line| !line.points.is_empty());
    let lines = lines.map(|line| Line {
        label: line.label,
        colour: line.colour,
        is_dashed: line.is_dashed,
        has_dots: true,
        points: (line.points.into_iter())
            .map(|(x, value)| point(x, value, axis))
            .collect(),
    });
    Some(Chart {
        lines: lines.collect(),
        up: axis.ticks(|value| value.to_string()),
        up_name: "slowdown".to_owned(),
        ..chart
    })
}

/// Returns the point of a mean. An interval that goes below 1, which no slowdown does, ends there.
fn point(x: f64, value: MeanInterval, axis: LogAxis) -> Point {
    let mean = value.mean;
    let (text, ends) = match value.half_width {
        Some(half) => (
            format!("{mean:.2} ± {half:.2}"),
            Some((axis.at((mean - half).max(1.0)), axis.at(mean + half))),
        ),
        None => (format!("{mean:.2}"), None),
    };
    Point {
        x,
        y: axis.at(mean),
        text,
        ends,
    }
}

/// The slowdowns of several runs, as lines that keep their colour on the page: one for each group and each combination
/// of the values beside the varied key.
struct RunLines<'s> {
    labels: IndexSet<String>,
    /// Each run's groups: the line, and the slowdowns.
    runs: Vec<Vec<(usize, &'s GroupFigures)>>,
    /// Each run's value of the key.
    at: Vec<Option<(f64, String)>>,
}

impl<'s> RunLines<'s> {
    fn new(
        names: &[&str],
        runs: &'s [IndexMap<String, GroupFigures>],
        values: &[&[(String, Value)]],
        key: Option<&VariedKey>,
    ) -> Self {
        let mut labels = IndexSet::new();
        let mut found = Vec::new();
        let mut at = Vec::new();
        for (index, (name, groups)) in names.iter().zip(runs).enumerate() {
            let values = values.get(index).copied().unwrap_or_default();
            at.push(key.and_then(|key| key.value(values)));
            let of_run = key.map_or_else(|| (*name).to_owned(), |key| others(values, key));
            let is_single = groups.len() == 1;
            let lines = groups.iter().map(|(group, figures)| {
                let label = match of_run.as_str() {
                    "" => group.clone(),
                    of_run if is_single => of_run.to_owned(),
                    of_run => format!("{of_run} {group}"),
                };
                let (line, _) = labels.insert_full(label);
                (line, figures)
            });
            found.push(lines.collect());
        }
        Self {
            labels,
            runs: found,
            at,
        }
    }

    fn label(&self, line: usize) -> String {
        self.labels.get_index(line).cloned().unwrap_or_default()
    }

    /// Draws the medians and 99th percentiles over the key.
    fn over_key(&self, out: &mut String, key: &VariedKey) {
        let mut lines = Vec::new();
        for line in 0..self.labels.len() {
            for (figure, (name, _)) in FIGURES.into_iter().enumerate() {
                let runs = self.at.iter().zip(&self.runs);
                let points = runs.filter_map(|(at, groups)| {
                    let (at, _) = at.as_ref()?;
                    let (_, group) = groups.iter().find(|(found, _)| *found == line)?;
                    Some((key.position(*at), (*group.all.get(figure)?)?))
                });
                let mut points: Vec<_> = points.collect();
                points.sort_by(|one, other| one.0.total_cmp(&other.0));
                // The file's own values may be those of a variant.
                points.dedup_by(|one, other| one.0 == other.0);
                lines.push(SlowdownLine {
                    colour: line % COLOURS,
                    label: format!("{} {name}", self.label(line)),
                    is_dashed: figure == P99,
                    points,
                });
            }
        }
        let title = format!("Slowdown over {}", key.name);
        let chart = slowdown_chart(
            lines,
            None,
            Chart {
                title: title.clone(),
                across: key.ticks(),
                across_name: key.name.clone(),
                ..Chart::default()
            },
        );
        if let Some(chart) = chart {
            let _ = write!(out, "<h2>{}</h2>\n<figure>", Escaped(&title));
            chart.write(out, Size::Wide);
            out.push_str(
                "<figcaption>All sizes. Line: median; dashed: 99th percentile.</figcaption></figure>\n",
            );
        }
    }

    /// Draws the 99th percentiles by size, one plot for each value of the key.
    fn by_size(&self, out: &mut String, key: Option<&VariedKey>) {
        let groups = self.runs.iter().flatten();
        let figures = groups.flat_map(|(_, group)| group.sizes.values());
        let most = figures
            .filter_map(|figures| figures[P99])
            .map(|value| value.mean + value.half_width.unwrap_or(0.0))
            .reduce(f64::max);
        let _ = writeln!(
            out,
            "<h2>99th percentile of the slowdown by size</h2>\n<div class=\"variants\">"
        );
        let mut at: Vec<&Option<(f64, String)>> = self.at.iter().collect();
        at.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        let values = at.into_iter();
        let values: IndexSet<Option<String>> = values
            .map(|at| at.as_ref().map(|(_, text)| text.clone()))
            .collect();
        let size = if values.len() > 1 {
            Size::Small
        } else {
            Size::Wide
        };
        for value in values {
            let at = |found: &Option<(f64, String)>| {
                found.as_ref().map(|(_, text)| text) == value.as_ref()
            };
            let runs = self
                .at
                .iter()
                .zip(&self.runs)
                .filter(|(found, _)| at(found));
            let groups = runs.flat_map(|(_, groups)| groups);
            let mut drawn = IndexSet::new();
            let lines = groups.filter(|(line, _)| drawn.insert(*line));
            let lines = lines.map(|(line, group)| SizesLine {
                colour: line % COLOURS,
                label: self.label(*line),
                is_dashed: false,
                sizes: &group.sizes,
                figure: P99,
            });
            let Some(chart) = sizes_chart(lines.collect(), most) else {
                continue;
            };
            let title = key
                .zip(value)
                .map(|(key, value)| format!("{} = {value}", key.name));
            let _ = write!(
                out,
                "<section><h3>{}</h3><figure>",
                Escaped(&title.unwrap_or_default())
            );
            chart.write(out, size);
            out.push_str("</figure></section>\n");
        }
        out.push_str("</div>\n");
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{ByteSize, Duration};

    use super::*;
    use crate::{GroupSummary, Slowdowns, TransferTime};

    /// A run whose transfers of 5 KB took these multiples of their ideal time, beside one that did not end.
    fn run(slowdowns: &[u64]) -> RunSummary {
        let transfer = |times: Option<u64>| TransferTime {
            size: ByteSize::from_bytes(5_000),
            ideal: Duration::from_micros(10),
            took: times.map(|times| Duration::from_micros(10 * times)),
        };
        let transfers = slowdowns.iter().map(|times| transfer(Some(*times)));
        let transfers: Vec<_> = transfers.chain([transfer(None)]).collect();
        let group = GroupSummary {
            slowdown: Slowdowns::of(&transfers),
            ..GroupSummary::default()
        };
        RunSummary {
            groups: [("web".to_owned(), group)].into(),
            ..RunSummary::default()
        }
    }

    fn values(load: f64, congestion: &str) -> Vec<(String, Value)> {
        vec![
            ("load".to_owned(), Value::Number(load)),
            ("congestion".to_owned(), Value::Text(congestion.to_owned())),
        ]
    }

    #[test]
    fn a_run_has_its_median_and_its_tail_by_size() {
        let mut out = String::new();
        by_size(&mut out, &run(&[2, 2, 20]));
        assert!(out.contains(">10KB<") && !out.contains("100KB"), "{out}");
        assert!(out.contains("<title>web p50: 2.00</title>"), "{out}");
        assert!(out.contains("<title>web p99: 20.00</title>"), "{out}");
        assert!(out.contains("Without 1 unfinished transfers."), "{out}");
        let mut out = String::new();
        by_size(&mut out, &RunSummary::default());
        assert_eq!(out, "");
    }

    #[test]
    fn repetitions_have_bars() {
        let (one, two) = (run(&[2]), run(&[4]));
        let runs = [
            ("a".to_owned(), vec![&one, &two]),
            ("b".to_owned(), vec![&two, &two]),
        ];
        let values = [values(0.3, "dctcp"), values(0.8, "dctcp")];
        let values: Vec<&[_]> = values.iter().map(Vec::as_slice).collect();
        let mut out = String::new();
        of_runs(&mut out, &runs, &values);
        // Student's with one degree of freedom: 12.706 standard errors of 1.
        assert!(out.contains(": 3.00 ± 12.71</title>"), "{out}");
        assert!(out.contains(": 4.00 ± 0.00</title>"), "{out}");
        assert!(out.contains("95 % confidence intervals"), "{out}");
        assert!(out.contains("Without 4 unfinished"), "{out}");
        let mut single = String::new();
        of_runs(
            &mut single,
            &runs.map(|(name, run)| (name, run[..1].to_vec())),
            &values,
        );
        assert!(
            !single.contains('±') && !single.contains("intervals"),
            "{single}"
        );
    }

    #[test]
    fn variants_share_plots_over_the_load_and_by_size() {
        let mut summary = Summary::new("", "", run(&[2]));
        let variants = [("b", &[4][..]), ("c", &[3]), ("d", &[9])];
        for (name, slowdowns) in variants {
            summary.variants.insert(name.to_owned(), run(slowdowns));
        }
        let values = [
            values(0.8, "dctcp"),
            values(0.3, "dctcp"),
            values(0.3, "<swift>"),
            values(0.8, "<swift>"),
        ];
        let values: Vec<&[_]> = values.iter().map(Vec::as_slice).collect();
        let mut out = String::new();
        of_variants(&mut out, &summary, &values);
        assert!(out.contains("<h2>Slowdown over load</h2>"), "{out}");
        let titles = out.split("<h3>").skip(1).map(|rest| rest.split('<').next());
        assert!(titles.eq([Some("load = 0.3"), Some("load = 0.8")]), "{out}");
        // Both in the plot over the load and in the one of their load.
        assert_eq!(out.matches("<title>&lt;swift&gt;: 9.00</title>").count(), 1);
        assert_eq!(out.matches("<title>dctcp p99: 4.00</title>").count(), 1);
        assert!(out.contains("Without 4 unfinished transfers."), "{out}");
        // Without a number that varies, the variants are lines of one plot.
        let mut out = String::new();
        of_variants(&mut out, &summary, &[&[], &[], &[], &[]]);
        assert!(out.contains("<title>as in the file: 2.00</title>"), "{out}");
        assert!(out.contains("<title>d: 9.00</title>"), "{out}");
        assert_eq!(out.matches("<svg").count(), 1);
    }
}
