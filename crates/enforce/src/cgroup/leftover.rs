//! What killed processes have left in sockets.

use super::pins::{Pins, directories};

/// What a process has done to the sockets of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanedSockets {
    /// The process lives: nothing was undone.
    InUse,
    /// It was undone in this many sockets.
    Undone(usize),
}

/// Undoes what killed processes have left in sockets, of all network namespaces.
pub fn clean() -> Vec<CleanedSockets> {
    let directories = directories();
    let clean = |directory: &std::path::PathBuf| match Pins::take_over(directory) {
        None => CleanedSockets::InUse,
        Some(pins) => {
            let sockets = pins.undo();
            pins.remove();
            CleanedSockets::Undone(sockets)
        }
    };
    directories.iter().map(clean).collect()
}
