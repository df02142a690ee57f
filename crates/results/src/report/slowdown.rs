//! Slowdowns: over the size of transfers, and of several runs over the key that they vary.

use std::cmp::Ordering;

use indexmap::{IndexMap, IndexSet};

use super::figure::{AxisKind, Detail, Figure, Kind, Line};
use super::ranking::Ranking;
use super::slowdown_figures::{Figures, GroupFigures, P99, of_groups};
use super::varied::{VariedKey, others};
use crate::overview::OWN;
use crate::summary::{SIZE_NAMES, size_value};
use crate::{MeanInterval, RunSummary, Summary, Value};

/// The figures of a line, by class of sizes.
type BySize = IndexMap<&'static str, Figures>;

/// What the figures say below the plots.
const CAPTION: &str = "Completion time divided by that on the empty network.";
/// The names of figures by size, in the order of [`FIGURES`](super::slowdown_figures::FIGURES).
const BY_SIZE: [(&str, &str); 2] = [
    ("slowdown-p50", "Slowdown by size: median"),
    ("slowdown-p99", "Slowdown by size: 99th percentile"),
];
/// The same over a key.
const OVER_KEY: [(&str, &str); 2] = [("over-p50", "median"), ("over-p99", "99th percentile")];

/// Returns the medians and the 99th percentiles of a run's groups by size, or the means of several repetitions; none if
/// no transfer with a size is complete.
pub(super) fn by_size(
    repetitions: &[&RunSummary],
    ranking: &Ranking,
    detail: Detail,
) -> Vec<Figure> {
    let found = of_groups(repetitions);
    let caption = caption(repetitions.iter().copied(), repetitions.len() > 1);
    let figures = BY_SIZE.into_iter().enumerate().map(|(place, (id, title))| {
        let named = found.iter();
        let named = named.filter(|(name, _)| {
            let rank = ranking.rank(Kind::Groups, name);
            detail.per_point(rank).is_some()
        });
        Figure {
            of: Some(Kind::Groups),
            lines: lines(
                named.map(|(name, group)| (name.as_str(), &group.sizes)),
                place,
            ),
            ..of_slowdowns(id, title.to_owned(), AxisKind::Size, caption.clone())
        }
    });
    figures.filter(|figure| !figure.lines.is_empty()).collect()
}

/// Returns the slowdowns of several runs: the 99th percentile by size, one figure for each value of the key that they
/// vary most; and over this key. `values` has the values of each run.
pub(super) fn of_variants(summary: &Summary, values: &[&[(String, Value)]]) -> Vec<Figure> {
    let runs: Vec<(String, Vec<&RunSummary>)> = (summary.runs())
        .map(|(name, run)| (name.unwrap_or(OWN).to_owned(), vec![run]))
        .collect();
    of_runs(&runs, values)
}

/// Returns the same of several runs, each with all of its repetitions; means have their intervals.
pub(super) fn of_runs(
    runs: &[(String, Vec<&RunSummary>)],
    values: &[&[(String, Value)]],
) -> Vec<Figure> {
    let found: Vec<_> = runs.iter().map(|(_, run)| of_groups(run)).collect();
    if runs.len() < 2 || found.iter().all(IndexMap::is_empty) {
        return Vec::new();
    }
    let key = VariedKey::of(values);
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let of_runs = RunLines::new(&names, &found, values, key.as_ref());
    let has_intervals = runs.iter().any(|(_, run)| run.len() > 1);
    let all = runs.iter().flat_map(|(_, run)| run.iter().copied());
    let caption = caption(all, has_intervals);
    let over_key = key.iter().flat_map(|key| of_runs.over_key(key, &caption));
    over_key
        .chain(of_runs.by_size(key.as_ref(), &caption))
        .filter(|figure| !figure.lines.is_empty())
        .collect()
}

fn of_slowdowns(id: &'static str, title: String, axis: AxisKind, caption: String) -> Figure {
    Figure {
        title,
        caption,
        axis,
        is_logarithmic: true,
        has_points: true,
        ..Figure::over_time(id, "", "ratio")
    }
}

/// Returns what the figures of these runs say below the plots.
fn caption<'r>(runs: impl IntoIterator<Item = &'r RunSummary>, has_intervals: bool) -> String {
    let mut caption = CAPTION.to_owned();
    if has_intervals {
        caption += " Shade: 95 % confidence intervals of the means over the seeds.";
    }
    let groups = runs.into_iter().flat_map(|run| run.groups.values());
    let unfinished: u64 = groups
        .filter_map(|group| Some(group.slowdown.as_ref()?.all.unfinished))
        .sum();
    if unfinished > 0 {
        caption += &format!(" Without {unfinished} unfinished transfers.");
    }
    caption
}

/// Returns lines of one of the figures over the classes of sizes.
fn lines<'s>(named: impl Iterator<Item = (&'s str, &'s BySize)>, figure: usize) -> Vec<Line> {
    let lines = named.map(|(name, sizes)| {
        let points = SIZE_NAMES.into_iter().filter_map(|size| {
            let value = (*sizes.get(size)?.get(figure)?)?;
            Some((size_value(size), value))
        });
        line(name, points)
    });
    lines.filter(|line| !line.x.is_empty()).collect()
}

/// Returns a line of means. An interval that goes below 1, which no slowdown does, ends there.
fn line(name: &str, points: impl Iterator<Item = (f64, MeanInterval)>) -> Line {
    let points: Vec<_> = points.collect();
    let has_intervals = points.iter().any(|(_, value)| value.half_width.is_some());
    let half = |value: &MeanInterval| value.half_width.unwrap_or(0.0);
    let low = points
        .iter()
        .map(|(_, value)| (value.mean - half(value)).max(value.mean.min(1.0)));
    let high = points.iter().map(|(_, value)| value.mean + half(value));
    Line {
        band: has_intervals.then(|| [low.collect(), high.collect()]),
        ..Line::through(name, points.iter().map(|(at, value)| (*at, value.mean)))
    }
}

/// The slowdowns of several runs, as lines: one for each group and each combination of the values beside the varied key.
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

    /// Returns the medians and 99th percentiles over the key.
    fn over_key(&self, key: &VariedKey, caption: &str) -> Vec<Figure> {
        let figures = OVER_KEY
            .into_iter()
            .enumerate()
            .map(|(figure, (id, name))| {
                let lines = self.labels.iter().enumerate().map(|(place, label)| {
                    let runs = self.at.iter().zip(&self.runs);
                    let points = runs.filter_map(|(at, groups)| {
                        let (at, _) = at.as_ref()?;
                        let (_, group) = groups.iter().find(|(found, _)| *found == place)?;
                        Some((*at, (*group.all.get(figure)?)?))
                    });
                    let mut points: Vec<_> = points.collect();
                    points.sort_by(|one, other| one.0.total_cmp(&other.0));
                    // The file's own values may be those of a variant.
                    points.dedup_by(|one, other| one.0 == other.0);
                    line(label, points.into_iter())
                });
                let title = format!("Slowdown over {}: {name}, all sizes", key.name);
                let axis = AxisKind::Key(key.name.clone());
                Figure {
                    lines: lines.filter(|line| !line.x.is_empty()).collect(),
                    ..of_slowdowns(id, title, axis, caption.to_owned())
                }
            });
        figures.collect()
    }

    /// Returns the 99th percentiles by size, one figure for each value of the key.
    fn by_size(&self, key: Option<&VariedKey>, caption: &str) -> Vec<Figure> {
        let (id, title) = BY_SIZE[P99];
        let mut at: Vec<&Option<(f64, String)>> = self.at.iter().collect();
        at.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        let values: IndexSet<Option<&str>> = (at.into_iter())
            .map(|at| at.as_ref().map(|(_, text)| text.as_str()))
            .collect();
        let figures = values.into_iter().map(|value| {
            let runs = self.at.iter().zip(&self.runs);
            let runs = runs.filter(|(at, _)| at.as_ref().map(|(_, text)| text.as_str()) == value);
            let mut drawn = IndexMap::new();
            for (line, group) in runs.flat_map(|(_, groups)| groups) {
                drawn.entry(*line).or_insert(&group.sizes);
            }
            let named = drawn
                .iter()
                .filter_map(|(line, sizes)| Some((self.labels.get_index(*line)?.as_str(), *sizes)));
            let title = match key.zip(value) {
                Some((key, value)) => format!("{title}, {} = {value}", key.name),
                None => title.to_owned(),
            };
            Figure {
                lines: lines(named, P99),
                ..of_slowdowns(id, title, AxisKind::Size, caption.to_owned())
            }
        });
        figures.collect()
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

    fn points(line: &Line) -> Vec<(f64, f64)> {
        line.x.iter().copied().zip(line.y.iter().copied()).collect()
    }

    #[test]
    fn a_run_has_its_median_and_its_tail_by_size() {
        let figures = |run: RunSummary| by_size(&[&run], &Ranking::default(), Detail::ALL[0]);
        let found = figures(run(&[2, 2, 20]));
        let titles: Vec<_> = found.iter().map(|figure| figure.title.as_str()).collect();
        assert_eq!(titles, BY_SIZE.map(|(_, title)| title));
        assert_eq!(points(&found[0].lines[0]), [(1e4, 2.0)]);
        assert_eq!(points(&found[1].lines[0]), [(1e4, 20.0)]);
        assert!(found[0].caption.contains("Without 1 unfinished transfers."));
        assert!(figures(RunSummary::default()).is_empty());
    }

    #[test]
    fn repetitions_have_bands() {
        let (one, two) = (run(&[2]), run(&[4]));
        let runs = [
            ("a".to_owned(), vec![&one, &two]),
            ("b".to_owned(), vec![&two, &two]),
        ];
        let values = [values(0.3, "dctcp"), values(0.8, "dctcp")];
        let values: Vec<&[_]> = values.iter().map(Vec::as_slice).collect();
        let figures = of_runs(&runs, &values);
        let line = &figures[0].lines[0];
        assert_eq!(points(line), [(0.3, 3.0), (0.8, 4.0)]);
        // Student's with one degree of freedom: 12.706 standard errors of 1.
        let [low, high] = line.band.as_ref().unwrap();
        assert_eq!(*low, [1.0, 4.0]);
        assert!((high[0] - 15.706).abs() < 1e-9 && (high[1] - 4.0).abs() < 1e-9);
        assert!(figures[0].caption.contains("95 % confidence intervals"));
        assert!(figures[0].caption.contains("Without 4 unfinished"));
        let single = of_runs(&runs.map(|(name, run)| (name, run[..1].to_vec())), &values);
        assert!(
            single
                .iter()
                .flat_map(|figure| &figure.lines)
                .all(|line| line.band.is_none())
        );
        assert!(!single[0].caption.contains("intervals"));
    }

    #[test]
    fn variants_share_figures_over_the_load_and_by_size() {
        let mut summary = Summary::new("", "", run(&[2]));
        let variants = [("b", &[4][..]), ("c", &[3]), ("d", &[9])];
        for (name, slowdowns) in variants {
            summary.variants.insert(name.to_owned(), run(slowdowns));
        }
        let values = [
            values(0.8, "dctcp"),
            values(0.3, "dctcp"),
            values(0.3, "swift"),
            values(0.8, "swift"),
        ];
        let values: Vec<&[_]> = values.iter().map(Vec::as_slice).collect();
        let figures = of_variants(&summary, &values);
        let titles: Vec<_> = figures.iter().map(|figure| figure.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Slowdown over load: median, all sizes",
                "Slowdown over load: 99th percentile, all sizes",
                "Slowdown by size: 99th percentile, load = 0.3",
                "Slowdown by size: 99th percentile, load = 0.8",
            ]
        );
        let names: Vec<_> = figures[1]
            .lines
            .iter()
            .map(|line| line.name.as_str())
            .collect();
        assert_eq!(names, ["dctcp", "swift"]);
        assert_eq!(points(&figures[1].lines[1]), [(0.3, 3.0), (0.8, 9.0)]);
        // Without a number that varies, the variants are lines of one figure.
        let figures = of_variants(&summary, &[&[], &[], &[], &[]]);
        assert_eq!(figures.len(), 1);
        let names: Vec<_> = figures[0]
            .lines
            .iter()
            .map(|line| line.name.as_str())
            .collect();
        assert_eq!(names, ["as in the file", "b", "c", "d"]);
    }
}
