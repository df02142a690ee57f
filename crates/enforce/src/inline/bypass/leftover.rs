//! What a killed process has left: its bypass, which forwards.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::{BypassError, CABLE, PROGRAM, WORDS, Word, promiscuous};
use crate::bpf::tcx;
use crate::claim::InterfaceClaim;
use crate::ebpf::{self, interface_names};

/// A bypass at one interface.
#[derive(Debug)]
pub(super) struct Leftover {
    interface: u32,
    pub(super) program: OwnedFd,
    /// Its `struct cable`; `None` if another version of Weir made it.
    pub(super) words: Option<[u64; WORDS]>,
}

impl Leftover {
    /// Returns the bypass at an interface of the calling thread's network namespace.
    pub(super) fn find(interface: u32) -> Result<Option<Self>, BypassError> {
        for id in tcx::query(interface).map_err(BypassError::of_query)? {
            if let Some(program) = tcx::open(id, PROGRAM).map_err(BypassError::of_open)? {
                let words = tcx::read_words(&program, CABLE).map_err(BypassError::of_open)?;
                return Ok(Some(Self {
                    interface,
                    program,
                    words,
                }));
            }
        }
        Ok(None)
    }

    pub(super) fn word(&self, word: Word) -> u64 {
        let words = self.words.unwrap_or_default();
        words.get(word as usize).copied().unwrap_or(0)
    }

    /// Returns the interfaces that it joins.
    pub(super) fn ends(&self) -> [u32; 2] {
        ends(self.word(Word::Ends))
    }

    /// Returns whether the interface was set promiscuous for it.
    pub(super) fn is_promiscuous(&self) -> bool {
        let side = self.ends().iter().position(|end| *end == self.interface);
        side.is_some_and(|side| self.word(Word::Promiscuous) & 1 << side != 0)
    }

    fn remove(&self) -> Result<(), BypassError> {
        if self.is_promiscuous() {
            // The interface works with it too.
            let _ = promiscuous::set(self.interface, false);
        }
        let removed = tcx::detach(self.interface, self.program.as_fd());
        removed.map_err(BypassError::of("removing a program from an interface"))
    }
}

/// Returns the interfaces' indices from the word in which they are.
pub(super) fn ends(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes)
}

/// Returns the word with the interfaces' indices.
#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs read it"))]
pub(super) fn word_of([one, other]: [u32; 2]) -> u64 {
    let [[a, b, c, d], [e, f, g, h]] = [one, other].map(u32::to_ne_bytes);
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Removes the bypass from interfaces of the calling thread's network namespace, if there is one.
///
/// # Errors
/// It cannot be told whether there is one, or the kernel refuses to remove it.
pub(in crate::inline) fn remove(interfaces: [u32; 2]) -> Result<(), BypassError> {
    for interface in interfaces {
        match Leftover::find(interface) {
            Ok(Some(leftover)) => leftover.remove()?,
            Ok(None) | Err(BypassError::NoTcx) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether an interface of the calling thread's network namespace has a bypass, as far as this
/// process may see that.
#[cfg(bpf_programs)]
pub(crate) fn is_left(interface: u32) -> bool {
    matches!(Leftover::find(interface), Ok(Some(_)))
}

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
    let failed = BypassError::of("making a socket");
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(|errno| failed(errno.into()))?;
    let mut cleaned = Vec::new();
    for name in interface_names() {
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
        None if ebpf::has_filters(name) => Left::Filters,
        None => return Ok(None),
    };
    let claim = InterfaceClaim::take(name, index);
    match (&claim, leftover) {
        (Ok(_), Some(leftover)) => leftover.remove()?,
        (Ok(_), None) => ebpf::remove_filters(name),
        (Err(_), _) => {}
    }
    Ok(Some(CleanedInterface {
        name: name.to_owned(),
        left,
        in_use: claim.err().map(|error| error.to_string()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interfaces_are_two_numbers_in_one_word() {
        assert_eq!(ends(word_of([7, 12])), [7, 12]);
        // In the order of `ends` in `struct cable`.
        assert_eq!(word_of([7, 0]).to_ne_bytes()[..4], 7_u32.to_ne_bytes());
    }
}
