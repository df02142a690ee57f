//! Simulator speed: bottleneck packets per CPU second and peak memory, beside ns-3 with the same dumbbell,
//! and the cost of a packet against the number of flows and hosts.
//!
//! `make bench-sim` runs it. Each row runs in its own process, to measure its own memory. The rows of a
//! table run one after the other, and ours and ns-3's alternate. The program in `bench/ns3` runs ns-3, if
//! it has been built.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use weir_scenario::Scenario;
use weir_sim::Simulation;

/// The argument that makes this program run one case and print its metrics.
const RUN: &str = "--run-case";

/// A line under the header and one under the table.
const STYLE: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// The metrics of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SpeedFigures {
    packets: u64,
    simulated_s: f64,
    cpu_s: f64,
    peak_rss_bytes: u64,
}

/// A scenario of the benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Case {
    dctcp_hosts: u32,
    cubic_hosts: u32,
    flows_per_host: u32,
    /// The number of segments per ACK.
    ack_every: u32,
    /// In megabytes; the drop-tail threshold for CUBIC is below it.
    buffer_mb: f64,
    duration_ms: u64,
}

impl SpeedFigures {
    fn packets_per_cpu_second(&self) -> f64 {
        self.packets as f64 / self.cpu_s
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(slot) = arguments.iter().position(|argument| argument == RUN) {
        let case = arguments.get(slot + 1).ok_or("no case")?;
        let figures = run(&serde_json::from_str(case)?)?;
        println!("{}", serde_json::to_string(&figures)?);
        return Ok(());
    }
    // `cargo test` builds and runs benchmarks too, to see whether they work.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    compare()?;
    flows()?;
    hosts()
}

/// Compares with ns-3.
fn compare() -> Result<(), Box<dyn Error>> {
    let twenty = Case {
        dctcp_hosts: 20,
        cubic_hosts: 0,
        flows_per_host: 1,
        ack_every: 1,
        buffer_mb: 1.8,
        duration_ms: 1000,
    };
    let mixed = Case {
        dctcp_hosts: 10,
        cubic_hosts: 10,
        flows_per_host: 10,
        ..twenty.clone()
    };
    let mut table = new_table(&[
        "25 Gbit/s",
        "ACKs",
        "million packets per CPU s",
        "ns-3",
        "ratio",
        "CPU s per simulated s",
        "peak memory, MB",
        "ns-3's",
    ]);
    for (name, case) in [
        ("20 DCTCP flows", &twenty),
        ("100 DCTCP and 100 CUBIC flows", &mixed),
    ] {
        for ack_every in [1, 2] {
            let case = Case {
                ack_every,
                ..case.clone()
            };
            let ours = median(&case)?;
            // ns-3's DCTCP stalls on the ACK timer where a window of one segment waits for a second.
            let theirs = if ack_every == 1 { ns3(&case)? } else { None };
            let of_theirs = |figure: &dyn Fn(&SpeedFigures) -> String| {
                theirs.as_ref().map_or("–".to_owned(), figure)
            };
            let rate = ours.packets_per_cpu_second();
            table.add_row([
                name.to_owned(),
                format!("every {ack_every}"),
                format!("{:.2}", rate / 1e6),
                of_theirs(&|ns3| format!("{:.4}", ns3.packets_per_cpu_second() / 1e6)),
                of_theirs(&|ns3| format!("{:.0}", rate / ns3.packets_per_cpu_second())),
                format!("{:.2}", ours.cpu_s / ours.simulated_s),
                format!("{:.1}", ours.peak_rss_bytes as f64 / 1e6),
                of_theirs(&|ns3| format!("{:.0}", ns3.peak_rss_bytes as f64 / 1e6)),
            ]);
        }
    }
    println!("{table}\n");
    Ok(())
}

/// Measures the cost of a packet against the number of flows of ten hosts. The buffer holds the smallest
/// windows of all flows: the cost of losses would hide that of flows.
fn flows() -> Result<(), Box<dyn Error>> {
    let cases = [10, 100, 1_000, 10_000].map(|flows| Case {
        dctcp_hosts: 10,
        cubic_hosts: 0,
        flows_per_host: flows / 10,
        ack_every: 1,
        buffer_mb: 100.0,
        duration_ms: 500,
    });
    growth("DCTCP flows of 10 hosts", &cases, |case| {
        case.dctcp_hosts * case.flows_per_host
    })
}

/// Measures the cost of a packet against the number of hosts with one flow each.
fn hosts() -> Result<(), Box<dyn Error>> {
    let cases = [10, 100, 1_000, 10_000].map(|hosts| Case {
        dctcp_hosts: hosts,
        cubic_hosts: 0,
        flows_per_host: 1,
        ack_every: 1,
        buffer_mb: 100.0,
        duration_ms: 500,
    });
    growth("hosts with one DCTCP flow each", &cases, |case| {
        case.dctcp_hosts
    })
}

fn growth(what: &str, cases: &[Case], size: impl Fn(&Case) -> u32) -> Result<(), Box<dyn Error>> {
    let mut table = new_table(&[
        what,
        "ns of CPU per packet",
        "÷ the first",
        "peak memory, MB",
    ]);
    let mut first = None;
    for case in cases {
        let figures = median(case)?;
        let cost = 1e9 / figures.packets_per_cpu_second();
        let base = *first.get_or_insert(cost);
        table.add_row([
            size(case).to_string(),
            format!("{cost:.0}"),
            format!("{:.2}", cost / base),
            format!("{:.1}", figures.peak_rss_bytes as f64 / 1e6),
        ]);
    }
    println!("{table}\n");
    Ok(())
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Returns the run of median speed out of three.
fn median(case: &Case) -> Result<SpeedFigures, Box<dyn Error>> {
    let mut runs = Vec::new();
    for _ in 0..3 {
        let program = std::env::current_exe()?;
        let output = Command::new(program)
            .args([RUN, &serde_json::to_string(case)?])
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        runs.push(serde_json::from_slice::<SpeedFigures>(&output.stdout)?);
    }
    runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    Ok(runs[1])
}

/// Runs a case in this process.
fn run(case: &Case) -> Result<SpeedFigures, Box<dyn Error>> {
    let loaded = Scenario::parse("speed.rs", &case.scenario(), &[])?;
    let mut simulation = Simulation::new(loaded.scenario)?;
    let end = simulation.end();
    let before = clock_gettime(ClockId::ThreadCPUTime);
    simulation.advance(end, &mut ())?;
    let after = clock_gettime(ClockId::ThreadCPUTime);
    let summary = simulation.finish(&mut ())?;
    let seconds = |time: rustix::time::Timespec| time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    Ok(SpeedFigures {
        packets: summary.ports.values().map(|port| port.packets).sum(),
        simulated_s: summary.simulated.as_secs_f64(),
        cpu_s: seconds(after) - seconds(before),
        peak_rss_bytes: peak_memory()?,
    })
}

/// Returns the largest resident set of this process so far.
fn peak_memory() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.ok_or("no VmHWM in /proc/self/status")?.parse()?;
    Ok(kilobytes * 1024)
}

impl Case {
    fn scenario(&self) -> String {
        let group = |name: &str, hosts: u32, rtt: &str| {
            if hosts == 0 {
                return String::new();
            }
            format!(
                r#"
                [dumbbell.senders.{name}]
                count = {hosts}
                rtt = "{rtt}"
                [groups.{name}]
                from = "{name}"
                to = "receiver"
                flows = {flows}
                congestion = "{name}"
                workload = "bulk"
                start_within = "10ms"
                [groups.{name}.tcp]
                ack_every = {ack_every}
                send_buffer = "2MB"
                receive_buffer = "2MB"
                "#,
                flows = self.flows_per_host,
                ack_every = self.ack_every,
            )
        };
        format!(
            r#"
            title = "How fast the simulator is"
            source = "crates/sim/benches/speed.rs"
            duration = "{duration}ms"
            [dumbbell]
            rate = "25Gbps"
            delay = "12500ns"
            framing = "2B"
            queue = {{ kind = "shared", buffer = "{buffer_mb}MB", ecn_threshold = "100KB", red_min = "800KB", red_max = "800KB", drop_probability = 0.05 }}
            {dctcp}
            {cubic}
            "#,
            duration = self.duration_ms,
            buffer_mb = self.buffer_mb,
            dctcp = group("dctcp", self.dctcp_hosts, "50us"),
            cubic = group("cubic", self.cubic_hosts, "25ms"),
        )
    }
}

/// Runs ns-3 with the same dumbbell for a few seconds; `None` if it is not built.
fn ns3(case: &Case) -> Result<Option<SpeedFigures>, Box<dyn Error>> {
    let program: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/ns3/build/dumbbell");
    if !program.exists() {
        println!(
            "SKIPPED: ns-3: {} is not built (make -C bench/ns3)",
            program.display()
        );
        return Ok(None);
    }
    let option = |name: &str, value: String| format!("--{name}={value}");
    let output = Command::new(program)
        .args([
            option("line-rate", "25Gbps".into()),
            option("dctcp-rtt", "50us".into()),
            option("cubic-rtt", "25ms".into()),
            option("ecn-threshold", "100KB".into()),
            option("red-min", "800KB".into()),
            option("red-max", "800KB".into()),
            option("buffer", "1.8MB".into()),
            option("dctcp-senders", case.dctcp_hosts.to_string()),
            option("cubic-senders", case.cubic_hosts.to_string()),
            option("flows-per-sender", case.flows_per_host.to_string()),
            option("delayed-acks", case.ack_every.to_string()),
            option("socket-buffer", "2MB".into()),
            option("start-window", "10ms".into()),
            option("duration", "200ms".into()),
            option("warm-up", "0ms".into()),
        ])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |path: &str| {
        let value = result.pointer(path).and_then(serde_json::Value::as_f64);
        value.ok_or_else(|| format!("ns-3's output has no {path}"))
    };
    Ok(Some(SpeedFigures {
        packets: number("/ports/bottleneck/whole_run/packets")? as u64,
        simulated_s: number("/simulated_s")?,
        cpu_s: number("/cpu_s")?,
        peak_rss_bytes: number("/peak_rss_bytes")? as u64,
    }))
}
