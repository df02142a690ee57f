//! Scenarios: files, shipped ones, and texts.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use weir_scenario::{Document, shipped};

use crate::errors;

/// A file or a shipped scenario by its name, or a text with a name for messages.
#[derive(Debug, FromPyObject)]
pub(crate) enum Source {
    Text((String, String)),
    Path(PathBuf),
}

impl Source {
    /// Returns the name in messages.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Text((name, _)) => Path::new(name),
            Self::Path(path) => path,
        }
    }

    /// Reads it.
    pub(crate) fn load(&self) -> PyResult<Document> {
        let document = match self {
            Self::Text((name, text)) => Document::parse(name, text),
            Self::Path(path) => Document::load_or_shipped(path),
        };
        document.map_err(|error| self.error(&error))
    }

    /// Returns the exception of an error in it.
    pub(crate) fn error(&self, error: &weir_scenario::ScenarioError) -> PyErr {
        errors::scenario(match self {
            Self::Text(_) => error.to_string(),
            Self::Path(path) => shipped::error_message(path, error),
        })
    }
}
