//! The sections of pages, from the data of runs.

use indexmap::IndexMap;

use super::figure::{Detail, Figure, Which};
use super::page_data::{Section, fitting};
use super::ranking::Ranking;
use super::{Report, RunPlots, completions, over_time, slowdown};
use crate::overview::OWN;
use crate::{RunSummary, Traces, Value};

/// Returns the data of a report: its variants compared, the run with the file's own values, and each variant.
pub(super) fn of_report(report: &Report<'_>, ranking: &Ranking) -> String {
    let summary = report.summary;
    fitting(ranking, |detail| {
        let mut sections = Vec::new();
        let values: Vec<_> = report.runs.iter().map(|run| run.values).collect();
        sections.extend(compared(slowdown::of_variants(summary, &values)));
        for ((name, run), plots) in summary.runs().zip(&report.runs) {
            let title = match name {
                None if summary.variants.is_empty() => "",
                None => OWN,
                Some(name) => name,
            };
            let figures = of_run(&[run], plots, ranking, detail);
            sections.push(section(title, run, plots.traces, figures));
        }
        sections
    })
}

/// Returns the data of repetitions: the slowdowns of their runs compared, and of each; `None` if there are none.
pub(crate) fn repeated(
    runs: &[(String, Vec<&RunSummary>)],
    values: &[&[(String, Value)]],
) -> Option<String> {
    let first = runs.iter().filter_map(|(_, run)| run.first());
    let ranking = Ranking::of(first.map(|run| (*run, None)));
    let sections = |detail| {
        let mut sections = Vec::new();
        sections.extend(compared(slowdown::of_runs(runs, values)));
        for (name, repetitions) in runs {
            let figures = slowdown::by_size(repetitions, &ranking, detail);
            let is_alone = runs.len() == 1;
            sections.extend((!figures.is_empty()).then(|| Section {
                title: if is_alone {
                    String::new()
                } else {
                    name.clone()
                },
                figures,
                ..Section::default()
            }));
        }
        sections
    };
    let has_some = !sections(Detail::ALL[0]).is_empty();
    has_some.then(|| fitting(&ranking, sections))
}

/// Returns a section of figures that compare runs, if there are any.
fn compared(figures: Vec<Figure>) -> Option<Section> {
    (!figures.is_empty()).then(|| Section {
        title: "Variants compared".to_owned(),
        figures,
        ..Section::default()
    })
}

/// Returns all figures of a run, with the slowdowns of all of its repetitions.
fn of_run(
    repetitions: &[&RunSummary],
    plots: &RunPlots<'_>,
    ranking: &Ranking,
    detail: Detail,
) -> Vec<Figure> {
    let Some(run) = repetitions.first() else {
        return Vec::new();
    };
    let mut figures = over_time::figures(run, plots, ranking, detail);
    figures.extend(completions::figure(run, plots.traces, ranking, detail));
    figures.extend(slowdown::by_size(repetitions, ranking, detail));
    figures
}

fn section(title: &str, run: &RunSummary, traces: &Traces, figures: Vec<Figure>) -> Section {
    // An interrupted run ends before its planned time, and one with epochs may.
    let is_cut = run.simulated < traces.span && !run.simulated.is_zero();
    let end = if is_cut { run.simulated } else { traces.span };
    let settings = run.settings.iter();
    let settings = settings.map(|(key, value)| format!("{key} = {value}"));
    let changes = run.changes.iter();
    let changes = changes.map(|change| (change.at.as_secs_f64(), change.to_string()));
    Section {
        title: title.to_owned(),
        note: settings.collect::<Vec<_>>().join(", "),
        end: end.as_secs_f64(),
        warm_up: run.warm_up.as_secs_f64(),
        changes: changes.collect(),
        figures,
    }
}

/// A run of one of two experiments that share the same figures.
#[derive(Clone, Debug)]
pub(crate) struct Overlay<'a> {
    /// Its repetitions.
    pub(crate) repetitions: Vec<&'a RunSummary>,
    /// The samples of the first of them.
    pub(crate) traces: &'a Traces,
}

/// Returns the data of pairs of runs with their names, each pair's lines in the same figures. A figure that only one of
/// two has shows that one.
pub(crate) fn overlaid(pairs: &[(String, [Overlay<'_>; 2])]) -> String {
    let all = pairs.iter().flat_map(|(_, sides)| sides);
    let firsts = all.filter_map(|side| Some((*side.repetitions.first()?, Some(side.traces))));
    let ranking = Ranking::of(firsts);
    fitting(&ranking, |detail| {
        let sections = pairs.iter().map(|(name, sides)| {
            let [one, other] = sides.each_ref().map(|side| of_side(side, &ranking, detail));
            let mut section = one.unwrap_or_default();
            if let Some(other) = other {
                merge(&mut section, other);
            }
            section.title.clone_from(name);
            section
        });
        sections.collect()
    })
}

fn of_side(side: &Overlay<'_>, ranking: &Ranking, detail: Detail) -> Option<Section> {
    let run = *side.repetitions.first()?;
    let plots = RunPlots {
        traces: side.traces,
        thresholds: IndexMap::new(),
        values: &[],
    };
    let figures = of_run(&side.repetitions, &plots, ranking, detail);
    Some(Section {
        note: String::new(),
        ..section("", run, side.traces, figures)
    })
}

/// Adds the second experiment's lines to the figures of the first.
fn merge(section: &mut Section, other: Section) {
    section.end = section.end.max(other.end);
    section.warm_up = section.warm_up.min(other.warm_up);
    for change in other.changes {
        if !section.changes.contains(&change) {
            section.changes.push(change);
        }
    }
    for mut figure in other.figures {
        for line in &mut figure.lines {
            line.which = Which::B;
        }
        let same = |known: &&mut Figure| (known.id, &known.title) == (figure.id, &figure.title);
        match section.figures.iter_mut().find(same) {
            Some(known) => known.lines.extend(figure.lines),
            None => section.figures.push(figure),
        }
    }
    // Bands of values over time would hide each other; those of slowdowns are intervals.
    for figure in section
        .figures
        .iter_mut()
        .filter(|figure| !figure.has_points)
    {
        for line in &mut figure.lines {
            line.band = None;
        }
    }
}
