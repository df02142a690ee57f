//! The tables of one run.

use std::fs::File;
use std::path::{Path, PathBuf};

use weir_units::Duration;

use crate::error::OutputError;
use crate::staged::{CompleteFile, StagedFile};
use crate::table::{Row, Sample, Table};
use crate::{EpochRecord, FlowRecord, Observation, Recorder, Traces};

/// The tables of one run in progress. Rows are buffered until there are some thousands. Each run
/// has its own files, so that several can run at once.
pub struct RunFiles {
    flows: TableFile,
    samples: TableFile,
    /// Few scenarios have epochs: the file is created with its first row.
    epochs: Option<TableFile>,
    epochs_path: PathBuf,
    traces: Traces,
}

/// The complete tables of a run, under their temporary names.
#[derive(Debug)]
pub struct FinishedRun {
    files: Vec<CompleteFile>,
    traces: Traces,
}

impl RunFiles {
    pub(super) fn create(
        directory: &Path,
        suffix: &str,
        span: Duration,
    ) -> Result<Self, OutputError> {
        let path = |table| directory.join(format!("{table}{suffix}.parquet"));
        Ok(Self {
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
        let mut files = vec![self.flows.finish()?, self.samples.finish()?];
        if let Some(epochs) = self.epochs {
            files.push(epochs.finish()?);
        }
        Ok(FinishedRun {
            files,
            traces: self.traces,
        })
    }
}

/// Records everything except packets.
impl Recorder for RunFiles {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => self.flows.push(&flow),
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
            Observation::Packet(..) | Observation::Frame(..) => Ok(()),
        }
    }
}

impl FinishedRun {
    /// Returns the data that a report plots.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    pub(super) fn into_files(self) -> Vec<CompleteFile> {
        self.files
    }
}

struct TableFile {
    staged: StagedFile,
    table: Table<File>,
}

impl TableFile {
    fn create<R: Row>(path: &Path) -> Result<Self, OutputError> {
        let staged = StagedFile::create(path)?;
        let table = Table::new::<R>(staged.handle()?).map_err(OutputError::writing(path))?;
        Ok(Self { staged, table })
    }

    fn push<R: Row>(&mut self, row: &R) -> Result<(), OutputError> {
        let pushed = self.table.push(row);
        pushed.map_err(OutputError::writing(self.staged.path()))
    }

    fn finish(self) -> Result<CompleteFile, OutputError> {
        let finished = self.table.finish();
        finished.map_err(OutputError::writing(self.staged.path()))?;
        self.staged.close()
    }
}
