//! Loads the programs with libbpf, for the lifetime of a [`LoadedProgram`].

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{ErrorKind, Link, MapCore as _, Object, ObjectBuilder, OpenObject, PrintLevel};

use super::error::BpfError;
use super::parameters::{Algorithm, RawParameters};

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/congestion.o"));

/// The kernel's type of a congestion control in BPF.
const STRUCT_OPS_TYPE: &str = "bpf_struct_ops_tcp_congestion_ops";

/// The capabilities (linux/capability.h) needed for loading, with their bits.
const CAPABILITIES: [(&str, u32); 3] =
    [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];

/// A congestion control loaded into the kernel.
#[derive(Debug)]
pub(super) struct LoadedProgram {
    // Dropping the link unregisters the congestion control; the object's maps are dropped after it.
    _link: Link,
    object: Object,
}

/// Loads the programs and registers `algorithm` as `name`.
pub(super) fn load(
    algorithm: Algorithm,
    name: &str,
    fixed: RawParameters,
) -> Result<LoadedProgram, BpfError> {
    collect_log();
    check_kernel()?;
    let mut open = ObjectBuilder::default()
        .open_memory(PROGRAMS)
        .map_err(refused)?;
    choose(&mut open, algorithm, name)?;
    set_parameters(&mut open, fixed)?;
    let mut object = open.load().map_err(refused)?;
    let link = attach(&mut object, algorithm, name)?;
    Ok(LoadedProgram {
        _link: link,
        object,
    })
}

impl LoadedProgram {
    pub(super) fn observations(&self) -> Result<OwnedFd, BpfError> {
        self.map("observations")
    }

    pub(super) fn deadlines(&self) -> Result<OwnedFd, BpfError> {
        self.map("deadlines")
    }

    fn map(&self, name: &'static str) -> Result<OwnedFd, BpfError> {
        let mut maps = self.object.maps();
        let map = maps
            .find(|map| map.name() == name)
            .ok_or(BpfError::Object { missing: name })?;
        map.as_fd()
            .try_clone_to_owned()
            .map_err(|source| BpfError::System {
                doing: "duplicating a file descriptor",
                source,
            })
    }
}

/// Returns the congestion control's name in `bpf/congestion.bpf.c`.
fn in_object(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Dctcp => "dctcp",
        Algorithm::D2tcp => "d2tcp",
    }
}

/// Sets the name of the wanted congestion control, and leaves out the other one with its programs.
fn choose(open: &mut OpenObject, algorithm: Algorithm, name: &str) -> Result<(), BpfError> {
    let wanted = in_object(algorithm);
    let mut named = false;
    for mut map in open.maps_mut() {
        if map.name() == wanted {
            // `name` is the first member of `struct tcp_congestion_ops` in bpf/kernel.h.
            let value = map.initial_value_mut().unwrap_or_default();
            named = write(value, name.as_bytes());
        } else if map.name() == "dctcp" || map.name() == "d2tcp" {
            map.set_autocreate(false).map_err(refused)?;
        }
    }
    if named {
        Ok(())
    } else {
        Err(BpfError::Object { missing: wanted })
    }
}

/// Writes `struct parameters` of bpf/dctcp.h.
fn set_parameters(open: &mut OpenObject, fixed: RawParameters) -> Result<(), BpfError> {
    let mut bytes = Vec::new();
    for number in [fixed.g, fixed.initial_alpha, fixed.min_window] {
        bytes.extend(number.to_ne_bytes());
    }
    let written = open
        .maps_mut()
        .filter(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .any(|mut map| write(map.initial_value_mut().unwrap_or_default(), &bytes));
    if written {
        Ok(())
    } else {
        Err(BpfError::Object {
            missing: "parameters",
        })
    }
}

/// Writes the constants of a section of an object.
pub(crate) fn set_constants(
    open: &mut OpenObject,
    section: &'static str,
    bytes: &[u8],
) -> Result<(), BpfError> {
    let found = open.maps_mut().find(|map| map.name() == section);
    let mut found = found.ok_or(BpfError::Object { missing: section })?;
    if write(found.initial_value_mut().unwrap_or_default(), bytes) {
        Ok(())
    } else {
        Err(BpfError::Object { missing: section })
    }
}

/// Writes `bytes` to the beginning of `target`; returns whether they fit.
fn write(target: &mut [u8], bytes: &[u8]) -> bool {
    let Some(target) = target.get_mut(..bytes.len()) else {
        return false;
    };
    target.copy_from_slice(bytes);
    true
}

fn attach(object: &mut Object, algorithm: Algorithm, name: &str) -> Result<Link, BpfError> {
    let wanted = in_object(algorithm);
    let mut map = object
        .maps_mut()
        .find(|map| map.name() == wanted)
        .ok_or(BpfError::Object { missing: wanted })?;
    map.attach_struct_ops().map_err(|error| match error.kind() {
        // Another process has registered it since the kernel was asked for the name.
        ErrorKind::AlreadyExists => BpfError::NameTaken {
            name: name.to_owned(),
        },
        _ => refused(error),
    })
}

/// Fails unless the process has the capabilities needed for loading.
pub(crate) fn check_permission() -> Result<(), BpfError> {
    check_capabilities(&CAPABILITIES)
}

/// Fails unless the process has these capabilities, given with their bits.
pub(crate) fn check_capabilities(wanted: &[(&'static str, u32)]) -> Result<(), BpfError> {
    const CAP_SYS_ADMIN: u32 = 21;
    let status =
        std::fs::read_to_string("/proc/self/status").map_err(|source| BpfError::System {
            doing: "reading /proc/self/status",
            source,
        })?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    let has = |bit: u32| effective & (1 << bit) != 0;
    let lacks = |&(name, bit): &(&'static str, u32)| {
        // CAP_SYS_ADMIN includes the capabilities that were split off from it.
        let split_off = name != "CAP_NET_ADMIN" && has(CAP_SYS_ADMIN);
        (!has(bit) && !split_off).then_some(name)
    };
    let missing: Vec<_> = wanted.iter().filter_map(lacks).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(BpfError::NotPermitted { missing })
}

/// Fails unless the kernel supports congestion controls as BPF.
fn check_kernel() -> Result<(), BpfError> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(BpfError::NoTypes);
    }
    let types = Btf::from_vmlinux().map_err(refused)?;
    match types.type_by_name::<Struct<'_>>(STRUCT_OPS_TYPE) {
        Some(_) => Ok(()),
        None => Err(BpfError::NoStructOps),
    }
}

thread_local! {
    /// libbpf's output on this thread since the last [`collect_log`].
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Collects libbpf's warnings for [`refused`]; libbpf writes them to standard error otherwise.
pub(crate) fn collect_log() {
    LOG.take();
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, message| {
        LOG.with_borrow_mut(|log| log.push(message));
    })));
}

pub(crate) fn refused(error: libbpf_rs::Error) -> BpfError {
    BpfError::Refused {
        source: io::Error::other(format!("{error:#}")),
        log: LOG.take(),
    }
}
