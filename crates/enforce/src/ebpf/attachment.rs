//! A program attached to an interface, for the lifetime of the value.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use libbpf_rs::{
    AsRawLibbpf as _, Link, Object, ProgramMut, TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder,
};
use libbpf_sys::bpf_program__attach_tcx;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Hook;
use super::interface::Interface;
use crate::bpf::BpfError;
use crate::bpf::loader::refused;

/// The priority of our clsact filters: the next process finds those of a killed one by it.
const PRIORITY: u32 = 0x7765;
const HANDLE: u32 = 1;

/// An attached program.
#[derive(Debug)]
pub(super) enum Attachment {
    /// The kernel removes it with the link.
    Tcx { _link: Link },
    /// It stays until it is removed.
    Clsact { _filter: Filter },
}

/// A clsact filter.
#[derive(Debug)]
pub(super) struct Filter {
    program: OwnedFd,
    interface: Interface,
    arriving: bool,
    /// The network namespace that the interface is in.
    namespace: File,
}

impl Attachment {
    /// Attaches the program of this name to an interface; the name gives the direction.
    pub(super) fn new(
        object: &Object,
        name: &'static str,
        interface: &Interface,
        hook: Hook,
    ) -> Result<Self, BpfError> {
        let mut programs = object.progs_mut();
        let program = programs
            .find(|program| program.name() == name)
            .ok_or(BpfError::Object { missing: name })?;
        let filter = || {
            let _filter = Filter::new(&program, interface)?;
            Ok(Self::Clsact { _filter })
        };
        match hook {
            Hook::Clsact => filter(),
            Hook::Tcx => Self::tcx(&program, interface).map_err(tcx_failed),
            Hook::Automatic => match Self::tcx(&program, interface) {
                Ok(attachment) => Ok(attachment),
                // A kernel without tcx rejects such a link.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => filter(),
                Err(error) => Err(tcx_failed(error)),
            },
        }
    }

    fn tcx(program: &ProgramMut<'_>, interface: &Interface) -> io::Result<Self> {
        let number = i32::try_from(interface.index).map_err(io::Error::other)?;
        let program = program.as_libbpf_object().as_ptr();
        // SAFETY: the program is loaded, and no options are given.
        let link = unsafe { bpf_program__attach_tcx(program, number, std::ptr::null()) };
        let link = NonNull::new(link).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a link without another owner.
        let link = unsafe { Link::from_ptr(link) };
        Ok(Self::Tcx { _link: link })
    }
}

fn tcx_failed(source: io::Error) -> BpfError {
    BpfError::System {
        doing: "attaching a program by tcx (Linux 6.6)",
        source,
    }
}

impl Filter {
    fn new(program: &ProgramMut<'_>, interface: &Interface) -> Result<Self, BpfError> {
        let system = |doing| move |source| BpfError::System { doing, source };
        let filter = Self {
            program: (program.as_fd().try_clone_to_owned())
                .map_err(system("duplicating a file descriptor"))?,
            interface: interface.clone(),
            arriving: program.name() == "arriving",
            namespace: File::open("/proc/thread-self/ns/net")
                .map_err(system("opening /proc/thread-self/ns/net"))?,
        };
        let mut hook = filter.hook(filter.program.as_fd());
        hook.create().map_err(refused)?;
        hook.attach().map_err(refused)?;
        Ok(filter)
    }

    fn hook(&self, program: BorrowedFd<'_>) -> TcHook {
        let point = if self.arriving { TC_INGRESS } else { TC_EGRESS };
        TcHookBuilder::new(program)
            .ifindex(i32::try_from(self.interface.index).unwrap_or(0))
            .replace(true)
            .handle(HANDLE)
            .priority(PRIORITY)
            .hook(point)
    }

    fn remove(&self) {
        let kind = Some(LinkNameSpaceType::Network);
        if move_into_link_name_space(self.namespace.as_fd(), kind).is_ok() {
            // Other users may need the qdisc, so it stays. A filter that cannot be removed has no effect,
            // because its limits are no longer refreshed.
            let _ = self.hook(self.program.as_fd()).detach();
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if self.interface.exists() {
            // In a separate thread, because this one may be in another namespace and has to stay there.
            std::thread::scope(|scope| {
                scope.spawn(|| self.remove());
            });
        }
    }
}
