//! Replaces the programs in a build without them.

use std::net::SocketAddr;

use super::{Listeners, TargetRule};
use crate::bpf::BpfError;
use crate::cgroup::CgroupError;
use crate::cgroup::group::ControlGroup;

/// The programs at a control group; they cannot exist in this build.
#[derive(Debug)]
pub(super) enum Programs {}

/// The table of original destinations; it cannot exist in this build.
#[derive(Debug)]
pub(super) enum Table {}

/// Fails, because there are no programs to load.
pub(super) fn check_permission() -> Result<(), CgroupError> {
    Err(BpfError::NotBuilt.into())
}

pub(super) fn attach(
    _: &ControlGroup,
    _: Listeners,
    _: &[TargetRule],
) -> Result<(Programs, Table), CgroupError> {
    Err(BpfError::NotBuilt.into())
}

impl Programs {
    pub(super) fn detach(&mut self) {
        match *self {}
    }
}

impl Table {
    pub(super) fn take(&self, _: SocketAddr) -> Option<SocketAddr> {
        match *self {}
    }
}
