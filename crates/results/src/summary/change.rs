//! Changes of settings during a run.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::Duration;

use crate::serialized::seconds;

/// A change of settings at a time of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// Its time, from the start of the run.
    #[serde(rename = "at_s", with = "seconds")]
    pub at: Duration,
    /// The names of the ports, switches or groups whose settings changed.
    pub of: Vec<String>,
    /// The new values by key, as in a scenario file.
    pub set: IndexMap<String, String>,
}

/// How many names a text has.
const SHOWN: usize = 3;

impl fmt::Display for ChangeRecord {
    /// Formats as `at 20ms: queue.ecn_threshold = 30 packets of leaf1->spine1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self
            .set
            .iter()
            .map(|(key, value)| format!("{key} = {value}"));
        let values: Vec<_> = values.collect();
        let names: Vec<_> = self.of.iter().take(SHOWN).map(String::as_str).collect();
        write!(
            f,
            "at {}: {} of {}",
            self.at,
            values.join(", "),
            names.join(", ")
        )?;
        match self.of.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
