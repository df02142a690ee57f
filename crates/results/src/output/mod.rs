//! The output directory of an experiment.

mod directory;
mod merge;
mod run;
#[cfg(test)]
mod tests;

pub use run::{FinishedRun, RunFiles};

use std::path::PathBuf;

use weir_units::Duration;

use crate::error::OutputError;
use crate::staged::{CompleteFile, StagedFile};
use crate::{EpochRecord, FlowRecord, Summary, Value};
use directory::{LockedDirectory, REPORT, SCENARIO, SUMMARY, remove_file};

pub(crate) use merge::{RunColumns, VARIANT};
pub(crate) use run::TableFile;

/// The files of an experiment before they are committed to a directory: `summary.json`, `report.html`,
/// `flows.parquet`, `samples.parquet` and, if there are epochs, `epochs.parquet`; and `weir-run.toml`, if the scenario
/// is kept. The tables have the rows of all
/// runs, and columns that tell them apart.
///
/// All files are written under temporary names in the same directory. [`commit`](Self::commit)
/// renames them once all are complete and on disk. It removes an older `summary.json` and the tables of an earlier
/// output first and renames the new summary last, so that a summary never appears beside files of another
/// experiment. If the output is dropped earlier, the directory keeps its former contents.
#[derive(Debug)]
pub struct Output {
    directory: LockedDirectory,
    summary: StagedFile,
    report: StagedFile,
    scenario: Option<StagedFile>,
}

impl Output {
    /// Creates the directory if needed, and checks that files can be written to it. Temporary files that a killed
    /// run has left there are removed.
    ///
    /// # Errors
    /// The directory cannot be created or written to, another run writes to it, or a directory has the name of one
    /// of the files.
    pub fn create(directory: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let directory = LockedDirectory::create(directory.into())?;
        Ok(Self {
            summary: StagedFile::create(directory.path().join(SUMMARY))?,
            report: StagedFile::create(directory.path().join(REPORT))?,
            scenario: None,
            directory,
        })
    }

    /// Adds the scenario of the run with its own values, as a file that gives the same run: `weir-run.toml`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_scenario(&mut self, text: &str) -> Result<(), OutputError> {
        let mut file = StagedFile::create(self.directory.path().join(SCENARIO))?;
        file.write_whole(text.as_bytes())?;
        self.scenario = Some(file);
        Ok(())
    }

    /// Opens the tables of the run with the scenario's own values; `span` is its simulated time, and `values` are
    /// those of the keys that variants change, by column name.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn run(
        &self,
        values: Vec<(String, Value)>,
        span: Duration,
    ) -> Result<RunFiles, OutputError> {
        RunFiles::create(self.directory.path(), None, values, span)
    }

    /// Opens the tables of a variant; the other arguments are as for [`run`](Self::run).
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn variant(
        &self,
        name: &str,
        values: Vec<(String, Value)>,
        span: Duration,
    ) -> Result<RunFiles, OutputError> {
        RunFiles::create(self.directory.path(), Some(name), values, span)
    }

    /// Joins the runs' tables in this order, writes the summary and the text of the report, and renames all files to
    /// their final names. Returns their paths.
    ///
    /// # Errors
    /// A file cannot be written or renamed.
    pub fn commit(
        mut self,
        summary: &Summary,
        report: &str,
        runs: impl IntoIterator<Item = FinishedRun>,
    ) -> Result<Vec<PathBuf>, OutputError> {
        let text = summary.to_json().map_err(std::io::Error::other);
        let text = text.map_err(OutputError::writing(self.summary.path()))?;
        self.summary.write_whole(text.as_bytes())?;
        self.report.write_whole(report.as_bytes())?;

        let runs: Vec<FinishedRun> = runs.into_iter().collect();
        let mut files = tables(&self.directory, &runs)?;
        drop(runs);
        files.extend(self.scenario.map(StagedFile::close).transpose()?);
        files.extend([self.report.close()?, self.summary.close()?]);
        // Those of an earlier run describe other tables.
        for stale in [SUMMARY, SCENARIO] {
            remove_file(&self.directory.path().join(stale))?;
        }
        let kept: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
        self.directory.remove_tables(&kept)?;
        let paths: Result<Vec<PathBuf>, OutputError> =
            files.into_iter().map(CompleteFile::persist).collect();
        // The renames must survive a power failure too.
        self.directory.sync()?;
        paths
    }
}

/// Joins the tables of all runs.
fn tables(
    directory: &LockedDirectory,
    runs: &[FinishedRun],
) -> Result<Vec<CompleteFile>, OutputError> {
    let columns = RunColumns::new(runs.iter().map(FinishedRun::columns));
    let path = |table: &str| directory.path().join(format!("{table}.parquet"));
    let numbered = || runs.iter().enumerate();
    let flows: Vec<_> = numbered()
        .map(|(run, files)| (run, files.flows()))
        .collect();
    let samples: Vec<_> = numbered()
        .map(|(run, files)| (run, files.samples()))
        .collect();
    let epochs = numbered().filter_map(|(run, files)| Some((run, files.epochs()?)));
    let epochs: Vec<_> = epochs.collect();
    let mut tables = vec![
        columns.merge::<FlowRecord<'_>>(&path("flows"), &flows)?,
        columns.merge::<crate::table::Sample<'_>>(&path("samples"), &samples)?,
    ];
    if !epochs.is_empty() {
        tables.push(columns.merge::<EpochRecord<'_>>(&path("epochs"), &epochs)?);
    }
    Ok(tables)
}
