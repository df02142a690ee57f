//! What the fabric needs to know of a packet.

use weir_units::ByteSize;
use weir_wire::tcp::{Flags, Segment, Sequence, Timestamps};
use weir_wire::{Ecn, FlowKey};

/// Where packets go that meet no switch: there is no route to it.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A packet as queues, links and faults see it: a few words in the simulator, a real datagram in
/// protocol tests, a real frame in the live lab.
///
/// A real frame keeps its checksums right: whoever implements a setter for one updates them in it.
/// What a kind of packet does not have keeps its default.
pub trait Packet {
    /// The length of the IP packet: what queues count, and links too, beside their own framing.
    fn length(&self) -> ByteSize;

    /// The ECN codepoint of the IP header.
    fn ecn(&self) -> Ecn;

    /// Rewrites the ECN codepoint.
    fn set_ecn(&mut self, ecn: Ecn);

    /// Damages the contents, choosing the place by `entropy`, and tells whether there was anything
    /// to damage. A packet that is only described carries no bytes: it keeps this default and is
    /// lost instead, as the receiver's checksum would have it. Real bytes pass to [`flip_byte`].
    fn corrupt(&mut self, entropy: u64) -> bool {
        let _ = entropy;
        false
    }

    /// The differentiated services code point of its IP header (RFC 2474), 0 to 63. By default that of packets
    /// which nobody has classified.
    fn dscp(&self) -> u8 {
        0
    }

    /// The host that it goes to: an index into the [`Routes`](crate::Routes) of a switch. By default
    /// [`NOWHERE`](crate::Routes::NOWHERE), for packets that meet no switch.
    fn destination(&self) -> u32 {
        NOWHERE
    }

    /// The flow that it belongs to. By default none: [`FlowKey::UNSPECIFIED`].
    fn flow(&self) -> FlowKey {
        FlowKey::UNSPECIFIED
    }

    /// A number that all packets of a flow share, and few others: it chooses between paths of equal
    /// cost. By default computed from [`Self::flow`]; a packet that knows its flow by a number
    /// answers faster from that.
    fn flow_hash(&self) -> u64 {
        crate::flow_hash::hash_of(&self.flow())
    }

    /// Which burst it is a piece of, if it is one. By default it is none.
    fn burst(&self) -> Option<Burst> {
        None
    }

    /// Its TCP header, if it is a TCP segment. By default it is none.
    fn tcp(&self) -> Option<Segment> {
        None
    }

    /// Rewrites the window field of its TCP header, as on the wire: unscaled. By default there is
    /// none, and nothing happens.
    fn set_window(&mut self, window: u16) {
        let _ = window;
    }

    /// Makes its SYN, if it is one, offer no selective acknowledgments. By default there is none, and
    /// nothing happens.
    fn refuse_sack(&mut self) {}

    /// Takes the SACK blocks out of its TCP header; its length stays what it was. By default there are
    /// none, and nothing happens.
    fn clear_sack_blocks(&mut self) {}

    /// Rewrites the acknowledgment number of its TCP header. By default there is none, and nothing
    /// happens.
    fn set_acknowledgment(&mut self, number: Sequence) {
        let _ = number;
    }

    /// Rewrites the time stamps of its TCP header, which it has. By default there are none, and nothing
    /// happens.
    fn set_timestamps(&mut self, timestamps: Timestamps) {
        let _ = timestamps;
    }

    /// Rewrites the control bits of its TCP header. By default there are none, and nothing happens.
    fn set_flags(&mut self, flags: Flags) {
        let _ = flags;
    }
}

/// A segment as a piece of a super-packet, which a host has handed over as one packet (TSO). All pieces have the same
/// flow, acknowledgment and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The super-packet: no other one has this number.
    pub id: u64,
    /// Whether it is neither the first piece nor the last: all that is new in it is where its data are.
    pub is_inner: bool,
}

/// Changes one byte, choosing the byte and its new value by `entropy`. False if there is none.
pub fn flip_byte(bytes: &mut [u8], entropy: u64) -> bool {
    let [mask, place @ ..] = entropy.to_le_bytes();
    let place = place
        .iter()
        .fold(0u64, |high, &byte| high << 8 | u64::from(byte));
    let Some(index) = place.checked_rem(bytes.len() as u64) else {
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
    fn nothing_to_flip() {
        assert!(!flip_byte(&mut [], 7));
    }
}
