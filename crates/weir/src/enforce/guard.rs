//! `weir enforce guard`: the guardian process of `weir enforce --cgroup`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use weir_enforce::cgroup;

use crate::failure::Failure;

/// The arguments of `weir enforce guard`, which `weir enforce --cgroup` runs; its standard input is that
/// process.
#[derive(Debug, Args)]
pub(super) struct Guard {
    /// Directory in the BPF file system that has what is needed
    directory: PathBuf,
}

impl Guard {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if let Some(sockets) = cgroup::guard(&self.directory).map_err(Failure::of)? {
            let message = format!(
                "the process that controlled sockets has died: {sockets} of them have got back what they had"
            );
            // Nobody may read it any more.
            let _ = writeln!(std::io::stderr(), "{message}");
        }
        Ok(())
    }
}

/// Returns the command of a guardian for a directory.
pub(super) fn command(directory: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["enforce", "guard"]).arg(directory);
    command
}
