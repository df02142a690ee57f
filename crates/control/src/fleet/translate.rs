//! Conversion between the wire and [`weir_rollout`].

use weir_canary::{Estimate, Snapshot, SnapshotParts};
use weir_policy::{GuardCondition, GuardMetric};
use weir_rollout::{
    Assignment, Entry, FleetStatus, Held, Hello, HostStatus, Labels, RolloutPlan, RolloutStatus,
    State, TextDigest, Version,
};
use weir_units::Duration;

use crate::policy_v1 as v1;

/// Why a message is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FleetDecodeError {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("{0}")]
    Text(String),
    #[error("a distribution or a batch that does not exist")]
    Metrics,
}

pub(super) fn hello(hello: v1::HostHello) -> Result<Hello, FleetDecodeError> {
    let labels = Labels::new(hello.labels);
    Ok(Hello {
        name: hello.name,
        labels: labels.map_err(|error| FleetDecodeError::Text(error.to_string()))?,
        held: hello.held.map(held),
    })
}

pub(super) fn to_hello(hello: &Hello) -> v1::HostHello {
    v1::HostHello {
        name: hello.name.clone(),
        labels: to_labels(&hello.labels),
        held: hello.held.as_ref().map(to_held),
    }
}

fn to_labels(labels: &Labels) -> std::collections::HashMap<String, String> {
    let pairs = labels.iter();
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn held(held: v1::Held) -> Held {
    Held {
        fleet: held.fleet,
        revision: held.revision,
        version: held.version,
        digest: TextDigest::from_text(held.digest),
    }
}

fn to_held(held: &Held) -> v1::Held {
    v1::Held {
        fleet: held.fleet.clone(),
        revision: held.revision,
        version: held.version,
        digest: held.digest.to_string(),
    }
}

pub(super) fn to_assignment(assignment: &Assignment, text: &str) -> v1::Assignment {
    v1::Assignment {
        fleet: assignment.fleet.clone(),
        revision: assignment.revision,
        version: assignment.version,
        digest: assignment.digest.to_string(),
        text: text.to_owned(),
    }
}

pub(super) fn assignment(message: v1::Assignment) -> (Assignment, String) {
    let assignment = Assignment {
        fleet: message.fleet,
        revision: message.revision,
        version: message.version,
        digest: TextDigest::from_text(message.digest),
    };
    (assignment, message.text)
}

pub(super) fn metrics(metrics: v1::HostMetrics) -> Result<(u64, Snapshot), FleetDecodeError> {
    let distribution = |distribution: v1::Distribution| {
        let bins = distribution.bins.into_iter();
        let bins = bins.map(|bin| u16::try_from(bin).unwrap_or(u16::MAX));
        bins.zip(distribution.counts).collect::<Vec<_>>()
    };
    let distributions: Vec<_> = { metrics.distributions.into_iter() }
        .map(distribution)
        .collect();
    let (segments, _) = metrics.segments.as_chunks::<2>();
    let snapshot = Snapshot::of_parts(SnapshotParts {
        segments: segments
            .iter()
            .map(|[sent, retransmitted]| (*sent, *retransmitted))
            .collect(),
        delivered: metrics.delivered_bytes,
        connections: metrics.connections,
        completed: metrics.completed,
        distributions: distributions
            .try_into()
            .map_err(|_| FleetDecodeError::Metrics)?,
    });
    Ok((metrics.version, snapshot.ok_or(FleetDecodeError::Metrics)?))
}

pub(super) fn to_metrics(version: u64, snapshot: &Snapshot) -> v1::HostMetrics {
    let parts = snapshot.parts();
    let distributions = parts.distributions.into_iter();
    v1::HostMetrics {
        version,
        segments: { parts.segments.into_iter() }
            .flat_map(|(sent, retransmitted)| [sent, retransmitted])
            .collect(),
        delivered_bytes: parts.delivered,
        connections: parts.connections,
        completed: parts.completed,
        distributions: distributions
            .map(|bins| v1::Distribution {
                bins: bins.iter().map(|(bin, _)| u32::from(*bin)).collect(),
                counts: bins.iter().map(|(_, count)| *count).collect(),
            })
            .collect(),
    }
}

pub(super) fn plan(plan: Option<v1::Plan>) -> Result<RolloutPlan, FleetDecodeError> {
    let plan = plan.ok_or(FleetDecodeError::Missing("plan"))?;
    let text = |error: &dyn std::fmt::Display| FleetDecodeError::Text(error.to_string());
    let guards = plan
        .guards
        .iter()
        .map(|guard| GuardCondition::of_hosts(guard));
    Ok(RolloutPlan {
        stages: plan.stages.parse().map_err(|error| text(&error))?,
        wait: Duration::from_nanos(plan.wait_nanoseconds),
        guards: guards
            .collect::<Result<_, _>>()
            .map_err(|error| text(&error))?,
        refusals: plan.refusals,
    })
}

pub(super) fn to_plan(plan: &RolloutPlan) -> v1::Plan {
    v1::Plan {
        stages: plan.stages.to_string(),
        wait_nanoseconds: plan.wait.as_nanos(),
        guards: plan.guards.iter().map(GuardCondition::to_string).collect(),
        refusals: plan.refusals,
    }
}

pub(super) fn to_version(version: &Version, with_text: bool) -> v1::Version {
    v1::Version {
        number: version.number,
        author: version.author.clone(),
        at_nanoseconds: version.at.as_nanos(),
        message: version.message.clone(),
        digest: version.digest.to_string(),
        text: if with_text {
            version.text.clone()
        } else {
            String::new()
        },
    }
}

pub(super) fn to_entry(entry: &Entry) -> v1::LogEntry {
    v1::LogEntry {
        number: entry.number,
        at_nanoseconds: entry.at.as_nanos(),
        text: entry.event.to_string(),
        json: serde_json::to_string(entry).unwrap_or_default(),
    }
}

pub(super) fn to_status(
    status: &FleetStatus,
    hosts: &[HostStatus],
    controller: &str,
) -> v1::FleetStatus {
    let state = &status.state;
    let rollout = status.rollout.as_ref();
    let versions = status.by_version.iter();
    v1::FleetStatus {
        fleet: state.fleet.clone(),
        controller: controller.to_owned(),
        revision: state.revision,
        newest: state.newest,
        stable: state.stable,
        rollout: rollout.and_then(|rollout| to_rollout(rollout, state)),
        connected: status.hosts.0,
        known: status.hosts.1,
        versions: versions
            .map(|(version, (connected, known))| v1::VersionCount {
                version: *version,
                connected: *connected,
                known: *known,
            })
            .collect(),
        hosts: hosts.iter().map(to_host).collect(),
        ahead: status.ahead.as_ref().map(to_held),
    }
}

fn to_rollout(status: &RolloutStatus, state: &State) -> Option<v1::RolloutStatus> {
    let rollout = state.rollout.as_ref()?;
    let figures = GuardMetric::OF_HOSTS.into_iter().map(|metric| v1::Figure {
        name: metric.name().to_owned(),
        treated: status.treated.estimate(metric).map(to_estimate),
        control: status.control.estimate(metric).map(to_estimate),
    });
    Some(v1::RolloutStatus {
        version: rollout.version,
        plan: Some(to_plan(&rollout.plan)),
        stage: u32::try_from(rollout.stage + 1).unwrap_or(u32::MAX),
        taken: status.taken,
        pending: status.pending,
        refusals: status.refusals,
        waited_nanoseconds: status.waited.map(Duration::as_nanos),
        figures: figures
            .filter(|figure| figure.treated.is_some() || figure.control.is_some())
            .collect(),
    })
}

fn to_estimate(estimate: Estimate) -> v1::Estimate {
    v1::Estimate {
        value: estimate.value,
        low: estimate.low,
        high: estimate.high.is_finite().then_some(estimate.high),
        connections: estimate.connections,
    }
}

fn to_host(host: &HostStatus) -> v1::HostStatus {
    v1::HostStatus {
        name: host.name.clone(),
        labels: to_labels(&host.labels),
        connected: host.is_connected,
        running: host.running,
        since_nanoseconds: host.since.as_nanos(),
        assigned: host.assigned,
        problem: host.problem.clone().unwrap_or_default(),
    }
}
