//! The packet interface of the fabric.

use weir_units::ByteSize;
use weir_wire::tcp::{Flags, Segment, Sequence, Timestamps};
use weir_wire::{Ecn, FlowKey};

/// The destination of packets that pass no switch: there is no route to it.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A packet for queues, links and faults: a small record in the simulator, a real datagram in protocol
/// tests, a real frame in the live lab.
///
/// A real frame keeps its checksums correct: its setters update them. Fields that a kind of packet does
/// not have keep their defaults.
pub trait Packet {
    /// The length of the IP packet: counted by queues, and by links in addition to their own framing.
    fn length(&self) -> ByteSize;

    /// The ECN codepoint of the IP header.
    fn ecn(&self) -> Ecn;

    /// Rewrites the ECN codepoint.
    fn set_ecn(&mut self, ecn: Ecn);

    /// Damages the contents at a position chosen by `entropy`. Returns whether there was anything to
    /// damage. A packet without real bytes keeps this default and is lost instead, as by the receiver's
    /// checksum. Real bytes go to [`flip_byte`].
    fn corrupt(&mut self, entropy: u64) -> bool {
        let _ = entropy;
        false
    }

    /// Returns a copy that a fault makes. By default a clone.
    fn duplicate(&mut self) -> Self
    where
        Self: Clone,
    {
        self.clone()
    }

    /// The differentiated services code point of its IP header (RFC 2474), 0 to 63. By default 0:
    /// unclassified.
    fn dscp(&self) -> u8 {
        0
    }

    /// The destination host: an index into the [`Routes`](crate::Routes) of a switch. By default
    /// [`NOWHERE`](crate::Routes::NOWHERE), for packets that pass no switch.
    fn destination(&self) -> u32 {
        NOWHERE
    }

    /// Its flow. By default none: [`FlowKey::UNSPECIFIED`].
    fn flow(&self) -> FlowKey {
        FlowKey::UNSPECIFIED
    }

    /// A number that all packets of a flow share, and few others: it chooses between equal-cost paths.
    /// By default computed from [`Self::flow`]. A packet type with a flow number can compute it faster
    /// from that.
    fn flow_hash(&self) -> u64 {
        crate::flow_hash::hash_of(&self.flow())
    }

    /// The burst that it is a segment of. By default none.
    fn burst(&self) -> Option<Burst> {
        None
    }

    /// Its TCP header, if it is a TCP segment. By default none.
    fn tcp(&self) -> Option<Segment> {
        None
    }

    /// Rewrites the window field of its TCP header, unscaled as on the wire. By default does nothing.
    fn set_window(&mut self, window: u16) {
        let _ = window;
    }

    /// Removes the SACK-permitted option if it is a SYN. By default does nothing.
    fn refuse_sack(&mut self) {}

    /// Removes the SACK blocks from its TCP header; its length stays the same. By default does nothing.
    fn clear_sack_blocks(&mut self) {}

    /// Rewrites the acknowledgment number of its TCP header. By default does nothing.
    fn set_acknowledgment(&mut self, number: Sequence) {
        let _ = number;
    }

    /// Rewrites the time stamps that its TCP header carries. By default does nothing.
    fn set_timestamps(&mut self, timestamps: Timestamps) {
        let _ = timestamps;
    }

    /// Rewrites the control bits of its TCP header. By default does nothing.
    fn set_flags(&mut self, flags: Flags) {
        let _ = flags;
    }

    /// Requests a frame of its own, where segments of a super-packet could leave in one. By default does
    /// nothing.
    fn keep_apart(&mut self) {}
}

/// A segment of a super-packet, which a host has handed over as one packet (TSO). All its segments have
/// the same flow, acknowledgment and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The unique number of the super-packet.
    pub id: u64,
    /// Whether it is neither the first segment nor the last: only its data offset is new.
    pub is_inner: bool,
}

/// Changes one byte; `entropy` chooses the byte and its new value. Returns false for an empty slice.
pub fn flip_byte(bytes: &mut [u8], entropy: u64) -> bool {
    let [mask, slot @ ..] = entropy.to_le_bytes();
    let slot = slot
        .iter()
        .fold(0u64, |high, &byte| high << 8 | u64::from(byte));
    let Some(index) = slot.checked_rem(bytes.len() as u64) else {
        return false;
    };
    // The remainder is smaller than the length, which is a usize.
    match bytes.get_mut(index as usize) {
        Some(byte) => *byte ^= mask.max(1),
        None => return false,
    }
    true
}

/// The packet of this crate's unit tests.
#[cfg(test)]
pub(crate) mod testing {
    use super::{ByteSize, Ecn, Packet};

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct NumberedPacket {
        pub(crate) number: u64,
        pub(crate) bytes: u64,
        pub(crate) ecn: Ecn,
    }

    impl NumberedPacket {
        pub(crate) fn new(number: u64, bytes: u64) -> Self {
            Self {
                number,
                bytes,
                ecn: Ecn::Ect0,
            }
        }
    }

    impl Packet for NumberedPacket {
        fn length(&self) -> ByteSize {
            ByteSize::from_bytes(self.bytes)
        }
        fn ecn(&self) -> Ecn {
            self.ecn
        }
        fn set_ecn(&mut self, ecn: Ecn) {
            self.ecn = ecn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::flip_byte;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exactly_one_byte_changes(bytes in prop::collection::vec(any::<u8>(), 1..100), entropy: u64) {
            let mut damaged = bytes.clone();
            prop_assert!(flip_byte(&mut damaged, entropy));
            let changed = bytes.iter().zip(&damaged).filter(|(before, after)| before != after).count();
            prop_assert_eq!(changed, 1);
        }
    }

    #[test]
    fn no_byte_is_flipped_in_an_empty_packet() {
        assert!(!flip_byte(&mut [], 7));
    }
}
