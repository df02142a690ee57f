//! The programs at a control group, and the table that they share with this process.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, ObjectBuilder};

use super::record::{self, Process, constants};
use super::{Listeners, TargetRule};
use crate::bpf::BpfError;
use crate::bpf::loader::{check_capabilities, collect_log, refused};
use crate::cgroup::CgroupError;
use crate::cgroup::group::ControlGroup;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/redirect.o"));

/// The capabilities (linux/capability.h) that are needed, with their bits.
const CAPABILITIES: [(&str, u32); 3] =
    [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];

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
    Ok(check_capabilities(&CAPABILITIES)?)
}

/// Loads the programs, and attaches them.
pub(super) fn attach(
    group: &ControlGroup,
    listeners: Listeners,
    rules: &[TargetRule],
) -> Result<(Programs, Table), CgroupError> {
    collect_log();
    let process = process().map_err(|source| CgroupError::System {
        doing: "asking for this process's namespaces",
        source,
    })?;
    let mut open = ObjectBuilder::default()
        .open_memory(PROGRAMS)
        .map_err(refused)?;
    let bytes = constants(process, listeners, rules);
    let mut maps = open.maps_mut();
    let section = maps.find(|map| map.name() == CONSTANTS);
    let mut section = section.ok_or(BpfError::Object { missing: CONSTANTS })?;
    let place = section.initial_value_mut().unwrap_or_default();
    let place = place.get_mut(..bytes.len());
    place
        .ok_or(BpfError::Object { missing: CONSTANTS })?
        .copy_from_slice(&bytes);
    drop(maps);
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

fn process() -> io::Result<Process> {
    let inode = std::fs::metadata("/proc/self/ns/pid")?.ino();
    Ok(Process {
        network: network_cookie()?,
        pid_namespace: inode.try_into().map_err(io::Error::other)?,
        id: std::process::id(),
    })
}

/// Returns the cookie of this thread's network namespace (SO_NETNS_COOKIE, Linux 5.14).
fn network_cookie() -> io::Result<u64> {
    let socket = TcpListener::bind(("127.0.0.1", 0))?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: both pointers are to locals that live during the call, and `length` is the size of `cookie`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(cookie),
        _ => Err(io::Error::last_os_error()),
    }
}
