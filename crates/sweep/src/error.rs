//! Errors of sweeps.

use std::io;
use std::path::PathBuf;

use weir_results::OutputError;
use weir_scenario::ScenarioError;

/// An error of a sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a valid sweep.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The mistake and its correction.
        message: String,
    },
    /// The scenario has mistakes, or lacks a key that the sweep sets.
    #[error("{}: {source}", path.display())]
    Scenario {
        /// The sweep's file.
        path: PathBuf,
        /// The mistakes.
        source: ScenarioError,
    },
    /// Listed combinations contradict each other.
    #[error("{0}")]
    Points(String),
    /// Flows are to be kept of runs that stop early.
    #[error("`keep = [\"flows\"]` needs runs of full length: remove `early_stop`, or `keep`")]
    FlowsOfPart,
    /// No threads could be created.
    #[error("no threads for the runs: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The directory has rows of an earlier sweep, and `--resume` is not set.
    #[error(
        "{} has {rows} rows already: --resume goes on with them, another --out begins anew",
        directory.display()
    )]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// The number of rows.
        rows: usize,
    },
    /// Another process writes the same journal.
    #[error("{}: another sweep is writing it", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// A journal has an invalid line.
    #[error("{}:{line}: this is no row of a sweep: {source}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The mistake.
        source: serde_json::Error,
    },
    /// A file cannot be created or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}
