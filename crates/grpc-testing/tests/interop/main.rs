//! Every case with every pair of a client and a server.
//! `cargo test -p weir-grpc-testing --test interop weir-go::` runs the cases of one pair.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test tells why it is skipped")]

mod draining;
mod go;
mod http2;
mod pair;
mod weir;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use pair::Pair;
use weir_grpc_testing::cases;

/// Every case, one after the other over the same connection.
const ALL: &str = "all";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = Pair::ALL.into_iter().flat_map(|pair| {
        cases::NAMES
            .into_iter()
            .chain([ALL])
            .map(move |case| trial(pair, case))
    });
    let trials = trials.chain([draining()]);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(pair: Pair, case: &'static str) -> Trial {
    let name = format!("{}::{case}", pair.name());
    Trial::ignorable_test(name, move || {
        if let Some(reason) = pair.unsupported(case) {
            return Ok(Completion::ignored_with(reason));
        }
        if let Some(reason) = pair.missing() {
            return Ok(Completion::ignored_with(reason));
        }
        pair.run(case).map_err(Failed::from)?;
        Ok(Completion::Completed)
    })
}

fn draining() -> Trial {
    Trial::ignorable_test("weir-go::a_server_drains", || {
        if let Some(reason) = Pair::WeirGo.missing() {
            return Ok(Completion::ignored_with(reason));
        }
        pair::run_in_time(draining::a_server_drains()).map_err(Failed::from)?;
        Ok(Completion::Completed)
    })
}
