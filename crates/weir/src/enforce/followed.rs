//! A policy that comes from a controller.

use std::time::Instant;

use tokio::runtime::Runtime;
use weir_control::{
    AssignedPolicy, HeldFile, HeldPolicy, HostChannel, HostEvent, HostOptions, HostState,
};
use weir_enforce::operation::{Enforce as DataPlane, ProcessorUse};
use weir_policy::Policy;
use weir_rollout::MetricsOrder;

use crate::failure::Failure;
use crate::logging;
use crate::policy::{HostArguments, Plane};

/// A channel to a controller, and the last version on disk.
pub(super) struct Followed {
    channel: HostChannel,
    file: HeldFile,
    kept: Option<HeldPolicy>,
    order: Option<MetricsOrder>,
    reported_at: Instant,
    processors: ProcessorUse,
    _runtime: Runtime,
}

/// What a controller wants to be in force.
pub(super) struct Assigned {
    pub(super) policy: Policy,
    kept: HeldPolicy,
}

impl Followed {
    /// Reads the last version, and starts to search for a controller.
    pub(super) fn start(arguments: &HostArguments) -> Result<Self, Failure> {
        let (options, file) = arguments.options("enforce")?;
        let kept = file.load().map_err(Failure::of)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Failure::of)?;
        let entered = runtime.enter();
        let channel = HostChannel::start(HostOptions {
            held: kept.as_ref().map(|kept| kept.held.clone()),
            ..options
        });
        drop(entered);
        Ok(Self {
            channel,
            file,
            kept,
            order: None,
            reported_at: Instant::now(),
            processors: ProcessorUse::begin(),
            _runtime: runtime,
        })
    }

    /// Returns the policy to begin with: the last version, or none.
    pub(super) fn first(&self, plane: Plane, interfaces: &[String]) -> Result<Policy, Failure> {
        match &self.kept {
            None => Ok(Policy::default()),
            Some(kept) => {
                let name = self.file.path().display().to_string();
                let checked = plane.read(&name, &kept.text, interfaces);
                checked.policy.map_err(|error| {
                    Failure::Failed(format!(
                        "version {}, which is in {name}, cannot be put in force here any more; remove the file to \
                         begin without a policy: {error}",
                        kept.held.version
                    ))
                })
            }
        }
    }

    /// Returns the version in force; 0 is none.
    pub(super) fn version(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.held.version)
    }

    /// Describes the connection, for messages.
    pub(super) fn connection(&self) -> String {
        match &*self.channel.state().borrow() {
            HostState::Searching => "it searches for a controller".to_owned(),
            HostState::Failed(reason) => format!("it has no contact to a controller: {reason}"),
            HostState::Attached(controller) => format!("it comes from {controller}"),
            HostState::Ahead(controller) => {
                format!("{controller} does not know it: its store is an old copy")
            }
        }
    }

    /// Returns the next version that is to be put in force; refuses those that cannot be.
    pub(super) fn next(&mut self, plane: Plane, interfaces: &[String]) -> Option<Assigned> {
        while let Some(event) = self.channel.next_event() {
            match event {
                HostEvent::Metrics(order) => self.order = order,
                HostEvent::Assigned(assigned) => {
                    if let Some(assigned) = self.read(assigned, plane, interfaces) {
                        return Some(assigned);
                    }
                }
            }
        }
        None
    }

    fn read(
        &self,
        assigned: AssignedPolicy,
        plane: Plane,
        interfaces: &[String],
    ) -> Option<Assigned> {
        let AssignedPolicy { held, text } = assigned;
        let version = held.version;
        let checked = plane.read(&format!("version {version}"), &text, interfaces);
        for warning in &checked.warnings {
            tracing::warn!("{warning}");
        }
        match checked.policy {
            Ok(policy) => Some(Assigned {
                policy,
                kept: HeldPolicy { held, text },
            }),
            Err(error) => {
                self.refuse(version, &logging::in_one_line(&error));
                None
            }
        }
    }

    /// Tells that a version cannot be put in force.
    pub(super) fn refuse(&self, version: u64, reason: &str) {
        tracing::warn!(
            "version {version} is not put in force: {reason}; the policy before it stays"
        );
        self.channel.refused(version, reason);
    }

    /// Keeps a version that is in force, and tells so.
    pub(super) fn keep(&mut self, assigned: &Assigned) -> Result<(), String> {
        let saved = self.file.save(&assigned.kept);
        saved.map_err(|error| error.to_string())?;
        self.channel.taken(assigned.kept.held.clone());
        self.kept = Some(assigned.kept.clone());
        Ok(())
    }

    /// Reports what connections did, when it is time.
    pub(super) fn report(&mut self, plane: &impl DataPlane) {
        let Some(order) = self.order else { return };
        if weir_units::Duration::from(self.reported_at.elapsed()) < order.interval {
            return;
        }
        self.reported_at = Instant::now();
        let snapshot = plane.snapshot(order.span).unwrap_or_default();
        let snapshot = match self.processors.look() {
            Some(busy) => snapshot.with_cpu(busy),
            None => snapshot,
        };
        self.channel.metrics(self.version(), snapshot);
    }
}

impl Assigned {
    pub(super) fn version(&self) -> u64 {
        self.kept.held.version
    }
}
