//! The payload of all transports: one block of pseudo-random bytes, repeated.
//!
//! It is not zeros, so that nothing on the path can compress or deduplicate it.

use bytes::Bytes;

/// The length of the block in bytes, and the maximum that is passed to a transport at once.
pub const BLOCK: usize = 128 * 1024;

/// Returns the block, which is always the same.
pub(super) fn block() -> Bytes {
    // A fixed linear congruential sequence (Knuth's MMIX constants), of which the upper halves are
    // used.
    let mut state = 0x5745_4952_u64;
    (0..BLOCK / 4)
        .flat_map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 32) as u32).to_le_bytes()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_full_and_varied() {
        let block = block();
        assert_eq!(block.len(), BLOCK);
        let mut counts = [0_u32; 256];
        block
            .iter()
            .for_each(|byte| counts[usize::from(*byte)] += 1);
        // 512 of each are expected; the standard deviation is about 23.
        assert!(counts.iter().all(|count| (300..700).contains(count)));
    }
}
