//! `weir tune`: starts the Python package, which contains the surrogate model and the tuner.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::Failure;
use crate::python;

/// The module with the command line.
const MODULE: &str = "weir.tuning";

/// The arguments of `weir tune`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Tune {
    /// Arguments of the Python package: `weir tune --help` lists them
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

impl Tune {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let python = python::with(MODULE, "weir tune")?;
        // The tuner replaces this process, so it handles output, exit code and Ctrl-C itself.
        let error = Command::new(&python)
            .args(["-m", MODULE])
            .args(&self.arguments)
            .exec();
        Err(Failure::Failed(format!("{}: {error}", python.display())))
    }
}
