//! The fast path: connections that no rule controls, and frames without TCP, go straight across the cable
//! also while its process lives (`bpf/fast_path.h`).

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ProgramInput};
use weir_wire::FlowKey;

use super::{BypassError, FastPathCounts};
use crate::bpf::BpfError;
use crate::bpf::flow_key::key_of;
use crate::bpf::loader::refused;

/// The words of `struct forwarded_counts`.
const COUNTS: usize = 7;

/// The program that forgets silent connections.
const FORGET_SILENT: &str = "weir_forget_silent";

/// The tables of a fast path. A connection's key is from the view of the cable's first end.
#[derive(Debug)]
pub(crate) struct FastPath {
    announced: MapHandle,
    counts: MapHandle,
}

impl FastPath {
    pub(super) fn of(object: &Object) -> Result<Self, BypassError> {
        Ok(Self {
            announced: map(object, "announced")?,
            counts: map(object, "forwarded_counts")?,
        })
    }

    /// Has the segments of a connection go straight across from now on. `flow` is in the direction of the
    /// data from the cable's first end. Call it before the SYN-ACK is forwarded. Returns whether they will.
    pub(crate) fn announce(&self, flow: &FlowKey) -> bool {
        let value = 1_u32.to_ne_bytes();
        let updated = (self.announced).update(&key_of(flow), &value, MapFlags::ANY);
        updated.is_ok()
    }

    /// Returns what the programs have counted.
    pub(crate) fn counts(&self) -> FastPathCounts {
        let first = 0_u32.to_ne_bytes();
        let values = self.counts.lookup_percpu(&first, MapFlags::ANY);
        let mut sums = [0_u64; COUNTS];
        for value in values.ok().flatten().unwrap_or_default() {
            let words = value
                .chunks_exact(8)
                .filter_map(|word| word.try_into().ok());
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum += u64::from_ne_bytes(word);
            }
        }
        let [
            frames,
            other_frames,
            bytes,
            other_bytes,
            begun,
            closed,
            idle,
        ] = sums;
        FastPathCounts {
            connections: begun.saturating_sub(closed + idle),
            begun,
            closed,
            idle,
            frames: [frames, other_frames],
            bytes: [bytes, other_bytes],
        }
    }
}

/// Forgets connections that have been silent for too long.
pub(super) fn forget_silent(object: &mut Object) -> Result<(), BypassError> {
    let mut programs = object.progs_mut();
    let program = programs.find(|program| program.name() == FORGET_SILENT);
    let program = program.ok_or(BpfError::Object {
        missing: FORGET_SILENT,
    })?;
    let ran = program.test_run(ProgramInput::default());
    Ok(ran.map(drop).map_err(refused)?)
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, BypassError> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.ok_or(BpfError::Object { missing: name })?;
    Ok(MapHandle::try_from(&map).map_err(refused)?)
}
