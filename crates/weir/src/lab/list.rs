//! `weir lab list`

use clap::Args;
use serde::Serialize;
use weir_lab::runs::{FoundRun, RunDirectories, RunRecord};

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir lab list`.
#[derive(Debug, Args)]
#[command(after_help = "\
A host's network is that of its process: `nsenter --net --target PID ss -ti` shows its connections,
`nsenter --net --target PID tcpdump -i eth0` its packets.")]
pub(crate) struct List {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// A run in the `--json` output.
#[derive(Serialize)]
struct Listed<'r> {
    #[serde(flatten)]
    record: &'r RunRecord,
    /// Whether its director is alive; if not, `weir lab clean` removes the remains.
    is_alive: bool,
}

impl List {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let found = RunDirectories::of_this_machine()
            .list()
            .map_err(Failure::of)?;
        if self.json {
            let listed = found.iter().map(|run| Listed {
                record: &run.record,
                is_alive: run.is_alive,
            });
            return output::print_json(&listed.collect::<Vec<_>>());
        }
        if found.is_empty() {
            output::print("there are no live runs on this machine\n")
        } else {
            output::print(&found.iter().map(text).collect::<String>())
        }
    }
}

fn text(run: &FoundRun) -> String {
    let RunRecord {
        director,
        title,
        hosts,
    } = &run.record;
    let state = if run.is_alive {
        ""
    } else {
        " (killed; `weir lab clean` removes what it left)"
    };
    let mut text = format!("{director}  {title}{state}\n");
    for host in hosts.iter().filter(|host| host.is_alive()) {
        text.push_str(&format!("    {:<24} process {}\n", host.name, host.process));
    }
    text
}
