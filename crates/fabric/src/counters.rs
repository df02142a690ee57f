//! Counters that balance: each packet that arrived has departed, was dropped, or is still inside.

use std::ops::{Add, Sub};

use weir_units::ByteSize;

/// A number of packets and their total length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// The number of packets.
    pub packets: u64,
    /// The sum of their IP lengths.
    pub size: ByteSize,
}

impl PacketCount {
    /// Nothing.
    pub const ZERO: Self = Self {
        packets: 0,
        size: ByteSize::ZERO,
    };

    /// Adds one packet.
    #[inline]
    pub fn record(&mut self, length: ByteSize) {
        // 2^64 bytes are out of reach.
        self.packets += 1;
        self.size = ByteSize::from_bytes(self.size.bytes().wrapping_add(length.bytes()));
    }

    /// Subtracts one packet that was counted.
    #[inline]
    pub fn remove(&mut self, length: ByteSize) {
        self.packets = self.packets.wrapping_sub(1);
        self.size = ByteSize::from_bytes(self.size.bytes().wrapping_sub(length.bytes()));
    }
}

impl Add for PacketCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            size: self.size + other.size,
        }
    }
}

impl Sub for PacketCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(other.packets),
            size: self.size - other.size,
        }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The buffer was full, or the port's share of it.
    Buffer,
    /// The queue was above a threshold at which every packet of its class is dropped.
    Tail,
    /// Random early detection dropped it while the queue was between two thresholds.
    Red,
    /// CoDel dropped it as it left the queue.
    Codel,
    /// It was larger than the link's MTU.
    Mtu,
    /// Lost at random on the link.
    Loss,
    /// The link was down.
    Down,
    /// Damaged, and without payload bytes to carry the damage to the receiver.
    Corruption,
    /// Dropped by a test's script.
    Script,
    /// The switch has no route to its destination.
    NoRoute,
    /// An element in the switch's path dropped it.
    Element,
}

impl DropReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 11] = [
        Self::Buffer,
        Self::Tail,
        Self::Red,
        Self::Codel,
        Self::Mtu,
        Self::Loss,
        Self::Down,
        Self::Corruption,
        Self::Script,
        Self::NoRoute,
        Self::Element,
    ];
}

/// Dropped packets by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([PacketCount; DropReason::ALL.len()]);

impl Drops {
    /// Counts one dropped packet.
    pub fn record(&mut self, reason: DropReason, length: ByteSize) {
        self.0[reason as usize].record(length);
    }

    /// Adds packets that were dropped elsewhere.
    pub(crate) fn add(&mut self, reason: DropReason, dropped: PacketCount) {
        let tally = &mut self.0[reason as usize];
        *tally = *tally + dropped;
    }

    /// Returns the packets that were dropped for this reason.
    pub fn by(&self, reason: DropReason) -> PacketCount {
        self.0[reason as usize]
    }

    /// Returns the packets that were dropped for any reason.
    pub fn total(&self) -> PacketCount {
        self.0
            .iter()
            .fold(PacketCount::ZERO, |sum, &tally| sum + tally)
    }

    /// Iterates over every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, PacketCount)> {
        DropReason::ALL.into_iter().zip(self.0)
    }
}

impl Add for Drops {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        for (sum, tally) in self.0.iter_mut().zip(other.0) {
            *sum = *sum + tally;
        }
        self
    }
}

/// Packet counters of one stage, or of several in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCounters {
    /// Packets that came in.
    pub arrived: PacketCount,
    /// Copies that duplication made here.
    pub duplicated: PacketCount,
    /// Packets that elements created here.
    pub injected: PacketCount,
    /// Packets that went on to the next stage.
    pub departed: PacketCount,
    /// Packets that elements consumed.
    pub absorbed: PacketCount,
    /// Packets that were dropped.
    pub dropped: Drops,
}

impl StageCounters {
    /// Whether the counters balance when `inside` is still here:
    /// arrived + duplicated + injected = departed + absorbed + dropped + inside, in packets and in
    /// bytes.
    pub fn balance(&self, inside: PacketCount) -> bool {
        self.arrived + self.duplicated + self.injected
            == self.departed + self.absorbed + self.dropped.total() + inside
    }
}

impl Add for StageCounters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            arrived: self.arrived + other.arrived,
            duplicated: self.duplicated + other.duplicated,
            injected: self.injected + other.injected,
            departed: self.departed + other.departed,
            absorbed: self.absorbed + other.absorbed,
            dropped: self.dropped + other.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_reason_is_counted_separately() {
        let mut drops = Drops::default();
        for (count, reason) in (1..).zip(DropReason::ALL) {
            (0..count).for_each(|_| drops.record(reason, ByteSize::from_bytes(10)));
        }
        for (count, (reason, tally)) in (1..).zip(drops.iter()) {
            assert_eq!(
                tally,
                PacketCount {
                    packets: count,
                    size: ByteSize::from_bytes(10 * count)
                }
            );
            assert_eq!(drops.by(reason), tally);
        }
        assert_eq!(drops.total().packets, 66);
        assert_eq!((drops + drops).total().size, ByteSize::from_bytes(1320));
    }

    #[test]
    fn an_unaccounted_byte_unbalances_the_counters() {
        let mut counters = StageCounters::default();
        counters.arrived.record(ByteSize::from_bytes(100));
        assert!(!counters.balance(PacketCount::ZERO));
        assert!(counters.balance(counters.arrived));
        counters.departed.record(ByteSize::from_bytes(99));
        assert!(!counters.balance(PacketCount::ZERO));
    }
}
