//! `weir tune`: starts the Python package, which has the surrogate and the tuner.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::Failure;
use crate::python;

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
        let python = python::with(MODULE, "weir tune")?;
        // The tuner takes this process's place: its output, its exit code and Ctrl-C are its own.
        let error = Command::new(&python)
            .args(["-m", MODULE])
            .args(&self.arguments)
            .exec();
        Err(Failure::Failed(format!("{}: {error}", python.display())))
    }
}
