//! Observability of `weir perf`: metrics by HTTP, qlog files, key logs, as processes with an
//! environment.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use serde_json::Value;
use support::{PerfServer, command_output, run};

fn transfer(server: &PerfServer, environment: &[(&str, &str)]) {
    let client = server
        .client(&["--transport", "dcquic", "--bytes", "1MB", "--json"])
        .args(["--pin", &server.fingerprint])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    command_output(client).ok();
}

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: test\r\naccept: application/openmetrics-text\r\n\
                   connection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body.to_owned()
}

/// Returns the sum of a metric's values over the labels that contain `label`.
fn value(metrics: &str, name: &str, label: &str) -> f64 {
    let lines = metrics.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (known, labels) = series.split_once('{').unwrap_or((series, ""));
        (known == name && labels.contains(label)).then(|| value.parse::<f64>().unwrap())
    });
    lines.sum()
}

#[test]
fn metrics_are_exported_by_http_and_count_the_transfer() {
    let server = PerfServer::start(&["--metrics", "0"]);
    let address = server.metrics.unwrap();
    assert!(address.ip().is_loopback());
    transfer(&server, &[]);
    let metrics = scrape(address);
    let value = |name, label| value(&metrics, name, label);
    assert_eq!(value("weir_connections_total", "side=\"server\""), 1.0);
    assert_eq!(value("weir_handshake_seconds_count", ""), 1.0);
    assert!(value("weir_udp_payload_bytes_total", "received") > 1_000_000.0);
    assert!(value("weir_packets_total", "sent") > 0.0);
    assert!(value("weir_socket_buffer_bytes", "receive") > 0.0);
    let endpoint = format!("endpoint=\"{}\"", server.address);
    assert!(value("weir_receive_batches_total", &endpoint) > 0.0);
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn a_wrong_or_taken_address_for_metrics_is_named() {
    run(&["perf", "server", "--port", "0", "--metrics", "here"]).failed(2, &["here", "9100"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = run(&["perf", "server", "--port", "0", "--metrics", &address]);
    said.failed(1, &[&address, "is in use"]);
}

#[test]
fn qlogdir_gets_a_complete_file_per_connection_and_side() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [("QLOGDIR", directory.path().to_str().unwrap())];
    let mut server = PerfServer::start_with(&["--one-off"], &environment);
    transfer(&server, &environment);
    assert!(server.child.wait().unwrap().success());
    let mut sides = Vec::new();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (id, side) = name
            .strip_suffix(".sqlog")
            .unwrap()
            .split_once('_')
            .unwrap();
        sides.push((side.to_owned(), id.to_owned()));
        let names = event_names(&path);
        for needed in [
            "quic:connection_started",
            "quic:packet_sent",
            "quic:connection_closed",
        ] {
            assert!(
                names.iter().any(|name| name == needed),
                "{needed} in {name}"
            );
        }
    }
    sides.sort();
    assert_eq!(sides.len(), 2, "{sides:?}");
    assert_eq!((&*sides[0].0, &*sides[1].0), ("client", "server"));
    assert_eq!(sides[0].1, sides[1].1);
}

fn event_names(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let records = text.split('\u{1e}').skip(2);
    let parse = |record: &str| serde_json::from_str::<Value>(record).unwrap();
    records
        .map(|record| parse(record)["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let directory = file.path().join("logs");
    let server = PerfServer::start(&[]);
    let client = server
        .client(&[
            "--transport",
            "dcquic",
            "--bytes",
            "1MB",
            "--pin",
            &server.fingerprint,
        ])
        .env("QLOGDIR", &directory)
        .output()
        .unwrap();
    command_output(client).failed(1, &["qlog", directory.to_str().unwrap(), "QLOGDIR"]);
}

#[test]
fn sslkeylogfile_gets_the_keys_of_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["client", "server"].map(|side| directory.path().join(side));
    let names = paths.each_ref().map(|path| path.to_str().unwrap());
    let server = PerfServer::start_with(&[], &[("SSLKEYLOGFILE", names[1])]);
    transfer(&server, &[("SSLKEYLOGFILE", names[0])]);
    let secrets = paths.each_ref().map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET ",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
        "CLIENT_TRAFFIC_SECRET_0 ",
        "SERVER_TRAFFIC_SECRET_0 ",
    ] {
        let line = secrets.each_ref().map(|lines| {
            let found = lines.iter().find(|line| line.starts_with(label));
            found.unwrap_or_else(|| panic!("no {label}")).clone()
        });
        assert_eq!(line[0], line[1], "both sides have the same secret");
    }
}
