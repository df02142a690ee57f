//! The exporter by HTTP, as a scraper uses it.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::{Exporter, ExporterError, Registry};

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Returns the server's response to a request on a connection of its own.
async fn ask(address: SocketAddr, request: &str) -> String {
    ask_raw(address, &format!("{request} HTTP/1.1")).await
}

/// Returns the response to a request with the version and its own headers.
async fn ask_raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{request}\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[derive(Clone)]
struct Set(Counter);

#[tokio::test]
async fn metrics_are_at_one_path_by_one_method() {
    let registry = Registry::new();
    let set = registry.shared(|registry| {
        let counter = Counter::default();
        registry.register("questions", "Questions asked", &[], counter.clone());
        Set(counter)
    });
    set.0.inc_by(7);
    let exporter = Exporter::bind(loopback(), registry).await.unwrap();
    let address = exporter.local_address();

    let answer = ask(address, "GET /metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4"),
        "{answer}"
    );
    assert!(
        answer.contains("# TYPE questions_total counter\nquestions_total 7\n"),
        "{answer}"
    );
    assert!(!answer.contains("EOF"), "{answer}");
    let accept = "GET /metrics HTTP/1.1\r\naccept: text/plain;q=0.5\r\n\
                  accept: application/openmetrics-text;version=1.0.0";
    let answer = ask_raw(address, accept).await;
    assert!(
        answer.contains("content-type: application/openmetrics-text"),
        "{answer}"
    );
    assert!(
        answer.contains("# TYPE questions counter\nquestions_total 7\n# EOF\n"),
        "{answer}"
    );
    assert!(ask(address, "GET /").await.starts_with("HTTP/1.1 404"));
    assert!(
        ask(address, "POST /metrics")
            .await
            .starts_with("HTTP/1.1 405")
    );
    assert!(ask(address, "\u{0}\u{1}").await.starts_with("HTTP/1.1 400"));
    exporter.shutdown().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let first = Exporter::bind(loopback(), Registry::new()).await.unwrap();
    let address = first.local_address();
    let error = Exporter::bind(address, Registry::new()).await.unwrap_err();
    assert!(matches!(error, ExporterError::AddressInUse(named) if named == address));
    assert!(error.to_string().contains(&address.to_string()));
}

#[tokio::test]
async fn a_silent_client_does_not_delay_shutdown() {
    let exporter = Exporter::bind(loopback(), Registry::new()).await.unwrap();
    let _silent = TcpStream::connect(exporter.local_address()).await.unwrap();
    ask(exporter.local_address(), "GET /metrics").await;
    let ended = tokio::time::timeout(Duration::from_secs(20), exporter.shutdown()).await;
    assert!(ended.is_ok());
}
