//! What a controller keeps: versions, hosts and its state.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use weir_policy::GuardCondition;
use weir_units::{Duration, Time};

use crate::{Labels, Stages};

/// Times in the store and in the log: nanoseconds since 1970.
pub(crate) mod since_1970 {
    use super::{Deserialize, Deserializer, Serializer, Time};

    pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_nanos())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        u64::deserialize(from).map(Time::from_nanos)
    }
}

/// Conditions of guards, as text.
mod conditions {
    use super::{Deserialize, Deserializer, GuardCondition, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        conditions: &[GuardCondition],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let texts: Vec<_> = conditions.iter().map(GuardCondition::to_string).collect();
        texts.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<GuardCondition>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let conditions = texts.iter().map(|text| GuardCondition::of_hosts(text));
        conditions
            .collect::<Result<_, _>>()
            .map_err(serde::de::Error::custom)
    }
}

/// The hash of a policy's text: two versions with the same number and other texts are told apart by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextDigest(String);

impl TextDigest {
    /// Returns the digest of a text: the first 16 bytes of its SHA-256, in hexadecimal.
    pub fn of(text: &str) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let bytes = hash.iter().take(16);
        Self(bytes.map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns a digest that a peer has sent.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TextDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A version of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its number, from 1 on; numbers are not used again.
    pub number: u64,
    /// Who has pushed it, as in the certificate.
    pub author: String,
    /// When.
    #[serde(with = "since_1970")]
    pub at: Time,
    /// What the author says about it.
    pub message: String,
    /// The policy file.
    pub text: String,
    /// The digest of the text.
    pub digest: TextDigest,
}

/// How a version comes to all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutPlan {
    /// To which hosts, one stage after the other.
    pub stages: Stages,
    /// How long the hosts of a stage have it before the next stage begins.
    pub wait: Duration,
    /// When it is taken back: as soon as one of these holds of the hosts that have it.
    #[serde(with = "conditions")]
    pub guards: Vec<GuardCondition>,
    /// How many hosts may refuse it before it is taken back.
    pub refusals: u64,
}

impl RolloutPlan {
    /// All hosts at once, without a guard.
    pub fn at_once() -> Self {
        Self {
            stages: Stages::at_once(),
            wait: Duration::ZERO,
            guards: Vec::new(),
            refusals: 0,
        }
    }
}

/// A version on its way to all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    /// The version.
    pub version: u64,
    /// How it goes.
    pub plan: RolloutPlan,
    /// The number of the stage, from 0 on.
    pub stage: usize,
    /// Of this stage and those before it: hosts with a hash of at most this have the version. As text, for JSON
    /// numbers are less exact.
    pub cutoffs: Vec<Cutoff>,
    /// When the stage began.
    #[serde(with = "since_1970")]
    pub began: Time,
}

/// The largest hash of the hosts of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cutoff(pub u64);

impl Serialize for Cutoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Cutoff {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let parsed = u64::from_str_radix(&text, 16);
        parsed.map(Self).map_err(serde::de::Error::custom)
    }
}

/// What decides which host gets which version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The name of the fleet, which no other store has.
    pub fleet: String,
    /// The number of decisions so far: a host takes none with a lower number than the one it has.
    pub revision: u64,
    /// The last revision that was set above those that hosts had from another copy of the store; 0 for none.
    pub superseded: u64,
    /// The newest version; 0 without one.
    pub newest: u64,
    /// The version that all hosts have had last; 0 for the empty policy.
    pub stable: u64,
    /// The one before it.
    pub previous: u64,
    /// The version on its way.
    pub rollout: Option<Rollout>,
}

impl State {
    /// The state of a fleet without a version.
    pub fn new(fleet: impl Into<String>) -> Self {
        Self {
            fleet: fleet.into(),
            revision: 0,
            superseded: 0,
            newest: 0,
            stable: 0,
            previous: 0,
            rollout: None,
        }
    }
}

/// What is known of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name, as in its certificate.
    pub name: String,
    /// What it says of itself.
    pub labels: Labels,
    /// The version that it runs; `None` before it has told of one.
    pub running: Option<u64>,
    /// When it told so first.
    #[serde(with = "since_1970")]
    pub since: Time,
}
