//! Connections in `tracing`. A test program of its own: the set of wanted events is cached for the
//! whole process, and other tests, which want none, could run first.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod support;

use std::io;
use std::sync::{Arc, Mutex};

use support::{client, connect, run, server_with};
use tracing_subscriber::fmt::MakeWriter;

/// The log output.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logged {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn logged_at(level: tracing::Level) -> String {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(logged.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        run(async {
            let (server, fingerprint) = server_with(|tls| tls, |builder| builder);
            let pair = connect(client(fingerprint), server).await;
            pair.client.close(0, b"");
            pair.server.closed().await;
        });
    });
    let bytes = logged.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn connections_are_spans_and_are_silent_at_info() {
    let text = logged_at(tracing::Level::INFO);
    assert!(text.contains("no state directory"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let text = logged_at(tracing::Level::DEBUG);
    let complete = text
        .lines()
        .find(|line| line.contains("HandshakeComplete") && line.contains("side=Client"));
    let line = complete.unwrap_or_else(|| panic!("{text}"));
    for part in [
        "endpoint{local=127.0.0.1:",
        "connection{id=",
        "remote=127.0.0.1:",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!text.contains(" TRACE "));
}
