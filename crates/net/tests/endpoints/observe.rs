//! Endpoints with qlog files and metrics.

use std::path::Path;
use std::sync::Mutex;

use crate::support::{client, connect, loopback, pattern, run, server_with, transport};
use serde_json::Value;
use weir_net::tls::ClientTls;
use weir_net::{Connection, ConnectionStats, Duration, Endpoint, EndpointError, Registry};

/// Moves some data from one side to the other.
async fn transfer(from: &Connection, to: &Connection, length: usize) {
    let data = pattern(1, length);
    let sending = async {
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&data).await.unwrap();
        stream.finish().unwrap();
        stream.acknowledged().await.unwrap();
    };
    let receiving = async {
        let mut stream = to.accept_uni().await.unwrap();
        let mut received = 0;
        while let Some(chunk) = stream.read_chunk(usize::MAX).await.unwrap() {
            received += chunk.len();
        }
        assert_eq!(received, length);
    };
    tokio::join!(sending, receiving);
}

/// The events of a side's file in a directory.
fn events(directory: &Path, side: &str) -> Vec<Value> {
    let files = std::fs::read_dir(directory).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let suffix = format!("_{side}.sqlog");
    let path = paths.find(|path| path.to_str().unwrap().ends_with(&suffix));
    let text = std::fs::read_to_string(path.unwrap()).unwrap();
    let records = text.split('\u{1e}').skip(2);
    records
        .map(|record| serde_json::from_str(record).unwrap())
        .collect()
}

fn count(events: &[Value], name: &str) -> u64 {
    let closed = |event: &&Value| event["name"] != "quic:connection_closed";
    let before_the_end = events.iter().take_while(closed);
    before_the_end.filter(|event| event["name"] == name).count() as u64
}

#[test]
fn files_are_complete_when_the_endpoints_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let stats: Mutex<Option<ConnectionStats>> = Mutex::default();
    run(async {
        let (server, fingerprint) =
            server_with(|tls| tls, |builder| builder.qlog(directory.path()));
        let tls = ClientTls::pinned(fingerprint).build().unwrap();
        let client = Endpoint::builder()
            .transport(transport())
            .client(tls)
            .qlog(directory.path())
            .bind(loopback())
            .unwrap();
        let pair = connect(client, server).await;
        transfer(&pair.client, &pair.server, 300_000).await;
        *stats.lock().unwrap() = Some(pair.client.stats());
        assert_eq!(pair.client_endpoint.stats().qlog_events_lost, 0);
        pair.client.close(0, b"");
        pair.server.closed().await;
    });
    let totals = stats.lock().unwrap().as_ref().unwrap().totals;
    let client = events(directory.path(), "client");
    // An acknowledgment may have been sent or received between the statistics and the end.
    let sent = count(&client, "quic:packet_sent");
    assert!((totals.packets_sent..=totals.packets_sent + 4).contains(&sent));
    let received = count(&client, "quic:packet_received");
    assert!((totals.packets_received..=totals.packets_received + 4).contains(&received));
    let times: Vec<_> = client.iter().map(|event| event["time"].as_f64()).collect();
    assert!(times.is_sorted() && times.iter().all(Option::is_some));
    let server = events(directory.path(), "server");
    assert!(count(&server, "quic:packet_received") > 0);
    let closed = server
        .iter()
        .find(|event| event["name"] == "quic:connection_closed");
    assert_eq!(closed.unwrap()["data"]["initiator"], "remote");
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_that_names_it() {
    run(async {
        let file = tempfile::NamedTempFile::new().unwrap();
        let directory = file.path().join("logs");
        let bound = Endpoint::builder().qlog(&directory).bind(loopback());
        let error = bound.unwrap_err();
        assert!(
            matches!(&error, EndpointError::Qlog { directory: named, .. } if *named == directory)
        );
        assert!(
            error.to_string().contains(directory.to_str().unwrap()),
            "{error}"
        );
    });
}

/// A series' value.
fn value(metrics: &str, series: &str) -> f64 {
    let found = metrics.lines().find_map(|line| {
        let (known, value) = line.rsplit_once(' ')?;
        (known == series).then(|| value.parse::<f64>().unwrap())
    });
    found.unwrap_or_else(|| panic!("no {series} in\n{metrics}"))
}

#[test]
fn the_last_statistics_of_an_ended_endpoint_are_exported() {
    run(async {
        let registry = Registry::new();
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.metrics(&registry));
        let endpoint = server.local_address();
        let pair = connect(client(fingerprint), server).await;
        transfer(&pair.client, &pair.server, 100_000).await;
        pair.client.close(0, b"");
        pair.server.closed().await;
        drop(pair);
        // The endpoint has ended when its address is free. Nothing has been exported so far.
        while std::net::UdpSocket::bind(endpoint).is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let batches = format!("weir_receive_batches_total{{endpoint=\"{endpoint}\"}}");
        assert!(value(&registry.encode(), &batches) > 0.0);
    });
}

#[test]
fn metrics_are_the_sums_of_the_connections_statistics() {
    run(async {
        let registry = Registry::new();
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.metrics(&registry));
        let endpoint = server.local_address();
        let pair = connect(client(fingerprint), server).await;
        transfer(&pair.client, &pair.server, 100_000).await;
        transfer(&pair.server, &pair.client, 200_000).await;
        let metrics = registry.encode();
        assert!(
            value(
                &metrics,
                &format!("weir_connections_open{{endpoint=\"{endpoint}\"}}")
            ) == 1.0
        );
        pair.client.close(7, b"enough");
        pair.server.closed().await;
        let totals = pair.server.stats().totals;
        pair.server_endpoint
            .wait_idle(Duration::from_secs(20))
            .await
            .unwrap();
        let metrics = registry.encode();
        let value = |name: &str, labels: &str| {
            value(
                &metrics,
                &format!("{name}{{endpoint=\"{endpoint}\"{labels}}}"),
            )
        };
        let (sent, received) = (",direction=\"sent\"", ",direction=\"received\"");
        let payload = "weir_udp_payload_bytes_total";
        assert_eq!(value(payload, sent), totals.bytes_sent.bytes() as f64);
        assert_eq!(
            value(payload, received),
            totals.bytes_received.bytes() as f64
        );
        assert_eq!(
            value("weir_packets_total", sent),
            totals.packets_sent as f64
        );
        assert_eq!(
            value("weir_datagrams_total", received),
            totals.datagrams_received as f64
        );
        assert_eq!(
            value("weir_packets_lost_total", ""),
            totals.packets_lost as f64
        );
        assert_eq!(value("weir_connections_total", ",side=\"server\""), 1.0);
        let closed = "weir_connections_closed_total";
        assert_eq!(value(closed, ",cause=\"peer-closed\""), 1.0);
        assert_eq!(value("weir_connections_open", ""), 0.0);
        assert!(value("weir_rtt_seconds_count", "") > 0.0);
        assert!(value("weir_rtt_seconds_sum", "") > 0.0);
        assert_eq!(value("weir_handshake_seconds_count", ""), 1.0);
        assert_eq!(
            value("weir_stateless_replies_total", ",kind=\"retry\""),
            0.0
        );
        assert!(value("weir_socket_buffer_bytes", ",direction=\"receive\"") > 0.0);
        // One help text and one type per metric, however many endpoints register.
        let _other = Endpoint::builder()
            .metrics(&registry)
            .bind(loopback())
            .unwrap();
        let metrics = registry.encode();
        let types: Vec<_> = metrics
            .lines()
            .filter(|line| line.starts_with("# TYPE"))
            .collect();
        let mut distinct = types.clone();
        distinct.dedup();
        assert_eq!(types, distinct);
    });
}

#[test]
fn a_handshake_that_fails_is_counted_by_its_cause() {
    run(async {
        let registry = Registry::new();
        let (server, _) = server_with(|tls| tls, |builder| builder);
        let (_, other) = server_with(|tls| tls, |builder| builder);
        let tls = ClientTls::pinned(other).build().unwrap();
        let client = Endpoint::builder()
            .transport(transport())
            .client(tls)
            .metrics(&registry)
            .bind(loopback())
            .unwrap();
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        connecting.await.unwrap_err();
        let endpoint = client.local_address();
        let series =
            format!("weir_handshakes_failed_total{{endpoint=\"{endpoint}\",cause=\"error\"}}");
        assert_eq!(value(&registry.encode(), &series), 1.0);
    });
}
