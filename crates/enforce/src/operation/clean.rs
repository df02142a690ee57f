//! Removes what killed processes have left at interfaces.

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::bpf::interface::names;
use crate::bpf::{has_filters, remove_filters};
use crate::bypass::{BypassError, Leftover};
use crate::claim::InterfaceClaim;

/// What a process that was killed has left at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A bypass, by which the interface's frames pass.
    Bypass,
    /// Clsact filters, which have no effect any more.
    Filters,
}

/// An interface at which a process has left something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanedInterface {
    /// Its name.
    pub name: String,
    /// What is there.
    pub left: Left,
    /// Why it was not removed: its process is alive.
    pub in_use: Option<String>,
}

/// Removes what killed processes have left at the interfaces of the calling thread's network namespace:
/// from then on nothing passes between those of a cable. Returns the interfaces at which something is.
///
/// # Errors
/// It cannot be told whether there is a bypass, or the kernel refuses to remove it.
pub fn clean() -> Result<Vec<CleanedInterface>, BypassError> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|errno| {
        BypassError::System {
            doing: "making a socket",
            source: errno.into(),
        }
    })?;
    let mut cleaned = Vec::new();
    for name in names() {
        // It may be gone already.
        if let Ok(index) = name_to_index(&socket, &name) {
            cleaned.extend(clean_interface(&name, index)?);
        }
    }
    Ok(cleaned)
}

fn clean_interface(name: &str, index: u32) -> Result<Option<CleanedInterface>, BypassError> {
    let leftover = match Leftover::find(index) {
        Err(BypassError::NoTcx) => None,
        found => found?,
    };
    let left = match leftover {
        Some(_) => Left::Bypass,
        None if has_filters(name) => Left::Filters,
        None => return Ok(None),
    };
    let claim = InterfaceClaim::take(name, index);
    match (&claim, leftover) {
        (Ok(_), Some(leftover)) => leftover.remove()?,
        (Ok(_), None) => remove_filters(name),
        (Err(_), _) => {}
    }
    Ok(Some(CleanedInterface {
        name: name.to_owned(),
        left,
        in_use: claim.err().map(|error| error.to_string()),
    }))
}
