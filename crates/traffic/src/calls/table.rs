//! Formats a report as text tables.

mod mixes;

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::calls::driver::Phase;
use crate::calls::network::suffix;
use crate::calls::paper;
use crate::calls::placement::Placement;
use crate::calls::report::{Environment, Measurement, Report};

/// Renders all parts of the report, network by network: latencies by placement first.
///
/// Each of `baselines` has a column of ratios; the paper's ratios are next to the first.
#[must_use]
pub fn render(report: &Report, baselines: &[String]) -> String {
    let mut out = String::new();
    for network in networks(report) {
        for placement in Placement::ALL {
            latencies(&mut out, report, (placement, network), baselines);
        }
        bulk(&mut out, report, network);
        for placement in Placement::ALL {
            mixes::render(&mut out, report, (placement, network), baselines);
        }
    }
    for failure in &report.failures {
        out.push_str(&format!(
            "not measured: {}, {}: {}\n",
            failure.transport, failure.what, failure.message
        ));
    }
    environment(&mut out, report);
    out
}

/// Returns the networks of all rows, in the order in which they were measured.
fn networks(report: &Report) -> Vec<&str> {
    let of_calls = report.measurements.iter().map(|row| &row.network);
    let of_bulk = report.bulk.iter().map(|row| &row.network);
    let of_mixes = report.mixes.iter().map(|row| &row.network);
    let mut networks: Vec<&str> = Vec::new();
    for network in of_calls.chain(of_bulk).chain(of_mixes) {
        if !networks.contains(&network.as_str()) {
            networks.push(network);
        }
    }
    networks
}

/// A rule under the header and one under the table.
const STYLE: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

fn table(header: Vec<String>, text_columns: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    let columns = header.len();
    table.set_header(header);
    for index in text_columns..columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn latencies(
    out: &mut String,
    report: &Report,
    (placement, network): (Placement, &str),
    baselines: &[String],
) {
    let mut rows: Vec<&Measurement> = report
        .measurements
        .iter()
        .filter(|row| row.placement == placement && row.network == network)
        .collect();
    if rows.is_empty() {
        return;
    }
    // A stable sort: within a situation, transports stay in the order of the plan.
    rows.sort_by_key(|row| (row.phase, row.size_bytes));
    let baselines: Vec<&String> = baselines
        .iter()
        .filter(|baseline| rows.iter().any(|row| row.transport == **baseline))
        .collect();
    let with_paper = rows
        .iter()
        .any(|row| row.transport.starts_with(paper::SUBJECT));

    let columns = [
        "what",
        "transport",
        "median µs",
        "p99",
        "p99.9",
        "teardown µs",
        "CPU µs",
        "server",
        "timer irqs",
    ];
    let mut header: Vec<String> = columns.map(str::to_owned).to_vec();
    header.extend(baselines.iter().map(|baseline| format!("÷ {baseline}")));
    if with_paper {
        header.push("paper".to_owned());
    }
    let mut table = table(header, 2);
    let has_known_peers = rows.iter().any(|row| row.phase == Phase::Known);
    let mut previous: Option<&Measurement> = None;
    for row in rows {
        let is_new = previous.is_none_or(|previous| !previous.is_comparable(row));
        previous = Some(row);
        let what = match (is_new, row.phase) {
            (false, _) => String::new(),
            (true, Phase::Handshake) => row.phase.to_string(),
            (true, Phase::Known) => format!("known peer + {}", size(row.size_bytes)),
            (true, phase) => format!("{phase} {}", size(row.size_bytes)),
        };
        let mut cells = vec![
            what,
            row.transport.clone(),
            format!("{:.1}", row.median_us),
            format!("{:.0}", row.p99_us),
            format!("{:.0}", row.p999_us),
            whole(row.teardown_us),
            whole(row.cpu_us),
            whole(row.server_cpu_us),
            optional(row.timer_interrupts),
        ];
        cells.extend(baselines.iter().map(|baseline| {
            if row.transport == **baseline {
                "1".to_owned()
            } else {
                optional(report.ratio_of(row, baseline))
            }
        }));
        if with_paper {
            let of_paper = row.transport.starts_with(paper::SUBJECT);
            cells.push(if of_paper {
                optional(paper::ratio(row.phase, row.size_bytes))
            } else {
                String::new()
            });
        }
        table.add_row(cells);
    }
    let network = suffix(network);
    out.push_str(&format!("Latency, {placement}{network}\n{table}\n"));
    if has_known_peers && !baselines.is_empty() {
        out.push_str("known peer: no handshake; ÷ is by a fresh connection of the baseline\n");
    }
    out.push('\n');
}

fn bulk(out: &mut String, report: &Report, network: &str) {
    let rows = report.bulk.iter().filter(|row| row.network == network);
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let header = [
        "placement",
        "transport",
        "Gbit/s",
        "CPU s/GB",
        "client",
        "server",
    ];
    let mut table = table(header.map(str::to_owned).to_vec(), 2);
    for row in rows {
        table.add_row(vec![
            row.placement.to_string(),
            row.transport.clone(),
            format!("{:.1}", row.gbit_per_s),
            optional(row.cpu_s_per_gb),
            format!("{:.2}", row.client_cpu_s_per_gb),
            optional(row.server_cpu_s_per_gb),
        ]);
    }
    let network = suffix(network);
    out.push_str(&format!("Bulk download{network}\n{table}\n\n"));
}

fn environment(out: &mut String, report: &Report) {
    let environment = &report.environment;
    out.push_str(&format!(
        "{} cores of {}, Linux {}, kernel TCP {}\n{}\n",
        environment.cores,
        environment.processor,
        environment.kernel,
        environment.kernel_congestion,
        environment.tls
    ));
    for (placement, processors) in &environment.placements {
        out.push_str(&format!("{placement}: {processors}\n"));
    }
    for (driver, version) in &environment.versions {
        out.push_str(&format!("{driver}: {version}\n"));
    }
    for (note, transports) in by_note(environment) {
        out.push_str(&format!("{note}: {}\n", transports.join(", ")));
    }
}

/// Returns the notes, each with the transports that have it.
fn by_note(environment: &Environment) -> BTreeMap<&str, Vec<&str>> {
    let mut by_note: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (transport, notes) in &environment.notes {
        for note in notes {
            by_note.entry(note).or_default().push(transport);
        }
    }
    by_note
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"))
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

/// Formats a size in decimal units.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes as f64 / 1e3),
        _ => format!("{} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_ratios_and_the_papers_figure() {
        let measured = |transport: &str, median_us| Measurement {
            transport: transport.to_owned(),
            phase: Phase::Fresh,
            size_bytes: 10_000,
            placement: Placement::TwoCores,
            network: "veth".to_owned(),
            iterations: 10,
            p10_us: median_us,
            median_us,
            p99_us: median_us,
            p999_us: median_us,
            teardown_us: None,
            cpu_us: None,
            server_cpu_us: None,
            timer_interrupts: None,
        };
        let mut report = Report {
            measurements: vec![measured("tcp-tls", 400.0), measured("dcquic", 300.0)],
            ..Report::default()
        };
        let baselines = ["tcp-tls".to_owned()];
        report.compare(&baselines);
        let text = render(&report, &baselines);
        for part in [
            "Latency, two cores, veth\n",
            "fresh 10 KB",
            "dcquic",
            "0.75",
            "0.36",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
