//! What can be wrong with a sweep.

use std::io;
use std::path::PathBuf;

use weir_results::OutputError;
use weir_scenario::ScenarioError;

/// Why a sweep cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file makes no sense as a sweep.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// Which one.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The scenario has mistakes, or has no key that the sweep sets.
    #[error("{}: {source}", path.display())]
    Scenario {
        /// The sweep's file.
        path: PathBuf,
        /// The mistakes.
        source: ScenarioError,
    },
    /// Combinations that are given one by one make no sense together.
    #[error("{0}")]
    Points(String),
    /// No threads to be had.
    #[error("no threads for the runs: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The directory has rows of an earlier sweep, and nobody said what is to become of them.
    #[error(
        "{} has {rows} rows already: --resume goes on with them, another --out begins anew",
        directory.display()
    )]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// How many.
        rows: usize,
    },
    /// Another process writes the same journal.
    #[error("{}: another sweep is writing it", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// A journal has a line that no sweep wrote.
    #[error("{}:{line}: this is no row of a sweep: {source}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file cannot be made or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}
