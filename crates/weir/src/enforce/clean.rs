//! `weir enforce clean`

use clap::Args;
use weir_enforce::inline::bypass;

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir enforce clean`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir enforce clean     after `weir enforce --inline` or `weir sed agent --inline` was killed, and
                         neither is to be started again: until then frames pass without it

It looks at the interfaces of its own network namespace. --inline removes all of this itself when it ends by
Ctrl-C, SIGTERM or an error; after it was killed, its next start takes over.")]
pub(super) struct Clean {}

impl Clean {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let cleaned = bypass::clean().map_err(Failure::of)?;
        if cleaned.is_empty() {
            return output::print("there is nothing to remove\n");
        }
        for interface in cleaned {
            output::print(&match interface.in_use {
                None => format!(
                    "{}: the bypass of a process that has died is removed: its frames pass no more\n",
                    interface.name
                ),
                Some(reason) => format!("left alone: {reason}\n"),
            })?;
        }
        Ok(())
    }
}
