//! The source of an endpoint's policy.

use std::fmt;
use std::sync::Arc;

use crate::{Policy, PolicyFlow, TconControl};

/// Decides how flows are controlled: a [`Policy`] from a file, or a controller that changes it.
pub trait PolicySource: fmt::Debug + Send + Sync {
    /// Returns how a flow is controlled from now on; `None` leaves it as it is. Called once per new
    /// path.
    fn control(&self, flow: &PolicyFlow<'_>) -> Option<TconControl>;
}

impl<S: PolicySource + ?Sized> PolicySource for Arc<S> {
    fn control(&self, flow: &PolicyFlow<'_>) -> Option<TconControl> {
        (**self).control(flow)
    }
}

impl PolicySource for Policy {
    fn control(&self, flow: &PolicyFlow<'_>) -> Option<TconControl> {
        self.decision(flow)?.control().cloned()
    }
}
