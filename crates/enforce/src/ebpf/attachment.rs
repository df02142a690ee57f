//! A program attached to an interface, for the lifetime of the value.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use libbpf_rs::{AsRawLibbpf as _, Link, Object, ProgramMut};
use libbpf_sys::bpf_program__attach_tcx;

use super::Hook;
use crate::bpf::BpfError;
use crate::bpf::clsact::{Clsact, Direction};
use crate::bpf::interface::Interface;
use crate::bpf::loader::refused;

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
    direction: Direction,
    qdisc: Arc<Clsact>,
}

impl Attachment {
    /// Attaches the programs of both directions to an interface.
    pub(super) fn both(
        object: &Object,
        interface: &Interface,
        hook: Hook,
    ) -> Result<[Self; 2], BpfError> {
        match hook {
            Hook::Clsact => Self::filters(object, interface),
            Hook::Tcx => Self::links(object, interface)?.map_err(tcx_failed),
            Hook::Automatic => match Self::links(object, interface)? {
                Ok(attachments) => Ok(attachments),
                // A kernel without tcx rejects such a link.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    Self::filters(object, interface)
                }
                Err(error) => Err(tcx_failed(error)),
            },
        }
    }

    fn filters(object: &Object, interface: &Interface) -> Result<[Self; 2], BpfError> {
        let qdisc = Arc::new(Clsact::find_or_create(interface)?);
        let filter = |(name, direction)| {
            let filter = Filter::new(&program(object, name)?, direction, Arc::clone(&qdisc));
            filter.map(|_filter| Self::Clsact { _filter })
        };
        let [leaving, arriving] = PROGRAMS;
        Ok([filter(leaving)?, filter(arriving)?])
    }

    fn links(object: &Object, interface: &Interface) -> Result<io::Result<[Self; 2]>, BpfError> {
        let [leaving, arriving] = PROGRAMS.map(|(name, _)| program(object, name));
        let programs = [leaving?, arriving?];
        let [leaving, arriving] = programs.each_ref().map(|it| Self::tcx(it, interface));
        Ok(leaving.and_then(|leaving| Ok([leaving, arriving?])))
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

/// The programs' names, with their directions.
const PROGRAMS: [(&str, Direction); 2] = [
    ("leaving", Direction::Egress),
    ("arriving", Direction::Ingress),
];

fn program<'o>(object: &'o Object, name: &'static str) -> Result<ProgramMut<'o>, BpfError> {
    let mut programs = object.progs_mut();
    let found = programs.find(|program| program.name() == name);
    found.ok_or(BpfError::Object { missing: name })
}

impl Filter {
    fn new(
        program: &ProgramMut<'_>,
        direction: Direction,
        qdisc: Arc<Clsact>,
    ) -> Result<Self, BpfError> {
        let copy = program.as_fd().try_clone_to_owned();
        let filter = Self {
            program: copy.map_err(|source| BpfError::System {
                doing: "duplicating a file descriptor",
                source,
            })?,
            direction,
            qdisc,
        };
        let hook = filter.qdisc.hook(filter.program.as_fd(), direction);
        { hook }.attach().map_err(refused)?;
        Ok(filter)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.qdisc.within(|qdisc| {
            // A filter that cannot be removed has no effect, because its limits are no longer refreshed.
            let _ = qdisc.hook(self.program.as_fd(), self.direction).detach();
        });
    }
}
