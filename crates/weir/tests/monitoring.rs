//! docs/monitoring.md lists what is registered, and the dashboard uses nothing else. `UPDATE_DOCS=1` writes
//! the list.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weir_enforce::operation::{EnforcerMetrics, PlaneKind, PolicyMetrics, SocketMetrics};
use weir_metrics::{Description, Registry};

use support::prometheus::{assert_well_formed, scrape};
use support::{PerfServer, dashboard};

const BEGIN: &str = "<!-- Written by crates/weir/tests/monitoring.rs: -->\n";
const END: &str = "<!-- Until here. -->\n";

fn registered(register: impl FnOnce(&Registry)) -> Vec<Description> {
    let registry = Registry::new();
    register(&registry);
    registry.descriptions()
}

/// Returns each command with its metrics.
fn commands() -> Vec<(&'static str, Vec<Description>)> {
    let enforcer = |kind| {
        registered(|registry| {
            EnforcerMetrics::register(registry, kind);
            PolicyMetrics::register(registry);
        })
    };
    vec![
        ("`weir enforce --interface`", enforcer(PlaneKind::Kernel)),
        ("`weir enforce --inline`", enforcer(PlaneKind::InLine)),
        (
            "`weir enforce --cgroup`",
            registered(|registry| {
                SocketMetrics::register(registry);
                PolicyMetrics::register(registry);
            }),
        ),
        (
            "`weir controller`, `weir sed controller`",
            registered(|registry| {
                weir_control::register_controller_metrics(registry);
                weir_control::register_fleet_metrics(registry);
            }),
        ),
        (
            "`weir sed agent`",
            registered(|registry| {
                weir_enforce::inline::register_agent_metrics(registry);
                weir_control::register_agent_metrics(registry);
            }),
        ),
        (
            "`weir perf server`, and endpoints of `weir-net`",
            registered(weir_traffic::throughput::register_metrics),
        ),
        (
            "`weir tunnel client`, `weir tunnel server`",
            registered(|registry| {
                weir_tunnel::register_metrics(registry);
                weir_traffic::throughput::register_metrics(registry);
            }),
        ),
    ]
}

fn list() -> String {
    let mut text = String::new();
    let mut common: Vec<Description> = Vec::new();
    for (command, metrics) in commands() {
        let _ = writeln!(text, "\n### {command}\n");
        let (known, new): (Vec<_>, Vec<_>) = metrics
            .into_iter()
            .partition(|metric| common.contains(metric));
        if !known.is_empty() {
            let only_there: Vec<_> = { common.iter() }
                .filter(|metric| !known.contains(metric))
                .map(|metric| format!("`{}`", metric.name))
                .collect();
            let both: Vec<_> = (known.iter())
                .map(|metric| format!("`{}`", metric.name))
                .collect();
            let _ = if only_there.len() < both.len() {
                let without = only_there.join(" and ");
                writeln!(text, "The same as above without {without}, and:\n")
            } else {
                writeln!(text, "As above {}, and:\n", both.join(", "))
            };
        }
        text.push_str("| metric | type | labels | meaning |\n|---|---|---|---|\n");
        for metric in &new {
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            let (name, kind, labels) = (&metric.name, &metric.kind, labels.join(", "));
            let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {} |", metric.help);
        }
        common.extend(new);
    }
    text.push('\n');
    text
}

#[test]
fn the_list_of_metrics_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = list();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert!(
        found == expected,
        "docs/monitoring.md is not what is registered: UPDATE_DOCS=1 cargo test -p weir --test monitoring"
    );
}

#[test]
fn the_dashboard_uses_metrics_that_exist() {
    let all: BTreeSet<_> = { commands().into_iter() }
        .flat_map(|(_, metrics)| metrics)
        .flat_map(|metric| match metric.kind.as_str() {
            "histogram" => vec![format!("{}_bucket", metric.name)],
            _ => vec![metric.name],
        })
        .collect();
    let mut used = BTreeSet::new();
    for (panel, query) in dashboard::queries() {
        let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words = query.split(|character| !is_of_name(character));
        for name in words.filter(|word| word.starts_with("weir_")) {
            assert!(all.contains(name), "`{panel}`: there is no {name}");
            used.insert(name.to_owned());
        }
    }
    assert!(used.len() > 20, "{used:?}");
}

#[test]
fn names_have_base_units_and_everything_has_a_help_text() {
    for (command, metrics) in commands() {
        for metric in metrics {
            let name = &metric.name;
            assert!(name.starts_with("weir_"), "{command}: {name}");
            assert!(
                metric.help.len() > 8 && !metric.help.ends_with('.'),
                "{name}: {}",
                metric.help
            );
            assert_eq!(name.ends_with("_total"), metric.kind == "counter", "{name}");
            for unit in ["_ms", "_us", "_ns", "_kb", "_bits", "millis", "micros"] {
                assert!(!name.contains(unit), "{name}");
            }
        }
    }
}

#[test]
fn a_perf_server_serves_well_formed_metrics() {
    let server = PerfServer::start(&["--metrics", "0"]);
    let pin = server.fingerprint.clone();
    let output = server
        .client(&["--pin", &pin, "--bytes", "1MB"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metrics = scrape(server.metrics.unwrap());
    assert!(
        metrics.contains("# TYPE weir_connections_total counter\n"),
        "{metrics}"
    );
    assert!(metrics.contains("direction=\"sent\"} "), "{metrics}");
    assert_well_formed("a_perf_server_serves_well_formed_metrics", &metrics);
}
