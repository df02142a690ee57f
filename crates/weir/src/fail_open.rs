//! Fail-open of a cable between two interfaces, for the commands that run one.

use weir_enforce::bypass::{Arming, BypassError};
use weir_enforce::inline::{AgentBridge, Enforcer};

use crate::failure::Failure;

/// A cable that can have a bypass.
pub(crate) trait Cable {
    fn arm_bypass(&mut self) -> Result<Arming, BypassError>;
    fn remove_bypass(&self) -> Result<(), BypassError>;
}

impl Cable for Enforcer {
    fn arm_bypass(&mut self) -> Result<Arming, BypassError> {
        Self::arm_bypass(self)
    }

    fn remove_bypass(&self) -> Result<(), BypassError> {
        Self::remove_bypass(self)
    }
}

impl Cable for AgentBridge {
    fn arm_bypass(&mut self) -> Result<Arming, BypassError> {
        Self::arm_bypass(self)
    }

    fn remove_bypass(&self) -> Result<(), BypassError> {
        Self::remove_bypass(self)
    }
}

/// Arms the bypass of a cable between two interfaces, and says so. Where that is not possible, it warns and
/// the cable fails closed.
pub(crate) fn arm(cable: &mut impl Cable, [one, other]: [&str; 2]) -> Result<(), Failure> {
    match cable.arm_bypass() {
        Ok(arming) => {
            let before = match arming {
                Arming::Fresh => "",
                Arming::TookOver => "; they did since an earlier process died",
            };
            tracing::info!(
                "fail-open is armed: frames pass between {one} and {other} without this process if it dies \
                 or hangs{before}"
            );
        }
        Err(reason) => {
            disarm(cable)?;
            tracing::warn!(
                "fail-open is not armed, so nothing passes between {one} and {other} if this \
                 process dies or hangs: {reason}; --fail-closed accepts that"
            );
        }
    }
    Ok(())
}

/// Has a cable fail closed: removes what a killed process has left, as frames must not pass twice.
pub(crate) fn disarm(cable: &impl Cable) -> Result<(), Failure> {
    match cable.remove_bypass() {
        // Where this process may not even look, none like it has armed one.
        Err(error @ BypassError::MayNotLook) => {
            tracing::warn!("{error}; with one, frames pass twice");
            Ok(())
        }
        result => result.map_err(Failure::of),
    }
}
