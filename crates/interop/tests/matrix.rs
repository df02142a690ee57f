//! Runs every case with every stack in both directions. `cargo test -p weir-interop --test matrix quinn::`
//! runs the cases with quinn.

use libtest_mimic::{Arguments, Trial};
use weir_interop::{Case, Direction, Peer, run};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let trials = Peer::ALL.into_iter().flat_map(|peer| {
        Direction::ALL
            .into_iter()
            .flat_map(move |direction| Case::ALL.map(|case| trial(case, peer, direction)))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(case: Case, peer: Peer, direction: Direction) -> Trial {
    let name = format!("{peer}::{direction}::{case}");
    match case.unsupported(peer, direction) {
        None => Trial::test(name, move || {
            run(case, peer, direction).map_err(|failure| failure.to_string().into())
        }),
        Some(reason) => {
            let reason = reason.to_string();
            Trial::ignorable_test(name, move || {
                Ok(libtest_mimic::Completion::ignored_with(reason))
            })
        }
    }
}
