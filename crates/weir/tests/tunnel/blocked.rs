//! UDP that is blocked in the middle of a connection.

use std::time::Instant;

use serde_json::Value;

use crate::namespace::Namespace;
use crate::pair::{Pair, answer, source, start};
use crate::running::Running;
use crate::support::{run, wait};

struct Place {
    pair: Pair,
    client: Running,
    address: String,
    control: tempfile::TempDir,
    _server: Running,
    _destinations: Namespace,
}

impl Place {
    fn new(test: &str) -> Option<Self> {
        let pair = Pair::new(test)?;
        let destinations = pair.behind_the_gate();
        answer(&destinations, "10.78.0.2:8080");
        let server = start(
            &destinations,
            "server --bind 10.78.0.2 --allow 10.78.0.2:8080",
        );
        let control = tempfile::tempdir().unwrap();
        let pin = server.said["fingerprint"].as_str().unwrap();
        let client = start(
            &pair.applications,
            &format!(
                "client --listen 0 --to 10.78.0.2:8080 --via 10.78.0.2 --pin {pin} --control {}/c",
                control.path().display()
            ),
        );
        Some(Self {
            address: client.said["listening"][0].as_str().unwrap().to_owned(),
            pair,
            client,
            control,
            _server: server,
            _destinations: destinations,
        })
    }

    fn source(&self) -> std::io::Result<String> {
        source(&self.pair.applications, &self.address)
    }

    /// Makes a connection, which must work.
    fn request(&self) {
        assert_eq!(self.source().unwrap(), "10.78.0.2");
    }

    fn status(&self) -> Value {
        let socket = self.control.path().join("c");
        run(&["tunnel", "status", socket.to_str().unwrap(), "--json"]).json()
    }

    fn count(&self, carrier: &str) -> u64 {
        self.status()["tunnels"][0][carrier].as_u64().unwrap()
    }

    fn falls_back(&self) -> bool {
        self.status()["peers"][0]["falls_back"].as_bool().unwrap()
    }
}

#[test]
fn new_connections_fall_back_while_udp_is_blocked() {
    let Some(place) = Place::new("new_connections_fall_back_while_udp_is_blocked") else {
        return;
    };
    wait("DCQUIC is ready", || {
        place.request();
        place.count("dcquic") > 0
    });
    let block = "rule add ipproto udp blackhole pref 1";
    place.pair.gate.ip(block);
    let begin = Instant::now();
    // Those that began before the client could know it are reset when it gives the connection up.
    wait("new connections fall back", || place.source().is_ok());
    println!(
        "new connections fall back {:?} after UDP was blocked",
        begin.elapsed()
    );
    let by_tls = place.count("tls");
    (0..50).for_each(|_| place.request());
    assert_eq!(place.count("tls"), by_tls + 50);
    assert!(place.falls_back());
    place.pair.gate.ip(&block.replace("add", "delete"));
    wait("DCQUIC works again", || {
        place.request();
        !place.falls_back()
    });
    drop(place.client);
}
