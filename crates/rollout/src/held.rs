//! What a host has.

use serde::{Deserialize, Serialize};

use crate::{Assignment, Labels, TextDigest};

/// The decision that a host has put in force last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The fleet of the controller that has decided it.
    pub fleet: String,
    /// The number of the decision.
    pub revision: u64,
    /// The version.
    pub version: u64,
    /// The digest of its text.
    pub digest: TextDigest,
}

impl Held {
    /// Returns whether a host that has this takes an assignment: one of the same fleet, and no older one.
    pub fn accepts(&self, assignment: &Assignment) -> bool {
        self.fleet == assignment.fleet
            && (assignment.revision > self.revision
                || (assignment.revision == self.revision && assignment.digest == self.digest))
    }
}

/// How a host introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its name, as in its certificate.
    pub name: String,
    /// What it says of itself.
    pub labels: Labels,
    /// What it has; `None` if it has had no version yet.
    pub held: Option<Held>,
}
