//! The hostile client: all its cases against one of our servers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Trial};
use weir_h3_interop::{
    CertificateFiles, Failed, HostileResult, WeirServer, hostile_cases, hostile_results,
};

use crate::{runtime, trial};

/// Cases that need the server's time, and run alone.
const BUSY: [&str; 1] = ["flood_of_resets"];
/// How many of the other cases run at the same time: most of them wait.
const AT_ONCE: usize = 8;

/// Cases in which the program leaves more to the server than this outcome.
const STRICTER: [(&str, &str); 5] = [
    ("connect_with_path", "stream reset with 0x10e"),
    ("huge_headers", "stream reset with 0x107"),
    ("huge_headers_frame", "stream reset with 0x107"),
    ("many_headers", "response 431"),
    ("qpack_bomb", "response 431"),
];

type Results = Result<HashMap<String, HostileResult>, Failed>;

/// The cases that were chosen, which the first test runs.
struct Batch {
    cases: Vec<String>,
    results: OnceLock<Results>,
}

pub(crate) fn trials(arguments: &Arguments) -> Result<Vec<Trial>, Failed> {
    let name = |case: &str| format!("aioquic::hostile::{case}");
    let all = hostile_cases()?;
    let chosen = all.iter().filter(|case| is_chosen(arguments, &name(case)));
    let batch = Arc::new(Batch {
        cases: chosen.cloned().collect(),
        results: OnceLock::new(),
    });
    let trials = all.into_iter().map(|case| {
        let batch = batch.clone();
        trial(name(&case), move || batch.judge(&case))
    });
    Ok(trials.collect())
}

/// Whether the command line selects a test.
fn is_chosen(arguments: &Arguments, name: &str) -> bool {
    let matches = |filter: &String| {
        if arguments.exact {
            name == filter
        } else {
            name.contains(filter)
        }
    };
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}

impl Batch {
    fn judge(&self, case: &str) -> Result<(), Failed> {
        let results = self.results.get_or_init(|| run(&self.cases));
        let results = results.as_ref().map_err(Clone::clone)?;
        let Some(result) = results.get(case) else {
            return Err(Failed("no result".to_owned()));
        };
        if std::env::var_os("WEIR_PEERS_TRACE").is_some() {
            eprintln!("{case}: {}", result.outcome);
        }
        if is_right(case, result) {
            Ok(())
        } else {
            Err(Failed(result.outcome.clone()))
        }
    }
}

/// Runs cases against one server, and looks that it has come to rest.
fn run(cases: &[String]) -> Results {
    let files = CertificateFiles::new()?;
    let runtime = runtime()?;
    let server = {
        let _entered = runtime.enter();
        WeirServer::start(&files)?
    };
    let attack =
        |cases: &[String], at_once| hostile_results(server.address(), &files, cases, at_once);
    let (busy, waiting): (Vec<_>, Vec<_>) = cases
        .iter()
        .cloned()
        .partition(|case| BUSY.contains(&case.as_str()));
    let mut results = attack(&waiting, AT_ONCE)?;
    results.extend(attack(&busy, 1)?);
    // The client takes silence for an answer, and a busy machine may be silent for long.
    let doubtful: Vec<_> = cases
        .iter()
        .filter(|case| !results.get(*case).is_some_and(|it| is_right(case, it)))
        .cloned()
        .collect();
    results.extend(attack(&doubtful, 1)?);
    runtime.block_on(server.rest(&files))?;
    Ok(results)
}

/// Whether the server did right in a case.
fn is_right(case: &str, result: &HostileResult) -> bool {
    let stricter = STRICTER.iter().find(|(name, _)| *name == case);
    result.is_right && stricter.is_none_or(|(_, begin)| result.outcome.starts_with(begin))
}
