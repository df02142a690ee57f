//! `weir enforce clean`

use clap::Args;
use weir_enforce::cgroup::{self, CleanedSockets};
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
the next start takes over. It looks at the interfaces of its own network namespace.

What a killed --cgroup and its guardian have left in sockets is undone, in all network namespaces.")]
pub(super) struct Clean {}

impl Clean {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let cleaned = clean::clean().map_err(Failure::of)?;
        let sockets = cgroup::clean();
        if cleaned.is_empty() && sockets.is_empty() {
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
        for group in sockets {
            output::print(&match group {
                CleanedSockets::InUse => {
                    "left alone: sockets that a living process controls\n".to_owned()
                }
                CleanedSockets::Undone(count) => format!(
                    "{count} sockets have got back what they had before a process that has died\n"
                ),
            })?;
        }
        Ok(())
    }
}
