//! Scenarios: from files, and those that ship in the program.

use std::path::PathBuf;

use clap::Args;
use weir_scenario::{Document, LoadedScenario, Scenario, ScenarioError, Setting, shipped};
use weir_sim::Simulation;

use crate::failure::Failure;

/// Which scenario, and what is to be different.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// A scenario file, or the name of one that ships (`weir list`)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Another value for a key, by its path: `parameters.line_rate=5Gbps`; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Setting>,
}

impl Chosen {
    /// Adds a setting after those of the command line.
    pub(crate) fn settings(&self, more: Option<Setting>) -> Vec<Setting> {
        self.set.iter().cloned().chain(more).collect()
    }

    /// What to call it.
    pub(crate) fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// The file or, if there is none, the scenario that ships under this name.
    ///
    /// # Errors
    /// There is neither; it cannot be read; it has mistakes.
    pub(crate) fn load(&self, settings: &[Setting]) -> Result<LoadedScenario, ScenarioError> {
        self.document()?.with(settings)?.expand()
    }

    fn document(&self) -> Result<Document, ScenarioError> {
        Document::load_or_shipped(&self.file)
    }

    /// What to tell of an error.
    pub(crate) fn failure(&self, error: &ScenarioError) -> Failure {
        Failure::Failed(shipped::told(&self.file, error))
    }
}

/// Sees whether the simulator takes the scenario and its variants.
///
/// # Errors
/// What it says.
pub(crate) fn try_out(loaded: &LoadedScenario) -> Result<(), Failure> {
    try_all(loaded, |scenario| {
        Simulation::new(scenario.clone())
            .map(drop)
            .map_err(|error| error.to_string())
    })
}

/// Sees whether this machine can emulate the networks of the scenario and its variants. Nothing is made.
///
/// # Errors
/// What is in the way.
pub(crate) fn try_out_live(loaded: &LoadedScenario) -> Result<(), Failure> {
    try_all(loaded, |scenario| {
        weir_lab::check(scenario)
            .map(drop)
            .map_err(|error| error.to_string())
    })
}

fn try_all(
    loaded: &LoadedScenario,
    check: impl Fn(&Scenario) -> Result<(), String>,
) -> Result<(), Failure> {
    check(&loaded.scenario).map_err(Failure::Failed)?;
    for variant in &loaded.variants {
        check(&variant.scenario)
            .map_err(|error| Failure::Failed(format!("variant `{}`: {error}", variant.name)))?;
    }
    Ok(())
}
