//! Pacing of this machine's sockets by the program of `/bpf/pacing.bpf.c`, for the lifetime of the value.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf as _, Iter, Link, MapHandle, Object, ObjectBuilder};
use libbpf_sys::bpf_program__attach_iter;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::bpf::BpfError;
use crate::bpf::loader::refused;
use crate::mounts::open_cgroup_root;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pacing.o"));

/// The maps that it shares with the programs at interfaces.
const SHARED: [&str; 3] = ["flows", "caps", "settings"];

/// The attached program.
#[derive(Debug)]
pub(super) struct SocketPacing {
    /// `None` once it is detached.
    link: Option<Link>,
    object: Object,
    /// The network namespace of the sockets.
    namespace: File,
}

impl SocketPacing {
    /// Attaches the program to the sockets of all control groups, with the maps of `shared`. Sockets that a
    /// killed process has left paced get their own rates back.
    pub(super) fn attach(
        shared: impl Fn(&'static str) -> Result<MapHandle, BpfError>,
    ) -> Result<Self, BpfError> {
        let system = |doing| move |source| BpfError::System { doing, source };
        let root = open_cgroup_root().map_err(system("opening the root of the control groups"))?;
        let namespace = File::open("/proc/thread-self/ns/net")
            .map_err(system("opening /proc/thread-self/ns/net"))?;
        let mut pacing = Self {
            link: None,
            object: load(shared)?,
            namespace,
        };
        pacing.link = Some(pacing.attach_at(&root)?);
        pacing.for_each_socket("restore_stale")?;
        Ok(pacing)
    }

    fn attach_at(&self, root: &File) -> Result<Link, BpfError> {
        let mut programs = self.object.progs_mut();
        let program = programs
            .find(|program| program.name() == "socket_event")
            .ok_or(BpfError::Object {
                missing: "socket_event",
            })?;
        program.attach_cgroup(root.as_raw_fd()).map_err(refused)
    }

    /// Runs an iterator over the TCP sockets of this thread's network namespace.
    fn for_each_socket(&self, name: &'static str) -> Result<(), BpfError> {
        let mut programs = self.object.progs_mut();
        let program = programs
            .find(|program| program.name() == name)
            .ok_or(BpfError::Object { missing: name })?;
        let program = program.as_libbpf_object().as_ptr();
        let system = |source| BpfError::System {
            doing: "iterating over the TCP sockets",
            source,
        };
        // SAFETY: the program is loaded, and no options are given.
        let link = unsafe { bpf_program__attach_iter(program, std::ptr::null()) };
        let link = NonNull::new(link).ok_or_else(|| system(std::io::Error::last_os_error()))?;
        // SAFETY: a link without another owner.
        let link = unsafe { Link::from_ptr(link) };
        let mut sockets = Iter::new(&link).map_err(refused)?;
        // The program runs while its output, which is empty, is read.
        sockets.read_to_end(&mut Vec::new()).map_err(system)?;
        Ok(())
    }

    /// Gives the sockets their own rates back.
    fn restore(&self) {
        let kind = Some(LinkNameSpaceType::Network);
        // It takes CAP_SYS_ADMIN, but this thread is usually there already. In another namespace there are no
        // sockets to restore.
        let _ = move_into_link_name_space(self.namespace.as_fd(), kind);
        // Without it they stay paced until the next start.
        let _ = self.for_each_socket("restore");
    }
}

impl Drop for SocketPacing {
    fn drop(&mut self) {
        // First, or a round trip would set a rate again.
        self.link = None;
        let pacing: &Self = self;
        // In a separate thread, because this one may be in another namespace and has to stay there.
        std::thread::scope(|scope| {
            scope.spawn(|| pacing.restore());
        });
    }
}

fn load(shared: impl Fn(&'static str) -> Result<MapHandle, BpfError>) -> Result<Object, BpfError> {
    let mut open = ObjectBuilder::default()
        .open_memory(PROGRAMS)
        .map_err(refused)?;
    for name in SHARED {
        let own = shared(name)?;
        let mut maps = open.maps_mut();
        let mut map = maps
            .find(|map| map.name() == name)
            .ok_or(BpfError::Object { missing: name })?;
        reuse(&mut map, own.as_fd())?;
    }
    open.load().map_err(refused)
}

fn reuse(map: &mut libbpf_rs::OpenMapMut<'_>, own: BorrowedFd<'_>) -> Result<(), BpfError> {
    map.reuse_fd(own).map_err(refused)
}
