//! The access policy in force, which can be replaced.

use std::sync::{Arc, PoisonError, RwLock};

use weir_policy::AccessPolicy;

/// A handle to the policy in force. Clones share it.
#[derive(Clone, Debug)]
pub struct Access(Arc<RwLock<Arc<AccessPolicy>>>);

impl Access {
    /// Puts a policy in force.
    pub fn new(policy: AccessPolicy) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(policy))))
    }

    /// Replaces the policy, for connections that begin from now on.
    pub fn replace(&self, policy: AccessPolicy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Returns the policy in force.
    pub fn current(&self) -> Arc<AccessPolicy> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
