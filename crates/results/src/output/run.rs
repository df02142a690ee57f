//! The tables of one run.

use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempPath;
use weir_units::Duration;

use crate::error::OutputError;
use crate::staged::StagedFile;
use crate::table::{Row, Sample, Table};
use crate::{EpochRecord, FlowRecord, Observation, Recorder, Traces, Value};

/// The tables of one run in progress. Rows are buffered until there are some thousands. Each run
/// has its own files, so that several can run at once.
pub struct RunFiles {
    name: Option<String>,
    values: Vec<(String, Value)>,
    flows: TableFile,
    samples: TableFile,
    /// Few scenarios have epochs: the file is created with its first row.
    epochs: Option<TableFile>,
    epochs_path: PathBuf,
    traces: Traces,
}

/// The complete tables of a run, under temporary names. Dropping them removes them.
#[derive(Debug)]
pub struct FinishedRun {
    name: Option<String>,
    values: Vec<(String, Value)>,
    flows: TempPath,
    samples: TempPath,
    epochs: Option<TempPath>,
    traces: Traces,
}

impl RunFiles {
    pub(super) fn create(
        directory: &Path,
        name: Option<&str>,
        values: Vec<(String, Value)>,
        span: Duration,
    ) -> Result<Self, OutputError> {
        let path = |table| directory.join(format!("{table}.parquet"));
        Ok(Self {
            name: name.map(str::to_owned),
            values,
            flows: TableFile::create::<FlowRecord<'_>>(&path("flows"))?,
            samples: TableFile::create::<Sample<'_>>(&path("samples"))?,
            epochs: None,
            epochs_path: path("epochs"),
            traces: Traces::new(span),
        })
    }

    /// Writes the buffered rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<FinishedRun, OutputError> {
        Ok(FinishedRun {
            name: self.name,
            values: self.values,
            flows: self.flows.finish()?,
            samples: self.samples.finish()?,
            epochs: self.epochs.map(TableFile::finish).transpose()?,
            traces: self.traces,
        })
    }
}

/// Records everything except packets.
impl Recorder for RunFiles {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => {
                self.traces.flow(&flow);
                self.flows.push(&flow)
            }
            Observation::Epoch(epoch) => {
                self.traces.epoch(&epoch);
                let table = match &mut self.epochs {
                    Some(table) => table,
                    empty => empty.insert(TableFile::create::<EpochRecord<'_>>(&self.epochs_path)?),
                };
                table.push(&epoch)
            }
            Observation::Port(sample) => {
                self.traces.port(&sample);
                self.samples.push(&Sample::Port(sample))
            }
            Observation::Group(sample) => {
                self.traces.group(&sample);
                self.samples.push(&Sample::Group(sample))
            }
            Observation::FlowSample(sample) => {
                self.traces.flow_sample(&sample);
                Ok(())
            }
            Observation::Packet(..) | Observation::Frame(..) => Ok(()),
        }
    }

    fn sampled_flows(&self) -> usize {
        Traces::SAMPLED_FLOWS
    }
}

impl FinishedRun {
    /// Returns the data that a report plots.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Returns the values of the keys that variants change, by column name.
    pub fn values(&self) -> &[(String, Value)] {
        &self.values
    }

    /// Returns the variant's name, and the values of the keys that variants change.
    pub(super) fn columns(&self) -> (Option<&str>, &[(String, Value)]) {
        (self.name.as_deref(), &self.values)
    }

    pub(super) fn flows(&self) -> &Path {
        &self.flows
    }

    pub(super) fn samples(&self) -> &Path {
        &self.samples
    }

    pub(super) fn epochs(&self) -> Option<&Path> {
        self.epochs.as_deref()
    }
}

/// A table that is being written under a temporary name.
pub(crate) struct TableFile {
    staged: StagedFile,
    table: Table<File>,
}

impl TableFile {
    /// Creates a table of these rows that will get this path, or be a part of a file there.
    pub(crate) fn create<R: Row>(path: &Path) -> Result<Self, OutputError> {
        let staged = StagedFile::create(path)?;
        let table = Table::new::<R>(staged.handle()?).map_err(OutputError::writing(path))?;
        Ok(Self { staged, table })
    }

    /// Adds a row.
    pub(crate) fn push<R: Row>(&mut self, row: &R) -> Result<(), OutputError> {
        let pushed = self.table.push(row);
        pushed.map_err(OutputError::writing(self.staged.path()))
    }

    /// Writes what is buffered, and renames the file to its path.
    pub(crate) fn persist(self) -> Result<PathBuf, OutputError> {
        let finished = self.table.finish();
        finished.map_err(OutputError::writing(self.staged.path()))?;
        self.staged.persist()
    }

    fn finish(self) -> Result<TempPath, OutputError> {
        let finished = self.table.finish();
        finished.map_err(OutputError::writing(self.staged.path()))?;
        Ok(self.staged.into_part())
    }
}
