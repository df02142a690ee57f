//! The dashboard of deploy/grafana with a real Prometheus: both data planes have traffic, and every query
//! returns data.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::in_line::{DOWNLOADS, Download, Row};
use crate::namespace::{Namespace, join, possible};
use crate::running::Running;
use crate::support::prometheus::{self, Prometheus, assert_well_formed, scrape};
use crate::support::{dashboard, wait};
use crate::traffic::neighbours;

/// The address of an enforcer in the network of Prometheus, whose own one ends in 1.
fn target(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 77, number, 2], 9100))
}

/// Connects a namespace to that of Prometheus, and starts an enforcer with metrics there.
fn observed(
    prometheus: &Namespace,
    namespace: &Namespace,
    number: u8,
    policy: &str,
    on: &[&str],
) -> Running {
    let name = format!("to{number}");
    join((prometheus, &name), (namespace, "manage"));
    prometheus.ip(&format!("address add 10.77.{number}.1/24 dev {name}"));
    namespace.ip(&format!("address add 10.77.{number}.2/24 dev manage"));
    let address = target(number).to_string();
    Running::start(namespace, policy, &[on, &["--metrics", &address]].concat())
}

/// Downloads until told to stop.
fn keep_busy(download: Download, stop: &AtomicBool) {
    let mut received = 0;
    while !stop.load(Ordering::Relaxed) {
        received += 200_000;
        download.get(200_000, received);
    }
    download.end();
}

#[test]
fn every_query_of_the_dashboard_returns_data() {
    let test = "every_query_of_the_dashboard_returns_data";
    if !possible(test) || !prometheus::is_installed(test) {
        return;
    }
    let manager = Namespace::new();
    manager.ip("link set lo up");
    let [server, client] = neighbours();
    let row = Row::new(50, 10);
    let policy = "[[rules]]\nfrom_port = 8001\ncongestion = \"cubic\"\n";
    let at_interface = observed(&manager, &server, 1, policy, &["-i", "eth0"]);
    let policy = format!("{DOWNLOADS}\"dctcp\"\n");
    let in_line = observed(
        &manager,
        &row.middle,
        2,
        &policy,
        &["--inline", "lan0", "wan0"],
    );
    at_interface
        .reload("[[rules]]\nfrom_port = 8001\ncongestion = \"cubic\"\n# changed\n")
        .ok();
    let downloads = [
        Download::between([&server, &client], 8001),
        Download::start(&row, 8001),
    ];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for download in downloads {
            scope.spawn(|| keep_busy(download, &stop));
        }
        // A failure must end the downloads too.
        let checked = scope.spawn(|| check_dashboard(&manager)).join();
        stop.store(true, Ordering::Relaxed);
        if let Err(failure) = checked {
            std::panic::resume_unwind(failure);
        }
    });
    let metrics = [target(1), target(2)].map(|target| manager.run(|| scrape(target)));
    for (metrics, labels) in metrics.iter().zip([
        "interface=\"eth0\",rule=\"1\",algorithm=\"cubic\"",
        "interface=\"wan0\",rule=\"1\",algorithm=\"dctcp\"",
    ]) {
        assert_well_formed(test, metrics);
        let series = format!("weir_enforce_delivered_bytes_total{{{labels}}}");
        assert!(metrics.contains(&series), "{metrics}");
    }
    drop((at_interface, in_line));
}

/// Sends all queries of the dashboard until each returns a number.
fn check_dashboard(manager: &Namespace) {
    let address = SocketAddr::from(([127, 0, 0, 1], 9090));
    let command = |program: &str| manager.command(program);
    let prometheus = Prometheus::start(command, address, &[target(1), target(2)]);
    manager.run(|| {
        prometheus.wait();
        for (panel, query) in dashboard::queries() {
            wait(
                &format!("data of `{panel}`: {query}"),
                || match prometheus.query(&query) {
                    Ok(series) => series.iter().map(prometheus::value).any(f64::is_finite),
                    Err(error) => panic!("`{panel}`: {query}: {error}"),
                },
            );
        }
        for (variable, metric, label) in dashboard::variables() {
            let series = prometheus.query(&metric).unwrap();
            let has_label = series
                .iter()
                .any(|series| series["metric"][&label].is_string());
            assert!(has_label, "`{variable}`: no {label} in {metric}");
        }
    });
}
