//! What a connection costs the engine, without sockets: it begins, carries a call with a request of 64
//! bytes and a reply of 10 KB, and ends. `make bench-setup` prints allocations, their bytes and the time of
//! each part, on each side, for a full handshake and for a known peer.
//!
//! With `--lives KIND COUNT` it only lets that many connections live, for `bench/setup_instructions.py`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

#[path = "../support/credentials.rs"]
mod credentials;
mod meter;
mod world;

use meter::{Cost, Meter, Operation};
use world::World;

/// Connections before those that are measured: tables grow, and a known peer is met.
const WARM_UP: u32 = 64;
/// Connections of a round, and the rounds; of the times the fastest counts.
const LIVES: u32 = 500;
const ROUNDS: usize = 5;

/// How connections begin.
const KINDS: [(&str, bool); 2] = [("handshake", false), ("known-peer", true)];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test` runs benchmarks too.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let lives = arguments.iter().position(|argument| argument == "--lives");
    match lives.and_then(|index| arguments.get(index + 1..)) {
        Some([kind, count, ..]) => live(kind, count.parse().unwrap()),
        _ => KINDS.into_iter().for_each(print_table),
    }
}

/// Lets connections live without measuring them.
fn live(kind: &str, count: u32) {
    let (_, is_known) = KINDS.into_iter().find(|(name, _)| *name == kind).unwrap();
    let mut world = World::new(is_known);
    world.stop_measuring();
    (0..WARM_UP + count).for_each(|_| world.live());
}

fn print_table((kind, is_known): (&str, bool)) {
    let mut world = World::new(is_known);
    (0..WARM_UP).for_each(|_| world.live());
    world.take_costs();
    let rounds: Vec<[Meter; 2]> = (0..ROUNDS)
        .map(|_| {
            (0..LIVES).for_each(|_| world.live());
            world.take_costs()
        })
        .collect();
    println!("{kind}: per connection; times are those of the fastest of {ROUNDS} rounds");
    println!("            client                       server");
    println!("            allocations  bytes    ns     allocations  bytes    ns");
    let row = |name: &str, costs: [Cost; 2]| {
        let columns = costs.map(|cost| {
            let mean = |sum: u64| sum as f64 / f64::from(LIVES);
            format!(
                "{:11.1} {:6.0} {:5.0}",
                mean(cost.allocations),
                mean(cost.bytes),
                mean(cost.nanoseconds)
            )
        });
        println!("{name:11} {}     {}", columns[0], columns[1]);
    };
    for operation in Operation::ALL {
        row(
            operation.name(),
            [0, 1].map(|side| fastest(&rounds, side, |meter| meter.of(operation))),
        );
    }
    row("all", [0, 1].map(|side| fastest(&rounds, side, Meter::sum)));
    println!();
}

/// Returns the cost of a side in the round that took least time.
fn fastest(rounds: &[[Meter; 2]], side: usize, cost: impl Fn(&Meter) -> Cost) -> Cost {
    let costs = rounds.iter().map(|meters| cost(&meters[side]));
    costs.min_by_key(|cost| cost.nanoseconds).unwrap()
}
