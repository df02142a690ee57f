//! Replaces the programs in a build without them.

use weir_tcon::{Cap, FreeWindow, ReportSchedule};
use weir_units::Time;

use super::Options;
use super::event::{Event, KEY};
use crate::bpf::BpfError;
use crate::operation::Totals;

/// The programs at some interfaces; it cannot exist in this build.
#[derive(Debug)]
pub enum DataPlane {}

/// Returns whether an interface has our clsact filters; this build cannot tell.
pub(crate) fn has_filters(_: &str) -> bool {
    false
}

/// Removes our clsact filters.
pub(crate) fn remove_filters(_: &str) {}

impl DataPlane {
    /// Fails, because this build has no programs.
    ///
    /// # Errors
    /// [`BpfError::NotBuilt`]; an interface that does not exist is reported first.
    pub fn attach(interfaces: &[String], _: &Options) -> Result<Self, BpfError> {
        for name in interfaces {
            super::interface::Interface::find(name)?;
        }
        Err(BpfError::NotBuilt)
    }

    pub(super) fn interface(&self, _: u32) -> Option<&str> {
        match *self {}
    }

    pub(super) fn take_gone(&mut self) -> Vec<String> {
        match *self {}
    }

    pub(super) fn interfaces(&self) -> Vec<String> {
        match *self {}
    }

    pub(super) fn listen(&self, _: &mut Vec<Event>) -> Result<(), BpfError> {
        match *self {}
    }

    pub(super) fn set_schedule(&mut self, _: ReportSchedule) {
        match *self {}
    }

    pub(super) fn set_rates(&mut self, _: bool) -> Result<(), BpfError> {
        match *self {}
    }

    pub(super) fn paces(&self, _: u32) -> bool {
        match *self {}
    }

    pub(super) fn set_free_window(&self, _: FreeWindow) {
        match *self {}
    }

    pub(super) fn set_cap(&self, _: u32, _: Cap, _: Time) {
        match *self {}
    }

    pub(super) fn free(&self, _: u32) -> Result<(), BpfError> {
        match *self {}
    }

    pub(super) fn forget(&self, _: u32, _: &[u8; KEY]) -> Result<(), BpfError> {
        match *self {}
    }

    pub(super) fn active_at(&self, _: &[u8; KEY]) -> Option<Time> {
        match *self {}
    }

    pub(super) fn counted(&self, _: Totals) -> Totals {
        match *self {}
    }
}
