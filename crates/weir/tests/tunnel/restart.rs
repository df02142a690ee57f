//! Restarts of both ends that end no connection.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::Value;
use weir_tunnel::tls::Identity;

use crate::running::{Running, echo_server, echoes};
use crate::support::{run, wait};

/// Both ends, each with its control socket, and the server's identity.
struct Place {
    folder: tempfile::TempDir,
    identity: Identity,
    port: String,
    to: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::self_signed(["localhost"]).unwrap();
        fs::write(folder.path().join("chain"), &identity.chain()[0]).unwrap();
        fs::write(
            folder.path().join("key"),
            identity.private_key().secret_der(),
        )
        .unwrap();
        Self {
            folder,
            identity,
            port: "0".to_owned(),
            to: echo_server().to_string(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn server(&self, more: &[&str]) -> Running {
        let (chain, key) = (self.path("chain"), self.path("key"));
        let (state, control) = (self.path("state"), self.path("server"));
        let common = [
            "server",
            "--port",
            &self.port,
            "--allow",
            &self.to,
            "--certificate",
            &chain,
            "--key",
            &key,
            "--state",
            &state,
            "--control",
            &control,
            // What a known peer sends without a handshake is lost where that is refused.
            "--no-known-peers",
        ];
        Running::start(&[&common, more].concat())
    }

    /// A client at an address, whose port may be 0.
    fn client(&self, listen: &str, server: &Running, more: &[&str]) -> Running {
        let via = server.said["listening"].as_str().unwrap();
        let pin = self.identity.fingerprint().to_string();
        let control = self.path("client");
        let common = [
            "client",
            "--listen",
            listen,
            "--to",
            &self.to,
            "--via",
            via,
            "--pin",
            &pin,
            "--control",
            &control,
        ];
        Running::start(&[&common, more].concat())
    }

    fn status(&self, name: &str) -> Value {
        run(&["tunnel", "status", &self.path(name), "--json"]).json()
    }
}

fn listening(client: &Running) -> String {
    client.said["listening"][0].as_str().unwrap().to_owned()
}

/// Applications that connect again and again.
struct Load {
    requests: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn begin(address: &str) -> Self {
        let (requests, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let threads = (0..4).map(|_| {
            let (address, requests) = (address.to_owned(), requests.clone());
            let is_over = is_over.clone();
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(echoes(&address), Ok(()));
                    requests.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Self {
            threads: threads.collect(),
            requests,
            is_over,
        }
    }

    /// Waits until some more requests were answered.
    fn goes_on(&self) {
        let before = self.requests.load(Ordering::Relaxed);
        wait("requests are answered", || {
            assert!(self.threads.iter().all(|thread| !thread.is_finished()));
            self.requests.load(Ordering::Relaxed) > before + 50
        });
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn exchange(tcp: &mut TcpStream) {
    let mut answer = [0; 4];
    tcp.write_all(b"ping").unwrap();
    tcp.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ping");
}

#[test]
fn a_restart_of_either_end_under_load_fails_no_request() {
    let mut place = Place::new();
    let mut server = place.server(&[]);
    let address = server.said["listening"].as_str().unwrap();
    place.port = address.rsplit(':').next().unwrap().to_owned();
    let mut client = place.client("127.0.0.1:0", &server, &[]);
    let address = listening(&client);
    let load = Load::begin(&address);
    load.goes_on();
    for _ in 0..2 {
        let mut lasting = TcpStream::connect(&address).unwrap();
        exchange(&mut lasting);
        let successor = place.server(&["--take-over"]);
        load.goes_on();
        exchange(&mut lasting);
        // Until its last connection ends the old one lives.
        assert!(server.child.try_wait().unwrap().is_none());
        wait("new connections reach the successor", || {
            let found = place.status("server");
            found["tunnels"][0]["dcquic"].as_u64().unwrap_or(0) > 0
        });
        exchange(&mut lasting);
        lasting.shutdown(Shutdown::Write).unwrap();
        assert_eq!(lasting.read(&mut [0]).unwrap(), 0);
        assert!(server.child.wait().unwrap().success());
        server = successor;
        load.goes_on();

        let mut lasting = TcpStream::connect(&address).unwrap();
        exchange(&mut lasting);
        let successor = place.client(&address, &server, &["--take-over"]);
        load.goes_on();
        exchange(&mut lasting);
        assert!(client.child.try_wait().unwrap().is_none());
        drop(lasting);
        assert!(client.child.wait().unwrap().success());
        client = successor;
        load.goes_on();
    }
    load.end();
    assert!(PathBuf::from(place.path("client")).exists());
    assert!(PathBuf::from(place.path("server")).exists());
}

#[test]
fn a_successor_that_fails_changes_nothing() {
    let mut place = Place::new();
    let server = place.server(&[]);
    let address = server.said["listening"].as_str().unwrap();
    place.port = address.rsplit(':').next().unwrap().to_owned();
    let client = place.client("127.0.0.1:0", &server, &[]);
    let address = listening(&client);
    assert_eq!(echoes(&address), Ok(()));
    let (chain, key, control) = (place.path("chain"), place.path("key"), place.path("server"));
    let common = [
        "tunnel",
        "server",
        "--take-over",
        "--allow",
        &place.to,
        "--control",
        &control,
    ];
    run(&common).failed(2, &["--take-over", "--certificate"]);
    let identity = ["--certificate", &chain, "--key", &key];
    let other = [&common[..], &identity, &["--bind", "127.0.0.2"]].concat();
    run(&other).failed(1, &["127.0.0.2", "same address"]);
    // It could listen, but not write where it was told to.
    let wrong = [
        &common[..],
        &identity,
        &["--port", &place.port, "--qlog", "/dev/null/x"],
    ]
    .concat();
    run(&wrong).failed(1, &["qlog"]);
    assert_eq!(echoes(&address), Ok(()));
    assert_eq!(place.status("server")["tunnels"][0]["received"], 10);
    // Nothing is left of those that failed.
    let successor = place.server(&["--take-over"]);
    wait("new connections reach the successor", || {
        assert_eq!(echoes(&address), Ok(()));
        let found = place.status("server");
        found["tunnels"][0]["dcquic"].as_u64().unwrap_or(0) > 0
    });
    drop((successor, server));
}
