//! The Python package, for what it has and the program has not.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Which Python to use, if not one of [`NAMES`].
const VARIABLE: &str = "WEIR_PYTHON";
/// What Python is called, and where `make python` puts the package.
const NAMES: [&str; 3] = ["python3", "python", "python/.venv/bin/python"];

/// A Python that has this module of the package, without which `what` cannot be.
///
/// # Errors
///
/// Where there is none: how to get one.
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
