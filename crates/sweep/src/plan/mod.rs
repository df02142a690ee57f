//! Planning: the runs of a sweep.

mod axis;
mod condition;
mod file;
mod listed;
mod sample;

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use weir_results::Value;
use weir_scenario::{Document, Quantity, Scenario, Setting};

pub use axis::Axis;
use condition::Condition;
use sample::{Generator, Method};

use crate::SweepError;
use crate::code::{Code, CodeVersion};
use crate::key::RunKey;
use crate::steady::SteadyRule;

/// A parsed and validated sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its title, in one line.
    pub title: String,
    /// Its source.
    pub source: String,
    path: PathBuf,
    /// The scenario with the settings of all runs.
    base: Document,
    axes: Vec<Axis>,
    points: Points,
    seeds: Vec<u64>,
    conditions: Vec<Condition>,
    steady: Option<SteadyRule>,
    keeps_flows: bool,
    /// The code that executes its runs.
    code: Code,
}

/// The combinations of values.
#[derive(Clone, Debug, PartialEq)]
enum Points {
    /// All combinations; the last key changes fastest.
    Grid,
    Sample {
        method: Method,
        count: u64,
        seed: u64,
    },
    /// Listed combinations.
    List(Vec<Vec<Quantity>>),
}

/// A planned run of a sweep.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Its number in the sweep, from zero.
    pub number: u64,
    /// Its key.
    pub key: RunKey,
    /// The version of the code that it uses.
    pub code: CodeVersion,
    /// The values of the sweep's keys, by column name.
    pub inputs: IndexMap<String, Value>,
    /// The seed.
    pub seed: u64,
    /// The scenario, or the error in it.
    pub scenario: Result<Scenario, String>,
}

/// A part of a sweep, for one of several processes: every `of`-th run, beginning with number `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The part's number, from zero.
    pub index: u64,
    /// The number of parts; at least one.
    pub of: u64,
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Whether the run with this number is in it.
    pub fn contains(self, number: u64) -> bool {
        number % self.of == self.index
    }
}

/// A combination of values, before it becomes a scenario.
struct Point {
    number: u64,
    values: Vec<Quantity>,
    seed: u64,
}

impl Sweep {
    /// Reads a sweep's file, and the scenario's, whose path is relative to it.
    ///
    /// # Errors
    /// One of the two cannot be read or is invalid; the scenario does not have a key; no combination of
    /// values fulfils the conditions.
    pub fn load(path: &Path) -> Result<Self, SweepError> {
        let sweep = file::load(path)?;
        sweep.check_keys()?;
        Ok(sweep)
    }

    /// Sets these settings in all runs, over those of the file.
    ///
    /// # Errors
    /// A path does not exist.
    pub fn with(mut self, settings: &[Setting]) -> Result<Self, SweepError> {
        let base = self.base.with(settings);
        self.base = base.map_err(|source| self.in_scenario(source))?;
        self.check_keys()?;
        Ok(self)
    }

    /// Returns the early-stop rule, if there is one.
    pub fn early_stop(&self) -> Option<&SteadyRule> {
        self.steady.as_ref()
    }

    /// Replaces the early-stop rule.
    ///
    /// # Errors
    /// The sweep keeps flows, and there is a rule.
    pub fn with_steady(mut self, rule: Option<SteadyRule>) -> Result<Self, SweepError> {
        if self.keeps_flows && rule.is_some() {
            return Err(SweepError::FlowsOfPart);
        }
        self.steady = rule;
        Ok(self)
    }

    /// Whether the flows of all runs are kept.
    pub fn keeps_flows(&self) -> bool {
        self.keeps_flows
    }

    /// Returns its keys with their values.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns all its runs.
    pub fn plan(&self) -> Vec<PlannedRun> {
        self.plan_of(Shard::WHOLE)
    }

    /// Returns the runs of a part.
    pub fn plan_of(&self, shard: Shard) -> Vec<PlannedRun> {
        let points = self.points().into_iter();
        let points = points.filter(|point| shard.contains(point.number));
        points.map(|point| self.planned(point)).collect()
    }

    /// Returns about `count` of all runs, spread evenly: every n-th one in the order of the sweep, so that
    /// each value of the slowest keys has its share.
    pub fn plan_subset(&self, count: u64) -> Vec<PlannedRun> {
        let points = self.points();
        let total = points.len() as u64;
        let chosen = |number: u64| {
            let before = |number: u64| number as u128 * u128::from(count) / u128::from(total);
            count >= total || before(number) != before(number + 1)
        };
        let points = points.into_iter().filter(|point| chosen(point.number));
        points.map(|point| self.planned(point)).collect()
    }

    /// Returns the number of its runs.
    pub fn runs(&self) -> usize {
        self.points().len()
    }

    fn points(&self) -> Vec<Point> {
        let combinations = match &self.points {
            Points::Grid => self.grid(),
            Points::Sample {
                method,
                count,
                seed,
            } => self.sample(*method, *count, *seed),
            Points::List(points) => points.clone(),
        };
        let combinations = combinations
            .into_iter()
            .filter(|values| self.is_meant(values));
        let runs = combinations.flat_map(|values| {
            let seeds = self.seeds.iter();
            seeds.map(move |seed| (values.clone(), *seed))
        });
        (0..)
            .zip(runs)
            .map(|(number, (values, seed))| Point {
                number,
                values,
                seed,
            })
            .collect()
    }

    fn grid(&self) -> Vec<Vec<Quantity>> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let axis::Values::List(values) = &axis.values else {
                continue;
            };
            points = points
                .into_iter()
                .flat_map(|point: Vec<Quantity>| {
                    values.iter().map(move |value| {
                        let mut point = point.clone();
                        point.push(value.clone());
                        point
                    })
                })
                .collect();
        }
        points
    }

    fn sample(&self, method: Method, count: u64, seed: u64) -> Vec<Vec<Quantity>> {
        let places = Generator::new(seed).points(method, count, self.axes.len());
        let place = |point: Vec<f64>| {
            let axes = self.axes.iter().zip(point);
            axes.map(|(axis, place)| axis.values.at(place)).collect()
        };
        places.into_iter().map(place).collect()
    }

    fn is_meant(&self, values: &[Quantity]) -> bool {
        let value = |path: &str| {
            let mut pairs = self.axes.iter().zip(values);
            pairs.find_map(|(axis, value)| (axis.path == path).then_some(value))
        };
        self.conditions.iter().all(|condition| {
            let pair = value(&condition.left).zip(value(&condition.right));
            pair.is_some_and(|(left, right)| condition.holds(left, right))
        })
    }

    fn settings(&self, values: &[Quantity], seed: u64) -> Vec<Setting> {
        let pairs = self.axes.iter().zip(values);
        let settings = pairs.map(|(axis, value)| Setting {
            path: axis.path.clone(),
            value: value.to_string(),
        });
        let seed = Setting {
            path: "seed".to_owned(),
            value: seed.to_string(),
        };
        settings.chain([seed]).collect()
    }

    fn planned(&self, point: Point) -> PlannedRun {
        let Point {
            number,
            values,
            seed,
        } = point;
        let settings = self.settings(&values, seed);
        let scenario = self
            .base
            .with(&settings)
            .and_then(|document| document.scenario());
        let scenario = scenario.map_err(|error| error.to_string());
        let (text, code) = match &scenario {
            Ok(scenario) => {
                // Only a bug in this program can make it fail.
                let text = toml::to_string(scenario).unwrap_or_else(|_| format!("{scenario:?}"));
                let code = self.code.of_run(scenario, &text);
                (text, code)
            }
            // It cannot be built.
            Err(error) => (format!("{settings:?} {error}"), self.code.of_reading()),
        };
        let key = RunKey::new(&text, self.steady.as_ref(), &code);
        let axes = self.axes.iter().zip(&values);
        let inputs = axes.map(|(axis, value)| (axis.column.clone(), weir_sim::table_value(value)));
        PlannedRun {
            number,
            key,
            code,
            inputs: inputs.collect(),
            seed,
            scenario,
        }
    }

    /// Returns it as a program with other code plans it.
    #[cfg(test)]
    pub(crate) fn under(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Checks that the scenario has all keys. Single combinations may be invalid, but an unknown key is
    /// always an error.
    fn check_keys(&self) -> Result<(), SweepError> {
        let values: Vec<Quantity> = self
            .axes
            .iter()
            .map(|axis| axis.values.example().clone())
            .collect();
        let seed = self.seeds.first().copied().unwrap_or_default();
        let settings = self.settings(&values, seed);
        let checked = self
            .base
            .with(&settings)
            .and_then(|document| document.scenario());
        match checked {
            Err(error) if error.is_about_keys() => Err(self.in_scenario(error)),
            _ => Ok(()),
        }
    }

    fn in_scenario(&self, source: weir_scenario::ScenarioError) -> SweepError {
        SweepError::Scenario {
            path: self.path.clone(),
            source,
        }
    }
}
