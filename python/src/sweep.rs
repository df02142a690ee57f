//! Sweeps: plan, local runs, or tasks for other machines.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use weir_results::{Dataset, Value};
use weir_sweep::{Code, CodeVersion, Journal, PlannedRun, Row, Rows, RunObserver, Shard, Task};
use weir_units::{ByteSize, Duration, Rate};

use crate::errors;
use crate::run::as_settings;
use crate::scenario::Source;
use crate::table::Table;
use crate::watch::{Stop, run_interruptible};

/// A sweep, parsed and checked.
#[pyclass(frozen, module = "weir")]
#[derive(Debug)]
pub(crate) struct Sweep {
    sweep: weir_sweep::Sweep,
}

#[pymethods]
impl Sweep {
    /// Reads a sweep file. `early_stop`: as in the file, always, or never.
    #[staticmethod]
    fn load(
        path: PathBuf,
        settings: Vec<(String, String)>,
        early_stop: Option<bool>,
    ) -> PyResult<Self> {
        let sweep = weir_sweep::Sweep::load(&path).map_err(errors::sweep)?;
        Self::new(sweep, settings, early_stop)
    }

    /// Creates a sweep of single combinations of settings for a scenario, a file or a shipped one.
    #[staticmethod]
    fn of_points(
        scenario: Source,
        points: Vec<Vec<(String, String)>>,
        seeds: Vec<u64>,
        settings: Vec<(String, String)>,
        early_stop: Option<bool>,
    ) -> PyResult<Self> {
        let base = scenario.load()?;
        let points: Vec<_> = points.into_iter().map(as_settings).collect();
        let sweep = weir_sweep::Sweep::of_points(scenario.name(), base, &points, seeds);
        Self::new(sweep.map_err(errors::sweep)?, settings, early_stop)
    }

    /// Its title, in one line.
    #[getter]
    fn title(&self) -> &str {
        &self.sweep.title
    }

    /// Its source.
    #[getter]
    fn source(&self) -> &str {
        &self.sweep.source
    }

    /// The swept keys, each with the name of its column.
    #[getter]
    fn keys(&self) -> Vec<(String, String)> {
        let axes = self.sweep.axes().iter();
        axes.map(|axis| (axis.path.clone(), axis.column.clone()))
            .collect()
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.sweep.runs()
    }

    /// The inputs of all runs in base units, by column name, and the error of an invalid run.
    fn inputs(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let mut inputs = Dataset::default();
            for run in self.sweep.plan() {
                let error = run
                    .scenario
                    .err()
                    .map(|error| ("error".to_owned(), Value::Text(error)));
                inputs.push(run.inputs.into_iter().chain(error));
            }
            Table::of(inputs.frame())
        })
    }

    /// Opens a directory for the rows of the sweep, or of about `some` of its runs.
    fn open(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        resume: bool,
        some: Option<u64>,
    ) -> PyResult<OpenSweep> {
        py.detach(|| {
            let planned = match some {
                Some(count) => self.sweep.plan_subset(count),
                None => self.sweep.plan(),
            };
            let (journal, rows, reuse) =
                Journal::open(&directory, Shard::WHOLE, &planned, resume).map_err(errors::sweep)?;
            Ok(OpenSweep {
                sweep: self.sweep.clone(),
                directory,
                planned,
                journal,
                rows: Mutex::new(rows),
                reuse: reuse.lines(),
            })
        })
    }
}

impl Sweep {
    fn new(
        sweep: weir_sweep::Sweep,
        settings: Vec<(String, String)>,
        early_stop: Option<bool>,
    ) -> PyResult<Self> {
        let sweep = sweep.with(&as_settings(settings)).map_err(errors::sweep)?;
        let rule = sweep.early_stop().cloned();
        let sweep = match early_stop {
            None => Ok(sweep),
            Some(true) => sweep.with_steady(Some(rule.unwrap_or_default())),
            Some(false) => sweep.with_steady(None),
        };
        let sweep = sweep.map_err(errors::sweep)?;
        Ok(Self { sweep })
    }
}

/// A sweep with its directory, whose journal is locked against other processes.
#[pyclass(frozen, module = "weir")]
#[derive(Debug)]
pub(crate) struct OpenSweep {
    sweep: weir_sweep::Sweep,
    directory: PathBuf,
    planned: Vec<PlannedRun>,
    journal: Journal,
    rows: Mutex<Rows>,
    reuse: Vec<String>,
}

impl OpenSweep {
    fn rows(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[pymethods]
impl OpenSweep {
    /// The number of runs.
    fn __len__(&self) -> usize {
        self.planned.len()
    }

    /// The number of runs with rows.
    #[getter]
    fn done(&self) -> usize {
        self.rows().len()
    }

    /// Lines that say which rows of the directory are kept, and which runs are executed again and why.
    #[getter]
    fn reuse(&self) -> Vec<String> {
        self.reuse.clone()
    }

    /// Simulates the runs without rows, `jobs` at a time, or one per core if it is 0. `progress` is
    /// called periodically with the number of runs that have rows, and with the total.
    fn carry_out(&self, py: Python<'_>, jobs: usize, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let stop = Stop::default();
        let rows = self.rows().clone();
        let watch = Counted {
            stop: &stop,
            over: AtomicUsize::new(rows.len()),
        };
        let work =
            || (self.sweep).execute_remaining(&self.planned, rows, &self.journal, jobs, &watch);
        let look = |py: Python<'_>| match &progress {
            None => Ok(()),
            Some(progress) => {
                let over = watch.over.load(Ordering::Relaxed);
                progress.call1(py, (over, self.planned.len())).map(drop)
            }
        };
        let rows = run_interruptible(py, &stop, work, look)?.map_err(errors::sweep)?;
        let over = rows.len();
        *self.rows() = rows;
        match progress {
            None => Ok(()),
            Some(progress) => progress.call1(py, (over, self.planned.len())).map(drop),
        }
    }

    /// Returns the runs without rows, as texts for [`carry_out_task`].
    fn tasks(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| {
            let rows = self.rows();
            let left = self.planned.iter().filter(|run| !rows.has(&run.key));
            left.map(|run| {
                let task = Task::of(&self.sweep, run);
                task.and_then(|task| task.to_json()).map_err(errors::sweep)
            })
            .collect()
        })
    }

    /// Adds a task's row.
    fn add(&self, py: Python<'_>, row: &str) -> PyResult<()> {
        let row: Row = serde_json::from_str(row).map_err(errors::sweep)?;
        py.detach(|| {
            self.journal.add(&row).map_err(errors::sweep)?;
            self.rows().push(row);
            Ok(())
        })
    }

    /// Writes `runs.parquet` from all rows of the directory, and returns its path and its rows.
    fn finish(&self, py: Python<'_>) -> PyResult<(PathBuf, Table)> {
        py.detach(|| {
            let written = (self.sweep)
                .write_dataset(&self.directory)
                .map_err(errors::sweep)?;
            Ok((written.path, Table::of(written.dataset.frame())?))
        })
    }
}

/// Counts completed runs.
struct Counted<'s> {
    stop: &'s Stop,
    over: AtomicUsize,
}

impl RunObserver for Counted<'_> {
    fn should_continue(&self) -> bool {
        self.stop.goes_on()
    }

    fn on_finished(&self, _: &Row) {
        self.over.fetch_add(1, Ordering::Relaxed);
    }
}

/// Simulates one of [`OpenSweep::tasks`], here or on another machine, and returns its row.
#[pyfunction]
pub(crate) fn carry_out_task(py: Python<'_>, task: &str) -> PyResult<String> {
    let task = Task::from_json(task).map_err(errors::sweep)?;
    let stop = Stop::default();
    let work = || task.execute(&mut || stop.goes_on());
    let row = run_interruptible(py, &stop, work, |_| Ok(()))?.map_err(errors::sweep)?;
    serde_json::to_string(&row).map_err(errors::sweep)
}

/// Returns the names of the parts of a row's `code` that differ from this program's.
#[pyfunction]
pub(crate) fn differing_code(code: &str) -> Vec<String> {
    let version = CodeVersion::parse(code);
    let parts = Code::own().differing(&version);
    parts.into_iter().map(str::to_owned).collect()
}

/// Converts a size to bytes, a rate to bits per second or a time to seconds, if the text is one:
/// `200KB`, `25Gbps`, `50us`.
#[pyfunction]
pub(crate) fn base_units(text: &str) -> Option<f64> {
    let size = text.parse::<ByteSize>().map(|size| size.bytes() as f64);
    let rate = || {
        text.parse::<Rate>()
            .map(|rate| rate.bits_per_second() as f64)
    };
    let span = || text.parse::<Duration>().map(|span| span.as_secs_f64());
    size.or_else(|_| rate()).or_else(|_| span()).ok()
}
