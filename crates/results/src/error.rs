//! What goes wrong with files.

use std::io;
use std::path::{Path, PathBuf};

/// A file or directory could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file or directory cannot be made.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which one, by its final name.
        path: PathBuf,
        /// Why.
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
