//! A restart storm: a server with many clients is killed and started again at once under thousands of
//! calls per second. `make bench-restart` prints what became of the calls with DCQUIC, and with TCP + TLS.
//! The exit code is 1 if a call was executed twice, or a client was told what is not true.
//!
//! Variables of the environment set `CLIENTS`, `RATE` (calls per second in all), and `STORM_SECONDS` (before the
//! kill, and again after it).
#![allow(clippy::print_stdout, reason = "a benchmark")]

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

use weir_traffic::calls::Launcher;
use weir_traffic::restart::{Contestant, Counts, Plan, Report, Times, Violations, run, serve};
use weir_units::Duration;

/// The argument of the server's process.
const SERVER: &str = "server";
const CLIENTS: usize = 1000;
const RATE: f64 = 5000.0;
const SECONDS: u64 = 5;
const DEADLINE: Duration = Duration::from_secs(5);
const CONCURRENT: usize = 4096;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == SERVER) {
        serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    // `cargo test` runs benchmarks too.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(ExitCode::SUCCESS);
    }
    let span = Duration::from_secs(setting("STORM_SECONDS", SECONDS)?);
    let mut plan = Plan {
        contestant: Contestant::Dcquic,
        clients: setting("CLIENTS", CLIENTS)?,
        rate_per_s: setting("RATE", RATE)?,
        before: span,
        after: span,
        deadline: DEADLINE,
        concurrent: CONCURRENT,
        seed: 22,
    };
    if plan.clients == 0 || plan.rate_per_s <= 0.0 {
        return Err("CLIENTS and RATE must be positive".into());
    }
    println!(
        "{} clients, {} calls/s in all, a connection per call, killed after {span}, calls until {}",
        plan.clients,
        plan.rate_per_s,
        plan.before + plan.after
    );
    let launcher = Launcher::this_program(&[SERVER])?;
    let mut is_safe = true;
    for contestant in Contestant::ALL {
        plan.contestant = contestant;
        println!("\n{contestant} (load average {})", load_average());
        let report = run(&plan, &launcher)?;
        print(&report);
        is_safe &= report.violations == Violations::default();
    }
    println!("\nload average at the end: {}", load_average());
    Ok(if is_safe {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn setting<Value: FromStr>(name: &str, default: Value) -> Result<Value, Box<dyn Error>>
where
    Value::Err: Error + 'static,
{
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => Ok(text
            .parse()
            .map_err(|error| format!("{name}={text}: {error}"))?),
        _ => Ok(default),
    }
}

/// Returns the machine's load over 1, 5 and 15 minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn print(report: &Report) {
    println!("  calls by arrival       answered       No    Maybe  not started");
    let rows = [
        ("before the kill", report.before),
        ("without a server", report.between),
        ("after the restart", report.after),
        ("all", report.all()),
    ];
    for (name, counts) in rows {
        let Counts {
            answered,
            no,
            maybe,
            not_started,
        } = counts;
        println!("    {name:19} {answered:9} {no:8} {maybe:8} {not_started:12}");
    }
    let Violations {
        twice,
        missing,
        executed_no,
        wrong,
    } = report.violations;
    println!("  executed twice: {twice}");
    println!(
        "  answered but not executed: {missing}; No but executed: {executed_no}; wrong answers: {wrong}"
    );
    println!("  Maybe and executed: {}", report.maybe_executed);
    let before = report.times_before;
    println!(
        "  before the kill: median {}, p99 {}",
        time(before.and_then(|times| times.median)),
        time(before.and_then(|times| times.p99))
    );
    let gap = report.restart.listening - report.restart.killed;
    println!(
        "  from the kill until the new server listens: {}",
        time(Some(gap))
    );
    match report.back {
        Some(back) => println!(
            "  p99 of 100 ms back to twice its value {} ms after the restart; of the {} windows from then on, {} are above",
            back.as_millis(),
            report.windows.len() as u64 + 1 - back.as_millis() / 100,
            report.relapses
        ),
        None => println!("  p99 of 100 ms not back to twice its value"),
    }
    let p99 = |window: &Option<Times>| time(window.and_then(|times| times.p99));
    let windows: Vec<_> = report.windows.iter().take(20).map(p99).collect();
    println!("  p99 by 100 ms, from the restart: {}", windows.join(", "));
    println!(
        "  handshakes after the restart: {} full, {} resumed",
        report.full_handshakes, report.resumed_handshakes
    );
}

/// Returns a time in milliseconds; a dash for a call without an answer.
fn time(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| {
        format!("{:.2} ms", time.as_secs_f64() * 1e3)
    })
}
