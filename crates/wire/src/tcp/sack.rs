//! SACK blocks (RFC 2018, section 3).

use super::Sequence;

/// A range of bytes that the receiver holds beyond its acknowledgment number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// Its first sequence number.
    pub start: Sequence,
    /// The one after its last.
    pub end: Sequence,
}

/// Up to three blocks, the newest first: as many as fit beside time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::CAPACITY],
    count: u8,
}

impl SackBlocks {
    /// Maximum number of blocks.
    pub const CAPACITY: usize = 3;

    /// Returns the blocks, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = SackBlock> {
        self.blocks.into_iter().take(usize::from(self.count))
    }

    /// Returns whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl FromIterator<SackBlock> for SackBlocks {
    /// Takes the first three.
    fn from_iter<I: IntoIterator<Item = SackBlock>>(blocks: I) -> Self {
        let mut taken = Self::default();
        for (place, block) in taken.blocks.iter_mut().zip(blocks) {
            *place = block;
            taken.count += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_sack_blocks_are_kept() {
        let block = |start| SackBlock {
            start: Sequence::new(start),
            end: Sequence::new(start + 1),
        };
        let blocks: SackBlocks = (0..5).map(|number| block(2 * number)).collect();
        assert!(blocks.iter().eq([block(0), block(2), block(4)]));
        assert!(SackBlocks::default().is_empty() && !blocks.is_empty());
    }
}
