//! `weir policy undo`

use clap::Args;
use weir_control::policy_v1 as v1;

use super::controllers::{ControllerArguments, named};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy undo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy undo --as alice --message 'slow uploads'

A version on its way is stopped, and the hosts that have it go back. Otherwise the version before the last one is
pushed again to all hosts at once, as a new version.")]
pub(crate) struct Undo {
    #[command(flatten)]
    controllers: ControllerArguments,

    /// Why, for the log
    #[arg(long, short, value_name = "TEXT")]
    message: String,
}

impl Undo {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let controllers = self.controllers.open()?;
        let message = self.message.clone();
        let request = v1::UndoRequest { message };
        let undone = controllers.ask(|client| async move { client.undo(request).await })?;
        output::print(&match undone.version {
            0 => format!("stopped: hosts go back to {}\n", named(undone.back_to)),
            version => format!("version {version}, as before, is on its way to all hosts\n"),
        })
    }
}
