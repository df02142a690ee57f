//! Replaces the bypass in a build without programs.

use weir_units::{Duration, Time};
use weir_wire::FlowKey;

use super::{Arming, BypassCounts, BypassError, FastPathCounts, Pause};
use crate::bpf::BpfError;
use crate::port::PacketSocket;

/// A bypass; it cannot exist in this build.
#[derive(Debug)]
pub(crate) enum Bypass {}

impl Bypass {
    /// Fails, because this build has no programs.
    pub(crate) fn arm(_: [&PacketSocket; 2], _: u32) -> Result<(Self, Arming), BypassError> {
        Err(BpfError::NotBuilt.into())
    }

    pub(crate) fn pause(&self, _: Time) -> Pause {
        match *self {}
    }

    pub(crate) fn until_next_beat(&self, _: Time) -> Duration {
        match *self {}
    }

    pub(crate) fn beat(&mut self, _: Time) {
        match *self {}
    }

    pub(crate) fn counts(&self) -> BypassCounts {
        match *self {}
    }

    pub(crate) fn open_fast_path(&self) -> Result<FastPath, BypassError> {
        match *self {}
    }

    pub(crate) fn forget_silent(&mut self) -> Result<(), BypassError> {
        match *self {}
    }
}

/// The fast path; it cannot exist in this build.
#[derive(Debug)]
pub(crate) enum FastPath {}

impl FastPath {
    pub(crate) fn announce(&self, _: &FlowKey) -> bool {
        match *self {}
    }

    pub(crate) fn counts(&self) -> FastPathCounts {
        match *self {}
    }
}
