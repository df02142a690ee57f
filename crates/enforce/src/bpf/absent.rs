//! Replaces the loader in a build without programs.

use std::os::fd::OwnedFd;

use super::BpfError;
use super::parameters::{Algorithm, RawParameters};

/// Returns whether an interface has our clsact filters; this build cannot tell.
pub(crate) fn has_filters(_: &str) -> bool {
    false
}

/// Removes our clsact filters.
pub(crate) fn remove_filters(_: &str) {}

/// A loaded program; it cannot exist in this build.
#[derive(Debug)]
pub(super) enum LoadedProgram {}

/// Fails, because there are no programs to load.
pub(super) fn check_permission() -> Result<(), BpfError> {
    Err(BpfError::NotBuilt)
}

pub(super) fn load(_: Algorithm, _: &str, _: RawParameters) -> Result<LoadedProgram, BpfError> {
    Err(BpfError::NotBuilt)
}

impl LoadedProgram {
    pub(super) fn observations(&self) -> Result<OwnedFd, BpfError> {
        match *self {}
    }

    pub(super) fn deadlines(&self) -> Result<OwnedFd, BpfError> {
        match *self {}
    }
}
