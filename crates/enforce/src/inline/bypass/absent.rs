//! Replaces the bypass in a build without programs.

use weir_units::{Duration, Time};

use super::{Arming, BypassError, Pause};
use crate::bpf::BpfError;
use crate::operation::BypassCounts;
use crate::port::PacketSocket;

/// A bypass; it cannot exist in this build.
#[derive(Debug)]
pub(in crate::inline) enum Bypass {}

impl Bypass {
    /// Fails, because this build has no programs.
    pub(in crate::inline) fn arm(_: [&PacketSocket; 2]) -> Result<(Self, Arming), BypassError> {
        Err(BpfError::NotBuilt.into())
    }

    pub(in crate::inline) fn pause(&self, _: Time) -> Pause {
        match *self {}
    }

    pub(in crate::inline) fn until_next_beat(&self, _: Time) -> Duration {
        match *self {}
    }

    pub(in crate::inline) fn beat(&mut self, _: Time) {
        match *self {}
    }

    pub(in crate::inline) fn counts(&self) -> BypassCounts {
        match *self {}
    }
}
