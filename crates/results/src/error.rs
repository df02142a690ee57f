//! The error of writing output files.

use std::io;
use std::path::{Path, PathBuf};

/// A file or directory could not be created or written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Another run writes to the directory.
    #[error(
        "{} is in use: another run writes its results there; wait for it, or name another directory",
        path.display()
    )]
    Busy {
        /// Its path.
        path: PathBuf,
    },
    /// The file or directory cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Its final path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl OutputError {
    pub(crate) fn creating(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Create {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}
