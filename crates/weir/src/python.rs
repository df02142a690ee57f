//! Locates the Python package, for features that the program itself does not have.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The environment variable that selects a Python, instead of [`NAMES`].
const VARIABLE: &str = "WEIR_PYTHON";
/// The usual names of Python, and the path where `make python` installs the package.
const NAMES: [&str; 3] = ["python3", "python", "python/.venv/bin/python"];

/// Returns a Python that has this module of the package. `what` is the feature that requires it.
///
/// # Errors
///
/// No Python has the module; the error describes how to install it.
pub(crate) fn with(module: &str, what: &str) -> Result<PathBuf, Failure> {
    let chosen = env::var_os(VARIABLE).map(PathBuf::from);
    let candidates = match &chosen {
        Some(python) => vec![python.clone()],
        None => NAMES.map(PathBuf::from).to_vec(),
    };
    let found = candidates.into_iter().find(|python| {
        let tried = Command::new(python)
            .args(["-c", &format!("import {module}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    });
    found.ok_or_else(|| {
        let tried = match chosen {
            Some(python) => format!("{VARIABLE}={} does not have it", python.display()),
            None => format!("none of {} has it", NAMES.join(", ")),
        };
        Failure::Failed(format!(
            "{what} is part of the Python package `weir`, and {tried}. Build it with `make python`, or \
             `pip install './python[learn]'` in Weir's folder (Python 3.10 or later, Rust); another Python \
             than those is named by {VARIABLE}=/path/to/python (docs/python.md)"
        ))
    })
}
