//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use weir_traffic::calls::driver::Phase;
use weir_traffic::calls::{Placement, TransportSpecification};

/// Measures QUIC stacks, TCP+TLS and the floor under them, side by side.
#[derive(Debug, Parser)]
#[command(name = "weir-peers", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Latencies at every placement, bulk downloads at several packet sizes, mixes, and networks
    All(Options),
    /// Latencies only
    Latency(Options),
    /// Bulk downloads only
    Bulk(Options),
    /// The paper's mixes only: 200 connections at once, as fast as each transport can, and at half of
    /// the rate that TCP+TLS carries
    Mixes(Options),
    /// Networks other than loopback only: veth pairs with an MTU of 1500 and 9000, and the lab's link of
    /// 25 µs each way, where client and server share a core (root)
    Networks(Options),
    /// DCQUIC's packet sizes only: tasks by packet size and socket buffer, mixes with and without
    /// the paper's rule (its Figures 4 and 6)
    Sizes(Options),
    /// DCQUIC with and without a standby path
    Armed(Options),
    /// Serves or measures for another process
    #[command(hide = true)]
    Worker,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure less: about a minute in all
    #[arg(long)]
    pub(crate) quick: bool,
    /// Transports, such as quinn, quinn@8972, tcp-tls/bbr or floor@1452+spin
    #[arg(long, value_delimiter = ',')]
    pub(crate) transports: Vec<TransportSpecification>,
    /// Where client and server run: one, two (cores) or free
    #[arg(long, value_delimiter = ',')]
    pub(crate) placements: Vec<Placement>,
    /// Phases: handshake, fresh, resumed, established
    #[arg(long, value_delimiter = ',')]
    pub(crate) phases: Vec<Phase>,
    /// Reply sizes in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    pub(crate) sizes: Vec<u64>,
    /// Measured calls on an open connection; a quarter as many connections where each is new
    #[arg(long, value_parser = clap::value_parser!(u32).range(4..))]
    pub(crate) iterations: Option<u32>,
    /// Also write the results to this file
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// The date to put into the results
    #[arg(long, default_value = "")]
    pub(crate) date: String,
}

impl Options {
    /// Returns the transports that results are normalized by.
    pub(crate) fn baselines(&self) -> Vec<String> {
        ["tcp-tls", "floor", "floor@1452", "floor@8972"]
            .map(str::to_owned)
            .to_vec()
    }
}
