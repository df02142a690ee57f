//! Run keys: hashes of everything that determines a result.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weir_scenario::Scenario;

use crate::steady::SteadyRule;

/// The version of the code: a hash of the sources that determine the results.
pub const CODE_VERSION: &str = env!("WEIR_CODE_VERSION");

/// A hash of the scenario with its seed, of the early-stop rule, and of the code. Runs with the same key
/// give the same results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunKey(String);

impl RunKey {
    /// Returns the key of a run of this scenario. If the scenario cannot be serialized, which only a bug in
    /// this program can cause, the key is that of its debug text.
    pub(crate) fn of(scenario: &Scenario, steady: Option<&SteadyRule>) -> Self {
        let scenario = toml::to_string(scenario).unwrap_or_else(|_| format!("{scenario:?}"));
        Self::of_text(&scenario, steady)
    }

    /// Returns the key of a run that cannot be built, from the requested settings.
    pub(crate) fn of_text(text: &str, steady: Option<&SteadyRule>) -> Self {
        let mut hash = Sha256::new();
        for part in [CODE_VERSION, text, &format!("{steady:?}")] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        Self(
            digest[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
