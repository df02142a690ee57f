//! The shipped scenarios, by name.

use std::path::Path;

use crate::document::read_text;
use crate::loader::LARGEST_FILE;
use crate::{Document, ScenarioError};

/// Declares a list of names, each with the text of its file.
macro_rules! shipped {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// The name and the text of each scenario.
pub static SHIPPED: &[(&str, &str)] = shipped! {
    "buffer-sharing"
    "buffer-sharing-1g"
    "dctcp-queue"
    "dcquic-queue"
    "incast"
    "incast-background"
    "leaf-spine-web-search"
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
    "dcudp-live"
    "dcudp-unmarked"
    "dcudp-rtts"
    "tcon-wan"
    "tcon-scale"
    "tcon-dctcp"
    "sed-small"
    "sed-large"
    "sed-large-ports"
    "sed-latency"
    "sed-mixes"
};

impl Document {
    /// Reads the file or, if it does not exist, the shipped scenario with this name.
    ///
    /// # Errors
    /// See [`Document::load`].
    pub fn load_or_shipped(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&path.display().to_string(), &text_or_shipped(path)?)
    }
}

/// Returns the text of the file or, if it does not exist, of the shipped scenario with this name.
///
/// # Errors
/// It cannot be read.
pub fn text_or_shipped(path: &Path) -> Result<String, ScenarioError> {
    let is_there = path.exists() && !path.is_dir();
    match text(path).filter(|_| !is_there) {
        Some(text) => Ok(text.to_owned()),
        None => read_text(path, LARGEST_FILE, "scenario"),
    }
}

/// Formats an error of [`Document::load_or_shipped`]. If the path may be meant as a name, the
/// message lists the shipped scenarios.
pub fn error_message(path: &Path, error: &ScenarioError) -> String {
    let is_name = path.components().count() == 1 && !path.exists();
    match error {
        ScenarioError::Unreadable { .. } if is_name => {
            let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            format!("{error}; these scenarios ship: {names}")
        }
        error => error.to_string(),
    }
}

fn text(name: &Path) -> Option<&'static str> {
    let found = SHIPPED
        .iter()
        .find(|(shipped, _)| Path::new(shipped) == name);
    found.map(|(_, text)| *text)
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
            let text = super::text(Path::new(name)).unwrap_or_else(|| panic!("{name:?}"));
            assert_eq!(text, std::fs::read_to_string(&path).unwrap());
            count += 1;
        }
        assert_eq!(count, SHIPPED.len());
    }
}
