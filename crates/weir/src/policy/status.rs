//! `weir policy status`

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use weir_canary::figure_text;
use weir_control::policy_v1 as v1;
use weir_policy::GuardMetric;

use super::controllers::{ControllerArguments, date, named};
use crate::failure::Failure;
use crate::{interrupt, output};

/// The arguments of `weir policy status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy status                   what is everywhere, what is on its way, and who has what
  weir policy status --watch           again every second
  weir policy status --hosts 1000      more hosts; those that something is wrong with come first
  weir policy status --json            for programs")]
pub(crate) struct Status {
    #[command(flatten)]
    controllers: ControllerArguments,

    /// Number of hosts to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    hosts: u32,

    /// Refresh every second, until Ctrl-C
    #[arg(long, short)]
    watch: bool,

    /// Print JSON; with --watch one document per line
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let controllers = self.controllers.open()?;
        let show = || {
            let request = v1::FleetStatusRequest { hosts: self.hosts };
            let status = controllers.ask(|client| async move { client.status(request).await })?;
            match (self.json, self.watch) {
                (true, true) => output::print_json_line(&document(&status)),
                (true, false) => output::print_json(&document(&status)),
                (false, _) => output::print(&text(&status)),
            }
        };
        if !self.watch {
            return show();
        }
        interrupt::end_on_signals()?;
        loop {
            if !self.json {
                // Move to the top left, and clear the screen below.
                output::print("\x1b[H\x1b[J")?;
            }
            match show() {
                // The controller may be away for a while.
                Err(Failure::Failed(problem)) if !self.json => {
                    output::print(&format!("{problem}\n"))?;
                }
                shown => shown?,
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

fn text(status: &v1::FleetStatus) -> String {
    let mut out = format!(
        "fleet {}, decision {}, by the controller {}\n{} everywhere; {} hosts attached, {} known\n",
        status.fleet,
        status.revision,
        status.controller,
        named(status.stable),
        status.connected,
        status.known,
    );
    if let Some(ahead) = &status.ahead {
        let _ = writeln!(
            out,
            "THE STORE IS AN OLD COPY: hosts have version {} by decision {}, which it does not know; they keep it",
            ahead.version, ahead.revision
        );
    }
    match &status.rollout {
        Some(rollout) => out.push_str(&rollout_text(rollout)),
        None => out.push_str("no version is on its way\n"),
    }
    let _ = writeln!(out, "\n{:>10} {:>9} {:>9}", "version", "attached", "known");
    for count in &status.versions {
        let version = running(count.version);
        let _ = writeln!(
            out,
            "{version:>10} {:>9} {:>9}",
            count.connected, count.known
        );
    }
    out.push_str(&hosts_text(status));
    out
}

/// Names what a host runs.
fn running(version: Option<u64>) -> String {
    match version {
        None => "-".to_owned(),
        Some(0) => "none".to_owned(),
        Some(version) => version.to_string(),
    }
}

fn rollout_text(rollout: &v1::RolloutStatus) -> String {
    let plan = rollout.plan.clone().unwrap_or_default();
    let stages = plan.stages.split(", then ");
    let current = stages
        .clone()
        .nth((rollout.stage as usize).saturating_sub(1));
    let mut out = format!(
        "version {} is on its way: stage {} of {}, {}: {} have it, {} to come, {} refuse it\n",
        rollout.version,
        rollout.stage,
        stages.count(),
        current.unwrap_or("all"),
        rollout.taken,
        rollout.pending,
        rollout.refusals,
    );
    let wait = span(plan.wait_nanoseconds);
    let _ = match rollout.waited_nanoseconds {
        Some(waited) => writeln!(out, "waits for {wait}, {} of it gone", span(waited)),
        None => writeln!(out, "waits for {wait} when all of the stage have it"),
    };
    for guard in &plan.guards {
        let _ = writeln!(out, "goes back if {guard}");
    }
    if !rollout.figures.is_empty() {
        let _ = writeln!(out, "\n{:15} {:38} without", "figure", "with it");
    }
    for figure in &rollout.figures {
        let metric = GuardMetric::OF_HOSTS.into_iter();
        let metric = metric
            .into_iter()
            .find(|metric| metric.name() == figure.name);
        let shown = |estimate: Option<v1::Estimate>| match (metric, estimate) {
            (Some(metric), Some(estimate)) => estimate_text(metric, &estimate),
            _ => String::new(),
        };
        let (with, without) = (shown(figure.treated), shown(figure.control));
        let row = format!("{:15} {with:38} {without}", figure.name);
        let _ = writeln!(out, "{}", row.trim_end());
    }
    out
}

fn estimate_text(metric: GuardMetric, estimate: &v1::Estimate) -> String {
    let text = |value| figure_text(metric, value);
    let high = estimate.high.map_or("?".to_owned(), text);
    format!(
        "{} ({} to {high}) of {}",
        text(estimate.value),
        text(estimate.low),
        estimate.connections
    )
}

fn hosts_text(status: &v1::FleetStatus) -> String {
    if status.hosts.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n{:20} {:30} {:>5} {:>5}  since\n",
        "host", "labels", "runs", "gets"
    );
    for host in &status.hosts {
        let runs = running(host.running);
        let gets = running(Some(host.assigned));
        let away = if host.connected { "" } else { "  not attached" };
        let _ = writeln!(
            out,
            "{:20} {:30} {runs:>5} {gets:>5}  {}{away}",
            host.name,
            labels(host),
            date(host.since_nanoseconds)
        );
        if !host.problem.is_empty() {
            let _ = writeln!(out, "{:20} {}", "", host.problem);
        }
    }
    let rest = status.known.saturating_sub(status.hosts.len() as u64);
    if rest > 0 {
        let _ = writeln!(out, "and {rest} more (--hosts)");
    }
    out
}

fn labels(host: &v1::HostStatus) -> String {
    let mut labels: Vec<_> = { host.labels.iter() }
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.sort();
    labels.join(" ")
}

fn span(nanoseconds: u64) -> String {
    let seconds = Duration::from_secs(nanoseconds / 1_000_000_000);
    humantime::format_duration(seconds).to_string()
}

/// Returns a status as programs read it.
pub(crate) fn document(status: &v1::FleetStatus) -> Value {
    let estimate = |estimate: &v1::Estimate| {
        json!({
            "value": estimate.value, "low": estimate.low, "high": estimate.high,
            "connections": estimate.connections,
        })
    };
    let rollout = status.rollout.as_ref().map(|rollout| {
        let plan = rollout.plan.clone().unwrap_or_default();
        let figures = rollout.figures.iter().map(|figure| {
            let values = json!({
                "treated": figure.treated.as_ref().map(estimate),
                "control": figure.control.as_ref().map(estimate),
            });
            (figure.name.clone(), values)
        });
        json!({
            "version": rollout.version, "stage": rollout.stage, "stages": plan.stages,
            "wait_s": plan.wait_nanoseconds / 1_000_000_000, "guards": plan.guards,
            "taken": rollout.taken, "pending": rollout.pending, "refusals": rollout.refusals,
            "waited_s": rollout.waited_nanoseconds.map(|waited| waited / 1_000_000_000),
            "figures": figures.collect::<serde_json::Map<_, _>>(),
        })
    });
    let versions = status.versions.iter().map(|count| {
        json!({"version": count.version, "attached": count.connected, "known": count.known})
    });
    let hosts = status.hosts.iter().map(|host| {
        json!({
            "name": host.name, "labels": host.labels, "attached": host.connected,
            "running": host.running, "assigned": host.assigned, "since": date(host.since_nanoseconds),
            "problem": Some(&host.problem).filter(|problem| !problem.is_empty()),
        })
    });
    let ahead = status
        .ahead
        .as_ref()
        .map(|held| json!({"version": held.version, "decision": held.revision}));
    json!({
        "fleet": status.fleet, "controller": status.controller, "decision": status.revision,
        "version": status.stable, "newest": status.newest, "attached": status.connected,
        "known": status.known, "rollout": rollout, "versions": versions.collect::<Vec<_>>(),
        "hosts": hosts.collect::<Vec<_>>(), "ahead_of_store": ahead,
    })
}
