//! Benchmarks the throughput and precision of the switch between two hosts in their own namespaces, with
//! plain sockets at the ends.
//!
//! Run `make bench-lab` as root. Each row prints its target, so that a machine that misses it is
//! visible. `cargo bench -p weir-lab --bench switch in-line` runs one part: `carried`, `in-line`, `sed`,
//! `paced` or `delayed`.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]

mod bulk;
mod delay;
mod host;
mod in_line;
mod network;
mod sed;

use std::error::Error;
use std::time::Duration as Wait;

use weir_units::{Duration, Rate};

use bulk::{Bulk, measure};
use network::{Kind, Network, Settings};

type Failure = Box<dyn Error + Send + Sync>;

/// A part of the benchmark: its name, and the function that measures and prints it.
type Part = (&'static str, fn() -> Result<(), Failure>);

fn main() -> Result<(), Failure> {
    if let Err(reason) = host::possible() {
        println!("SKIPPED: {reason}");
        return Ok(());
    }
    println!(
        "Two hosts and a switch; all on this machine. Goodput is what the receiver's application got."
    );
    let parts: [Part; 5] = [
        ("carried", carried),
        ("in-line", in_line::measure),
        ("sed", sed::measure),
        ("paced", paced),
        ("delayed", delayed),
    ];
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    if let Some(word) = (wanted.iter()).find(|word| parts.iter().all(|(name, _)| name != word)) {
        return Err(
            format!("there is no part `{word}`: carried, in-line, sed, paced, delayed").into(),
        );
    }
    for (name, measure) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure()?;
        }
    }
    Ok(())
}

/// Measures the throughput without a rate limit.
fn carried() -> Result<(), Failure> {
    println!("\nOne kernel-TCP flow, no rate limit");
    for (name, kind, cut) in [
        ("TAP, super-packets", Kind::Tap, false),
        (
            "AF_PACKET on veth, super-packets",
            Kind::PacketSocket,
            false,
        ),
        ("TAP, 1500-byte frames", Kind::Tap, true),
        (
            "AF_PACKET on veth, 1500-byte frames",
            Kind::PacketSocket,
            true,
        ),
    ] {
        let settings = Settings {
            kind,
            cut,
            ..Settings::default()
        };
        print(name, &measure(settings, Wait::from_secs(4))?);
    }
    println!(
        "wanted: 5 Gbit/s and 400000 segments/s with super-packets, 100000 frames/s without; for \
         comparison, AF_XDP in copy mode on veth: 1.7 to 2.4 Gbit/s, no super-packets (measured before \
         on such a machine, not by this program)"
    );
    Ok(())
}

/// Measures whether a rate is kept.
fn paced() -> Result<(), Failure> {
    println!("\nOne kernel-TCP flow, 1 Gbit/s");
    for (name, segments) in [
        ("as the kernel sends", None),
        ("at most 4 segments at once", Some(4)),
        ("one segment at a time", Some(1)),
    ] {
        let settings = Settings {
            rate: Rate::from_gbps(1),
            delay: Duration::from_micros(20),
            segments,
            ..Settings::default()
        };
        print(name, &measure(settings, Wait::from_secs(4))?);
    }
    // 1448 payload bytes of 1538 on the wire.
    println!("wanted: within 1 % of 0.941 Gbit/s");
    Ok(())
}

fn print(name: &str, bulk: &Bulk) {
    let Bulk {
        goodput,
        segments,
        frames,
        report,
        ..
    } = bulk;
    let emulation = &report.emulation;
    println!(
        "  {name:<36} {:>7.3} Gbit/s {segments:>9.0} segments/s {frames:>8.0} frames/s  switch {:>3.0} % CPU  \
         late p50 {} p99 {} max {}{}",
        goodput.bits_per_second() as f64 / 1e9,
        100.0 * bulk.switch_share,
        emulation.lateness_p50,
        emulation.lateness_p99,
        emulation.lateness_max,
        if emulation.faithful {
            ""
        } else {
            "  NOT FAITHFUL"
        },
    );
    for (port, rate) in &emulation.rates {
        println!(
            "    {port}: {} asked, {} achieved",
            rate.asked, rate.achieved
        );
    }
    for reason in &emulation.reasons {
        println!("    {reason}");
    }
}

/// Measures whether a delay is kept.
fn delayed() -> Result<(), Failure> {
    println!("\nOne-way delay of single datagrams, 200 bytes, one each 2 ms");
    let mut without = None;
    for micros in [0, 50, 1000, 10_000] {
        let delay = Duration::from_micros(micros);
        let settings = Settings {
            delay,
            ..Settings::default()
        };
        let measured = delay::measure(settings, 1000)?;
        let without = without.get_or_insert(measured.p50);
        println!(
            "  {delay:>5}: p50 {} p99 {}, added at the median {}; the switch says late p50 {} p99 {}",
            measured.p50,
            measured.p99,
            measured.p50.checked_sub(*without).unwrap_or_default(),
            measured.report.emulation.lateness_p50,
            measured.report.emulation.lateness_p99,
        );
    }
    println!("wanted: 50us within 15us, 10ms within 1 %, against none at the median");
    Ok(())
}

/// Returns two hosts and the network between them, which exists while this lives.
fn network(settings: Settings) -> Result<Network, Failure> {
    Network::new(settings)
}
