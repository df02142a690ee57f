//! Experiments: the runs of a scenario file, and their results.
//!
//! An [`Experiment`] is a list of independent [`Run`]s. The caller decides where to run them, with which
//! [`Recorder`](weir_results::Recorder), on how many threads and by which clock. It passes an [`Outcome`]
//! of each to [`Results`], which has the summary and writes the files.
//!
//! ```
//! use weir_scenario::Scenario;
//! use weir_sim::{Experiment, Outcome, Results, Simulation};
//!
//! # let text = r#"
//! # title = "A flow"
//! # source = "an example"
//! # duration = "10ms"
//! # [dumbbell]
//! # rate = "1Gbps"
//! # queue = { kind = "drop-tail", buffer = "100KB" }
//! # [dumbbell.senders.sender]
//! # rtt = "100us"
//! # [groups.cubic]
//! # from = "sender"
//! # to = "receiver"
//! # workload = "bulk"
//! # [variants.fast]
//! # "dumbbell.rate" = "2Gbps"
//! # "#;
//! let loaded = Scenario::parse("example.toml", text, &[])?;
//! let Experiment { about, own, variants } = Experiment::new(loaded, &[]);
//! let execute = |run: weir_sim::Run| -> Result<Outcome, Box<dyn std::error::Error>> {
//!     let mut simulation = Simulation::new(run.scenario)?;
//!     simulation.advance(simulation.end(), &mut ())?;
//!     let mut summary = simulation.finish(&mut ())?;
//!     summary.settings = run.settings;
//!     Ok(Outcome { summary, plots: None })
//! };
//! let mut results = Results::new(about, execute(own)?);
//! for (name, run) in variants {
//!     results.add(name, execute(run)?);
//! }
//! assert!(results.summary().variants["fast"].groups["cubic"].goodput > "1Gbps".parse()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::PathBuf;

use indexmap::IndexMap;
use weir_results::{
    FinishedRun, Output, OutputError, Report, RunPlots, RunSummary, Summary, Threshold, Value,
};
use weir_scenario::{LoadedScenario, Scenario, Setting, VariedKey};

use crate::varied;

/// A scenario file's runs.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its description.
    pub about: ExperimentInfo,
    /// The file's own values.
    pub own: Run,
    /// The variants by name.
    pub variants: Vec<(String, Run)>,
}

/// The description of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentInfo {
    /// Its title.
    pub title: String,
    /// Its source.
    pub source: String,
    /// The parameters and the settings beside them, key and value.
    pub parameters: Vec<(String, String)>,
}

/// A run to execute.
#[derive(Clone, Debug)]
pub struct Run {
    /// The settings over the file's values, key and value: see [`RunSummary::settings`].
    pub settings: IndexMap<String, String>,
    /// The scenario to simulate.
    pub scenario: Scenario,
    /// The values of the keys that the file's variants change, by column name: see [`weir_results::Output::run`].
    pub columns: Vec<(String, Value)>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Its metrics.
    pub summary: RunSummary,
    /// Its tables, if they are written, and the [thresholds](weir_network::thresholds()) to draw.
    pub plots: Option<(FinishedRun, IndexMap<String, Vec<Threshold>>)>,
}

/// The results of all runs.
#[derive(Debug)]
pub struct Results {
    summary: Summary,
    parameters: Vec<(String, String)>,
    plots: Vec<(FinishedRun, IndexMap<String, Vec<Threshold>>)>,
}

impl Experiment {
    /// Creates the runs of a scenario file that was loaded with these settings.
    pub fn new(loaded: LoadedScenario, settings: &[Setting]) -> Self {
        let LoadedScenario {
            scenario,
            mut parameters,
            variants,
            varied,
        } = loaded;
        let settings = pairs(settings);
        let others = settings.iter().filter(|(path, _)| !is_parameter(path));
        parameters.extend(others.map(|(path, value)| (path.clone(), value.clone())));
        let variants = variants.into_iter().map(|variant| {
            let mut settings = settings.clone();
            settings.extend(pairs(&variant.settings));
            let run = Run {
                settings,
                scenario: variant.scenario,
                columns: Vec::new(),
            };
            (variant.name, run)
        });
        let mut experiment = Self {
            about: ExperimentInfo {
                title: scenario.title.clone(),
                source: scenario.source.clone(),
                parameters,
            },
            variants: variants.collect(),
            own: Run {
                settings,
                scenario,
                columns: Vec::new(),
            },
        };
        experiment.set_columns(&varied);
        experiment
    }

    /// Sets the columns of all runs for the keys that variants change.
    fn set_columns(&mut self, keys: &[VariedKey]) {
        if self.variants.is_empty() {
            return;
        }
        let variants = self.variants.iter().map(|(_, run)| &run.settings);
        let settings: Vec<_> = [&self.own.settings].into_iter().chain(variants).collect();
        let columns = varied::columns(keys, &settings);
        let runs = self.variants.iter_mut().map(|(_, run)| run);
        let runs = [&mut self.own].into_iter().chain(runs);
        for (run, columns) in runs.zip(columns) {
            run.columns = columns;
        }
    }
}

fn pairs(settings: &[Setting]) -> IndexMap<String, String> {
    let settings = settings.iter();
    settings
        .map(|setting| (setting.path.clone(), setting.value.clone()))
        .collect()
}

/// Whether a setting changes the file's `[parameters]`.
fn is_parameter(path: &str) -> bool {
    path.starts_with("parameters.")
}

impl Results {
    /// Starts with the run of the file's own values.
    pub fn new(about: ExperimentInfo, own: Outcome) -> Self {
        Self {
            summary: Summary::new(about.title, about.source, own.summary),
            parameters: about.parameters,
            plots: own.plots.into_iter().collect(),
        }
    }

    /// Adds a variant; variants come in the file's order.
    pub fn add(&mut self, name: String, variant: Outcome) {
        self.summary.variants.insert(name, variant.summary);
        self.plots.extend(variant.plots);
    }

    /// Returns the summary.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Returns the summary alone.
    pub fn into_summary(self) -> Summary {
        self.summary
    }

    /// Writes summary and report beside the runs' tables, and moves all files to their final names.
    /// Returns the summary and the files' paths.
    ///
    /// # Errors
    /// A file cannot be written or renamed.
    pub fn write(self, output: Output) -> Result<(Summary, Vec<PathBuf>), OutputError> {
        let Self {
            summary,
            parameters,
            plots,
        } = self;
        let report = Report {
            summary: &summary,
            parameters: &parameters,
            runs: (plots.iter())
                .map(|(run, thresholds)| RunPlots {
                    traces: run.traces(),
                    thresholds: thresholds.clone(),
                    values: run.values(),
                })
                .collect(),
        };
        let html = report.to_html();
        let runs = plots.into_iter().map(|(run, _)| run);
        let paths = output.commit(&summary, &html, runs)?;
        Ok((summary, paths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        title = "Runs"
        source = "a test"
        duration = "1ms"

        [parameters]
        rate = "1Gbps"

        [dumbbell]
        rate = "$rate"
        queue = { kind = "drop-tail", buffer = "100KB" }
        [dumbbell.senders.sender]
        rtt = "100us"

        [groups.flow]
        from = "sender"
        to = "receiver"
        workload = "bulk"

        [variants.other]
        "parameters.rate" = "2Gbps"
        seed = 9
    "#;

    #[test]
    fn settings_are_listed_once_and_a_variant_overrides_them() {
        let settings = ["parameters.rate=3Gbps", "seed=4"].map(|text| text.parse().unwrap());
        let loaded = Scenario::parse("test.toml", TEXT, &settings).unwrap();
        let experiment = Experiment::new(loaded, &settings);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            experiment.about.parameters,
            [pair("rate", "3Gbps"), pair("seed", "4")]
        );
        let own: Vec<_> = experiment.own.settings.into_iter().collect();
        assert_eq!(own, [pair("parameters.rate", "3Gbps"), pair("seed", "4")]);
        let (name, variant) = &experiment.variants[0];
        assert_eq!(name, "other");
        assert_eq!(variant.scenario.seed, 9);
        assert_eq!(variant.settings["seed"], "9");
        assert!(variant.settings["parameters.rate"].contains("2Gbps"));
    }
}
