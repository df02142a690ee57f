//! Formats a test's progress and result as text: a table that grows during the test.

use std::fmt::Write as _;

use weir_traffic::throughput::{Direction, Extent, Parameters, Profile};

use super::report::{Interval, Report, Start, Total};

/// Returns the lines before the first interval: the connections and the table's header.
pub(crate) fn start(start: &Start) -> String {
    let mut out = String::new();
    for connected in &start.connected {
        let _ = writeln!(
            out,
            "[{:>3}] {} port {} connected to {} port {}",
            connected.socket,
            connected.local_host,
            connected.local_port,
            connected.remote_host,
            connected.remote_port
        );
    }
    let _ = writeln!(
        out,
        "[ ID] {:<17} {:>9}  {:>13} {:>7} {:>7} {:>9} {:>9}",
        "interval", "data", "rate", "lost", "CE", "cwnd", "RTT"
    );
    out
}

/// Returns the lines of an interval: one for each stream and, if there are several, one for the sum.
pub(crate) fn interval(report: &Interval) -> String {
    let mut out = String::new();
    for stream in &report.streams {
        // DCUDP has a rate instead of a window.
        let window = stream.snd_cwnd.map(|cwnd| amount(cwnd as f64, "B"));
        let rate = stream.pacing_rate.map(|rate| amount(rate as f64, "b/s"));
        let cwnd = window.or(rate);
        let rtt = stream.rtt.map(|rtt| format!("{rtt} µs"));
        let path = format!(
            " {:>9} {:>9}",
            cwnd.unwrap_or_default(),
            rtt.unwrap_or_default()
        );
        line(&mut out, &stream.socket.to_string(), &stream.total, &path);
    }
    if report.streams.len() > 1 {
        line(&mut out, "SUM", &report.sum, "");
        out.push('\n');
    }
    out
}

/// Returns the lines after the last interval: both sides' totals and processor time.
pub(crate) fn end(report: &Report) -> String {
    let end = &report.end;
    let mut out = format!("{}\n", "-".repeat(86));
    let several = end.streams.len() > 1;
    for stream in end.streams.iter().filter(|_| several) {
        for side in [&stream.sender, &stream.receiver] {
            line(
                &mut out,
                &side.socket.to_string(),
                &side.total,
                role(&side.total),
            );
        }
    }
    for total in [&end.sum_sent, &end.sum_received] {
        line(
            &mut out,
            if several { "SUM" } else { "1" },
            total,
            role(total),
        );
    }
    let senders = || end.streams.iter().map(|stream| &stream.sender);
    let _ = write!(out, "congestion control: {}", end.congestion);
    if let (Some(least), Some(most)) = (
        senders().filter_map(|sender| sender.min_rtt).min(),
        senders().filter_map(|sender| sender.max_rtt).max(),
    ) {
        let _ = write!(out, "; smoothed RTT {least} to {most} µs");
    }
    out.push('\n');
    let per_gb = &end.cpu_seconds_per_gb;
    if let (Some(host), Some(remote), Some(total)) = (per_gb.host, per_gb.remote, per_gb.total) {
        let busy = &end.cpu_utilization_percent;
        let _ = writeln!(
            out,
            "CPU seconds per GB: {total:.3} (this side {host:.3}, {:.0} % busy; other side \
             {remote:.3}, {:.0} % busy)",
            busy.host_total, busy.remote_total
        );
    }
    out
}

/// Returns a warning about a test that flooded a path which does not mark.
pub(crate) fn warning(report: &Report) -> Option<String> {
    let sent = &report.end.sum_sent;
    let (lost, marked) = (sent.lost_packets?, sent.ce_marked?);
    let is_flood = report.start.test_start.profile == Some(Profile::DataCenter.name());
    (is_flood && lost > 0 && marked == 0).then(|| {
        format!(
            "{lost} packets were lost and none was marked: nothing on this path marks, and the profile \
             `data-center` slows down for marks alone; choose --profile shared"
        )
    })
}

/// Returns a test's summary in one line, such as `dcquic, 2 streams, to the server, 10s`.
pub(crate) fn summary(test: &Parameters) -> String {
    let streams = match test.parallel {
        1 => "1 stream".to_owned(),
        more => format!("{more} streams"),
    };
    let direction = match test.direction {
        Direction::Upload => "to the server",
        Direction::Download => "to the client",
    };
    let extent = match test.extent {
        Extent::Time(time) => time.to_string(),
        Extent::Bytes(size) => size.to_string(),
    };
    format!("{}, {streams}, {direction}, {extent}", test.transport)
}

fn role(total: &Total) -> &'static str {
    if total.sender { " sender" } else { " receiver" }
}

/// Writes a line with the columns of every total, followed by `rest`.
fn line(out: &mut String, id: &str, total: &Total, rest: &str) {
    let count = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    let line = format!(
        "[{id:>3}] {:<17} {:>9}  {:>13} {:>7} {:>7}{rest}",
        format!("{:.2}-{:.2} s", total.start, total.end),
        amount(total.bytes as f64, "B"),
        amount(total.bits_per_second, "bit/s"),
        count(total.retransmits),
        count(total.ce_marked),
    );
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Formats a number with three digits and a decimal prefix.
fn amount(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let (mut value, mut index) = (value, 0);
    while value >= 999.5 && index + 1 < PREFIXES.len() {
        value /= 1000.0;
        index += 1;
    }
    let digits = match value {
        _ if index == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    let prefix = PREFIXES.get(index).copied().unwrap_or_default();
    format!("{value:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_significant_digits() {
        let cases = [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1000.0, "1.00 kB"),
            (65_536.0, "65.5 kB"),
            (999_499.0, "999 kB"),
            (999_600.0, "1.00 MB"),
            (9_994_000_000.0, "9.99 GB"),
            (9_996_000_000.0, "10.0 GB"),
        ];
        for (value, text) in cases {
            assert_eq!(amount(value, "B"), text);
        }
    }
}
