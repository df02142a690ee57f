//! gRPC over DCQUIC beside gRPC over HTTP/2 and TLS: the same service, tonic, on both. `make bench-grpc`
//! prints latency, CPU and calls per second, of calls on an open channel, of the first call of a new one,
//! and of 64 calls at once over a link that loses 1 % of all packets.
//!
//! Client and server are processes with one worker thread each. The two transports take turns, and each
//! ratio is the median of those of the rounds. `GRPC_ROUNDS` and `GRPC_SECONDS` (of a round) set how long it
//! takes; a word after `--bench`, such as `loss`, runs one part: `open`, `new` or `loss`. `GRPC_ROWS`, such
//! as `100x64 10000x1`, chooses rows of the open channels: bytes, and calls at once.
#![allow(clippy::print_stdout, reason = "a benchmark")]

mod contestant;
mod link;
mod load;
mod server;
mod table;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use contestant::{Contestant, Identity};
use load::Load;
use server::Server;
use table::{Row, Table};

type Failure = Box<dyn Error + Send + Sync>;

/// The argument of a server's process.
const SERVER: &str = "server";

/// How long each measurement takes.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    round: Duration,
}

fn main() -> Result<ExitCode, Failure> {
    contestant::same_ciphers();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == SERVER) {
        server::serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    // `cargo test` runs benchmarks too.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(ExitCode::SUCCESS);
    }
    let effort = Effort {
        rounds: setting("GRPC_ROUNDS", 5)?,
        round: Duration::from_millis(setting("GRPC_SECONDS", 1)? as u64 * 1000),
    };
    let words: Vec<_> = (arguments.iter())
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wants = |part: &str| words.is_empty() || words.iter().any(|word| *word == part);
    let identity = Identity::new()?;
    if wants("open") {
        open_channels(&identity, effort)?;
    }
    if wants("new") {
        new_channels(&identity, effort)?;
    }
    if wants("loss") {
        link::lossy(&identity, effort)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Calls on an open channel, over loopback.
fn open_channels(identity: &Identity, effort: Effort) -> Result<(), Failure> {
    let mut table = Table::new("Calls on an open channel, loopback", ["payload", "at once"]);
    let rows = std::env::var("GRPC_ROWS").unwrap_or_default();
    let rows: Vec<_> = rows.split_whitespace().collect();
    for (size, name) in [(100, "100 B"), (10_000, "10 KB"), (100_000, "100 KB")] {
        for concurrency in [1, 64, 1000] {
            if !rows.is_empty() && !rows.contains(&format!("{size}x{concurrency}").as_str()) {
                continue;
            }
            let labels = [name.to_owned(), concurrency.to_string()];
            let mut row = Row::new(labels);
            let load = Load {
                size,
                callers: concurrency,
                interval: None,
            };
            let servers = servers(identity)?;
            for _ in 0..effort.rounds {
                let mut round = Vec::new();
                for (contestant, server) in Contestant::ALL.into_iter().zip(&servers) {
                    let runtime = load::runtime()?;
                    let channel = runtime.block_on(contestant.channel(identity, server.address))?;
                    let cpu = || server.cpu();
                    round.push(load::run(&runtime, &channel, load, effort.round, cpu)?);
                }
                row.add(round);
            }
            table.print(row);
        }
    }
    Ok(())
}

/// A new channel and one call, over loopback.
fn new_channels(identity: &Identity, effort: Effort) -> Result<(), Failure> {
    let mut table = Table::new("A new channel and one call, loopback", ["payload", "peer"]);
    for (size, name) in [(100, "100 B"), (10_000, "10 KB")] {
        for peer in [load::Peer::Unknown, load::Peer::Known] {
            let mut row = Row::new([name.to_owned(), peer.to_string()]);
            let servers = servers(identity)?;
            for _ in 0..effort.rounds {
                let mut round = Vec::new();
                for (contestant, server) in Contestant::ALL.into_iter().zip(&servers) {
                    round.push(load::new_channels(
                        contestant,
                        identity,
                        server,
                        size,
                        peer,
                        effort.round,
                    )?);
                }
                row.add(round);
            }
            table.print(row);
        }
    }
    Ok(())
}

fn servers(identity: &Identity) -> Result<Vec<Server>, Failure> {
    let start = |contestant: &Contestant| Server::start(*contestant, identity, "127.0.0.1");
    Contestant::ALL.iter().map(start).collect()
}

fn setting(name: &str, default: usize) -> Result<usize, Failure> {
    match std::env::var(name) {
        // `make` passes on what is not set as empty.
        Ok(text) if !text.is_empty() => Ok(text
            .parse()
            .map_err(|_| format!("{name} is no number: {text}"))?),
        _ => Ok(default),
    }
}
