//! The output directory of an experiment.

mod directory;
mod run;
#[cfg(test)]
mod tests;

pub use run::{FinishedRun, RunFiles};

use std::path::PathBuf;

use weir_units::Duration;

use crate::Summary;
use crate::error::OutputError;
use crate::staged::{CompleteFile, StagedFile};
use directory::{LockedDirectory, REPORT, SUMMARY, remove_file};

/// The files of an experiment before they are committed to a directory: `summary.json`,
/// `report.html` and, for each run, `flows.parquet`, `samples.parquet` and, if there are epochs,
/// `epochs.parquet` (`flows.NAME.parquet` and so on for the variant NAME).
///
/// All files are written under temporary names in the same directory. [`commit`](Self::commit)
/// renames them once all are complete and on disk. It removes an older `summary.json` and the tables of
/// an earlier output first and renames the new summary last, so that a summary never appears beside files of another experiment. If
/// the output is dropped earlier, the directory keeps its former contents.
#[derive(Debug)]
pub struct Output {
    directory: LockedDirectory,
    summary: StagedFile,
    report: StagedFile,
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
            directory,
        })
    }

    /// Opens the files of the run with the scenario's own values; `span` is its simulated time.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn run(&self, span: Duration) -> Result<RunFiles, OutputError> {
        RunFiles::create(self.directory.path(), "", span)
    }

    /// Opens the files of a variant; `span` is its simulated time. Characters of its name that are
    /// not valid in a file name are written as `%` and two hexadecimal digits for each byte.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn variant(&self, name: &str, span: Duration) -> Result<RunFiles, OutputError> {
        RunFiles::create(
            self.directory.path(),
            &format!(".{}", file_name(name)),
            span,
        )
    }

    /// Writes the summary and the text of the report, and renames all files to their final names.
    /// Returns their paths.
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

        let mut files: Vec<CompleteFile> =
            runs.into_iter().flat_map(FinishedRun::into_files).collect();
        files.extend([self.report.close()?, self.summary.close()?]);
        remove_file(&self.directory.path().join(SUMMARY))?;
        let kept: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
        self.directory.remove_tables(&kept)?;
        let paths: Result<Vec<PathBuf>, OutputError> =
            files.into_iter().map(CompleteFile::persist).collect();
        // The renames must survive a power failure too.
        self.directory.sync()?;
        paths
    }
}

/// Returns a name that is valid on every file system and unique for each input.
pub(crate) fn file_name(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'_' | b'=' | b',' | b'+' | b'.' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
