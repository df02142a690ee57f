//! Uploads over HTTP/3: streamed in both programs, with a SHA-256 that follows the data as a trailer.
//!
//! ```sh
//! cargo run -p weir-h3 --example upload -- serve DIR
//! cargo run -p weir-h3 --example upload -- send FILE     # or `-` for the standard input
//! ```
#![allow(clippy::print_stdout, reason = "a program prints")]

#[path = "../certificate/mod.rs"]
mod certificate;
mod outgoing;
mod send;
mod serve;
mod store;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sha2::Sha256;
use sha2::digest::Output;

/// The trailer with the SHA-256 of the data, as hexadecimal digits.
const CHECKSUM: &str = "sha-256";

/// Uploads over HTTP/3.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Keeps what is sent in a directory, until SIGTERM, which drains, or Ctrl-C
    Serve(serve::Options),
    /// Sends a file, or the standard input
    Send(send::Options),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A SHA-256 as text.
fn hexadecimal(checksum: &Output<Sha256>) -> String {
    checksum.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[allow(dead_code, reason = "the examples' test has a `main` of its own")]
fn main() -> ExitCode {
    run(std::env::args_os())
}

/// Runs the program with these arguments.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options = Options::parse_from(arguments);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let result = match options.command {
        Command::Serve(options) => {
            let result = runtime.block_on(serve::run(options));
            // Waits until the uploads that were given up have removed their files.
            drop(runtime);
            result
        }
        Command::Send(options) => {
            let result = runtime.block_on(send::run(options));
            // A read of the standard input may wait for ever.
            runtime.shutdown_background();
            result
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
