//! Runs every case with every stack in both directions. Writes the matrix to the file named by the
//! argument, or to standard output.
#![allow(clippy::print_stdout, reason = "the program's output")]

use std::process::ExitCode;

use weir_interop::matrix::{Entry, Outcome, document};
use weir_interop::{Case, Direction, Peer};

fn main() -> ExitCode {
    let mut entries = Vec::new();
    for case in Case::ALL {
        for peer in Peer::ALL {
            for direction in Direction::ALL {
                let outcome = Outcome::of(case, peer, direction);
                if let Outcome::Failed(reason) = &outcome {
                    eprintln!("{case}, {peer}, {direction}: {reason}");
                }
                entries.push(Entry {
                    case,
                    peer,
                    direction,
                    outcome,
                });
            }
        }
        eprintln!("{case}");
    }
    let text = document(&entries);
    match std::env::args_os().nth(1) {
        None => print!("{text}"),
        Some(path) => {
            if let Err(error) = std::fs::write(&path, text) {
                eprintln!("cannot write {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    let failed = |entry: &Entry| matches!(entry.outcome, Outcome::Failed(_));
    if entries.iter().any(failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
