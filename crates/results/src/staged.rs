//! Files that appear under their final name only when complete.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::error::OutputError;

/// The number of random characters of a temporary name, and its end.
const RANDOM: usize = 6;
const SUFFIX: &str = ".tmp";

/// Whether this is a temporary name of a file with one of these final names.
pub(crate) fn is_temporary(name: &str, final_names: &[String]) -> bool {
    let staged = |of: &String| {
        let random = name
            .strip_prefix('.')?
            .strip_prefix(of.as_str())?
            .strip_suffix(SUFFIX)?;
        Some(random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    final_names.iter().any(|of| staged(of).unwrap_or(false))
}

/// A file under a temporary name in its final directory. Dropping it removes it.
#[derive(Debug)]
pub struct StagedFile {
    file: NamedTempFile,
    path: PathBuf,
}

/// A complete file on disk, under its temporary name and closed: an experiment may have more runs
/// than a process may have open files. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct CompleteFile {
    file: TempPath,
    path: PathBuf,
}

impl StagedFile {
    /// Opens a file that will get this path. If the path is a symbolic link, the link stays and its
    /// target is replaced.
    ///
    /// # Errors
    /// The directory does not exist or is not writable, or the path is not a regular file but a
    /// directory or a device.
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
            .rand_bytes(RANDOM)
            .suffix(SUFFIX)
            // The same mode as any new file: the umask applies to it.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        Ok(Self { file, path })
    }

    /// Returns the final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns another handle for writing.
    pub(crate) fn handle(&self) -> Result<File, OutputError> {
        let handle = self.file.as_file().try_clone();
        handle.map_err(OutputError::writing(&self.path))
    }

    /// Writes the whole contents of the file.
    pub(crate) fn write_whole(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let written = self.write_all(bytes).and_then(|()| self.flush());
        written.map_err(OutputError::writing(&self.path))
    }

    /// Waits until the contents are on disk, and closes the file.
    pub(crate) fn close(self) -> Result<CompleteFile, OutputError> {
        let synced = self.file.as_file().sync_all();
        synced.map_err(OutputError::writing(&self.path))?;
        Ok(CompleteFile {
            file: self.file.into_temp_path(),
            path: self.path,
        })
    }

    /// Closes the file, which keeps its temporary name and is removed when this is dropped: another file will have its
    /// contents.
    pub(crate) fn into_part(self) -> TempPath {
        self.file.into_temp_path()
    }

    /// Renames the file to its final path, replacing an existing file, and returns the path.
    ///
    /// # Errors
    /// The contents cannot be written to disk, or the file cannot be renamed.
    pub fn persist(self) -> Result<PathBuf, OutputError> {
        self.close()?.persist()
    }
}

impl CompleteFile {
    /// Returns the final path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file to its final path, replacing an existing file, and returns the path.
    pub(crate) fn persist(self) -> Result<PathBuf, OutputError> {
        let Self { file, path } = self;
        match file.persist(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(OutputError::writing(&path)(error.error)),
        }
    }
}

/// Resolves a path, if a regular file may replace what is there.
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
