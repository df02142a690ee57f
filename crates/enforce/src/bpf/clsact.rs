//! The queueing discipline that clsact filters are in.

use std::os::fd::{AsFd as _, BorrowedFd};

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};
use weir_netlink::Client;

use super::BpfError;
use super::interface::Interface;
use super::loader::{collect_log, refused};
use crate::namespace::NetworkNamespace;

/// The priority of our filters: the next process finds those of a killed one by it.
const PRIORITY: u32 = 0x7765;

/// The handle of our filters in a clsact that others made, and in one that Weir made: the next process
/// learns by it to remove that.
const IN_FOREIGN: u32 = 1;
const IN_OWN: u32 = 2;

/// The clsact of an interface. When it is dropped, one that Weir made is removed, unless others have put
/// filters into it.
#[derive(Debug)]
pub(crate) struct Clsact {
    interface: Interface,
    is_own: bool,
    /// The network namespace that the interface is in.
    namespace: NetworkNamespace,
}

/// The direction of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Frames that arrive.
    Ingress,
    /// Frames that leave.
    Egress,
}

impl Direction {
    const BOTH: [Self; 2] = [Self::Ingress, Self::Egress];

    /// Returns the minor number of the filters' parent (`TC_H_MIN_INGRESS`, `TC_H_MIN_EGRESS`).
    fn parent(self) -> u16 {
        match self {
            Self::Ingress => 0xfff2,
            Self::Egress => 0xfff3,
        }
    }
}

impl Clsact {
    /// Finds the clsact of an interface of the calling thread's network namespace, or makes one.
    pub(crate) fn find_or_create(interface: &Interface) -> Result<Self, BpfError> {
        if let Some(found) = Self::find(interface)? {
            return Ok(found);
        }
        let qdisc = Self::new(interface, true)?;
        match qdisc.any_hook(Direction::Ingress).create() {
            Ok(_) => Ok(qdisc),
            Err(error) => Err(refused(error)),
        }
    }

    /// Finds the clsact of an interface. It is Weir's own if filters that a killed process has left say so.
    fn find(interface: &Interface) -> Result<Option<Self>, BpfError> {
        let disciplines = Client::open().and_then(|mut client| client.disciplines());
        let disciplines = disciplines.map_err(|source| BpfError::System {
            doing: "listing queueing disciplines",
            source,
        })?;
        let is_found = |(index, kind): &(u32, String)| {
            *index == interface.index && matches!(kind.as_str(), "clsact" | "ingress")
        };
        if !disciplines.iter().any(is_found) {
            return Ok(None);
        }
        let mut qdisc = Self::new(interface, true)?;
        qdisc.is_own = qdisc.has_filter();
        Ok(Some(qdisc))
    }

    fn new(interface: &Interface, is_own: bool) -> Result<Self, BpfError> {
        let namespace = NetworkNamespace::of_this_thread();
        Ok(Self {
            interface: interface.clone(),
            is_own,
            namespace: namespace.map_err(|source| BpfError::System {
                doing: "opening /proc/thread-self/ns/net",
                source,
            })?,
        })
    }

    /// Returns whether one of our filters is there, with the handle that belongs to `is_own`.
    fn has_filter(&self) -> bool {
        let mut hooks = Direction::BOTH.map(|direction| self.any_hook(direction));
        hooks.iter_mut().any(|hook| hook.query().is_ok())
    }

    /// Returns the place of one of our filters.
    pub(crate) fn hook(&self, program: BorrowedFd<'_>, direction: Direction) -> TcHook {
        let point = match direction {
            Direction::Ingress => TC_INGRESS,
            Direction::Egress => TC_EGRESS,
        };
        TcHookBuilder::new(program)
            .ifindex(i32::try_from(self.interface.index).unwrap_or(0))
            .replace(true)
            .handle(if self.is_own { IN_OWN } else { IN_FOREIGN })
            .priority(PRIORITY)
            .hook(point)
    }

    /// Returns a place for which no program is needed.
    fn any_hook(&self, direction: Direction) -> TcHook {
        // Any descriptor does.
        self.hook(self.namespace.as_fd(), direction)
    }

    /// Does something in the interface's namespace, if the interface still exists.
    pub(crate) fn within(&self, work: impl FnOnce(&Self) + Send) {
        if self.interface.exists() {
            self.namespace.run(|| work(self));
        }
    }

    fn remove_if_empty(&self) {
        let mut client = Client::open();
        let mut has_filters = |direction: Direction| match &mut client {
            Ok(client) => client.has_filters(self.interface.index, (0xffff, direction.parent())),
            Err(_) => Ok(true),
        };
        let is_empty = |found: std::io::Result<bool>| found.is_ok_and(|found| !found);
        if Direction::BOTH
            .into_iter()
            .all(|direction| is_empty(has_filters(direction)))
        {
            let mut hook = self.any_hook(Direction::Ingress);
            hook.attach_point(TC_INGRESS | TC_EGRESS);
            // One that cannot be removed has no effect.
            let _ = hook.destroy();
        }
    }
}

impl Drop for Clsact {
    fn drop(&mut self) {
        if self.is_own {
            self.within(Self::remove_if_empty);
        }
    }
}

/// Returns whether an interface of the calling thread's network namespace has filters of ours.
pub(crate) fn has_filters(interface: &str) -> bool {
    found(interface).is_some_and(|qdisc| qdisc.has_filter())
}

/// Removes the filters that a killed process has left.
pub(crate) fn remove_filters(interface: &str) {
    if let Some(qdisc) = found(interface) {
        for direction in Direction::BOTH {
            // One that cannot be removed has no effect.
            let _ = qdisc.any_hook(direction).detach();
        }
    }
}

fn found(interface: &str) -> Option<Clsact> {
    collect_log();
    Clsact::find(&Interface::find(interface).ok()?).ok()?
}
