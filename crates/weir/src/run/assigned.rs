//! The version of a controller's policy that this host is to have, for a live run.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;
use weir_control::{AssignedPolicy, HeldPolicy, HostChannel, HostEvent};
use weir_policy::Policy;
use weir_rollout::Assignment;
use weir_scenario::{GroupUnderPolicy, LoadedScenario, Setting, parse_policy};

use crate::failure::Failure;
use crate::policy::{HostArguments, named};

/// How long a controller may take to assign a version.
const ASSIGNMENT: Duration = Duration::from_secs(10);

/// A version that this host has taken. The host stays attached until this is dropped, or another version comes:
/// a run has one policy from its beginning to its end.
pub(super) struct AssignedVersion {
    name: String,
    policy: Policy,
    runtime: Runtime,
}

impl AssignedVersion {
    /// Attaches to the controller and takes the version that it has for this host, if the scenario fits it.
    pub(super) fn take(
        arguments: &HostArguments,
        scenario: &LoadedScenario,
    ) -> Result<Self, Failure> {
        let (options, file) = arguments.options("lab")?;
        let kept = file.load().map_err(Failure::of)?;
        let runtime = Runtime::new().map_err(Failure::of)?;
        // It says that it has nothing, so that the controller sends the version in any case.
        let mut channel = {
            let _entered = runtime.enter();
            HostChannel::start(options)
        };
        let AssignedPolicy { held, text } = runtime.block_on(first(&mut channel))?;
        let version = held.version;
        let assignment = Assignment {
            fleet: held.fleet.clone(),
            revision: held.revision,
            version,
            digest: held.digest.clone(),
        };
        if let Some(kept) = kept.filter(|kept| !kept.held.accepts(&assignment)) {
            return Err(Failure::Failed(format!(
                "{} is older than version {} of fleet {}, which is in {}: the controller's store is an old copy, or \
                 another fleet's; remove the file to take it",
                named(version),
                kept.held.version,
                kept.held.fleet,
                file.path().display()
            )));
        }
        let policy = match text.as_str() {
            "" => Policy::default(),
            text => parse_policy(&named(version), text).map_err(Failure::of)?,
        };
        let assigned = Self {
            name: named(version),
            policy,
            runtime,
        };
        // Whether it fits this scenario is nothing that other hosts need to know.
        assigned.apply(scenario.clone())?;
        file.save(&HeldPolicy {
            held: held.clone(),
            text,
        })
        .map_err(Failure::of)?;
        channel.taken(held);
        assigned.runtime.spawn(stay(channel));
        Ok(assigned)
    }

    /// Returns the scenario under the version.
    pub(super) fn apply(
        &self,
        loaded: LoadedScenario,
    ) -> Result<(LoadedScenario, Vec<GroupUnderPolicy>), Failure> {
        if self.policy.rules.is_empty() {
            return Ok((loaded, Vec::new()));
        }
        let under = loaded.under(&self.policy);
        under.map_err(|misfit| Failure::Failed(format!("{}: {misfit}", self.name)))
    }

    /// Returns the version as a setting, by which results name it.
    pub(super) fn setting(&self) -> Setting {
        Setting {
            path: "policy".to_owned(),
            value: self.name.clone(),
        }
    }
}

/// Waits for the first version.
async fn first(channel: &mut HostChannel) -> Result<AssignedPolicy, Failure> {
    let state = channel.state();
    let assigned = async {
        loop {
            match channel.event().await {
                Some(HostEvent::Assigned(assigned)) => return Some(assigned),
                Some(HostEvent::Metrics(_)) => {}
                None => return None,
            }
        }
    };
    match timeout(ASSIGNMENT, assigned).await {
        Ok(Some(assigned)) => Ok(assigned),
        _ => Err(Failure::Failed(format!(
            "no version has come within {} s: {:?}",
            ASSIGNMENT.as_secs(),
            *state.borrow()
        ))),
    }
}

/// Stays attached until another version comes, which this run cannot take.
async fn stay(mut channel: HostChannel) {
    while let Some(event) = channel.event().await {
        if let HostEvent::Assigned(assigned) = event {
            tracing::info!(
                "{} has come: this run goes on under the one before, detached",
                named(assigned.held.version)
            );
            return;
        }
    }
}
