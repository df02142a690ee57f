//! The directory of an experiment's output: one writer at a time, and no files of earlier runs.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::OutputError;
use crate::staged::is_temporary;
use crate::table::CREATED_BY;

/// The tables of an experiment, without `.parquet`.
pub(super) const TABLES: [&str; 3] = ["flows", "samples", "epochs"];
/// The files beside the tables.
pub(super) const SUMMARY: &str = "summary.json";
pub(super) const REPORT: &str = "report.html";
pub(super) const SCENARIO: &str = "weir-run.toml";

/// A directory that this process alone writes to, until it is dropped.
#[derive(Debug)]
pub(super) struct LockedDirectory {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl LockedDirectory {
    /// Creates the directory if needed, locks it, and removes what a killed run has left.
    ///
    /// # Errors
    /// The directory cannot be created, or another run writes to it.
    pub(super) fn create(path: PathBuf) -> Result<Self, OutputError> {
        let file = fs::create_dir_all(&path).and_then(|()| File::open(&path));
        let file = file.map_err(OutputError::creating(&path))?;
        // A file system without locks protects nobody.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(OutputError::Busy { path });
        }
        let directory = Self { path, file };
        // Nobody else writes here: these are no files of a run in progress.
        directory.remove(|name, _| is_temporary(name, &names()))?;
        Ok(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the tables of an earlier run, except for those with the names `kept`.
    pub(super) fn remove_tables(&self, kept: &[PathBuf]) -> Result<(), OutputError> {
        self.remove(|name, path| {
            let is_kept = kept.iter().any(|kept| kept == path);
            !is_kept && is_table(name) && is_own(path)
        })
    }

    /// Removes the files for which `is_stale` of their name and path.
    fn remove(&self, is_stale: impl Fn(&str, &Path) -> bool) -> Result<(), OutputError> {
        let entries = fs::read_dir(&self.path).map_err(OutputError::writing(&self.path))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file
                && entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| is_stale(name, &path))
            {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Waits until the names of files are on disk.
    pub(super) fn sync(&self) -> Result<(), OutputError> {
        self.file
            .sync_all()
            .map_err(OutputError::writing(&self.path))
    }
}

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<(), OutputError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(OutputError::writing(path)(error)),
        _ => Ok(()),
    }
}

/// Returns the names of all files of an output.
fn names() -> Vec<String> {
    let tables = TABLES.iter().map(|table| format!("{table}.parquet"));
    tables
        .chain([SUMMARY, REPORT, SCENARIO].map(str::to_owned))
        .collect()
}

/// Whether a file is called as a table, or as a table of one variant: `flows.NAME.parquet`.
fn is_table(name: &str) -> bool {
    TABLES.iter().any(|table| {
        let rest = name
            .strip_prefix(table)
            .and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| rest == "parquet" || rest.ends_with(".parquet"))
    })
}

/// Whether a table names this program as its writer.
fn is_own(path: &Path) -> bool {
    let written_by = |path| -> io::Result<bool> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        Ok(reader.metadata().file_metadata().created_by() == Some(CREATED_BY))
    };
    written_by(path).unwrap_or(false)
}
