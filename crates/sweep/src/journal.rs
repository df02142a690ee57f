//! Journals: append-only files with one line per row, written when its run ends. A kill at any time loses
//! only the runs in progress.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{FlockOperation, flock};
use weir_results::OutputError;

use crate::SweepError;
use crate::plan::{PlannedRun, Shard};
use crate::reuse::RowReuse;
use crate::row::{Row, Rows};

/// Journal names: `runs.jsonl`, or `runs.3-of-16.jsonl` for a part.
const PREFIX: &str = "runs";
const SUFFIX: &str = ".jsonl";

/// A journal in a directory, locked by this process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of a sweep's part in a directory, which is created if it does not exist. Returns
    /// the planned runs' rows from all journals of the directory, to resume from, and what becomes of all rows.
    ///
    /// # Errors
    /// The directory has rows and `resume` is false; a file cannot be created, read or written; a line is
    /// not a row; another process writes the same journal.
    pub fn open(
        directory: &Path,
        shard: Shard,
        planned: &[PlannedRun],
        resume: bool,
    ) -> Result<(Self, Rows, RowReuse), SweepError> {
        let path = directory.join(match shard {
            Shard::WHOLE => format!("{PREFIX}{SUFFIX}"),
            Shard { index, of } => format!("{PREFIX}.{index}-of-{of}{SUFFIX}"),
        });
        fs::create_dir_all(directory).map_err(|source| OutputError::Create {
            path: directory.to_owned(),
            source,
        })?;
        let create = |source| OutputError::Create {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(create)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(SweepError::Busy { path });
        }
        if !resume {
            let rows = read(&path)?.len();
            if rows > 0 {
                return Err(SweepError::NotEmpty {
                    directory: directory.to_owned(),
                    rows,
                });
            }
        }
        remove_partial_line(&path)?;
        let (rows, reuse) = Self::read_all(directory, planned)?;
        let file = Mutex::new(file);
        Ok((Self { path, file }, rows, reuse))
    }

    /// Returns the rows of the planned runs in all journals of a directory, and what becomes of all rows.
    ///
    /// # Errors
    /// A file cannot be read; a line is not a row.
    pub fn read_all(
        directory: &Path,
        planned: &[PlannedRun],
    ) -> Result<(Rows, RowReuse), SweepError> {
        let mut all = Rows::default();
        for path in journals(directory)? {
            read(&path)?.into_iter().for_each(|row| all.push(row));
        }
        Ok(RowReuse::of(all, planned))
    }

    /// Returns the directory of the sweep.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, row: &Row) -> Result<(), SweepError> {
        let writing = |source| OutputError::Write {
            path: self.path.clone(),
            source,
        };
        let mut line = serde_json::to_vec(row).map_err(|error| writing(error.into()))?;
        line.push(b'\n');
        // A writer that panicked has left a complete line or none.
        let mut file = self
            .file
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        file.write_all(&line).map_err(writing)?;
        Ok(())
    }
}

fn journals(directory: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let unreadable = |source| SweepError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Returns a journal's rows. A last line without a newline was cut off by a kill, and is ignored.
fn read(path: &Path) -> Result<Vec<Row>, SweepError> {
    let unreadable = |source| SweepError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.map_err(unreadable)?,
    };
    let mut reader = BufReader::new(file);
    let mut rows = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(unreadable)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        let row = serde_json::from_slice(&line).map_err(|source| SweepError::Journal {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        rows.push(row);
    }
    Ok(rows)
}

/// Removes a last line that was cut off, so that the next row starts on its own line.
fn remove_partial_line(path: &Path) -> Result<(), SweepError> {
    let writing = |source| OutputError::Write {
        path: path.to_owned(),
        source,
    };
    let bytes = fs::read(path).map_err(writing)?;
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    if whole < bytes.len() {
        let file = OpenOptions::new().write(true).open(path).map_err(writing)?;
        file.set_len(whole as u64).map_err(writing)?;
    }
    Ok(())
}
