//! The memory limit for the packets of all flows together.

use weir_fabric::PacketCount;
use weir_units::ByteSize;

/// The limit, and the packets kept.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: ByteSize,
    /// Packets kept now.
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

    /// Reserves room for a packet of this length. Returns whether there was room.
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

    /// Releases the room of a packet of this length.
    pub(crate) fn give_back(&mut self, length: ByteSize) {
        self.kept.remove(length);
    }
}
