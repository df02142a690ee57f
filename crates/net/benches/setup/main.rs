//! What a connection costs the endpoints of a client and a server on loopback: it begins, carries a call
//! with a reply of 10 KB, and ends. `make bench-setup` prints the allocations of Rust's code, their bytes and
//! the processor time of each side's thread, for a full handshake of DCQUIC and of quinn, and for a known
//! peer.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

mod dcquic;
mod quinn;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use dcquic::{DcquicClient, DcquicServer};
use quinn::{QuinnClient, QuinnServer};

/// Connections before those that are measured: tables grow, and a known peer is met.
const WARM_UP: u32 = 100;
/// Connections of a round, and the rounds; of the processor times the median counts.
const LIVES: u32 = 500;
const ROUNDS: usize = 7;

const REQUEST: &[u8] = &[1; 64];
const REPLY: usize = 10_000;
/// The longest message that a side reads.
const LONGEST: usize = 1_000_000;

/// A listening endpoint.
trait Server {
    fn address(&self) -> SocketAddr;

    /// Serves one connection with one call, until the client closes it.
    async fn serve(&self, reply: Bytes);
}

/// What a side's connections have cost, per connection.
#[derive(Clone, Copy)]
struct Cost {
    allocations: f64,
    bytes: f64,
    microseconds: f64,
}

fn main() {
    // `cargo test` runs benchmarks too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!(
        "per connection; processor times are medians of {ROUNDS} rounds of {LIVES} connections"
    );
    println!("                     client                        server");
    println!("                     allocations   bytes      µs   allocations   bytes      µs");
    for has_known_peers in [false, true] {
        let (client, server) = dcquic::credentials(has_known_peers);
        let costs = measure(
            move || DcquicServer::bind(server, loopback()),
            || DcquicClient::bind(client, loopback()),
            DcquicClient::call,
        );
        print_row(name(has_known_peers), costs);
    }
    let (client, server) = quinn::configurations();
    let costs = measure(
        move || QuinnServer::bind(server, loopback()),
        || QuinnClient::bind(client, loopback()),
        QuinnClient::call,
    );
    print_row("quinn, handshake", costs);
}

fn name(is_known: bool) -> &'static str {
    if is_known {
        "DCQUIC, known peer"
    } else {
        "DCQUIC, handshake"
    }
}

fn print_row(name: &str, costs: [Cost; 2]) {
    let columns = costs.map(|cost| {
        format!(
            "{:11.1} {:7.0} {:7.1}",
            cost.allocations, cost.bytes, cost.microseconds
        )
    });
    println!("{name:20} {}   {}", columns[0], columns[1]);
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn reply() -> Bytes {
    Bytes::from(vec![7; REPLY])
}

/// Lets connections live, each side in a thread of its own; returns the costs of client and server.
fn measure<S: Server, C>(
    server: impl FnOnce() -> S + Send + 'static,
    client: impl FnOnce() -> C,
    call: impl AsyncFn(&C, SocketAddr) -> usize,
) -> [Cost; 2] {
    let (address, bound) = mpsc::channel();
    let serving = thread::spawn(move || {
        let runtime = runtime();
        let server = runtime.block_on(async { server() });
        address.send(server.address()).unwrap();
        let reply = reply();
        rounds(&runtime, async || server.serve(reply.clone()).await)
    });
    let server = bound.recv().unwrap();
    let runtime = runtime();
    let client_endpoint = runtime.block_on(async { client() });
    let client = rounds(&runtime, async || {
        assert_eq!(call(&client_endpoint, server).await, REPLY);
    });
    [client, serving.join().unwrap()]
}

/// Runs one side of all connections; returns what each of those after the first ones costs.
fn rounds(runtime: &Runtime, life: impl AsyncFn()) -> Cost {
    let lives = |count: u32| {
        runtime.block_on(async {
            for _ in 0..count {
                life().await;
            }
        });
    };
    lives(WARM_UP);
    let mut costs: Vec<Cost> = (0..ROUNDS)
        .map(|_| {
            let begin = processor_time();
            let counted = allocation_counter::measure(|| lives(LIVES));
            let per_connection = |sum: f64| sum / f64::from(LIVES);
            Cost {
                allocations: per_connection(counted.count_total as f64),
                bytes: per_connection(counted.bytes_total as f64),
                microseconds: per_connection((processor_time() - begin) * 1e6),
            }
        })
        .collect();
    costs.sort_by(|one, other| one.microseconds.total_cmp(&other.microseconds));
    costs[ROUNDS / 2]
}

/// Returns the processor time of this thread in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
