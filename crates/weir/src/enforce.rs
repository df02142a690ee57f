//! `weir enforce`: controls the congestion of TCP flows that leave by this machine's interfaces, that are
//! bridged between two of them, or that the sockets of a control group send.

mod canaries;
mod clean;
mod followed;
mod guard;
mod resume;
mod running;
mod status;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use weir_enforce::ebpf::{Hook, Options};
use weir_enforce::operation::control::DEFAULT_PATH;
use weir_fabric::ConnectionLimits;
use weir_tcon::Limits;
use weir_units::ByteSize;

use crate::failure::Failure;
use crate::policy::HostArguments;

/// The arguments of `weir enforce`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  weir enforce --interface eth0 --policy policy.toml     until Ctrl-C
  weir enforce -i eth0 -i eth1 --policy policy.toml --metrics 9100
  weir enforce --inline lan0 wan0 --policy policy.toml   as a bridge between the two
  weir enforce --cgroup /web --policy policy.toml        the kernel's own algorithms, by socket
  weir enforce --cgroup / --controller ctl1 --label role=web   the policy of a controller: docs/controller.md
  weir enforce status --watch                            which flows, their windows and rates
  weir policy reload                                     after a change to the policy file
  weir enforce clean                                     removes what a killed one has left

With --interface the data is controlled that leaves by the interfaces, of connections that open from
now on: programs in the kernel lower the receive windows of the acknowledgments that come in. Nothing
else changes, and when weir ends, by whatever, TCP goes on by its own congestion control.

With --inline all frames that come in at one of the two interfaces leave by the other, and the data that
passes is controlled: losses are repaired and hidden from the senders, segments are paced, ECN is
negotiated for senders that do not know of it. If weir is killed or hangs, frames pass as they are, without
it (Linux 6.6); the next start takes over. When it ends by Ctrl-C, SIGTERM or an error, nothing passes any
more. The interfaces want no addresses of their own.

With --cgroup the kernel's TCP goes on, with the congestion control, windows, rate and times that the policy
says for each socket of the control group, open already or new. No packet is touched. Sockets get back what
they had when weir ends; a guardian process sees to that if it is killed.

docs/tcon.md explains where each can run, docs/kernel-congestion.md what --cgroup does, docs/policy.md how to
write a policy."
)]
pub(crate) struct Enforce {
    #[command(subcommand)]
    command: Option<Command>,

    /// Egress interface of the data (repeatable)
    #[arg(long, short, value_name = "NAME", required_unless_present_any = ["inline", "cgroup"])]
    interface: Vec<String>,

    /// Two interfaces that are bridged, with loss recovery
    #[arg(long, value_names = ["NAME", "NAME"], num_args = 2, conflicts_with = "interface")]
    inline: Option<Vec<String>>,

    /// Control group whose sockets are controlled: absolute, or below the root of the cgroup2 hierarchy
    #[arg(long, value_name = "PATH", conflicts_with_all = ["interface", "inline"])]
    cgroup: Option<PathBuf>,

    /// With --cgroup: decide and count what each rule would do, and change nothing
    #[arg(long, requires = "cgroup", conflicts_with_all = ["interface", "inline"])]
    dry_run: bool,

    /// Policy file: which flows are controlled, and how
    #[arg(
        long,
        short,
        value_name = "FILE",
        required_unless_present = "controller"
    )]
    policy: Option<PathBuf>,

    #[command(flatten)]
    host: HostArguments,

    /// Let nothing pass when this process dies or hangs; by default frames then pass without it
    #[arg(long, conflicts_with_all = ["interface", "cgroup"])]
    fail_closed: bool,

    /// Control socket, for `weir enforce status` and `weir policy reload`
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_PATH)]
    control: PathBuf,

    /// Serve Prometheus metrics by HTTP at /metrics; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    metrics: Option<SocketAddr>,

    /// Maximum number of controlled connections; others pass. With --inline, of tracked connections
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().flows,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "cgroup")]
    flows: u32,

    /// Maximum of all flows' unacknowledged data that is buffered; further data passes without a copy
    #[arg(long, value_name = "SIZE", default_value_t = Limits::default().memory,
          conflicts_with_all = ["interface", "cgroup"])]
    memory: ByteSize,

    /// Maximum number of flow reports from the kernel per second
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().reports_per_second,
          value_parser = clap::value_parser!(u32).range(100..=1_000_000), conflicts_with_all = ["inline", "cgroup"])]
    reports: u32,

    /// Kernel hook of the BPF programs
    #[arg(long, value_enum, default_value_t = HookName::Auto, conflicts_with_all = ["inline", "cgroup"])]
    hook: HookName,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the controlled flows
    Status(status::Status),
    /// Remove what a killed enforcer or agent has left
    Clean(clean::Clean),
    /// Put a rule that its guard has taken back in force again
    Resume(resume::Resume),
    /// Undo what another process has done to sockets when that is killed
    #[command(hide = true)]
    Guard(guard::Guard),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HookName {
    /// tcx if the kernel supports it, else clsact
    Auto,
    /// Linux 6.6: the programs are removed with the process
    Tcx,
    /// Older kernels: after a kill the programs stay, and have no effect
    Clsact,
}

impl Enforce {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match (&self.command, &self.policy) {
            (Some(Command::Status(status)), _) => status.run(),
            (Some(Command::Clean(clean)), _) => clean.run(),
            (Some(Command::Resume(resume)), _) => resume.run(),
            (Some(Command::Guard(guard)), _) => guard.run(),
            (None, Some(policy)) => running::run(self, running::Source::File(policy)),
            (None, None) if self.host.is_used() => {
                let followed = followed::Followed::start(&self.host)?;
                running::run(self, running::Source::Controller(Box::new(followed)))
            }
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
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            connections: ConnectionLimits {
                connections: self.flows as usize,
                ..ConnectionLimits::default()
            },
            memory: self.memory,
        }
    }
}
