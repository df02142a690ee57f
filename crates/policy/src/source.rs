//! Where an endpoint has its policy from.

use std::fmt;

use crate::{Policy, PolicyFlow, TconControl};

/// Who decides how flows are controlled: a [`Policy`] from a file, or a controller that changes it.
pub trait PolicySource: fmt::Debug + Send + Sync {
    /// How a flow is controlled from now on; `None` leaves it as it is. Asked once for each new path.
    fn control(&self, flow: &PolicyFlow<'_>) -> Option<TconControl>;
}

impl PolicySource for Policy {
    fn control(&self, flow: &PolicyFlow<'_>) -> Option<TconControl> {
        self.rule(flow)?.control.clone()
    }
}
