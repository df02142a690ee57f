//! `weir enforce`: congestion control for the TCP flows that leave by this machine's interfaces.

mod running;
mod status;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use weir_enforce::ebpf::control::DEFAULT_PATH;
use weir_enforce::ebpf::{Hook, Options};

use crate::failure::Failure;

/// What the command line says.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  weir enforce --interface eth0 --policy policy.toml     until Ctrl-C
  weir enforce -i eth0 -i eth1 --policy policy.toml --metrics 9100
  weir enforce status --watch                            which flows, their windows and rates
  weir policy reload                                     after a change to the policy file

The data that leaves by the interfaces is controlled, of connections that open from now on: programs
in the kernel lower the receive windows of the acknowledgments that come in. Nothing else changes, and
when weir ends, by whatever, TCP goes on by its own congestion control. docs/tcon.md tells where to
run it, docs/policy.md how to write a policy."
)]
pub(crate) struct Enforce {
    #[command(subcommand)]
    command: Option<Command>,

    /// An interface that data leaves by; may be given several times
    #[arg(long, short, value_name = "NAME", required = true)]
    interface: Vec<String>,

    /// Which flows are controlled, and how
    #[arg(long, short, value_name = "FILE", required = true)]
    policy: Option<PathBuf>,

    /// Where `weir enforce status` and `weir policy reload` find it
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_PATH)]
    control: PathBuf,

    /// Show metrics by HTTP at /metrics, for Prometheus; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    metrics: Option<SocketAddr>,

    /// How many connections are controlled at a time; others pass
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().flows,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: u32,

    /// How many reports of flows the kernel makes in a second
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().reports_per_second,
          value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    reports: u32,

    /// Where the programs are put
    #[arg(long, value_enum, default_value_t = HookName::Auto)]
    hook: HookName,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the flows that are controlled
    Status(status::Status),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HookName {
    /// tcx where the kernel has it, else clsact
    Auto,
    /// Linux 6.6: the programs go with the process
    Tcx,
    /// Older kernels: after a kill the programs stay, and do nothing
    Clsact,
}

impl Enforce {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match (&self.command, &self.policy) {
            (Some(Command::Status(status)), _) => status.run(),
            (None, Some(policy)) => running::run(self, policy),
            (None, None) => Err(Failure::option("policy", "it is missing")),
        }
    }

    fn options(&self) -> Options {
        Options {
            flows: self.flows,
            reports_per_second: self.reports,
            hook: match self.hook {
                HookName::Auto => Hook::Automatic,
                HookName::Tcx => Hook::Tcx,
                HookName::Clsact => Hook::Clsact,
            },
            ..Options::default()
        }
    }
}
