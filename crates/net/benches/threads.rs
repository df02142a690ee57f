//! What a second engine costs: a server with one engine, and with two, answers 10 KB calls, with
//! the same number of connections per engine. `make bench-threads` prints calls per second and the
//! CPU time of the server's threads per call, medians of interleaved runs.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::oneshot;
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Endpoint, Request, ServeOptions};

const ROUNDS: usize = 5;
const CLIENTS: usize = 2;
/// Each client's connections per engine.
const CONNECTIONS: usize = 8;
const CALLS: usize = 3_000;
const ANSWER: usize = 10_000;

/// The server's threads are found by the beginning of their names.
const THREAD: &str = "weir-engine";

struct Measured {
    calls_per_second: f64,
    cpu_per_call: f64,
}

fn main() {
    // `cargo test` runs benchmarks too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut measured = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (engines, measured) in [1, 2].into_iter().zip(&mut measured) {
            measured.push(measure(NonZeroU8::new(engines).unwrap()));
        }
    }
    println!(
        "{CLIENTS} clients with {CONNECTIONS} connections per engine, 10 KB answers, medians of {ROUNDS} runs"
    );
    println!("engines  calls/s  server CPU per call");
    let [one, two] = measured.map(|runs| {
        (
            median(runs.iter().map(|run| run.calls_per_second)),
            median(runs.iter().map(|run| run.cpu_per_call)),
        )
    });
    for (engines, (rate, cpu)) in [(1, one), (2, two)] {
        println!("{engines:7}  {rate:7.0}  {cpu:.1} µs");
    }
    println!(
        "2 / 1: calls/s {:.2}, CPU per call {:.2} (limit 1.1)",
        two.0 / one.0,
        two.1 / one.1
    );
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(engines: NonZeroU8) -> Measured {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let fingerprint = identity.fingerprint();
    let (address, bound) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    // One engine runs where it was bound: on a thread with the name of an engine's.
    let server = thread::Builder::new().name(format!("{THREAD}-main"));
    let server = server.spawn(move || {
        block_on(async {
            let tls = ServerTls::new(identity).build().unwrap();
            let builder = Endpoint::builder().server(tls).threads(engines);
            let server = builder.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            address.send(server.local_address()).unwrap();
            tokio::select! {
                () = serve(&server) => {}
                _ = stopped => {}
            }
        });
    });
    let server_address = bound.recv().unwrap();
    let before = server_cpu();
    let begun = Instant::now();
    let connections = CONNECTIONS * usize::from(engines.get());
    let client = move || block_on(call(server_address, fingerprint, connections));
    let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(client)).collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    let elapsed = begun.elapsed().as_secs_f64();
    let cpu = server_cpu() - before;
    stop.send(()).unwrap();
    server.unwrap().join().unwrap();
    let calls = (CLIENTS * connections * CALLS) as f64;
    Measured {
        calls_per_second: calls / elapsed,
        cpu_per_call: cpu * 1e6 / calls,
    }
}

async fn serve(server: &Endpoint) {
    let answer = Bytes::from(vec![7; ANSWER]);
    while let Some(connecting) = server.accept().await {
        let answer = answer.clone();
        let runtime = connecting.runtime().clone();
        runtime.spawn(async move {
            let Ok(connection) = connecting.await else {
                return;
            };
            let handler = move |_: Request| std::future::ready(Ok(answer.clone()));
            connection.serve(ServeOptions::default(), handler).await;
        });
    }
}

/// Makes calls on this number of connections at once.
async fn call(server: SocketAddr, fingerprint: Fingerprint, connections: usize) {
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    let builder = Endpoint::builder().client(tls);
    let client = builder.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let connection = client.connect(server, "localhost").unwrap().await.unwrap();
        tasks.push(tokio::spawn(async move {
            for _ in 0..CALLS {
                let answer = connection.call("request").await.unwrap();
                assert_eq!(answer.len(), ANSWER);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future);
}

/// The CPU time of the server's threads so far, in seconds.
fn server_cpu() -> f64 {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let spent = threads.filter_map(|thread| {
        // A thread may end meanwhile.
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let is_server = name.starts_with(THREAD);
        let statistics = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanoseconds = statistics.split_whitespace().next()?.parse::<f64>().ok()?;
        is_server.then_some(nanoseconds / 1e9)
    });
    spent.sum()
}
