//! A file server over HTTP/3, and HTTP/2 beside it.
//!
//! ```sh
//! cargo run -p weir-h3 --example files -- serve DIR
//! cargo run -p weir-h3 --example files -- get NAME
//! ```
//!
//! `curl --insecure https://localhost:4433/NAME` gets it over TCP, from the same server.
#![allow(clippy::print_stdout, reason = "a program prints")]

#[path = "../certificate/mod.rs"]
mod certificate;
mod get;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A file server over HTTP/3.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the files in a directory until SIGTERM, which drains
    Serve(serve::Options),
    /// Writes a file to the standard output
    Get(get::Options),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[allow(dead_code, reason = "the examples' test has a `main` of its own")]
fn main() -> ExitCode {
    run(std::env::args_os())
}

/// Runs the program with these arguments.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options = Options::parse_from(arguments);
    let run = async {
        match options.command {
            Command::Serve(options) => serve::run(options).await,
            Command::Get(options) => get::run(options).await,
        }
    };
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::from);
    match runtime.and_then(|runtime| runtime.block_on(run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
