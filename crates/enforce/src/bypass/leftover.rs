//! What a killed process has left: its bypass, which forwards.

use std::os::fd::{AsFd as _, OwnedFd};

use super::{BypassError, CABLE, PROGRAM, WORDS, Word, promiscuous};
use crate::bpf::tcx;

/// A bypass at one interface.
#[derive(Debug)]
pub(crate) struct Leftover {
    interface: u32,
    pub(super) program: OwnedFd,
    /// Its `struct cable`; `None` if another version of Weir made it.
    pub(super) words: Option<[u64; WORDS]>,
}

impl Leftover {
    /// Returns the bypass at an interface of the calling thread's network namespace.
    pub(crate) fn find(interface: u32) -> Result<Option<Self>, BypassError> {
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

    pub(crate) fn remove(&self) -> Result<(), BypassError> {
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
pub(crate) fn remove(interfaces: [u32; 2]) -> Result<(), BypassError> {
    for interface in interfaces {
        match Leftover::find(interface) {
            Ok(Some(leftover)) => leftover.remove()?,
            Ok(None) | Err(BypassError::NoTcx) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
