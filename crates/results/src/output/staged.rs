//! A file that is not there until it is whole.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use super::OutputError;

/// A file under a temporary name in the directory of its final one. Dropped, it disappears.
#[derive(Debug)]
pub struct StagedFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl StagedFile {
    /// Opens a file that is to have this path.
    ///
    /// # Errors
    /// The directory does not exist or cannot be written to, or the path is a directory's.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let path = path.into();
        match Self::open(&path) {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(OutputError::creating(&path)(error)),
        }
    }

    fn open(path: &Path) -> io::Result<NamedTempFile> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            // As any new file has them: the umask takes away from these.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
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

    /// Waits until the contents are on the disk.
    pub(crate) fn sync(&self) -> Result<(), OutputError> {
        let synced = self.file.as_file().sync_all();
        synced.map_err(OutputError::writing(&self.path))
    }

    /// Puts the file in its place, over what was there, and returns its path.
    ///
    /// # Errors
    /// The contents do not reach the disk, or the file cannot be renamed.
    pub fn persist(self) -> Result<PathBuf, OutputError> {
        self.sync()?;
        let Self { file, path } = self;
        match file.persist(&path) {
            Ok(_) => Ok(path),
            Err(error) => Err(OutputError::writing(&path)(error.error)),
        }
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
