//! DCTCP and D2TCP in the running kernel, between two network namespaces. Needs root.
#![cfg(bpf_programs)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket, sockopt};
use weir_enforce::bpf::{
    BpfError, D2tcp, Dctcp, Observations, Parameters, RegisteredAlgorithm, kernel_offers,
};
use weir_units::Duration;

use support::{Pair, SERVER, can_run};

/// Returns a name that is unique to this run.
fn name(test: &str) -> String {
    format!("{test}_{}", std::process::id())
}

fn register(name: &str) -> RegisteredAlgorithm {
    Dctcp::register(name, &Parameters::default()).unwrap()
}

/// A client that always has data to send, until it is closed.
struct Flow {
    client: TcpStream,
    threads: [JoinHandle<()>; 2],
}

impl Flow {
    /// Starts a flow over `pair`, with its namespaces' congestion control or a given one.
    fn start(pair: &Pair, congestion: Option<&str>) -> Self {
        let congestion = congestion.map(str::to_owned);
        let selected = move || {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            if let Some(name) = &congestion {
                sockopt::set_tcp_congestion(&socket, name).unwrap();
            }
            socket
        };
        let at_server = selected.clone();
        let listener = pair.server.run(move || {
            let socket = at_server();
            bind(&socket, &SocketAddr::new(SERVER, 0)).unwrap();
            listen(&socket, 1).unwrap();
            TcpListener::from(socket)
        });
        let address = listener.local_addr().unwrap();
        let client = pair.client.run(move || {
            let socket = selected();
            connect(&socket, &address).unwrap();
            TcpStream::from(socket)
        });
        let (server, _) = listener.accept().unwrap();
        let sender = client.try_clone().unwrap();
        let threads = [
            std::thread::spawn(move || send(sender)),
            std::thread::spawn(move || receive(server)),
        ];
        Self { client, threads }
    }

    /// Closes the connection after all written data have arrived.
    fn stop(self) {
        self.client.shutdown(std::net::Shutdown::Write).unwrap();
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn send(mut socket: TcpStream) {
    let bytes = [0; 65_536];
    while socket.write_all(&bytes).is_ok() {}
}

fn receive(mut socket: TcpStream) {
    let mut buffer = [0; 65_536];
    while socket.read(&mut buffer).is_ok_and(|length| length > 0) {}
}

/// Waits until α covers `windows` more windows.
fn after(observations: &Observations, socket: impl AsFd, windows: u32) -> f64 {
    let mut first = None;
    for _ in 0..20_000 {
        if let Some(seen) = observations.read(&socket).unwrap() {
            let first = *first.get_or_insert(seen.windows);
            if seen.windows.wrapping_sub(first) >= windows {
                return seen.alpha;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the flow stands still");
}

/// Returns the median of `sample` over time.
fn median(mut sample: impl FnMut() -> f64) -> f64 {
    let mut samples: Vec<_> = (0..201).map(|_| sample()).collect();
    samples.sort_by(f64::total_cmp);
    samples[100]
}

#[test]
fn alpha_is_the_fraction_of_marked_packets() {
    if !can_run("alpha_is_the_fraction_of_marked_packets") {
        return;
    }
    let name = name("wt_a");
    let registered = register(&name);
    let observations = registered.observations().unwrap();
    let pair = Pair::new();
    for host in [&pair.client, &pair.server] {
        host.set("tcp_congestion_control", &name);
    }

    let flow = Flow::start(&pair, None);
    let unmarked = after(&observations, &flow.client, 200);
    assert!(unmarked < 0.01, "{unmarked}");
    // α weighs all windows alike, and small windows with marks are numerous.
    for (marked, least, most) in [(2, 0.2, 0.4), (4, 0.4, 0.6), (8, 0.99, 1.0), (0, 0.0, 0.01)] {
        pair.mark(marked, 8);
        after(&observations, &flow.client, 300);
        let before = tcp_info(&flow.client);
        let alpha = median(|| after(&observations, &flow.client, 5));
        let now = tcp_info(&flow.client);
        let echoed = now.tcpi_delivered_ce - before.tcpi_delivered_ce;
        let echoed = f64::from(echoed) / f64::from(now.tcpi_delivered - before.tcpi_delivered);
        println!("{marked} of 8 packets marked: echoed {echoed:.4}, alpha {alpha:.3}");
        assert!((least..=most).contains(&alpha), "{marked} of 8: {alpha}");
        // The echo is exact, except for data in flight.
        let exact = f64::from(marked) / 8.0;
        assert!((echoed - exact).abs() < 0.02, "{marked} of 8: {echoed}");
    }

    let shown = pair.client.output("ss -tin");
    assert!(shown.contains(&name), "{shown}");
    flow.stop();
}

#[test]
fn dropping_unregisters_the_algorithm_but_open_sockets_keep_it() {
    if !can_run("it_is_gone_when_it_is_dropped") {
        return;
    }
    let name = name("wt_b");
    let registered = register(&name);
    assert!(kernel_offers(&name).unwrap());
    let again = Dctcp::register(&name, &Parameters::default()).unwrap_err();
    assert!(matches!(again, BpfError::NameTaken { .. }), "{again}");

    let observations = registered.observations().unwrap();
    let pair = Pair::new();
    let flow = Flow::start(&pair, Some(&name));
    after(&observations, &flow.client, 50);
    drop(registered);
    assert!(!kernel_offers(&name).unwrap());
    let available =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(!available.contains(&name), "{available}");

    after(&observations, &flow.client, 50);
    flow.stop();
    register(&name);
}

#[test]
fn a_peer_without_ecn_gets_reno() {
    if !can_run("a_peer_without_ecn_gets_reno") {
        return;
    }
    let name = name("wt_c");
    let _registered = register(&name);
    let pair = Pair::new();
    pair.server.set("tcp_ecn", "0");
    pair.client.set("tcp_congestion_control", &name);
    let flow = Flow::start(&pair, None);
    assert_eq!(sockopt::tcp_congestion(&flow.client).unwrap(), "reno");
    flow.stop();
}

fn tcp_info(socket: impl AsFd) -> libc::tcp_info {
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes there.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            std::ptr::from_mut(&mut info).cast(),
            &mut length,
        )
    };
    assert_eq!(result, 0);
    info
}

#[test]
fn d2tcp_keeps_a_larger_window_when_its_deadline_is_near() {
    if !can_run("d2tcp_keeps_a_larger_window_when_its_deadline_is_near") {
        return;
    }
    let name = name("wt_d");
    let registered = D2tcp::register(&name, &Parameters::default()).unwrap();
    let observations = registered.observations().unwrap();
    let deadlines = registered.deadlines().unwrap().unwrap();
    let pair = Pair::new();
    pair.mark(8, 64);
    let flow = Flow::start(&pair, Some(&name));
    let window = || {
        after(&observations, &flow.client, 300);
        median(|| {
            after(&observations, &flow.client, 2);
            f64::from(tcp_info(&flow.client).tcpi_snd_cwnd)
        })
    };

    let none = window();
    deadlines
        .set(&flow.client, u64::MAX, Duration::from_secs(1_000_000))
        .unwrap();
    let far = window();
    deadlines
        .set(&flow.client, u64::MAX, Duration::ZERO)
        .unwrap();
    let near = window();
    deadlines.clear(&flow.client).unwrap();
    let cleared = window();
    println!("windows: none {none:.1}, far {far:.1}, near {near:.1}, cleared {cleared:.1}");
    assert!(far < none && none < near, "{far} {none} {near}");
    assert!(far < cleared && cleared < near, "{cleared}");
    assert!(far * 1.4 < near, "{far} {near}");
    flow.stop();
}

#[test]
fn a_map_of_the_other_kind_is_refused() {
    if !can_run("a_map_of_the_other_kind_is_refused") {
        return;
    }
    let registered = register(&name("wt_e"));
    assert!(registered.deadlines().unwrap().is_none());
    let observations = OwnedFd::from(registered.observations().unwrap());
    let sent = observations.try_clone().unwrap();
    assert!(Observations::try_from(sent).is_ok());
    assert!(weir_enforce::bpf::Deadlines::try_from(observations).is_err());
}
