//! Loads scenarios from files, and shipped ones by name.

use std::path::PathBuf;

use clap::Args;
use weir_scenario::{
    Document, GroupUnderPolicy, LoadedScenario, Scenario, ScenarioError, Setting, shipped,
};
use weir_sim::Simulation;

use crate::failure::Failure;

/// The scenario and its settings.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    /// Scenario file, or the name of a shipped one (`weir list`)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// New value of a key, by its path: `parameters.line_rate=5Gbps` (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Setting>,

    /// Policy file whose rules choose the congestion control of the groups that say what they stand for
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl ScenarioArguments {
    /// Creates the arguments of a command that has them among others.
    pub(crate) fn of(file: PathBuf, set: Vec<Setting>, policy: Option<PathBuf>) -> Self {
        Self { file, set, policy }
    }

    /// Returns the settings of the command line, followed by `more`.
    pub(crate) fn settings(&self, more: Option<Setting>) -> Vec<Setting> {
        self.set.iter().cloned().chain(more).collect()
    }

    /// Returns the scenario's name.
    pub(crate) fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// Loads the file or, if it does not exist, the shipped scenario with this name.
    ///
    /// # Errors
    /// Neither exists; it cannot be read; it has mistakes.
    pub(crate) fn load(&self, settings: &[Setting]) -> Result<LoadedScenario, ScenarioError> {
        self.document()?.with(settings)?.expand()
    }

    /// Returns the scenario under the policy, if there is one, and what becomes of its groups.
    ///
    /// # Errors
    /// The policy cannot be read, has mistakes, or does not fit the scenario.
    pub(crate) fn under_policy(
        &self,
        loaded: LoadedScenario,
    ) -> Result<(LoadedScenario, Vec<GroupUnderPolicy>), Failure> {
        let Some(path) = &self.policy else {
            return Ok((loaded, Vec::new()));
        };
        let policy = weir_scenario::load_policy(path).map_err(Failure::of)?;
        loaded
            .under(&policy)
            .map_err(|misfit| Failure::Failed(format!("{}: {misfit}", path.display())))
    }

    /// Returns the policy as a setting, by which results name it.
    pub(crate) fn policy_setting(&self) -> Option<Setting> {
        self.policy.as_ref().map(|path| Setting {
            path: "policy".to_owned(),
            value: path.display().to_string(),
        })
    }

    /// Returns the text of the file or of the shipped scenario.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn text(&self) -> Result<String, ScenarioError> {
        shipped::text_or_shipped(&self.file)
    }

    /// Whether a policy chooses the congestion control of groups.
    pub(crate) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    fn document(&self) -> Result<Document, ScenarioError> {
        Document::load_or_shipped(&self.file)
    }

    /// Converts an error to a failure.
    pub(crate) fn failure(&self, error: &ScenarioError) -> Failure {
        Failure::Failed(shipped::error_message(&self.file, error))
    }
}

/// Checks that the simulator accepts the scenario and its variants.
///
/// # Errors
/// The simulator's error.
pub(crate) fn check_simulation(loaded: &LoadedScenario) -> Result<(), Failure> {
    try_all(loaded, |scenario| {
        Simulation::new(scenario.clone())
            .map(drop)
            .map_err(|error| error.to_string())
    })
}

/// Checks that this machine can emulate the networks of the scenario and its variants. Creates nothing.
///
/// # Errors
/// The reason why it cannot.
pub(crate) fn check_emulation(loaded: &LoadedScenario) -> Result<(), Failure> {
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
