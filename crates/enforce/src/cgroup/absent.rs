//! Replaces the programs in a build without them.

use std::path::Path;

use super::CgroupError;
use super::counts::{Counts, Population};
use super::group::ControlGroup;
use super::record::SlotRecord;
use crate::bpf::BpfError;

/// The programs at sockets; they cannot exist in this build.
#[derive(Debug)]
pub(super) enum Programs {}

/// Fails, because there are no programs to load.
pub(super) fn check_permission() -> Result<(), CgroupError> {
    Err(BpfError::NotBuilt.into())
}

impl Programs {
    pub(super) fn load(_: &ControlGroup, _: bool) -> Result<Self, CgroupError> {
        Err(BpfError::NotBuilt.into())
    }

    pub(super) fn pin_undo(&self, _: &Path) -> Result<(), CgroupError> {
        match *self {}
    }

    pub(super) fn attach(&mut self, _: &ControlGroup, _: bool) -> Result<(), CgroupError> {
        match *self {}
    }

    pub(super) fn detach(&mut self) {
        match *self {}
    }

    pub(super) fn set_rules(&self, _: &[u8]) -> Result<(), CgroupError> {
        match *self {}
    }

    pub(super) fn reconcile(&self) -> Result<(), CgroupError> {
        match *self {}
    }

    pub(super) fn counts(&self, _: u32) -> Counts {
        match *self {}
    }

    pub(super) fn clear(&self, _: u32) -> Result<(), CgroupError> {
        match *self {}
    }

    pub(super) fn take_records(&self) -> Result<Vec<SlotRecord>, CgroupError> {
        match *self {}
    }

    pub(super) fn populations(&self, _: u32) -> Result<Vec<Population>, CgroupError> {
        match *self {}
    }
}
