//! The files of an experiment in a directory.

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

/// The files of an experiment on their way into a directory: `summary.json`, `report.html` and, for
/// each run, `flows.parquet`, `samples.parquet` and, where there are epochs, `epochs.parquet`
/// (`flows.NAME.parquet` and so on of the variant NAME).
///
/// Everything is written under temporary names beside the final ones. [`commit`](Self::commit) puts
/// all files in their places when all are whole and on the disk; an older `summary.json` goes first and
/// the new one comes last, so that a summary never stands beside files of another experiment. Whatever
/// is dropped before that leaves nothing behind, and what was in the directory stays as it was.
#[derive(Debug)]
pub struct Output {
    directory: PathBuf,
    summary: StagedFile,
    report: StagedFile,
}

impl Output {
    /// Makes the directory if it is not there, and sees whether files can be written to it.
    ///
    /// # Errors
    /// The directory cannot be made or written to, or one of the files' names is taken by a directory.
    pub fn create(directory: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(OutputError::creating(&directory))?;
        Ok(Self {
            summary: StagedFile::create(directory.join("summary.json"))?,
            report: StagedFile::create(directory.join("report.html"))?,
            directory,
        })
    }

    /// Opens the files of the run with the scenario's own values, which is to simulate `span`.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn run(&self, span: Duration) -> Result<RunFiles, OutputError> {
        RunFiles::create(&self.directory, "", span)
    }

    /// Opens the files of a variant, which is to simulate `span`. Characters of its name that do not belong into a file's name are
    /// written as `%` and two hexadecimal digits for each byte.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn variant(&self, name: &str, span: Duration) -> Result<RunFiles, OutputError> {
        RunFiles::create(&self.directory, &format!(".{}", file_name(name)), span)
    }

    /// Writes the summary and the text of the report, and puts these and the runs' files in their
    /// places. Returns their paths.
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
        // The names have to survive a power failure too.
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

/// A name that every file system takes, and that tells all names apart.
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
