//! A policy source that follows the controller, for endpoints that decide by flow: DCQUIC's.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;
use weir_policy::{Policy, PolicyFlow, PolicySource, TconControl};

use super::{HeldFile, HeldFileError, HeldPolicy, HostChannel, HostEvent, HostOptions};

/// A policy that the controller may replace at any time. New paths of an endpoint get the new one; what was
/// decided before stays. The last version is kept on disk, and holds without a controller.
#[derive(Clone, Debug)]
pub struct FollowedPolicy {
    policy: Arc<RwLock<Policy>>,
    version: watch::Receiver<Option<u64>>,
}

/// Reads a version's text, and checks that it can be put in force here; or else says why not.
pub type ReadPolicy = fn(text: &str) -> Result<Policy, String>;

impl FollowedPolicy {
    /// Starts to follow, with what the file has. Runs on the current tokio runtime, as long as a clone lives.
    ///
    /// # Errors
    /// [`HeldFileError`]: what is kept cannot be read.
    pub fn start(
        options: HostOptions,
        file: HeldFile,
        read: ReadPolicy,
    ) -> Result<Self, HeldFileError> {
        let kept = file.load()?;
        let policy = kept.as_ref().map(|kept| read(&kept.text)).transpose();
        let policy = policy.map_err(|problem| HeldFileError::Corrupt {
            path: file.path().to_owned(),
            problem,
        })?;
        let version = kept.as_ref().map(|kept| kept.held.version);
        let (in_force, version) = watch::channel(version);
        let followed = Self {
            policy: Arc::new(RwLock::new(policy.unwrap_or_default())),
            version,
        };
        let channel = HostChannel::start(HostOptions {
            held: kept.map(|kept| kept.held),
            ..options
        });
        let shared = Arc::downgrade(&followed.policy);
        tokio::spawn(async move {
            let mut channel = channel;
            while let Some(event) = channel.event().await {
                let HostEvent::Assigned(assigned) = event else {
                    // Flows of endpoints are not measured.
                    continue;
                };
                let Some(policy) = shared.upgrade() else {
                    return;
                };
                let version = assigned.held.version;
                let kept = HeldPolicy {
                    held: assigned.held,
                    text: assigned.text,
                };
                let put = read(&kept.text).and_then(|new| {
                    file.save(&kept).map_err(|error| error.to_string())?;
                    Ok(new)
                });
                match put {
                    Ok(new) => {
                        *policy.write().unwrap_or_else(PoisonError::into_inner) = new;
                        in_force.send_replace(Some(version));
                        tracing::info!(version, "in force for new paths");
                        channel.taken(kept.held);
                    }
                    Err(reason) => {
                        tracing::warn!(version, reason, "not put in force");
                        channel.refused(version, reason);
                    }
                }
            }
        });
        Ok(followed)
    }

    /// Returns the number of the version in force, with notice of its changes; `None` before the first one, and 0 for
    /// the empty policy.
    pub fn version(&self) -> watch::Receiver<Option<u64>> {
        self.version.clone()
    }
}

impl PolicySource for FollowedPolicy {
    fn control(&self, flow: &PolicyFlow<'_>) -> Option<TconControl> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        policy.control(flow)
    }
}
