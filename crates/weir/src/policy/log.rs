//! `weir policy log`

use std::fmt::Write as _;

use clap::Args;
use weir_control::policy_v1 as v1;

use super::controllers::{ControllerArguments, date};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy log`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy log                             the last 100 entries of the audit log
  weir policy log --from 1 --count 10000      from the beginning
  weir policy log --json                      one document per line; also all hosts that took a version
  weir policy log --versions                  the versions, with authors and messages

The log only grows: who has pushed what, which host took it when, and why a version came back.")]
pub(crate) struct Log {
    #[command(flatten)]
    controllers: ControllerArguments,

    /// First entry, from 1 on, instead of the last ones
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    from: u64,

    /// Number of entries
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u32,

    /// List the versions
    #[arg(long, conflicts_with_all = ["from", "json"])]
    versions: bool,

    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,
}

impl Log {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let controllers = self.controllers.open()?;
        if self.versions {
            let list = v1::ListRequest {};
            let versions = controllers.ask(|client| async move { client.list(list).await })?;
            return output::print(&versions_text(&versions));
        }
        let request = v1::LogRequest {
            from: self.from,
            count: self.count.max(1),
        };
        let log = controllers.ask(|client| async move { client.log(request).await })?;
        let mut out = String::new();
        for entry in &log.entries {
            let _ = if self.json {
                writeln!(out, "{}", entry.json)
            } else {
                let at = date(entry.at_nanoseconds);
                writeln!(out, "{:>6}  {at}  {}", entry.number, entry.text)
            };
        }
        output::print(&out)
    }
}

fn versions_text(versions: &v1::Versions) -> String {
    let mut out = String::new();
    for version in &versions.versions {
        let at = date(version.at_nanoseconds);
        let v1::Version {
            number,
            author,
            message,
            ..
        } = version;
        let _ = writeln!(out, "{number:>6}  {at}  {author:12} {message}");
    }
    if out.is_empty() {
        out.push_str("there is no version: `weir policy push` makes one\n");
    }
    out
}
