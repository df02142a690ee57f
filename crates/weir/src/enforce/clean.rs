//! `weir enforce clean`

use clap::Args;
use weir_enforce::operation::clean::{self, Left};

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir enforce clean`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir enforce clean     after `weir enforce` or `weir sed agent` was killed and is not to be started again

A killed --inline leaves a bypass, by which frames pass without it; this ends that. What `--hook clsact`
leaves has no effect, and is removed too. What belongs to a living process stays. Without a kill there is
nothing to do: both commands remove all of it when they end by Ctrl-C, SIGTERM or an error, and after a kill
the next start takes over. It looks at the interfaces of its own network namespace.")]
pub(super) struct Clean {}

impl Clean {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let cleaned = clean::clean().map_err(Failure::of)?;
        if cleaned.is_empty() {
            return output::print("there is nothing to remove\n");
        }
        for interface in cleaned {
            let name = interface.name;
            output::print(&match (interface.in_use, interface.left) {
                (Some(reason), _) => format!("left alone: {reason}\n"),
                (None, Left::Bypass) => format!(
                    "{name}: removed the bypass of a process that has died: its frames pass no more\n"
                ),
                (None, Left::Filters) => {
                    format!("{name}: removed the filters of a process that has died\n")
                }
            })?;
        }
        Ok(())
    }
}
