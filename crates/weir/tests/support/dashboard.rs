//! The Grafana dashboard, with the values that Grafana would put for its variables.

use serde_json::Value;

fn dashboard() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/grafana/weir-enforce.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Puts values for the variables.
fn filled(query: &str) -> String {
    let mut query = query.replace("$__rate_interval", "10s");
    for variable in ["$job", "$instance", "$interface"] {
        query = query.replace(variable, ".*");
    }
    assert!(!query.contains('$'), "{query}");
    query
}

/// Returns each query of a panel, with the panel's title.
pub(crate) fn queries() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let mut queries = Vec::new();
    for panel in panels.filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "`{title}` shows nothing");
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            queries.push((title.to_owned(), filled(query)));
        }
    }
    assert!(queries.len() > 20);
    queries
}

/// Returns each variable that is made from a metric's label: its name, the metric and the label.
pub(crate) fn variables() -> Vec<(String, String, String)> {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let queried = variables.filter(|variable| variable["type"] == "query");
    let parts = queried.map(|variable| {
        let query = variable["definition"].as_str().unwrap();
        let inner = query.strip_prefix("label_values(").unwrap();
        let (metric, label) = inner.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
        let name = variable["name"].as_str().unwrap();
        (name.to_owned(), filled(metric), label.to_owned())
    });
    parts.collect()
}
