//! `weir enforce resume`

use std::path::PathBuf;

use clap::Args;
use weir_enforce::operation::control::{self, ControlRequest, ControlResponse, DEFAULT_PATH};

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir enforce resume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir enforce resume 12     the rule on line 12 of the policy file

A rule that one of its `undo_if` has taken back stays off, also when the file is loaded again, until the rule is
changed or this command resumes it. Its figures then begin anew. `weir enforce status` shows why it was taken
back.")]
pub(super) struct Resume {
    /// Line of the rule in the policy file, as `weir enforce status` shows it
    rule: u32,

    /// Control socket of the enforcer
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_PATH)]
    control: PathBuf,
}

impl Resume {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let request = ControlRequest::Resume { rule: self.rule };
        match control::send_request(&self.control, request).map_err(Failure::of)? {
            ControlResponse::Resumed { rule } => {
                output::print(&format!("the rule on line {rule} is in force again\n"))
            }
            ControlResponse::Refused { reason } => Err(Failure::Failed(reason)),
            ControlResponse::Status(_) | ControlResponse::Reloaded { .. } => Err(Failure::Failed(
                "the enforcer answers something else".into(),
            )),
        }
    }
}
