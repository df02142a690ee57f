//! `weir policy explain`

use std::fmt::Write as _;
use std::net::SocketAddr;

use clap::Args;
use serde::Serialize;
use weir_policy::{Decision, Dscp, Group, PolicyFlow, SocketOwner, User};

use super::{File, action};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy explain policy.toml 10.0.0.1:8080 192.0.2.7:40000
  weir policy explain policy.toml [fd00::1]:80 [fd00::2]:4000 --interface eth0 --dscp ef
  weir policy explain policy.toml 10.0.0.1:80 10.0.0.2:4000 --cgroup /system.slice/nginx.service --command nginx

A flow is the data that goes one way of a connection: FROM sends it. The answers of a server on port
8080 come from that port.")]
pub(crate) struct Explain {
    #[command(flatten)]
    file: File,

    /// Sender of the data: address and port
    from: SocketAddr,

    /// Receiver of the data: address and port
    to: SocketAddr,

    /// Egress interface of the data
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,

    /// DSCP of its packets
    #[arg(long, default_value = "0")]
    dscp: Dscp,

    /// Control group of the process that opened the sender's socket, as a path below the root
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,

    /// User of that process, as the policy names it
    #[arg(long, value_name = "USER")]
    user: Option<User>,

    /// Name of that process
    #[arg(long, value_name = "NAME")]
    command: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer in the `--json` output.
#[derive(Serialize)]
struct Answer {
    /// The rule that applies, by its line in the file.
    line: Option<u32>,
    /// Whether the flow is in the rule's share, if it has one.
    in_share: Option<bool>,
    action: String,
    passed_over: Vec<NonMatchingRule>,
}

/// A rule that does not match.
#[derive(Serialize)]
struct NonMatchingRule {
    line: u32,
    reason: String,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let policy = self.file.load()?;
        let flow = PolicyFlow {
            interface: self.interface.as_deref(),
            dscp: self.dscp,
            owner: SocketOwner {
                cgroup: self.cgroup.as_deref(),
                user: self.user.as_ref(),
                command: self.command.as_deref(),
            },
            ..PolicyFlow::between(self.from, self.to)
        };
        let explanation = policy.explain(&flow);
        let passed_over = explanation.mismatches.iter();
        let answer = Answer {
            line: explanation.decision.map(|decision| decision.rule.line),
            in_share: explanation.decision.and_then(in_share),
            action: explanation.decision.map_or("pass".to_owned(), applied),
            passed_over: passed_over
                .map(|(rule, mismatch)| NonMatchingRule {
                    line: rule.line,
                    reason: mismatch.to_string(),
                })
                .collect(),
        };
        if self.json {
            output::print_json(&answer)
        } else {
            output::print(&self.text(&answer))
        }
    }

    fn text(&self, answer: &Answer) -> String {
        let file = self.file.path().display();
        let mut out = String::new();
        for NonMatchingRule { line, reason } in &answer.passed_over {
            let _ = writeln!(out, "{file}:{line}: does not fit: {reason}");
        }
        let _ = match answer.line {
            Some(line) => writeln!(
                out,
                "{file}:{line}: holds{}: {}",
                place(answer.in_share),
                answer.action
            ),
            None => writeln!(out, "no rule fits: pass"),
        };
        out
    }
}

fn in_share(decision: Decision<'_>) -> Option<bool> {
    let has_share = decision.rule.share.is_some();
    has_share.then_some(decision.group == Group::Treated)
}

/// Describes what is done with a flow of this group.
fn applied(decision: Decision<'_>) -> String {
    match decision.group {
        Group::Treated => action(decision.rule),
        Group::Control => "pass, measured for comparison".to_owned(),
    }
}

fn place(in_share: Option<bool>) -> &'static str {
    match in_share {
        Some(true) => ", in the share",
        Some(false) => ", not in the share",
        None => "",
    }
}
