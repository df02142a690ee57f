//! A file that is not there until it is whole.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::error::OutputError;

/// A file under a temporary name in the directory of its final one. Dropped, it disappears.
#[derive(Debug)]
pub struct StagedFile {
    file: NamedTempFile,
    path: PathBuf,
}

/// A file that is whole and on the disk, under its temporary name, and open no longer: an experiment
/// may have more runs than a process may have open files. Dropped, it disappears.
#[derive(Debug)]
pub(crate) struct CompleteFile {
    file: TempPath,
    path: PathBuf,
}

impl StagedFile {
    /// Opens a file that is to have this path. A link at the path stays, and what it points to is
    /// replaced.
    ///
    /// # Errors
    /// The directory does not exist or cannot be written to, or something other than a regular file is
    /// at the path: a directory, a device.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let path = path.into();
        match Self::open(&path) {
            Ok(staged) => Ok(staged),
            Err(error) => Err(OutputError::creating(&path)(error)),
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        let path = target(path)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        let file = Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            // As any new file has them: the umask takes away from these.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        Ok(Self { file, path })
    }

    /// The path that the file is to have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another handle to write by.
    pub(crate) fn handle(&self) -> Result<File, OutputError> {
        let handle = self.file.as_file().try_clone();
        handle.map_err(OutputError::writing(&self.path))
    }

    /// Writes all that the file is to hold.
    pub(crate) fn write_whole(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let written = self.write_all(bytes).and_then(|()| self.flush());
        written.map_err(OutputError::writing(&self.path))
    }

    /// Waits until the contents are on the disk, and closes the file.
    pub(crate) fn close(self) -> Result<CompleteFile, OutputError> {
        let synced = self.file.as_file().sync_all();
        synced.map_err(OutputError::writing(&self.path))?;
        Ok(CompleteFile {
            file: self.file.into_temp_path(),
            path: self.path,
        })
    }

    /// Puts the file in its place, over what was there, and returns its path.
    ///
    /// # Errors
    /// The contents do not reach the disk, or the file cannot be renamed.
    pub fn persist(self) -> Result<PathBuf, OutputError> {
        self.close()?.persist()
    }
}

impl CompleteFile {
    /// Puts the file in its place, over what was there, and returns its path.
    pub(crate) fn persist(self) -> Result<PathBuf, OutputError> {
        let Self { file, path } = self;
        match file.persist(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(OutputError::writing(&path)(error.error)),
        }
    }
}

/// What a path stands for, if a file may take its place.
fn target(path: &Path) -> io::Result<PathBuf> {
    let path = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path)?,
        _ => path.to_owned(),
    };
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => {
            let message = "not a regular file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(path),
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
