//! Seeds: every random choice of a run follows from the scenario's seed, independently of the others.

use weir_fabric::mix;

/// The purpose of a generator. The number enters the seed: it must not change.
#[derive(Clone, Copy, Debug)]
pub enum RngStream {
    /// A port's queue.
    Queue = 1,
    /// A port's faults.
    Faults = 2,
    /// A switch's choice among equal-cost paths.
    Switch = 3,
    /// A flow's congestion control.
    Congestion = 4,
    /// A flow's initial sequence numbers.
    Sequence = 5,
    /// A group's start times, pauses and sizes.
    Workload = 6,
    /// The times of samples.
    Samples = 7,
    /// The connection IDs, keys and packet numbers of a flow's QUIC endpoints.
    Quic = 8,
    /// The names, cookies and first sequence numbers of a flow's DCUDP endpoints.
    Dcudp = 9,
    /// The controllers of a switch's transparent congestion control.
    Tcon = 12,
    /// A switch's agent of SED.
    Sed = 13,
    /// The times that a host takes to process packets from a link.
    HostJitter = 14,
}

/// The scenario's seed.
#[derive(Clone, Copy, Debug)]
pub struct Seeds(u64);

impl Seeds {
    /// Wraps the scenario's seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the seed of the generator with this purpose and number; all others differ.
    pub fn of(self, stream: RngStream, number: usize) -> u64 {
        [stream as u64, number as u64]
            .into_iter()
            .fold(self.0, |seed, part| mix(mix(seed) ^ part))
    }
}

/// Returns a seed of 32 bytes.
pub fn seed_bytes(words: [u64; 2]) -> [u8; 32] {
    let mut seed = [0; 32];
    for (bytes, word) in seed.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    seed
}

/// Returns the seed of one side's endpoint; all 32 bytes differ from those of the other side.
pub fn side_bytes(seed: u64, side: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (part, eight) in (0..).zip(bytes.chunks_exact_mut(8)) {
        let word = [side, part]
            .into_iter()
            .fold(seed, |seed, part| mix(mix(seed) ^ part));
        eight.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_random_streams_have_different_seeds() {
        let drawers = [RngStream::Queue, RngStream::Faults, RngStream::Samples];
        let seeds: HashSet<_> = (0..10)
            .flat_map(|seed| drawers.map(|stream| (seed, stream)))
            .flat_map(|(seed, stream)| {
                (0..100).map(move |number| Seeds::new(seed).of(stream, number))
            })
            .collect();
        assert_eq!(seeds.len(), 3000);
    }
}
