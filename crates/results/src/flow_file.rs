//! The flows of runs beside a dataset of summaries: a file for each run, and one with all of them.

use std::path::{Path, PathBuf};

use crate::error::OutputError;
use crate::output::{RunColumns, TableFile};
use crate::{FlowRecord, Observation, Recorder, Value};

/// The flows of a run, under a temporary name until it is complete. Dropping it removes it.
pub struct FlowFile(TableFile);

impl FlowFile {
    /// Creates a file that will get this path.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        TableFile::create::<FlowRecord<'_>>(path).map(Self)
    }

    /// Writes what is buffered, and renames the file to its path.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Result<PathBuf, OutputError> {
        self.0.persist()
    }
}

/// Records flows only.
impl Recorder for FlowFile {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => self.0.push(&flow),
            _ => Ok(()),
        }
    }

    fn wants_samples(&self) -> bool {
        false
    }
}

/// Writes one file with the flows of several runs, each with values that tell it apart, by column name. Returns its path.
///
/// # Errors
/// A file cannot be read or written.
pub fn join_flows(
    path: &Path,
    runs: &[(Vec<(String, Value)>, PathBuf)],
) -> Result<PathBuf, OutputError> {
    let columns = RunColumns::of(runs.iter().map(|(values, _)| values.iter().cloned()));
    let parts = runs.iter().map(|(_, file)| file.as_path()).enumerate();
    let parts: Vec<(usize, &Path)> = parts.collect();
    columns.merge::<FlowRecord<'_>>(path, &parts)?.persist()
}
