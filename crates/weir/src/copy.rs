//! `weir copy`

mod send;
mod serve;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use weir_traffic::throughput::{PreSharedKey, read_key};

use crate::failure::Failure;

/// The arguments of `weir copy`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  weir copy serve /srv/in --bind 0.0.0.0                 receive files; prints what clients need
  weir copy big.iso 10.0.0.2: --pin 3f5a…                to the directory that is served
  weir copy a.csv results/ 10.0.0.2:runs/7 --pin 3f5a…   files and directories, below runs/7
  weir copy big.iso 10.0.0.2: --transport dcudp --key-file key

A copy that was interrupted goes on where it stopped when the command is repeated. A file appears
under its name only when it is complete and its SHA-256, printed at the end, is the sender's. Symbolic
links within directories are left out, and none is followed on the server. A file called `serve` is
copied as `./serve`. docs/copy.md tells more."
)]
pub(crate) struct Copy {
    #[command(subcommand)]
    serve: Option<Receive>,

    #[command(flatten)]
    send: send::Send,
}

#[derive(Debug, Subcommand)]
enum Receive {
    /// Receive files into a directory
    Serve(serve::Serve),
}

impl Copy {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let runtime = Runtime::new().map_err(Failure::of)?;
        crate::interrupt::end_on_signals()?;
        match &self.serve {
            Some(Receive::Serve(serve)) => runtime.block_on(serve.run()),
            None => runtime.block_on(self.send.run()),
        }
    }
}

/// The transport of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyTransport {
    Dcquic,
    Dcudp,
}

impl fmt::Display for CopyTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dcquic => "dcquic",
            Self::Dcudp => "dcudp",
        })
    }
}

impl FromStr for CopyTransport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "dcquic" => Ok(Self::Dcquic),
            "dcudp" => Ok(Self::Dcudp),
            _ => Err("it is dcquic or dcudp".to_owned()),
        }
    }
}

/// Reads the key that DCUDP needs here: without one nothing would be sealed.
fn key(file: Option<&Path>) -> Result<Arc<PreSharedKey>, Failure> {
    let Some(file) = file else {
        let problem =
            "dcudp copies only with a key that both ends have: `openssl rand -hex 32 >key`";
        return Err(Failure::option("key-file", problem));
    };
    let key = read_key(file).map_err(|error| Failure::option("key-file", error))?;
    Ok(Arc::new(key))
}

/// Refuses an option of the other transport.
fn refuse_option(is_given: bool, name: &str, owner: CopyTransport) -> Result<(), Failure> {
    if is_given {
        return Err(Failure::option(name, format!("it is for {owner} alone")));
    }
    Ok(())
}
