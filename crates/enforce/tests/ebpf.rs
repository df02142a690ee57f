//! The eBPF enforcer with the kernel's own TCP, between two network namespaces. Needs root.
#![cfg(bpf_programs)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_enforce::ebpf::{DataPlane, Enforcer, Hook, Options};
use weir_enforce::operation::{Enforce as _, Status};
use weir_scenario::parse_policy;

use support::{Host, Pair, SERVER, can_run};

/// Enforces a policy at the client, on a thread.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Enforcer>,
}

fn attach(client: &Host, interface: &str, hook: Hook, policy: &str) -> Enforcer {
    let policy = parse_policy("test", policy).unwrap();
    let interface = interface.to_owned();
    client.run(move || {
        let options = Options {
            flows: 256,
            hook,
            ..Options::default()
        };
        let plane = DataPlane::attach(&[interface], &options).unwrap();
        Enforcer::new(plane, policy, &options)
    })
}

impl Running {
    fn start(mut enforcer: Enforcer) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                enforcer.step().unwrap();
            }
            enforcer
        });
        Self { stop, thread }
    }

    /// Stops user space, like a process that hangs; the programs stay.
    fn stop(self) -> Enforcer {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// A connection from the client to the server.
fn connect(pair: &Pair, server: IpAddr) -> (TcpStream, TcpStream) {
    let listener = pair
        .server
        .run(move || TcpListener::bind(SocketAddr::new(server, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let client = pair
        .client
        .run(move || TcpStream::connect(address).unwrap());
    (client, listener.accept().unwrap().0)
}

/// Byte number `position` of a stream.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends `length` bytes, and checks each as it arrives.
fn transfer((mut from, mut to): (TcpStream, TcpStream), length: u64) {
    let sender = std::thread::spawn(move || {
        let mut position = 0;
        while position < length {
            let end = (position + 65_536).min(length);
            let chunk: Vec<u8> = (position..end).map(byte).collect();
            from.write_all(&chunk).unwrap();
            position = end;
        }
    });
    let (mut buffer, mut position) = (vec![0; 65_536], 0);
    loop {
        let count = to.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        for received in &buffer[..count] {
            assert_eq!(*received, byte(position), "byte {position}");
            position += 1;
        }
    }
    sender.join().unwrap();
    assert_eq!(position, length);
}

/// A flow that always has data to send, until it is dropped.
struct Endless {
    client: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

impl Endless {
    fn start((client, mut server): (TcpStream, TcpStream)) -> Self {
        let mut sender = client.try_clone().unwrap();
        let send = std::thread::spawn(move || {
            let bytes = [0; 65_536];
            while sender.write_all(&bytes).is_ok() {}
        });
        let receive = std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while server.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        Self {
            client,
            threads: vec![send, receive],
        }
    }

    fn stop(mut self) {
        self.client.shutdown(std::net::Shutdown::Both).unwrap();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// Returns the client's send window, from `ss`.
fn send_window(pair: &Pair, port: u16) -> u64 {
    let text = pair.client.output(&format!("ss -tinH dport = {port}"));
    let field = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("snd_wnd:"));
    field.unwrap().parse().unwrap()
}

/// Waits until a condition holds.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lowered(status: &Status) -> u64 {
    status.totals.lowered
}

const SMALL: &str = "[[rules]]\ncongestion = { name = \"cubic\", max_window = \"40KB\" }\n";

#[test]
fn windows_are_lowered_and_bytes_are_exact() {
    let test = "windows_are_lowered_and_bytes_are_exact";
    if !can_run(test) {
        return;
    }
    let pair = Pair::new();
    pair.client
        .output("ip -6 address add fd77::1/64 dev one nodad");
    pair.server
        .output("ip -6 address add fd77::2/64 dev one nodad");
    for (hook, server) in [
        (Hook::Tcx, SERVER),
        (Hook::Clsact, SERVER),
        (Hook::Automatic, "fd77::2".parse().unwrap()),
    ] {
        let running = Running::start(attach(&pair.client, "one", hook, SMALL));
        transfer(connect(&pair, server), 4_000_000);
        let enforcer = running.stop();
        let status = enforcer.status();
        assert!(lowered(&status) > 20, "{hook:?}: {status:?}");
        assert_eq!(status.totals.opened, 1, "{hook:?}");
        drop(enforcer);
        let filters = pair.client.output("tc filter show dev one ingress");
        assert_eq!(filters, "", "{hook:?}");
    }
}

#[test]
fn a_limit_expires_without_user_space() {
    if !can_run("a_limit_expires_without_user_space") {
        return;
    }
    let pair = Pair::new();
    let running = Running::start(attach(&pair.client, "one", Hook::Automatic, SMALL));
    let connection = connect(&pair, SERVER);
    let port = connection.0.peer_addr().unwrap().port();
    let flow = Endless::start(connection);
    wait("the window is lowered", || {
        send_window(&pair, port) <= 40_000
    });
    std::thread::sleep(Duration::from_millis(1500));
    assert!(
        send_window(&pair, port) <= 40_000,
        "the limit holds as long as it is written"
    );
    // The process hangs: its last limit expires.
    let enforcer = running.stop();
    wait("the limit expires", || send_window(&pair, port) > 60_000);
    // The process continues.
    let running = Running::start(enforcer);
    wait("the window is lowered again", || {
        send_window(&pair, port) <= 40_000
    });
    let status = running.stop().status();
    assert_eq!((status.totals.controlled, status.flows.len()), (1, 1));
    assert_eq!(status.flows[0].interface, "one");
    assert!(status.flows[0].delivered > 100_000, "{status:?}");
    // The enforcer is gone, with its programs.
    wait("nobody lowers the window", || {
        send_window(&pair, port) > 60_000
    });
    flow.stop();
}

#[test]
fn dctcp_counts_marks() {
    if !can_run("dctcp_counts_marks") {
        return;
    }
    let pair = Pair::new();
    pair.mark(1, 8);
    let policy = "[[rules]]\ncongestion = \"dctcp\"\n";
    let running = Running::start(attach(&pair.client, "one", Hook::Automatic, policy));
    transfer(connect(&pair, SERVER), 8_000_000);
    let connection = connect(&pair, SERVER);
    let flow = Endless::start(connection);
    std::thread::sleep(Duration::from_millis(700));
    let status = running.stop().status();
    flow.stop();
    let [flow] = &status.flows[..] else {
        panic!("{status:?}");
    };
    assert!(flow.marked > 0 && flow.marked <= flow.delivered, "{flow:?}");
    assert!(flow.enforced < 1_000_000, "{flow:?}");
}

#[test]
fn slots_are_reused_and_passed_connections_need_none() {
    if !can_run("slots_are_reused_and_passed_connections_need_none") {
        return;
    }
    let pair = Pair::new();
    let listeners: Vec<_> = (0..2)
        .map(|_| {
            pair.server
                .run(|| TcpListener::bind(SocketAddr::new(SERVER, 0)).unwrap())
        })
        .collect();
    let ports: Vec<_> = (listeners.iter())
        .map(|listener| listener.local_addr().unwrap().port())
        .collect();
    let policy = format!("[[rules]]\nto_port = {}\npass = true\n{SMALL}", ports[1]);
    let enforcer = attach(&pair.client, "one", Hook::Automatic, &policy);
    let running = Running::start(enforcer);
    // More than no rule limits: user space decides.
    let contents = vec![1; 40_000];
    for listener in &listeners {
        let address = listener.local_addr().unwrap();
        // There are fewer slots.
        for _ in 0..400 {
            let mut client = pair
                .client
                .run(move || TcpStream::connect(address).unwrap());
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(&contents).unwrap();
            drop(client);
            let mut all = Vec::new();
            server.read_to_end(&mut all).unwrap();
            assert_eq!(all, contents);
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let status = running.stop().status();
    let totals = status.totals;
    assert_eq!(totals.opened + totals.refused, 800, "{totals:?}");
    assert_eq!((totals.passed, totals.controlled), (400, 0), "{totals:?}");
    // Exempted connections are removed from the map, unless they have ended before.
    assert!((400..=800).contains(&totals.closed), "{totals:?}");
    assert_eq!(totals.refused, 0, "{totals:?}");
}

#[test]
fn a_removed_interface_is_reported() {
    if !can_run("a_removed_interface_is_reported") {
        return;
    }
    let pair = Pair::new();
    let mut enforcer = attach(&pair.client, "one", Hook::Automatic, SMALL);
    pair.client.output("ip link delete one");
    wait("it is told", || {
        enforcer.step().unwrap();
        enforcer.is_over()
    });
    assert_eq!(enforcer.take_gone(), ["one"]);
}
