//! What a run gives, as the hashes of the files that `weir run` writes: whoever has the saved scenario can compare them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use weir_results::{Output, RunFiles, Summary};
use weir_scenario::Scenario;
use weir_sim::Simulation;
use weir_units::Time;

use crate::error::StudioError;

/// The slices of a run between which it may be given up.
const SLICES: u64 = 1_000;

/// The files of a run.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Digests {
    /// Each with its SHA-256.
    files: Vec<DigestOfFile>,
    /// The summary, as `summary.json` has it except for the CPU time.
    summary: serde_json::Value,
}

#[derive(Debug, PartialEq, Serialize)]
struct DigestOfFile {
    name: String,
    sha256: String,
}

/// Simulates a scenario from its start to its end and writes its tables as `weir run --out` does, to a temporary
/// directory.
///
/// # Errors
/// The scenario cannot be simulated, or the files cannot be written. `is_wanted` has become false.
pub(crate) fn of_whole_run(
    scenario: Scenario,
    is_wanted: &AtomicBool,
) -> Result<Digests, StudioError> {
    let directory = tempfile::tempdir().map_err(StudioError::Files)?;
    let (title, source) = (scenario.title.clone(), scenario.source.clone());
    let output = Output::create(directory.path())?;
    let mut files = output.run(Vec::new(), scenario.duration)?;
    let slice = (scenario.duration / SLICES).max(weir_units::Duration::from_nanos(1));
    let mut simulation = Simulation::new(scenario)?;
    while simulation.now() < simulation.end() {
        if !is_wanted.load(Ordering::Relaxed) {
            return Err(StudioError::Stopped);
        }
        let until: Time = simulation.now() + slice;
        simulation.advance(until, &mut files)?;
    }
    let run = simulation.finish(&mut files)?;
    let finished = RunFiles::finish(files)?;
    let summary = Summary::new(title, source, run);
    let paths = output.commit(&summary, "", [finished])?;
    let tables = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "parquet"));
    let mut files = tables
        .map(|path| of_file(path))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let mut summary = serde_json::to_value(&summary.run).unwrap_or_default();
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("cpu_s");
    }
    Ok(Digests { files, summary })
}

fn of_file(path: &Path) -> Result<DigestOfFile, StudioError> {
    let content = fs::read(path).map_err(StudioError::Files)?;
    let hash = Sha256::digest(content);
    let name = path.file_name().unwrap_or_default();
    Ok(DigestOfFile {
        name: name.to_string_lossy().into_owned(),
        sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    const TEXT: &str = include_str!("../tests/two-flows.toml");

    fn digests(text: &str) -> Digests {
        let scenario = Script::of_file("test.toml", text).scenario().unwrap();
        of_whole_run(scenario, &AtomicBool::new(true)).unwrap()
    }

    #[test]
    fn equal_scenarios_give_equal_files_and_others_do_not() {
        let first = digests(TEXT);
        let names: Vec<_> = first.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["flows.parquet", "samples.parquet"]);
        assert_eq!(first, digests(TEXT));
        let other = digests(&TEXT.replace("30KB", "60KB"));
        assert_ne!(first.files[1].sha256, other.files[1].sha256);
    }

    #[test]
    fn a_run_that_nobody_waits_for_is_given_up() {
        let scenario = Script::of_file("test.toml", TEXT).scenario().unwrap();
        let given_up = of_whole_run(scenario, &AtomicBool::new(false));
        assert!(matches!(given_up, Err(StudioError::Stopped)));
    }
}
