//! `weir enforce status`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir_enforce::operation::control::{self, ControlRequest, ControlResponse, DEFAULT_PATH};
use weir_enforce::operation::{
    BypassCounts, FastPathCounts, FlowStatus, InlineCounts, RuleStatus, SocketStatus,
    Status as Found,
};

use super::canaries;
use crate::failure::Failure;
use crate::{interrupt, output};

/// The arguments of `weir enforce status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir enforce status              the flows with the most bytes
  weir enforce status --watch      again every second
  weir enforce status --json       all flows, for programs")]
pub(super) struct Status {
    /// Control socket of the enforcer
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_PATH)]
    control: PathBuf,

    /// Refresh every second, until Ctrl-C
    #[arg(long, short)]
    watch: bool,

    /// Print JSON; with --watch one document per line
    #[arg(long)]
    json: bool,
}

/// The maximum number of flows in the text output.
const SHOWN: usize = 40;

impl Status {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if !self.watch {
            return self.show();
        }
        interrupt::end_on_signals()?;
        loop {
            if !self.json {
                // Move to the top left, and clear the screen below.
                output::print("\x1b[H\x1b[J")?;
            }
            self.show()?;
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn show(&self) -> Result<(), Failure> {
        match control::send_request(&self.control, ControlRequest::Status).map_err(Failure::of)? {
            ControlResponse::Status(found) if self.json && self.watch => {
                output::print_json_line(&found)
            }
            ControlResponse::Status(found) if self.json => output::print_json(&found),
            ControlResponse::Status(found) => output::print(&text(&found)),
            ControlResponse::Refused { reason } => Err(Failure::Failed(reason)),
            ControlResponse::Reloaded { .. } | ControlResponse::Resumed { .. } => Err(
                Failure::Failed("the enforcer answers something else".into()),
            ),
        }
    }
}

fn text(found: &Found) -> String {
    if let Some(sockets) = &found.sockets {
        return at_sockets(sockets);
    }
    let totals = &found.totals;
    let mut out = format!(
        "{}: {} flows controlled, {} passed, {} without room, {} windows lowered\n",
        found.interfaces.join(", "),
        totals.controlled,
        totals.passed,
        totals.refused,
        totals.lowered,
    );
    if let Some(in_line) = &totals.in_line {
        out.push_str(&inline_counters(in_line));
    }
    if found.flows.is_empty() {
        return out;
    }
    let _ = writeln!(
        out,
        "{:>24} {:>24}  {:8} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "from",
        "to",
        "by",
        "RTT",
        "window",
        "enforced",
        "pacing",
        "max rate",
        "measured",
        "delivered",
        "marked",
        "again",
        "masked"
    );
    for flow in found.flows.iter().take(SHOWN) {
        out.push_str(&line(flow));
    }
    if found.flows.len() > SHOWN {
        let _ = writeln!(out, "and {} more (--json)", found.flows.len() - SHOWN);
    }
    out
}

/// Formats what became of the sockets of a control group.
fn at_sockets(found: &SocketStatus) -> String {
    let dry = if found.is_dry_run {
        " (dry run: nothing is changed)"
    } else {
        ""
    };
    let mut out = format!(
        "{}{dry}\n{:>6}  {:14} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}\n",
        found.cgroup,
        "rule",
        "by",
        "flows",
        "control",
        "matched",
        "applied",
        "no ECN",
        "refused",
        "override",
        "undone"
    );
    for rule in &found.rules {
        out.push_str(&rule_line(rule));
    }
    out.push_str(&canaries::text(&found.canaries));
    out
}

fn rule_line(rule: &RuleStatus) -> String {
    let refused: u64 = rule.refused.values().sum();
    let former = if rule.is_current {
        ""
    } else {
        "  not in force"
    };
    let mut line = format!(
        "{:>6}  {:14} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}{former}\n",
        rule.line,
        rule.algorithm,
        rule.flows,
        rule.control_flows,
        rule.matched,
        rule.applied,
        rule.without_ecn,
        refused,
        rule.overridden,
        rule.undone,
    );
    if refused > 0 {
        let keys = rule.refused.iter();
        let keys: Vec<_> = keys.map(|(key, count)| format!("{key} {count}")).collect();
        let _ = writeln!(line, "        refused by the kernel: {}", keys.join(", "));
    }
    if rule.not_undone > 0 {
        let _ = writeln!(
            line,
            "        {} did not get back what they had",
            rule.not_undone
        );
    }
    line
}

/// Formats the counters that only the inline mode has.
fn inline_counters(in_line: &InlineCounts) -> String {
    let mut out = format!(
        "{} frames; {} losses masked, {} time-outs; {} packets ({}) kept, at most {} ({}), {} without room\n",
        in_line.frames,
        in_line.masked,
        in_line.timeouts,
        in_line.kept_packets,
        short(in_line.kept_bytes as f64, "B"),
        in_line.most_kept_packets,
        short(in_line.most_kept_bytes as f64, "B"),
        in_line.unkept,
    );
    let lost = [
        (in_line.overrun, "before they were read"),
        (in_line.unreadable, "that could not be read"),
        (in_line.full, "without room at the other interface"),
        (in_line.too_long, "too long for the other interface"),
        (in_line.down, "for an interface that was down"),
        (in_line.late, "because the enforcer had paused"),
    ];
    for (frames, why) in lost.into_iter().filter(|(frames, _)| *frames > 0) {
        let _ = writeln!(out, "{frames} frames lost {why}");
    }
    if let Some(counted) = &in_line.fast_path {
        out.push_str(&fast_path(counted));
    }
    out.push_str(&bypass(in_line.bypass));
    out
}

/// Tells what the kernel forwards while the enforcer lives.
fn fast_path(counted: &FastPathCounts) -> String {
    format!(
        "the kernel forwards what no rule is for: {} connections now, {} since the start; {} frames ({})\n",
        counted.connections,
        counted.begun,
        counted.frames.iter().sum::<u64>(),
        short(counted.bytes.iter().sum::<u64>() as f64, "B"),
    )
}

/// Tells whether frames pass without the enforcer, and how often they did.
fn bypass(counted: Option<BypassCounts>) -> String {
    let Some(counted) = counted else {
        return "fails closed: nothing passes without the enforcer\n".to_owned();
    };
    let now = if counted.is_active { ", also now" } else { "" };
    match counted.last_ms_ago {
        None => "fails open; never bypassed\n".to_owned(),
        Some(millis) => format!(
            "fails open; bypassed {} time{}, last {} ago, {} frames{now}\n",
            counted.times,
            if counted.times == 1 { "" } else { "s" },
            humantime::format_duration(whole(millis)),
            counted.frames,
        ),
    }
}

/// Returns a duration in whole seconds, if it has any.
fn whole(millis: u64) -> Duration {
    match millis {
        1000.. => Duration::from_secs(millis / 1000),
        _ => Duration::from_millis(millis),
    }
}

fn line(flow: &FlowStatus) -> String {
    let size = |bytes| short(bytes as f64, "B");
    let rate = |bits: Option<u64>| bits.map_or(String::new(), |bits| short(bits as f64, "bps"));
    format!(
        "{:>24} {:>24}  {:8} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n",
        flow.from,
        flow.to,
        flow.congestion,
        format!("{:.3}ms", flow.rtt_us / 1e3),
        size(flow.window),
        size(flow.enforced),
        rate(flow.pacing_rate),
        rate(flow.max_rate),
        rate(flow.measured_rate),
        size(flow.delivered),
        size(flow.marked),
        size(flow.sent_again),
        size(flow.masked),
    )
}

/// Formats with about three digits, in powers of 1000.
fn short(value: f64, unit: &str) -> String {
    let steps = ["", "k", "M", "G", "T"];
    let mut scaled = value;
    for step in steps {
        if scaled < 1000.0 || step == "T" {
            return match step {
                "" => format!("{scaled:.0}{unit}"),
                _ => format!("{scaled:.1}{step}{unit}"),
            };
        }
        scaled /= 1000.0;
    }
    format!("{value}{unit}")
}
