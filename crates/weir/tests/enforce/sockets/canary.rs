//! A rule that is tried on a part of the connections: it takes itself back where it loses, and stays where it
//! does not.

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::{Place, peer::Peer};
use crate::namespace::{Namespace, join};
use crate::running::{Running, wait};

/// A server whose data pass a router with a short queue, and its clients.
pub(super) struct Path {
    pub(super) clients: Namespace,
    _router: Namespace,
    _server: Peer,
    pub(super) place: Place,
}

/// Where the server listens. It answers each connection with 60 kB, 41 segments.
const SERVER: &str = "10.9.0.1:8001";

impl Path {
    /// The queue holds 30 segments of those: too few for all of a connection at once, and more than slow
    /// start has in flight when it begins with ten.
    pub(super) fn new(test: &str) -> Option<Self> {
        let place = Place::new(test)?;
        if Command::new("tc").arg("-V").output().is_err() {
            eprintln!("SKIPPED: {test}: no `tc` here (apt-get install iproute2)");
            return None;
        }
        let (router, clients) = (Namespace::new(), Namespace::new());
        join((&place.namespace, "eth0"), (&router, "left"));
        join((&router, "right"), (&clients, "eth0"));
        place.namespace.ip("address add 10.9.0.1/24 dev eth0");
        place.namespace.ip("route add default via 10.9.0.2");
        router.ip("address add 10.9.0.2/24 dev left");
        router.ip("address add 10.9.1.2/24 dev right");
        clients.ip("address add 10.9.1.1/24 dev eth0");
        clients.ip("route add default via 10.9.1.2");
        let script = "echo 1 >/proc/sys/net/ipv4/ip_forward && \
                      tc qdisc add dev right root tbf rate 50mbit burst 5k limit 45k";
        let done = router.command("sh").args(["-c", script]).status().unwrap();
        assert!(done.success());
        let mut server = place.peer();
        server.ask(&format!("serve {SERVER} 60000"));
        Some(Self {
            clients,
            _router: router,
            _server: server,
            place,
        })
    }

    /// Has clients fetch data, one connection after the other, until the status is as expected.
    fn load_until(&self, running: &Running, expected: impl Fn(&Value) -> bool) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = Over(&is_over);
            scope.spawn(|| self.clients.run(|| fetch(&is_over)));
            let status = || running.status()["sockets"]["canaries"][0].clone();
            wait("figures of the canary", || expected(&status()));
        });
    }
}

/// Ends the clients when dropped, also by a panic.
pub(super) struct Over<'f>(pub(super) &'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn fetch(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let mut data = Vec::new();
        let mut stream = TcpStream::connect(SERVER).unwrap();
        stream.read_to_end(&mut data).unwrap();
        assert_eq!(data.len(), 60_000);
    }
}

/// A third of the connections begins with this many segments.
fn policy(initial_window: u32) -> String {
    format!(
        "[[rules]]\nfrom_port = 8001\nshare = 0.3\ncompare = true\n\
         congestion = {{ name = \"cubic\", initial_window = {initial_window} }}\n\
         undo_if = \"retransmits > 2x for 3s\"\n"
    )
}

#[test]
fn a_lossy_rule_takes_itself_back() {
    let Some(path) = Path::new("a_lossy_rule_takes_itself_back") else {
        return;
    };
    let running = path.place.enforce(&policy(100), &[]);
    path.load_until(&running, |canary| canary["undone"].is_object());
    let status = running.status()["sockets"].clone();
    let canary = &status["canaries"][0];
    let reason = canary["undone"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("retransmits > 2x for 3s: "), "{reason}");
    let lost = |group: &str| {
        canary["total"][group]["segments_retransmitted"]
            .as_u64()
            .unwrap()
    };
    let sent = |group: &str| canary["total"][group]["segments_sent"].as_u64().unwrap();
    assert!(lost("treated") * 20 > sent("treated"), "{canary}");
    assert!(lost("control") * 40 < sent("control"), "{canary}");
    let text = running.status_text();
    assert!(
        text.contains("taken back") && text.contains("control"),
        "{text}"
    );
    // No connection is treated any more.
    let before = status["rules"][0]["applied"].clone();
    let total = canary["total"]["control"]["connections"].as_u64().unwrap();
    path.load_until(&running, |canary| {
        canary["total"]["control"]["connections"].as_u64().unwrap() > total + 50
    });
    assert_eq!(running.status()["sockets"]["rules"][0]["applied"], before);
    // The same file again changes nothing; the operator may resume it, once.
    running.reload(&policy(100)).ok();
    assert!(running.status()["sockets"]["canaries"][0]["undone"].is_object());
    running
        .resume(2)
        .failed(1, &["line 2", "there is one on 1"]);
    running.resume(1).ok();
    assert!(running.status()["sockets"]["canaries"][0]["undone"].is_null());
    running.resume(1).failed(1, &["no guard has taken it back"]);
    running.signal(rustix::process::Signal::INT);
    let (_, said) = running.end();
    let line = said.lines().find(|line| line.contains("is taken back"));
    assert!(line.is_some_and(|line| line.contains(reason)), "{said}");
}

#[test]
fn a_rule_that_loses_nothing_stays() {
    let Some(path) = Path::new("a_rule_that_loses_nothing_stays") else {
        return;
    };
    let running = path.place.enforce(&policy(10), &[]);
    path.load_until(&running, |canary| {
        let count = |group: &str| canary["total"][group]["connections"].as_u64().unwrap_or(0);
        count("treated") > 60 && count("control") > 120
    });
    let canary = running.status()["sockets"]["canaries"][0].clone();
    assert!(canary["undone"].is_null(), "{canary}");
    for figure in ["retransmits", "rtt", "delivery_rate", "completion"] {
        for group in ["treated", "control"] {
            let found = &canary["total"][group]["figures"][figure];
            assert!(
                found["value"].is_number() && found["high"].is_number(),
                "{figure}: {canary}"
            );
        }
    }
}
