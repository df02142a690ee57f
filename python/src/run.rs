//! Simulation of a scenario and its variants.

use std::path::PathBuf;

use pyo3::prelude::*;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use weir_results::{RunFrames, Summary};
use weir_scenario::{Document, Setting, shipped};
use weir_sim::{Experiment, Outcome, Results, Run, Simulation};
use weir_sweep::thread_time;
use weir_units::Duration;

use crate::errors;
use crate::table::Table;
use crate::watch::{Stop, run_interruptible};

/// Parts of a simulation; between two of them it checks whether to go on.
const SLICES: u64 = 200;

/// Flows, samples and epochs.
type Tables = (Table, Table, Table);

/// `summary.json`, the tables of the scenario's own run, those of the variants by name.
type PyRunResult = (String, Tables, Vec<(String, Tables)>);

/// Simulates a scenario, a file or a shipped one, with settings. Returns `summary.json`, the tables
/// of the scenario's own values, and those of its variants by name, if these are wanted.
#[pyfunction]
#[pyo3(signature = (scenario, settings, variants))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: PathBuf,
    settings: Vec<(String, String)>,
    variants: bool,
) -> PyResult<PyRunResult> {
    let settings = as_settings(settings);
    let document = Document::load_or_shipped(&scenario);
    let loaded = document.and_then(|document| document.with(&settings)?.expand());
    let mut loaded =
        loaded.map_err(|error| errors::scenario(shipped::error_message(&scenario, &error)))?;
    if !variants {
        loaded.variants.clear();
    }
    let experiment = Experiment::new(loaded, &settings);
    let stop = Stop::default();
    let work = || carry_out(experiment, &stop);
    let (summary, own, variants) =
        run_interruptible(py, &stop, work, |_| Ok(()))?.map_err(errors::simulation)?;
    let variants = variants
        .into_iter()
        .map(|(name, frames)| Ok((name, tables(frames)?)));
    Ok((
        summary.to_json().map_err(errors::simulation)?,
        tables(own)?,
        variants.collect::<PyResult<_>>()?,
    ))
}

/// Returns a scenario's `[parameters]` by name, as text.
#[pyfunction]
pub(crate) fn parameters(scenario: PathBuf) -> PyResult<Vec<(String, String)>> {
    match Document::load_or_shipped(&scenario) {
        Ok(document) => Ok(document.parameters()),
        Err(error) => Err(errors::scenario(shipped::error_message(&scenario, &error))),
    }
}

/// Returns the names of the shipped scenarios.
#[pyfunction]
pub(crate) fn scenarios() -> Vec<&'static str> {
    shipped::SHIPPED.iter().map(|(name, _)| *name).collect()
}

pub(crate) fn as_settings(settings: Vec<(String, String)>) -> Vec<Setting> {
    let settings = settings.into_iter();
    settings
        .map(|(path, value)| Setting { path, value })
        .collect()
}

fn tables(frames: RunFrames) -> PyResult<Tables> {
    let RunFrames {
        flows,
        samples,
        epochs,
    } = frames;
    Ok((Table::of(flows)?, Table::of(samples)?, Table::of(epochs)?))
}

/// The summary, the tables of the scenario's own run, those of the variants.
type Done = (Summary, RunFrames, Vec<(String, RunFrames)>);

fn carry_out(experiment: Experiment, stop: &Stop) -> Result<Done, String> {
    let Experiment {
        about,
        own,
        variants,
    } = experiment;
    let (own, variants) = rayon::join(
        || simulate(own, stop),
        || {
            let variants = variants.into_par_iter();
            let done = variants.map(|(name, run)| match simulate(run, stop) {
                Ok(done) => Ok((name, done)),
                Err(error) => Err(format!("variant `{name}`: {error}")),
            });
            done.collect::<Result<Vec<_>, String>>()
        },
    );
    let (own, own_frames) = own?;
    let mut results = Results::new(about, own);
    let mut frames = Vec::new();
    for (name, (outcome, tables)) in variants? {
        results.add(name.clone(), outcome);
        frames.push((name, tables));
    }
    Ok((results.into_summary(), own_frames, frames))
}

fn simulate(run: Run, stop: &Stop) -> Result<(Outcome, RunFrames), String> {
    let begin = thread_time();
    let slice = (run.scenario.duration / SLICES).max(Duration::from_nanos(1));
    let mut frames = RunFrames::default();
    let mut simulation = Simulation::new(run.scenario).map_err(|error| error.to_string())?;
    while simulation.now() < simulation.end() && stop.goes_on() {
        let until = simulation.now() + slice;
        let advanced = simulation.advance(until, &mut frames);
        advanced.map_err(|error| error.to_string())?;
    }
    let summary = simulation.finish(&mut frames);
    let mut summary = summary.map_err(|error| error.to_string())?;
    summary.settings = run.settings;
    summary.cpu = thread_time() - begin;
    let outcome = Outcome {
        summary,
        plots: None,
    };
    Ok((outcome, frames))
}
