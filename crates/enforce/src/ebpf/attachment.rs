//! A program at an interface, for as long as the value lives.

use std::io;
use std::os::fd::AsFd as _;
use std::ptr::NonNull;

use libbpf_rs::{
    AsRawLibbpf as _, Link, Object, ProgramMut, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook,
    TcHookBuilder,
};
use libbpf_sys::bpf_program__attach_tcx;

use super::Hook;
use super::interface::Interface;
use crate::bpf::BpfError;
use crate::bpf::loader::refused;

/// Where our clsact filters are: the next process finds those of one that was killed there.
const PRIORITY: u32 = 0x7765;
const HANDLE: u32 = 1;

/// A program's place.
pub(super) enum Attachment {
    /// The kernel removes it with the link.
    Tcx {
        _link: Link,
    },
    Clsact {
        hook: TcHook,
        interface: Interface,
    },
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcx { .. } => "Tcx",
            Self::Clsact { .. } => "Clsact",
        })
    }
}

impl Attachment {
    /// Puts the program of this name at an interface; the name says which way.
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
        match hook {
            Hook::Clsact => Self::clsact(&program, interface),
            Hook::Tcx => Self::tcx(&program, interface).map_err(tcx_failed),
            Hook::Automatic => match Self::tcx(&program, interface) {
                Ok(attachment) => Ok(attachment),
                // A kernel without tcx knows no such link.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    Self::clsact(&program, interface)
                }
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
        // SAFETY: a link that nobody else has.
        let link = unsafe { Link::from_ptr(link) };
        Ok(Self::Tcx { _link: link })
    }

    fn clsact(program: &ProgramMut<'_>, interface: &Interface) -> Result<Self, BpfError> {
        let point: TcAttachPoint = match program.name() == "arriving" {
            true => TC_INGRESS,
            false => TC_EGRESS,
        };
        let number = i32::try_from(interface.index).unwrap_or(0);
        let mut hook = TcHookBuilder::new(program.as_fd())
            .ifindex(number)
            .replace(true)
            .handle(HANDLE)
            .priority(PRIORITY)
            .hook(point);
        hook.create().map_err(refused)?;
        let hook = hook.attach().map_err(refused)?;
        Ok(Self::Clsact {
            hook,
            interface: interface.clone(),
        })
    }
}

fn tcx_failed(source: io::Error) -> BpfError {
    BpfError::System {
        doing: "attaching a program by tcx (Linux 6.6)",
        source,
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Self::Clsact { hook, interface } = self
            && interface.exists()
        {
            // Others may use the qdisc: it stays. A filter that does not go does nothing without caps.
            let _ = hook.detach();
        }
    }
}
