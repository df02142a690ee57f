//! `weir lab clean`

use clap::Args;
use weir_lab::runs::RunDirectories;

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir lab clean`.
#[derive(Debug, Args)]
pub(crate) struct Clean {}

impl Clean {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let found = RunDirectories::of_this_machine()
            .list()
            .map_err(Failure::of)?;
        let dead: Vec<_> = found.iter().filter(|run| !run.is_alive).collect();
        for run in &dead {
            let hosts = run.clean().map_err(|error| {
                Failure::Failed(format!(
                    "what run {} left cannot be removed: {error}",
                    run.record.director
                ))
            })?;
            output::print(&format!(
                "removed what run {} left: {hosts} hosts\n",
                run.record.director
            ))?;
        }
        if dead.is_empty() {
            output::print("there is nothing to remove\n")
        } else {
            Ok(())
        }
    }
}
