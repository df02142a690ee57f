//! Scenarios: from files, and those that ship in the program.

use std::path::{Path, PathBuf};

use clap::Args;
use weir_scenario::{Document, Loaded, Scenario, ScenarioError, Setting};
use weir_sim::Simulation;

use crate::failure::Failure;

/// Names, each with the text of its file.
macro_rules! shipped {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// The scenarios that ship: name and text.
pub(crate) static SHIPPED: &[(&str, &str)] = shipped! {
    "buffer-sharing"
    "buffer-sharing-1g"
    "dctcp-queue"
    "dcquic-queue"
    "incast"
    "convergence"
    "cubic-fairness"
    "handshake"
    "packet-size"
    "migration"
    "coexistence"
    "dcudp-throughput"
    "dcudp-recovery"
    "dcudp-fairness"
    "dcudp-coexistence"
    "tcon-wan"
    "tcon-scale"
    "tcon-dctcp"
    "sed-small"
    "sed-large"
    "sed-large-ports"
    "sed-latency"
};

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
    pub(crate) fn load(&self, settings: &[Setting]) -> Result<Loaded, ScenarioError> {
        self.document()?.with(settings)?.expand()
    }

    fn document(&self) -> Result<Document, ScenarioError> {
        let is_there = self.file.exists() && !self.file.is_dir();
        match shipped(&self.file).filter(|_| !is_there) {
            Some(text) => Document::parse(&self.name(), text),
            None => Document::load(&self.file),
        }
    }

    /// What to tell of an error; where somebody may have meant a name, which there are.
    pub(crate) fn failure(&self, error: &ScenarioError) -> Failure {
        let is_name = self.file.components().count() == 1 && !self.file.exists();
        match error {
            ScenarioError::Unreadable { .. } if is_name => {
                let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                Failure::Failed(format!("{error}; these scenarios ship: {names}"))
            }
            error => Failure::of(error),
        }
    }
}

fn shipped(name: &Path) -> Option<&'static str> {
    let found = SHIPPED
        .iter()
        .find(|(shipped, _)| Path::new(shipped) == name);
    found.map(|(_, text)| *text)
}

/// Sees whether the simulator takes the scenario and its variants.
///
/// # Errors
/// What it says.
pub(crate) fn try_out(loaded: &Loaded) -> Result<(), Failure> {
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
pub(crate) fn try_out_live(loaded: &Loaded) -> Result<(), Failure> {
    try_all(loaded, |scenario| {
        weir_lab::check(scenario)
            .map(drop)
            .map_err(|error| error.to_string())
    })
}

fn try_all(
    loaded: &Loaded,
    check: impl Fn(&Scenario) -> Result<(), String>,
) -> Result<(), Failure> {
    check(&loaded.scenario).map_err(Failure::Failed)?;
    for variant in &loaded.variants {
        check(&variant.scenario)
            .map_err(|error| Failure::Failed(format!("variant `{}`: {error}", variant.name)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_in_the_folder_ships() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap();
            let text = shipped(Path::new(name)).unwrap_or_else(|| panic!("{name:?}"));
            assert_eq!(text, std::fs::read_to_string(&path).unwrap());
            count += 1;
        }
        assert_eq!(count, SHIPPED.len());
    }
}
