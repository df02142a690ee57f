//! The measures that comparisons and repetitions contain, by their keys in `summary.json`, and their display format.

use weir_units::{ByteSize, Duration, Rate};

use crate::quantity::{count, percent, rate, size, time};
use crate::{GroupSummary, LinkLoad, PortSummary, Ratio};

/// The keys of the median and of the 99th percentile of the slowdown of a class of sizes.
const SLOWDOWNS_BY_SIZE: [(&str, &str, &str); 7] = [
    ("1KB", "slowdown.sizes.1KB.p50", "slowdown.sizes.1KB.p99"),
    ("10KB", "slowdown.sizes.10KB.p50", "slowdown.sizes.10KB.p99"),
    (
        "100KB",
        "slowdown.sizes.100KB.p50",
        "slowdown.sizes.100KB.p99",
    ),
    ("1MB", "slowdown.sizes.1MB.p50", "slowdown.sizes.1MB.p99"),
    ("10MB", "slowdown.sizes.10MB.p50", "slowdown.sizes.10MB.p99"),
    (
        "100MB",
        "slowdown.sizes.100MB.p50",
        "slowdown.sizes.100MB.p99",
    ),
    (
        "above",
        "slowdown.sizes.above.p50",
        "slowdown.sizes.above.p99",
    ),
];

/// Returns the measures of a group.
pub(crate) fn of_groups(group: &GroupSummary) -> Vec<(&'static str, f64)> {
    let mut measures = vec![
        ("goodput_bps", group.goodput.bits_per_second() as f64),
        ("share", group.share.value()),
        ("retransmits", group.retransmits as f64),
        ("timeouts", group.timeouts as f64),
        ("marks", group.marks as f64),
        ("completed", group.completed as f64),
    ];
    if let Some(connections) = group.connections_without_handshake {
        measures.push(("connections_without_handshake", connections as f64));
    }
    if let Some(share) = group.link_share {
        measures.push(("link_share", share.value()));
    }
    if let Some(fairness) = group.fairness {
        measures.push(("fairness", fairness.value()));
    }
    if let Some(times) = group.completion {
        measures.extend([
            ("completion.mean_s", times.mean.as_secs_f64()),
            ("completion.p50_s", times.p50.as_secs_f64()),
            ("completion.p99_s", times.p99.as_secs_f64()),
        ]);
    }
    if let Some(slowdown) = &group.slowdown {
        measures.push(("unfinished", group.unfinished as f64));
        let percentiles = [
            ("slowdown.mean", slowdown.all.mean),
            ("slowdown.p50", slowdown.all.p50),
            ("slowdown.p95", slowdown.all.p95),
            ("slowdown.p99", slowdown.all.p99),
        ];
        let known = percentiles.into_iter();
        measures.extend(known.filter_map(|(key, value)| Some((key, value?.value()))));
        for (size, median_key, tail_key) in SLOWDOWNS_BY_SIZE {
            let Some(part) = slowdown.sizes.get(size) else {
                continue;
            };
            let known = [(median_key, part.p50), (tail_key, part.p99)].into_iter();
            measures.extend(known.filter_map(|(key, value)| Some((key, value?.value()))));
        }
    }
    if let Some(missed) = group.deadlines_missed {
        measures.push(("deadlines_missed", missed as f64));
    }
    if let Some(epochs) = group.epochs {
        measures.extend([
            ("epochs.count", epochs.count as f64),
            ("epochs.total_s", epochs.total.as_secs_f64()),
            ("epochs.lost", epochs.lost as f64),
        ]);
    }
    measures
}

/// Returns the measures of the load of a class of links.
pub(crate) fn of_loads(load: &LinkLoad) -> Vec<(&'static str, f64)> {
    let offered = load.offered.map(|offered| ("offered", offered.value()));
    let carried = [
        ("carried", load.carried.value()),
        ("carried_max", load.carried_max.value()),
    ];
    offered.into_iter().chain(carried).collect()
}

/// Returns the measures of a port.
pub(crate) fn of_ports(port: &PortSummary) -> Vec<(&'static str, f64)> {
    vec![
        ("packets", port.packets as f64),
        ("utilization", port.utilization.value()),
        ("queue_mean_bytes", port.queue_mean.bytes() as f64),
        ("queue_p50_bytes", port.queue_p50.bytes() as f64),
        ("queue_p99_bytes", port.queue_p99.bytes() as f64),
        ("queue_max_bytes", port.queue_max.bytes() as f64),
        ("marks", port.marks as f64),
        ("drops", port.drops.total() as f64),
    ]
}

/// Formats a value of the measure with this key.
pub(crate) fn shown(key: &str, value: f64) -> String {
    if key.ends_with("_bps") {
        return rate(Rate::from_bits_per_second(value as u64));
    }
    if key.ends_with("_bytes") {
        return size(ByteSize::from_bytes(value as u64));
    }
    if key.ends_with("_s") {
        return time(Duration::from_nanos((value * 1e9) as u64));
    }
    match key {
        "share" | "link_share" | "utilization" | "reduction" | "offered" | "carried"
        | "carried_max" => percent(Ratio::new(value).unwrap_or_default()),
        "fairness" => format!("{value:.3}"),
        key if key.starts_with("slowdown.") => format!("{value:.2}"),
        _ => count(value as u64),
    }
}
