//! The programs at the sockets of a control group, and the maps that they share with this process.

use std::fmt;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{
    Iter, IterOpts, Link, MapCore as _, MapFlags, MapHandle, MapType, Object, ObjectBuilder,
    ProgramMut, RingBuffer, RingBufferBuilder,
};

use super::CgroupError;
use super::check::tick;
use super::counts::{Counts, Population};
use super::group::ControlGroup;
use super::record::SlotRecord;
use super::rules::RULESET;
use crate::bpf::BpfError;
use crate::bpf::loader::{check_capabilities, collect_log, refused, set_constants};
use crate::namespace::NetworkNamespace;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cgroup.o"));

/// The capabilities (linux/capability.h) that are needed, with their bits. Entering network namespaces takes
/// the last one.
const CAPABILITIES: [(&str, u32); 4] = [
    ("CAP_NET_ADMIN", 12),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

/// The section of the constants in the object.
const CONSTANTS: &str = ".rodata.group";

/// The loaded programs, attached or not.
#[derive(Debug)]
pub(super) struct Programs {
    /// The programs at the control group; dropped first.
    attached: Vec<Link>,
    has_owners: bool,
    reconcile: Link,
    survey: Link,
    holders: Link,
    policy: MapHandle,
    counters: MapHandle,
    populations: MapHandle,
    ring: Ring,
    records: Arc<Mutex<Vec<SlotRecord>>>,
    object: Object,
}

struct Ring(RingBuffer<'static>);

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ring")
    }
}

/// Fails unless this process may do all that is needed.
pub(super) fn check_permission() -> Result<(), CgroupError> {
    Ok(check_capabilities(&CAPABILITIES)?)
}

impl Programs {
    /// Loads the programs for the sockets of a control group.
    pub(super) fn load(group: &ControlGroup, is_dry_run: bool) -> Result<Self, CgroupError> {
        collect_log();
        let mut open = ObjectBuilder::default()
            .open_memory(PROGRAMS)
            .map_err(refused)?;
        set_constants(&mut open, CONSTANTS, &constants(group, is_dry_run))?;
        let object = open.load().map_err(refused)?;
        let sockets = map(&object, "sockets")?;
        let records = Arc::default();
        let ring = listen(&map(&object, "records")?, &records)?;
        Ok(Self {
            attached: Vec::new(),
            has_owners: false,
            reconcile: iterator(&object, "reconcile")?,
            survey: program(&object, "survey")?
                .attach_iter(sockets.as_fd())
                .map_err(refused)?,
            holders: iterator(&object, "holders")?,
            policy: map(&object, "policy")?,
            counters: map(&object, "counters")?,
            populations: map(&object, "populations")?,
            ring,
            records,
            object,
        })
    }

    /// Pins the iterator that undoes all, so that it can be used without this process.
    pub(super) fn pin_undo(&self, path: &Path) -> Result<(), CgroupError> {
        let mut link = iterator(&self.object, "undo")?;
        link.pin(path).map_err(refused)?;
        Ok(())
    }

    /// Attaches the programs to the control group. With `has_owners` those are noted that open sockets.
    pub(super) fn attach(
        &mut self,
        group: &ControlGroup,
        has_owners: bool,
    ) -> Result<(), CgroupError> {
        if has_owners && !self.has_owners {
            // Those that open sockets from now on, then those that have.
            self.attach_program("opened", group)?;
            run(&self.holders)?;
            self.has_owners = true;
        }
        if self.attached.len() <= usize::from(self.has_owners) {
            self.attach_program("option_set", group)?;
            self.attach_program("socket_event", group)?;
        }
        Ok(())
    }

    fn attach_program(
        &mut self,
        name: &'static str,
        group: &ControlGroup,
    ) -> Result<(), CgroupError> {
        let descriptor = group.as_fd().as_raw_fd();
        let link = program(&self.object, name)?.attach_cgroup(descriptor);
        self.attached.push(link.map_err(refused)?);
        Ok(())
    }

    /// Detaches the programs: sockets that open from now on are left alone.
    pub(super) fn detach(&mut self) {
        self.attached.clear();
    }

    /// Puts a version of the policy in the place of the one before; no program uses that afterwards.
    pub(super) fn set_rules(&self, version: &[u8]) -> Result<(), CgroupError> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let (key, value) = (size_of::<u32>() as u32, RULESET as u32);
        let first = 0_u32.to_ne_bytes();
        let map = MapHandle::create(MapType::Array, Some("version"), key, value, 1, &options);
        let map = map.map_err(refused)?;
        map.update(&first, version, MapFlags::ANY)
            .map_err(refused)?;
        let descriptor = map.as_fd().as_raw_fd().to_ne_bytes();
        let put = self.policy.update(&first, &descriptor, MapFlags::ANY);
        Ok(put.map_err(refused)?)
    }

    /// Gives the open sockets of all network namespaces what the rules say.
    pub(super) fn reconcile(&self) -> Result<(), CgroupError> {
        let iterator = &self.reconcile;
        for space in NetworkNamespace::all() {
            // One that cannot be entered has gone.
            space.run(|| run(iterator)).transpose()?;
        }
        Ok(())
    }

    /// Returns what became of the sockets of a slot, since it was cleared.
    pub(super) fn counts(&self, slot: u32) -> Counts {
        let values = self
            .counters
            .lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY);
        let values = values.ok().flatten().unwrap_or_default();
        let counts = values.iter().map(|bytes| Counts::read(bytes));
        counts.fold(Counts::default(), Counts::plus)
    }

    /// Clears the counts of a slot.
    pub(super) fn clear(&self, slot: u32) -> Result<(), CgroupError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(refused)?;
        let zeros = vec![vec![0; Counts::SIZE]; cpus];
        let key = slot.to_ne_bytes();
        let cleared = self.counters.update_percpu(&key, &zeros, MapFlags::ANY);
        Ok(cleared.map_err(refused)?)
    }

    /// Returns the records of measured connections since the last call.
    pub(super) fn take_records(&self) -> Result<Vec<SlotRecord>, CgroupError> {
        self.ring.0.consume().map_err(refused)?;
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *records))
    }

    /// Counts the sockets that belong to each of the first `slots` now.
    pub(super) fn populations(&self, slots: u32) -> Result<Vec<Population>, CgroupError> {
        let zeros = vec![0; Population::SIZE];
        for slot in 0..slots {
            let key = slot.to_ne_bytes();
            let cleared = self.populations.update(&key, &zeros, MapFlags::ANY);
            cleared.map_err(refused)?;
        }
        run(&self.survey)?;
        let read = |slot: u32| {
            let bytes = self.populations.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            Population::read(&bytes.ok().flatten().unwrap_or_default())
        };
        Ok((0..slots).map(read).collect())
    }
}

fn listen(ring: &MapHandle, records: &Arc<Mutex<Vec<SlotRecord>>>) -> Result<Ring, BpfError> {
    let records = Arc::clone(records);
    let mut builder = RingBufferBuilder::new();
    let take = move |bytes: &[u8]| {
        let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
        records.extend(SlotRecord::read(bytes));
        0
    };
    builder.add(ring, take).map_err(refused)?;
    builder.build().map(Ring).map_err(refused)
}

/// Runs an iterator to its end.
fn run(link: &Link) -> Result<(), CgroupError> {
    let mut sockets = Iter::new(link).map_err(refused)?;
    let read = sockets.read_to_end(&mut Vec::new());
    read.map(drop).map_err(|source| CgroupError::System {
        doing: "iterating over sockets",
        source,
    })
}

fn iterator(object: &Object, name: &'static str) -> Result<Link, BpfError> {
    let link = program(object, name)?.attach_iter_with_opts(IterOpts::None);
    link.map_err(refused)
}

fn program<'o>(object: &'o Object, name: &'static str) -> Result<ProgramMut<'o>, BpfError> {
    let mut programs = object.progs_mut();
    let found = programs.find(|program| program.name() == name);
    found.ok_or(BpfError::Object { missing: name })
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, BpfError> {
    let mut maps = object.maps();
    let map = maps
        .find(|map| map.name() == name)
        .ok_or(BpfError::Object { missing: name })?;
    MapHandle::try_from(&map).map_err(refused)
}

/// Returns `struct constants` of bpf/socket_flow.h.
fn constants(group: &ControlGroup, is_dry_run: bool) -> Vec<u8> {
    let tick = u32::try_from(tick().as_nanos() / 1_000).unwrap_or(u32::MAX);
    let mut bytes = group.id().to_ne_bytes().to_vec();
    bytes.extend(tick.to_ne_bytes());
    bytes.extend(u32::from(is_dry_run).to_ne_bytes());
    bytes
}
