//! The spans of handlers. A program of its own: whether a span is wanted is remembered for all threads.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the other tests use all of it")]
#[path = "rpc/support.rs"]
mod support;

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use support::{channel, start};
use weir_rpc::Server;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn handlers_run_in_a_span_with_the_ids() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    support::run(async {
        let server = start(Server::builder().method("work", |_, _| async {
            tracing::info!("at work");
            Ok(Bytes::new())
        }));
        let caller = CALLER.parse().unwrap();
        let call = channel(&server).call("work").trace_context(caller);
        call.unary("").await.unwrap();
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let line = log.lines().find(|line| line.contains("at work")).unwrap();
    assert!(line.contains("method=\"work\""), "{line}");
    assert!(
        line.contains("trace_id=4bf92f3577b34da6a3ce929d0e0e4736"),
        "{line}"
    );
    assert!(line.contains("parent_id=00f067aa0ba902b7"), "{line}");
    assert!(line.contains("span_id="), "{line}");
}
