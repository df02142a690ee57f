//! What names a run: everything that decides its outcome.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weir_scenario::Scenario;

use crate::steady::SteadyRule;

/// The version of the code that decides what a run gives: a hash of its sources.
pub const CODE_VERSION: &str = env!("WEIR_CODE_VERSION");

/// A hash of the scenario, with its seed, of the rule by which it may end early, and of the code. Runs
/// with the same key give the same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunKey(String);

impl RunKey {
    /// The key of a run of this scenario. What cannot be written as a scenario, which only a mistake in
    /// this program can cause, has the key of its debug text.
    pub(crate) fn of(scenario: &Scenario, steady: Option<&SteadyRule>) -> Self {
        let scenario = toml::to_string(scenario).unwrap_or_else(|_| format!("{scenario:?}"));
        Self::of_text(&scenario, steady)
    }

    /// The key of a run that cannot be made, by what was asked for.
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
