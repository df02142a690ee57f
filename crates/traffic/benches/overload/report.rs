//! The result of a run, and the verdict.

use std::process::ExitCode;

use weir_traffic::calls::Summary;
use weir_units::Duration;

use crate::Transport;
use crate::calls::Failures;
use crate::client::{Counters, Measured};

/// DCQUIC's p99.9 is at most this many times that of TCP + TLS.
const P999_RATIO: f64 = 1.1;
/// DCQUIC's longest call takes at most this long, or
const LONGEST: Duration = Duration::from_secs(1);
/// this many times the longest of TCP + TLS.
const LONGEST_RATIO: f64 = 2.0;

/// The result of a run.
pub(crate) struct Report {
    pub(crate) transport: Transport,
    pub(crate) span: Duration,
    pub(crate) measured: Measured,
    /// What the server has counted.
    pub(crate) server: Counters,
}

impl Report {
    fn rate(&self) -> f64 {
        self.measured.calls.in_time as f64 / self.span.as_secs_f64()
    }

    /// Returns whether no call and no connection has failed, and every call has its answer.
    fn is_complete(&self) -> bool {
        let Measured {
            not_opened, calls, ..
        } = &self.measured;
        not_opened.is_empty() && calls.errors.is_empty() && calls.unanswered == 0
    }

    pub(crate) fn print(&self) {
        let Measured {
            not_opened,
            calls,
            counters,
        } = &self.measured;
        println!("  calls answered: {}, {:.0}/s", calls.answered, self.rate());
        print_times("all", &calls.times);
        print_times("the first of each slot", &calls.first);
        print_times("later ones", &calls.later);
        match calls.oldest {
            Some(oldest) => println!(
                "  calls without an answer at the end: {}, the oldest since {}",
                calls.unanswered,
                time(oldest)
            ),
            None => println!("  calls without an answer at the end: 0"),
        }
        print_failures("errors", &calls.errors);
        print_failures("connections that did not open", not_opened);
        print_counters("client", counters);
        print_counters("server", &self.server);
    }
}

fn print_times(name: &str, times: &Option<Summary>) {
    if let Some(times) = times {
        println!(
            "  {name}: median {}, p99 {}, p99.9 {}, longest {}",
            time(times.median()),
            time(times.p99()),
            time(times.p999()),
            time(times.longest())
        );
    }
}

fn print_failures(name: &str, failures: &Failures) {
    println!("  {name}: {}", failures.values().sum::<u64>());
    for (failure, count) in failures {
        println!("    {count} × {failure}");
    }
}

fn print_counters(side: &str, counters: &Counters) {
    let Some(dropped) = counters.datagrams_dropped else {
        return;
    };
    let count = |count: Option<u64>| count.map_or("not counted".to_owned(), |n| n.to_string());
    println!(
        "  {side}: datagrams dropped at its socket {dropped}, packets sent {}, declared lost {}, probe timeouts {}",
        count(counters.packets_sent),
        count(counters.packets_lost),
        count(counters.probe_timeouts)
    );
}

fn time(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Prints how the transports compare with TCP + TLS, and whether DCQUIC keeps its limits.
pub(crate) fn judge(reports: &[Report]) -> ExitCode {
    let of = |transport| {
        let mut reports = reports.iter();
        reports.find(|report: &&Report| report.transport == transport)
    };
    let Some(base) = of(Transport::TcpTls) else {
        return ExitCode::SUCCESS;
    };
    let Some(base_times) = &base.measured.calls.times else {
        println!("TCP + TLS 1.3 made no calls");
        return ExitCode::FAILURE;
    };
    println!("\n/ TCP + TLS 1.3   calls/s  median     p99   p99.9  longest");
    for report in reports.iter().filter(|report| !std::ptr::eq(*report, base)) {
        let Some(times) = &report.measured.calls.times else {
            continue;
        };
        let ratio =
            |of: fn(&Summary) -> Duration| of(times).as_secs_f64() / of(base_times).as_secs_f64();
        println!(
            "{:15} {:9.2} {:7.2} {:7.2} {:7.2} {:8.2}",
            report.transport.to_string(),
            report.rate() / base.rate(),
            ratio(Summary::median),
            ratio(Summary::p99),
            ratio(Summary::p999),
            ratio(Summary::longest),
        );
    }
    of(Transport::Dcquic).map_or(ExitCode::SUCCESS, |dcquic| verdict(dcquic, base_times))
}

fn verdict(dcquic: &Report, base: &Summary) -> ExitCode {
    let p999 = base.p999().as_secs_f64() * P999_RATIO;
    let longest = (base.longest().as_secs_f64() * LONGEST_RATIO).max(LONGEST.as_secs_f64());
    let times = &dcquic.measured.calls.times;
    let within = |of: fn(&Summary) -> Duration, limit: f64| {
        (times.as_ref()).is_some_and(|times| of(times).as_secs_f64() <= limit)
    };
    let checks = [
        ("no failures", dcquic.is_complete()),
        ("p99.9", within(Summary::p999, p999)),
        ("longest", within(Summary::longest, longest)),
    ];
    println!(
        "\nDCQUIC's limits: no failures, p99.9 {:.1} ms, longest {:.1} ms",
        p999 * 1e3,
        longest * 1e3
    );
    let missed: Vec<_> = checks
        .iter()
        .filter(|(_, kept)| !kept)
        .map(|(name, _)| *name)
        .collect();
    if missed.is_empty() {
        println!("kept");
        ExitCode::SUCCESS
    } else {
        println!("missed: {}", missed.join(", "));
        ExitCode::FAILURE
    }
}
