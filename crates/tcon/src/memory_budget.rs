//! How much is kept of all flows together.

use weir_fabric::PacketCount;
use weir_units::ByteSize;

/// The bound of what is kept, and what is.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: ByteSize,
    /// What is kept now.
    pub(crate) kept: PacketCount,
    /// The most packets that have been kept at a time.
    pub(crate) largest: PacketCount,
}

impl MemoryBudget {
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self {
            limit,
            kept: PacketCount::ZERO,
            largest: PacketCount::ZERO,
        }
    }

    /// Makes room for a packet of this length, if there is.
    pub(crate) fn take(&mut self, length: ByteSize) -> bool {
        if self.kept.size + length > self.limit {
            return false;
        }
        self.kept.record(length);
        if self.kept.packets > self.largest.packets {
            self.largest = self.kept;
        }
        true
    }

    /// A packet of this length is not kept any more.
    pub(crate) fn give_back(&mut self, length: ByteSize) {
        self.kept.remove(length);
    }
}
