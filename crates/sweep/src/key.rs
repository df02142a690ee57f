//! Run keys: hashes of everything that determines a result.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::code::CodeVersion;
use crate::steady::SteadyRule;

/// A hash of the scenario with its seed, of the early-stop rule, and of the code that the run uses. Runs with the same
/// key give the same results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunKey(String);

impl RunKey {
    /// Returns the key of a run of the scenario that a text describes.
    pub(crate) fn new(text: &str, steady: Option<&SteadyRule>, code: &CodeVersion) -> Self {
        let mut hash = Sha256::new();
        for part in [&code.to_string(), text, &format!("{steady:?}")] {
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
