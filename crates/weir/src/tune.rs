//! `weir tune`: starts the Python package, which has the surrogate and the tuner.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;

use crate::failure::Failure;

/// Which Python to use, if not one of [`NAMES`].
const VARIABLE: &str = "WEIR_PYTHON";
/// What Python is called, and where `make python` puts the package.
const NAMES: [&str; 3] = ["python3", "python", "python/.venv/bin/python"];
/// The module that has the command line.
const MODULE: &str = "weir.tuning";

/// What the command line says.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Tune {
    /// What the Python package takes: `weir tune --help` lists it
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

impl Tune {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let python = find()?;
        // The tuner takes this process's place: its output, its exit code and Ctrl-C are its own.
        let error = Command::new(&python)
            .args(["-m", MODULE])
            .args(&self.arguments)
            .exec();
        Err(Failure::Failed(format!("{}: {error}", python.display())))
    }
}

/// A Python that has the package.
fn find() -> Result<PathBuf, Failure> {
    let chosen = env::var_os(VARIABLE).map(PathBuf::from);
    let candidates = match &chosen {
        Some(python) => vec![python.clone()],
        None => NAMES.map(PathBuf::from).to_vec(),
    };
    let found = candidates.into_iter().find(|python| {
        let tried = Command::new(python)
            .args(["-c", "import weir.tuning"])
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
            "weir tune is part of the Python package `weir`, and {tried}. Build it with `make python`, or \
             `pip install './python[learn]'` in Weir's folder (Python 3.10 or later, Rust); another Python \
             than those is named by {VARIABLE}=/path/to/python (docs/tuning.md)"
        ))
    })
}
