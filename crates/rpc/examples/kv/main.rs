//! A key-value store on three servers that are restarted one after the other, under load.
//!
//! ```sh
//! cargo run -p weir-rpc --example kv -- cluster
//! cargo run -p weir-rpc --example kv -- load
//! ```
#![allow(clippy::print_stdout, reason = "a program prints")]

mod cluster;
mod files;
mod load;
mod outcome;
mod serve;
mod store;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// A key-value store on several servers.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a server per address, as processes, and restarts them one after the other
    Cluster(cluster::Options),
    /// Serves the store at one address until SIGTERM, which drains
    Serve(serve::Options),
    /// Writes and reads until Ctrl-C or SIGTERM, and counts what failed
    Load(load::Options),
}

/// Where the store is.
#[derive(Args, Clone)]
struct Place {
    /// The directory of the certificate and the data
    #[arg(long, default_value_os_t = std::env::temp_dir().join("weir-kv"))]
    directory: PathBuf,
    /// The servers' addresses
    #[arg(long = "at", default_values = ["127.0.0.1:7101", "127.0.0.1:7102", "127.0.0.1:7103"])]
    addresses: Vec<SocketAddr>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[allow(
    dead_code,
    reason = "the test of the rolling restart has a `main` of its own"
)]
fn main() -> ExitCode {
    run(std::env::args_os())
}

/// Runs the program with these arguments.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options = Options::parse_from(arguments);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let result = runtime.block_on(async {
        match options.command {
            Command::Cluster(options) => cluster::run(options).await,
            Command::Serve(options) => serve::run(options).await,
            Command::Load(options) => load::run(options).await,
        }
    });
    result.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

fn failed(error: &Failure) -> ExitCode {
    println!("{error}");
    ExitCode::FAILURE
}
