//! The programs at a control group, and the table that they share with this process.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, ObjectBuilder};

use super::record::{self, Process, constants};
use super::{Listeners, TargetRule};
use crate::bpf::BpfError;
use crate::bpf::interface::own_netns_cookie;
use crate::bpf::loader::{self, collect_log, refused, set_constants};
use crate::cgroup::CgroupError;
use crate::cgroup::group::ControlGroup;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/redirect.o"));

/// The section of the constants in the object.
const CONSTANTS: &str = ".rodata.redirect";
const TABLE: &str = "originals";

/// What runs at the control group. Those that redirect come last: by then the others know what became of it.
const ATTACHED: [&str; 5] = [
    "peer_name4",
    "peer_name6",
    "connection_begins",
    "connects4",
    "connects6",
];

/// The attached programs. The links keep them, and their maps, alive.
#[derive(Debug)]
pub(super) struct Programs(Vec<Link>);

/// The table of original destinations.
#[derive(Debug)]
pub(super) struct Table(MapHandle);

/// Fails unless this process may do all that is needed.
pub(super) fn check_permission() -> Result<(), CgroupError> {
    Ok(loader::check_permission()?)
}

/// Loads the programs, and attaches them.
pub(super) fn attach(
    group: &ControlGroup,
    listeners: Listeners,
    rules: &[TargetRule],
) -> Result<(Programs, Table), CgroupError> {
    collect_log();
    let mut open = ObjectBuilder::default()
        .open_memory(PROGRAMS)
        .map_err(refused)?;
    let constants = constants(process()?, listeners, rules);
    set_constants(&mut open, CONSTANTS, &constants)?;
    let object = open.load().map_err(refused)?;
    let table = object.maps().find(|map| map.name() == TABLE);
    let table = table.ok_or(BpfError::Object { missing: TABLE })?;
    let table = MapHandle::try_from(&table).map_err(refused)?;
    let mut links = Vec::new();
    for name in ATTACHED {
        let program = object.progs_mut().find(|program| program.name() == name);
        let program = program.ok_or(BpfError::Object { missing: name })?;
        let link = program.attach_cgroup(group.as_fd().as_raw_fd());
        links.push(link.map_err(refused)?);
    }
    Ok((Programs(links), Table(table)))
}

impl Programs {
    /// Those that redirect go first.
    pub(super) fn detach(&mut self) {
        while let Some(link) = self.0.pop() {
            drop(link);
        }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.detach();
    }
}

impl Table {
    pub(super) fn take(&self, source: SocketAddr) -> Option<SocketAddr> {
        let key = record::endpoint(source);
        let found = self.0.lookup(&key, MapFlags::ANY).ok()??;
        // Where that fails the entry gives way to others in time.
        let _ = self.0.delete(&key);
        record::read_endpoint(&found)
    }
}

/// Returns this process, in the network namespace of this thread.
fn process() -> Result<Process, BpfError> {
    let path = "/proc/self/ns/pid";
    let namespace = std::fs::metadata(path).map_err(|source| BpfError::System {
        doing: "asking for this process's PID namespace",
        source,
    })?;
    Ok(Process {
        network: own_netns_cookie()?,
        // The kernel numbers namespaces with 32 bits.
        pid_namespace: namespace.ino() as u32,
        id: std::process::id(),
    })
}
