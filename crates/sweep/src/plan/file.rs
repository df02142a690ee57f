//! A sweep's file.

use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;
use weir_scenario::{Document, Quantity, Setting};

use super::axis::{self, Axis, Values};
use super::condition::Condition;
use super::sample::{MOST_SOBOL_KEYS, MOST_SOBOL_POINTS, Method};
use super::{Points, Sweep};
use crate::SweepError;
use crate::code::Code;
use crate::steady::SteadyRule;

/// The largest number of combinations of a sweep, before conditions.
const MOST_POINTS: u64 = 10_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    source: String,
    scenario: PathBuf,
    #[serde(default)]
    settings: IndexMap<String, Spanned<toml::Value>>,
    #[serde(default = "one_seed")]
    seeds: Spanned<Vec<u32>>,
    #[serde(default, rename = "where")]
    conditions: Vec<Spanned<String>>,
    grid: Option<Spanned<IndexMap<String, Spanned<WrittenSteps>>>>,
    sample: Option<Spanned<WrittenSample>>,
    early_stop: Option<Spanned<SteadyRule>>,
    #[serde(default)]
    keep: Vec<Kept>,
}

/// What is kept of runs beside their rows.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kept {
    Flows,
}

fn one_seed() -> Spanned<Vec<u32>> {
    Spanned::new(0..0, vec![1])
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenSteps {
    List(Vec<toml::Value>),
    Range(WrittenRange),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRange {
    from: toml::Value,
    to: toml::Value,
    step: toml::Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSample {
    method: Method,
    count: u64,
    #[serde(default)]
    seed: u64,
    keys: IndexMap<String, Spanned<WrittenSpread>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenSpread {
    List(Vec<toml::Value>),
    Between(WrittenBetween),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBetween {
    from: toml::Value,
    to: toml::Value,
    round: Option<toml::Value>,
    #[serde(default)]
    logarithmic: bool,
}

/// A mistake in the file, and its position.
struct PlanProblem {
    at: usize,
    message: String,
}

fn wrong(at: std::ops::Range<usize>, message: impl Into<String>) -> PlanProblem {
    PlanProblem {
        at: at.start,
        message: message.into(),
    }
}

pub(super) fn load(path: &Path) -> Result<Sweep, SweepError> {
    let text = fs::read_to_string(path).map_err(|source| SweepError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let invalid = |PlanProblem { at, message }| SweepError::Invalid {
        path: path.to_owned(),
        line: text[..at.min(text.len())].matches('\n').count() + 1,
        message,
    };
    let file: File = toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        invalid(PlanProblem {
            at,
            message: error.message().to_owned(),
        })
    })?;
    let base = read_base(path, &file)?;
    let sweep = file.check(path, base).map_err(invalid)?;
    match sweep.runs() {
        0 => Err(invalid(PlanProblem {
            at: 0,
            message: "no combination of values fulfils `where`: the sweep has no runs".to_owned(),
        })),
        _ => Ok(sweep),
    }
}

/// Reads the scenario, with the settings of all runs.
fn read_base(path: &Path, file: &File) -> Result<Document, SweepError> {
    let beside = path.parent().unwrap_or(Path::new("."));
    let settings: Vec<Setting> = (file.settings.iter())
        .map(|(path, value)| Setting {
            path: path.clone(),
            value: value.get_ref().to_string(),
        })
        .collect();
    let base = Document::load(&beside.join(&file.scenario));
    let base = base.and_then(|document| document.with(&settings));
    base.map_err(|source| SweepError::Scenario {
        path: path.to_owned(),
        source,
    })
}

impl File {
    fn check(self, path: &Path, base: Document) -> Result<Sweep, PlanProblem> {
        let (axes, points) = match (self.grid, self.sample) {
            (Some(grid), None) => grid_axes(grid)?,
            (None, Some(sample)) => sample_axes(sample)?,
            (Some(grid), Some(_)) => {
                return Err(wrong(
                    grid.span(),
                    "`[grid]` and `[sample]` are two sweeps: write one of them",
                ));
            }
            (None, None) => return Err(wrong(0..0, "missing: `[grid]` or `[sample]`")),
        };
        let conditions = (self.conditions.iter())
            .map(|condition| check_condition(condition, &axes))
            .collect::<Result<_, _>>()?;
        if self.seeds.get_ref().is_empty() {
            return Err(wrong(
                self.seeds.span(),
                "`seeds` is empty: write at least one",
            ));
        }
        if let Some(rule) = &self.early_stop {
            let checked = rule.get_ref().check();
            checked.map_err(|message| wrong(rule.span(), message))?;
            if self.keep.contains(&Kept::Flows) {
                return Err(wrong(rule.span(), SweepError::FlowsOfPart.to_string()));
            }
        }
        Ok(Sweep {
            title: self.title,
            source: self.source,
            path: path.to_owned(),
            base,
            axes: named(axes),
            points,
            seeds: self.seeds.into_inner().into_iter().map(u64::from).collect(),
            conditions,
            steady: self.early_stop.map(Spanned::into_inner),
            keeps_flows: self.keep.contains(&Kept::Flows),
            code: Code::own().clone(),
        })
    }
}

/// Paths and their values.
pub(super) type Keys = Vec<(String, Values)>;

fn grid_axes(
    grid: Spanned<IndexMap<String, Spanned<WrittenSteps>>>,
) -> Result<(Keys, Points), PlanProblem> {
    let at = grid.span();
    let mut axes = Vec::new();
    let mut count = 1_u64;
    for (path, steps) in in_order(grid.into_inner()) {
        let at = steps.span();
        let values = match steps.into_inner() {
            WrittenSteps::List(values) => list(&path, &values),
            WrittenSteps::Range(WrittenRange { from, to, step }) => {
                let range = (
                    quantity(&path, &from),
                    quantity(&path, &to),
                    quantity(&path, &step),
                );
                match range {
                    (Ok(from), Ok(to), Ok(step)) => axis::steps(&from, &to, &step)
                        .map(Values::List)
                        .map_err(|message| format!("`{path}`: {message}")),
                    (from, to, step) => Err([from.err(), to.err(), step.err()]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join("; ")),
                }
            }
        };
        let values = values.map_err(|message| wrong(at.clone(), message))?;
        if let Values::List(list) = &values {
            count = count.saturating_mul(list.len() as u64);
        }
        if count > MOST_POINTS {
            return Err(wrong(
                at,
                format!("more than {MOST_POINTS} combinations are no sweep but a life's work"),
            ));
        }
        axes.push((path, values));
    }
    if axes.is_empty() {
        return Err(wrong(
            at,
            "the grid is empty: write keys and their values, `\"path.to.key\" = [values]`",
        ));
    }
    Ok((axes, Points::Grid))
}

fn sample_axes(sample: Spanned<WrittenSample>) -> Result<(Keys, Points), PlanProblem> {
    let at = sample.span();
    let WrittenSample {
        method,
        count,
        seed,
        keys,
    } = sample.into_inner();
    if keys.is_empty() || count == 0 {
        return Err(wrong(
            at,
            "the sample is empty: write a `count` and keys under `[sample.keys]`",
        ));
    }
    if count > MOST_POINTS {
        return Err(wrong(at, format!("`count` is above {MOST_POINTS}")));
    }
    if method == Method::Sobol && (keys.len() > MOST_SOBOL_KEYS || count > MOST_SOBOL_POINTS) {
        return Err(wrong(
            at,
            format!(
                "Sobol's sequence has {MOST_SOBOL_KEYS} keys and {MOST_SOBOL_POINTS} points at most"
            ),
        ));
    }
    let mut axes = Vec::new();
    for (path, spread) in in_order(keys) {
        let at = spread.span();
        let values = match spread.into_inner() {
            WrittenSpread::List(values) => list(&path, &values),
            WrittenSpread::Between(between) => span(&path, between),
        };
        axes.push((path, values.map_err(|message| wrong(at, message))?));
    }
    Ok((
        axes,
        Points::Sample {
            method,
            count,
            seed,
        },
    ))
}

/// Returns keys in the order of the file.
fn in_order<T>(keys: IndexMap<String, Spanned<T>>) -> Vec<(String, Spanned<T>)> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_by_key(|(_, value)| value.span().start);
    keys
}

fn list(path: &str, values: &[toml::Value]) -> Result<Values, String> {
    let values: Result<Vec<_>, _> = values.iter().map(|value| quantity(path, value)).collect();
    match values? {
        values if values.is_empty() => Err(format!("`{path}` has no values: write at least one")),
        values => Ok(Values::List(values)),
    }
}

fn span(path: &str, written: WrittenBetween) -> Result<Values, String> {
    let (from, to) = (quantity(path, &written.from)?, quantity(path, &written.to)?);
    let round = written
        .round
        .map(|round| quantity(path, &round))
        .transpose()?;
    axis::between(from, to, round, written.logarithmic)
        .map_err(|message| format!("`{path}`: {message}"))
}

fn quantity(path: &str, value: &toml::Value) -> Result<Quantity, String> {
    Quantity::of(value).ok_or_else(|| {
        format!(
            "`{path}`: a value is a text, a finite number, true or false, and not {}",
            value.type_str()
        )
    })
}

fn check_condition(condition: &Spanned<String>, axes: &Keys) -> Result<Condition, PlanProblem> {
    let parsed: Result<Condition, String> = condition.get_ref().parse();
    let parsed = parsed.map_err(|message| wrong(condition.span(), message))?;
    for path in [&parsed.left, &parsed.right] {
        if !axes.iter().any(|(known, _)| known == path) {
            let known: Vec<&str> = axes.iter().map(|(path, _)| path.as_str()).collect();
            let known = known.join(", ");
            let message = format!("`{path}` is no key of the sweep; these are: {known}");
            return Err(wrong(condition.span(), message));
        }
    }
    Ok(parsed)
}

/// Returns keys with the names of their columns.
pub(super) fn named(axes: Keys) -> Vec<Axis> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let all: Vec<String> = axes.iter().map(|(path, _)| last(path)).collect();
    let axes = axes.into_iter().map(|(path, values)| {
        let short = last(&path);
        let shared = all.iter().filter(|other| **other == short).count() > 1;
        let name = if shared { &path } else { &short };
        let column = format!("{name}{}", values.example().unit());
        Axis {
            path,
            column,
            values,
        }
    });
    axes.collect()
}
