//! Replaces the programs in a build without them.

use weir_tcon::{Cap, FreeWindow, ReportSchedule};
use weir_units::Time;

use super::Options;
use super::event::Event;
use crate::bpf::BpfError;
use crate::bpf::flow_key::KEY;
use crate::bpf::interface::Interface;
use crate::operation::Totals;

/// The programs at some interfaces; it cannot exist in this build.
#[derive(Debug)]
pub enum DataPlane {}

impl DataPlane {
    /// Fails, because this build has no programs.
    ///
    /// # Errors
    /// [`BpfError::NotBuilt`]; an interface that does not exist is reported first.
    pub fn attach(interfaces: &[String], _: &Options) -> Result<Self, BpfError> {
        for name in interfaces {
            Interface::find(name)?;
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

    pub(super) fn set_idle(&self, _: bool) {
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
