//! The output directory of an experiment.

mod run;
#[cfg(test)]
mod tests;

pub use run::{FinishedRun, RunFiles};

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use weir_units::Duration;

use crate::Summary;
use crate::error::OutputError;
use crate::staged::{CompleteFile, StagedFile};

/// The files of an experiment before they are committed to a directory: `summary.json`,
/// `report.html` and, for each run, `flows.parquet`, `samples.parquet` and, if there are epochs,
/// `epochs.parquet` (`flows.NAME.parquet` and so on for the variant NAME).
///
/// All files are written under temporary names in the same directory. [`commit`](Self::commit)
/// renames them once all are complete and on disk. It removes an older `summary.json` first and
/// renames the new one last, so that a summary never appears beside files of another experiment. If
/// the output is dropped earlier, the directory keeps its former contents.
#[derive(Debug)]
pub struct Output {
    directory: PathBuf,
    summary: StagedFile,
    report: StagedFile,
}

impl Output {
    /// Creates the directory if needed, and checks that files can be written to it.
    ///
    /// # Errors
    /// The directory cannot be created or written to, or a directory has the name of one of the files.
    pub fn create(directory: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(OutputError::creating(&directory))?;
        Ok(Self {
            summary: StagedFile::create(directory.join("summary.json"))?,
            report: StagedFile::create(directory.join("report.html"))?,
            directory,
        })
    }

    /// Opens the files of the run with the scenario's own values; `span` is its simulated time.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn run(&self, span: Duration) -> Result<RunFiles, OutputError> {
        RunFiles::create(&self.directory, "", span)
    }

    /// Opens the files of a variant; `span` is its simulated time. Characters of its name that are
    /// not valid in a file name are written as `%` and two hexadecimal digits for each byte.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn variant(&self, name: &str, span: Duration) -> Result<RunFiles, OutputError> {
        RunFiles::create(&self.directory, &format!(".{}", file_name(name)), span)
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
        remove(&self.directory.join("summary.json"))?;
        let paths: Result<Vec<PathBuf>, OutputError> =
            files.into_iter().map(CompleteFile::persist).collect();
        // The renames must survive a power failure too.
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(OutputError::writing(&self.directory))?;
        paths
    }
}

fn remove(path: &Path) -> Result<(), OutputError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(OutputError::writing(path)(error)),
        _ => Ok(()),
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
