//! Simulation of a scenario and its variants.

use std::sync::Arc;

use pyo3::prelude::*;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use weir_results::{MeanInterval, RunFrames, Summary};
use weir_scenario::{Setting, shipped};
use weir_sim::{Experiment, ExperimentInfo, Outcome, Results, Run, Simulation};
use weir_sweep::thread_time;
use weir_units::Duration;

use crate::congestion::{PythonAlgorithm, PythonPlugin, exception};
use crate::errors;
use crate::scenario::Source;
use crate::table::Table;
use crate::watch::{Stop, run_interruptible};

/// Parts of a simulation; between two of them it checks whether to go on.
const SLICES: u64 = 200;

/// Flows, samples and epochs.
type Tables = (Table, Table, Table);

/// `summary.json`, the tables of the scenario's own run, those of the variants by name.
type PyRunResult = (String, Tables, Vec<(String, Tables)>);

/// Returns the mean of repetitions, and half the width of its 95 % confidence interval if there are several.
#[pyfunction]
pub(crate) fn mean_interval(values: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    let interval = MeanInterval::of(&values);
    let interval =
        interval.ok_or_else(|| pyo3::exceptions::PyValueError::new_err("there are no values"))?;
    Ok((interval.mean, interval.half_width))
}

/// Simulates a scenario, a file or a shipped one, with settings and congestion controls by name. Returns `summary.json`,
/// the tables of the scenario's own values, and those of its variants by name, if these are wanted.
#[pyfunction]
#[pyo3(signature = (scenario, settings, variants, congestion))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: Source,
    settings: Vec<(String, String)>,
    variants: bool,
    congestion: Vec<(String, Py<PyAny>)>,
) -> PyResult<PyRunResult> {
    let settings = as_settings(settings);
    let mut document = scenario.load()?;
    let mut classes = Vec::new();
    for (name, class) in congestion {
        let class = PythonAlgorithm::new(name.clone(), class);
        classes.push(Arc::clone(&class));
        let plugin = Arc::new(PythonPlugin(class));
        document = document
            .with_plugin(&name, plugin)
            .map_err(errors::scenario)?;
    }
    let loaded = document
        .with(&settings)
        .and_then(|document| document.expand());
    let mut loaded = loaded.map_err(|error| scenario.error(&error))?;
    if !variants {
        loaded.variants.clear();
    }
    let experiment = Experiment::new(loaded, &settings);
    let (summary, own, variants) = if classes.is_empty() {
        let stop = Stop::default();
        let work = || carry_out(experiment, &stop);
        run_interruptible(py, &stop, work, |_| Ok(()))?.map_err(errors::simulation)?
    } else {
        carry_out_attached(py, experiment, &classes)?
    };
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
pub(crate) fn parameters(scenario: Source) -> PyResult<Vec<(String, String)>> {
    Ok(scenario.load()?.parameters())
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

/// Simulates on all cores.
fn carry_out(experiment: Experiment, stop: &Stop) -> Result<Done, String> {
    let Experiment {
        about,
        own,
        variants,
    } = experiment;
    let goes_on = || Ok::<bool, String>(stop.goes_on());
    let (own, variants) = rayon::join(
        || simulate(own, goes_on),
        || {
            let variants = variants.into_par_iter();
            let done = variants.map(|(name, run)| match simulate(run, goes_on) {
                Ok(done) => Ok((name, done)),
                Err(error) => Err(format!("variant `{name}`: {error}")),
            });
            done.collect::<Result<Vec<_>, String>>()
        },
    );
    let (own, own_frames) = own?;
    Ok(done(about, own, own_frames, variants?))
}

/// Simulates on this thread, which is attached to Python: its classes need no switch of threads, and Ctrl-C ends them.
fn carry_out_attached(
    py: Python<'_>,
    experiment: Experiment,
    classes: &[Arc<PythonAlgorithm>],
) -> PyResult<Done> {
    let simulate = |run| {
        let check = || {
            py.check_signals()?;
            Ok::<bool, AttachedError>(true)
        };
        match simulate(run, check) {
            Ok(done) => Ok(done),
            Err(AttachedError::Raised(error)) => Err(error),
            Err(AttachedError::Simulation(text)) => {
                Err(exception(py, errors::simulation(text), classes))
            }
        }
    };
    let (own, own_frames) = simulate(experiment.own)?;
    let mut variants = Vec::new();
    for (name, run) in experiment.variants {
        variants.push((name, simulate(run)?));
    }
    Ok(done(experiment.about, own, own_frames, variants))
}

/// Why a simulation on a thread that is attached to Python ended.
enum AttachedError {
    Simulation(String),
    Raised(PyErr),
}

impl From<String> for AttachedError {
    fn from(text: String) -> Self {
        Self::Simulation(text)
    }
}

impl From<PyErr> for AttachedError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

fn done(
    about: ExperimentInfo,
    own: Outcome,
    own_frames: RunFrames,
    variants: Vec<(String, (Outcome, RunFrames))>,
) -> Done {
    let mut results = Results::new(about, own);
    let mut frames = Vec::new();
    for (name, (outcome, tables)) in variants {
        results.add(name.clone(), outcome);
        frames.push((name, tables));
    }
    (results.into_summary(), own_frames, frames)
}

/// Simulates a run in parts; before each one, `goes_on` says whether to.
fn simulate<E: From<String>>(
    run: Run,
    goes_on: impl Fn() -> Result<bool, E>,
) -> Result<(Outcome, RunFrames), E> {
    let begin = thread_time();
    let slice = (run.scenario.duration / SLICES).max(Duration::from_nanos(1));
    let mut frames = RunFrames::default();
    let mut simulation = Simulation::new(run.scenario).map_err(|error| error.to_string())?;
    while simulation.now() < simulation.end() && goes_on()? {
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
