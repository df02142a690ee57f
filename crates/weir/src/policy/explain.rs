//! `weir policy explain`

use std::fmt::Write as _;
use std::net::SocketAddr;

use clap::Args;
use serde::Serialize;
use weir_policy::{Dscp, PolicyFlow};

use super::{File, action};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy explain policy.toml 10.0.0.1:8080 192.0.2.7:40000
  weir policy explain policy.toml [fd00::1]:80 [fd00::2]:4000 --interface eth0 --dscp ef

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

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer in the `--json` output.
#[derive(Serialize)]
struct Answer {
    /// The rule that applies, by its line in the file.
    line: Option<u32>,
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
            ..PolicyFlow::between(self.from, self.to)
        };
        let explanation = policy.explain(&flow);
        let passed_over = explanation.mismatches.iter();
        let answer = Answer {
            line: explanation.rule.map(|rule| rule.line),
            action: explanation.rule.map_or("pass".to_owned(), action),
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
            Some(line) => writeln!(out, "{file}:{line}: holds: {}", answer.action),
            None => writeln!(out, "no rule fits: pass"),
        };
        out
    }
}
