//! The tables of mixes.

use super::{optional, table};
use crate::calls::network::suffix;
use crate::calls::placement::Placement;
use crate::calls::report::{Mix, Report};

/// Renders the mixes of a situation: in a closed loop, then in an open one.
pub(super) fn render(
    out: &mut String,
    report: &Report,
    (placement, network): (Placement, &str),
    baselines: &[String],
) {
    let here = |row: &&Mix| row.placement == placement && row.network == network;
    let rows = report.mixes.iter().filter(here);
    let (open, closed): (Vec<&Mix>, Vec<&Mix>) = rows.partition(|row| row.offered_per_s.is_some());
    let place = format!("{placement}{}", suffix(network));
    let kinds = [
        ("Task completion times", closed),
        ("Task completion times at a given load", open),
    ];
    for (title, rows) in kinds {
        if !rows.is_empty() {
            let table = of(report, &rows, baselines);
            out.push_str(&format!("{title}, {place}\n{table}\n"));
            errors(out, &rows);
            out.push('\n');
        }
    }
}

/// Returns the table of some mixes.
fn of(report: &Report, rows: &[&Mix], baselines: &[String]) -> comfy_table::Table {
    let baselines: Vec<&String> = baselines
        .iter()
        .filter(|baseline| rows.iter().any(|row| row.transport == **baseline))
        .collect();
    let columns = [
        "workload",
        "transport",
        "connections",
        "offered/s",
        "calls/s",
        "client busy",
        "done",
        "errors",
        "stalls",
        "median µs",
        "p99",
        "p99.9",
        "Gbit/s",
    ];
    let mut header = columns.map(str::to_owned).to_vec();
    for baseline in &baselines {
        header.extend([
            format!("÷ {baseline}"),
            "p99 ÷".to_owned(),
            "p99.9 ÷".to_owned(),
        ]);
    }
    let mut table = table(header, 2);
    for row in rows {
        let mut cells = cells(row);
        for baseline in &baselines {
            cells.extend(ratios(report, row, baseline));
        }
        table.add_row(cells);
    }
    table
}

fn cells(row: &Mix) -> Vec<String> {
    vec![
        row.workload.clone(),
        row.transport.clone(),
        row.connections.to_string(),
        row.offered_per_s
            .map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}")),
        format!("{:.0}", row.calls_per_s),
        row.client_busy
            .map_or_else(|| "–".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
        row.completed.to_string(),
        row.errors.to_string(),
        row.stalls.to_string(),
        format!("{:.0}", row.median_us),
        format!("{:.0}", row.p99_us),
        format!("{:.0}", row.p999_us),
        format!("{:.2}", row.gbit_per_s),
    ]
}

/// Returns the ratios of the median, p99 and p99.9 to a baseline's.
fn ratios(report: &Report, row: &Mix, baseline: &str) -> [String; 3] {
    if row.transport == baseline {
        return ["1", "1", "1"].map(str::to_owned);
    }
    let ratios = report.ratios_of_mix(row, baseline);
    [
        ratios.map(|ratios| ratios.median_ratio),
        ratios.map(|ratios| ratios.p99_ratio),
        ratios.map(|ratios| ratios.p999_ratio),
    ]
    .map(optional)
}

fn errors(out: &mut String, rows: &[&Mix]) {
    for row in rows {
        if let Some(error) = &row.first_error {
            out.push_str(&format!("{}, {}: {error}\n", row.workload, row.transport));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(transport: &str, offered_per_s: Option<f64>, median_us: f64) -> Mix {
        Mix {
            transport: transport.to_owned(),
            workload: "web search".to_owned(),
            placement: Placement::Free,
            network: "loopback".to_owned(),
            connections: 200,
            offered_per_s,
            calls_per_s: 20_000.0,
            client_busy: Some(0.5),
            completed: 1000,
            errors: 0,
            stalls: 0,
            first_error: None,
            median_us,
            p99_us: median_us,
            p999_us: median_us,
            gbit_per_s: 1.0,
        }
    }

    #[test]
    fn closed_and_open_loops_are_apart() {
        let mut report = Report {
            mixes: vec![
                mix("tcp-tls", None, 1000.0),
                mix("dcquic", None, 500.0),
                mix("tcp-tls", Some(10_000.0), 100.0),
                mix("dcquic", Some(10_000.0), 75.0),
            ],
            ..Report::default()
        };
        let baselines = ["tcp-tls".to_owned()];
        report.compare(&baselines);
        let mut text = String::new();
        render(
            &mut text,
            &report,
            (Placement::Free, "loopback"),
            &baselines,
        );
        let (closed, open) = text.split_once("at a given load, free\n").unwrap();
        assert!(
            closed.contains("0.50") && !closed.contains("10000"),
            "{text}"
        );
        assert!(open.contains("0.75") && open.contains("10000"), "{text}");
    }
}
