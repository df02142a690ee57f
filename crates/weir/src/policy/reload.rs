//! `weir policy reload`

use std::path::PathBuf;

use clap::Args;
use weir_enforce::operation::control::{self, ControlRequest, ControlResponse, DEFAULT_PATH};

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy reload`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy reload                               have the enforcer of this machine read its file again
  weir policy reload --control /run/weir/b.sock    another one

Flows keep their algorithms; the new rules hold for connections that open from now on. A file with
mistakes changes nothing: the rules before it stay in force. SIGHUP does the same.")]
pub(crate) struct Reload {
    /// Control socket of the enforcer
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_PATH)]
    control: PathBuf,
}

impl Reload {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match control::send_request(&self.control, ControlRequest::Reload).map_err(Failure::of)? {
            ControlResponse::Reloaded { file, rules } => {
                output::print(&format!("{}: {rules} rules in force\n", file.display()))
            }
            ControlResponse::Refused { reason } => Err(Failure::Failed(format!(
                "{reason}\nthe policy before it stays in force"
            ))),
            ControlResponse::Status(_) | ControlResponse::Resumed { .. } => Err(Failure::Failed(
                "the enforcer answers something else".into(),
            )),
        }
    }
}
