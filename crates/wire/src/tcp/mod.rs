//! The TCP header (RFC 9293) as plain values that fit a cache line with their addresses: simulated
//! hosts exchange them, and the rewrites of real frames read them.

mod flags;
mod header;
mod parse;
mod rewrite;
mod sack;
mod sequence;

pub use flags::Flags;
pub use header::{Header, PROTOCOL, Ports};
pub use parse::ParseError;
pub use rewrite::Rewrite;
pub use sack::{SackBlock, SackBlocks};
pub use sequence::Sequence;

use weir_units::ByteSize;

/// A TCP header without its ports, and the length of its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of the first byte of data, or of SYN.
    pub sequence: Sequence,
    /// The next sequence number that the sender of this segment expects, where [`Flags::ACK`] is set.
    pub acknowledgment: Sequence,
    /// The number of data bytes. More than one maximum segment size stands for a burst that the
    /// network interface segments (TSO).
    pub payload: u32,
    /// The window field as it is on the wire, unscaled.
    pub window: u16,
    /// The control bits.
    pub flags: Flags,
    /// The time stamps option (RFC 7323), where both ends use it.
    pub timestamps: Option<Timestamps>,
    /// The other options.
    pub options: Options,
}

/// The time stamps option (RFC 7323, section 3), in ticks of the clock of the host that set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: when this segment was sent.
    pub value: u32,
    /// TSecr: the peer's TSval that this segment answers.
    pub echo: u32,
}

/// The options besides time stamps: those of a SYN, or SACK blocks on the segments after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Options {
    /// None.
    #[default]
    None,
    /// On a SYN.
    Syn(SynOptions),
    /// Selective acknowledgments (RFC 2018).
    Sack(SackBlocks),
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// The largest segment payload that the SYN's sender accepts, in bytes (RFC 9293, section
    /// 3.7.1).
    pub maximum_segment_size: u16,
    /// The sender's window scale in bits (RFC 7323, section 2); at most 14.
    pub window_scale: Option<u8>,
    /// Whether the sender supports SACK (RFC 2018, section 2).
    pub sack_permitted: bool,
}

impl SynOptions {
    /// The meaning of a SYN without options (RFC 9293, section 3.7.1: segments of 536 bytes).
    pub const NONE: Self = Self {
        maximum_segment_size: 536,
        window_scale: None,
        sack_permitted: false,
    };
}

impl Segment {
    /// Returns the length of the header with its options, padded to whole words, in bytes.
    pub fn header_length(&self) -> ByteSize {
        // NOP, NOP, kind, length, twice 32 bits (RFC 7323, appendix A); in a SYN other options may
        // replace the two NOPs, but Linux and this length agree.
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let others = match &self.options {
            Options::None => 0,
            Options::Syn(syn) => {
                // MSS: 4 bytes; window scale: NOP and 3 bytes; SACK permitted: 2 NOPs and 2 bytes,
                // or in place of the time stamps' NOPs.
                let scale = if syn.window_scale.is_some() { 4 } else { 0 };
                let sack = if syn.sack_permitted && self.timestamps.is_none() {
                    4
                } else {
                    0
                };
                4 + scale + sack
            }
            // NOP, NOP, kind, length, 8 bytes per block.
            Options::Sack(blocks) => 4 + 8 * blocks.iter().count() as u64,
        };
        ByteSize::from_bytes(20 + timestamps + others)
    }

    /// Returns the segment's length in sequence space: its data, and one each for SYN and FIN.
    pub fn sequence_length(&self) -> u32 {
        self.payload
            .wrapping_add(u32::from(self.flags.contains(Flags::SYN)))
            .wrapping_add(u32::from(self.flags.contains(Flags::FIN)))
    }

    /// Returns the segments into which a network interface cuts a burst, each with at most `size`
    /// bytes of data. CWR stays on the first, FIN and PSH on the last.
    ///
    /// A size of zero does not cut.
    pub fn segments(self, size: u32) -> impl Iterator<Item = Self> {
        let pieces = self.pieces(size);
        (0..pieces).map(move |piece| self.segment(size, piece))
    }

    /// Returns the number of segments that [`Self::segments`] yields.
    fn pieces(&self, size: u32) -> u32 {
        match size {
            0 => 1,
            size => self.payload.div_ceil(size).max(1),
        }
    }

    /// Returns one of the segments that [`Self::segments`] yields; empty past the last one.
    pub fn segment(self, size: u32, piece: u32) -> Self {
        let size = if size == 0 { self.payload } else { size };
        let start = size.saturating_mul(piece).min(self.payload);
        let has_next = u64::from(size) * (u64::from(piece) + 1) < u64::from(self.payload);
        let mut flags = self.flags;
        if piece > 0 {
            flags = flags.without(Flags::CWR);
        }
        if has_next {
            flags = flags.without(Flags::FIN | Flags::PSH);
        }
        Self {
            sequence: self.sequence + start,
            payload: size.min(self.payload - start),
            flags,
            ..self
        }
    }

    /// Returns the sequence number after the segment's last.
    pub fn end(&self) -> Sequence {
        self.sequence + self.sequence_length()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_burst_is_split_into_its_segments(first: u32, payload in 0_u32..70_000, size in 1_u32..9_000) {
            let whole = Segment {
                sequence: Sequence::new(first),
                payload,
                flags: Flags::ACK | Flags::CWR | Flags::PSH | Flags::FIN,
                ..Segment::default()
            };
            let pieces: Vec<_> = whole.segments(size).collect();
            let mut next = whole.sequence;
            for piece in &pieces {
                prop_assert_eq!(piece.sequence, next);
                prop_assert!(piece.payload <= size && piece.flags.contains(Flags::ACK));
                next = piece.end();
            }
            prop_assert_eq!(next, whole.end());
            let having = |flag| pieces.iter().filter(|piece| piece.flags.contains(flag)).count();
            prop_assert_eq!([having(Flags::CWR), having(Flags::PSH), having(Flags::FIN)], [1, 1, 1]);
            prop_assert!(pieces[0].flags.contains(Flags::CWR));
        }
    }

    #[test]
    fn a_single_segment_is_not_split() {
        let segment = Segment {
            payload: 100,
            ..Segment::default()
        };
        assert_eq!(segment.segments(100).collect::<Vec<_>>(), [segment]);
        assert_eq!(segment.segments(0).collect::<Vec<_>>(), [segment]);
    }

    #[test]
    fn header_lengths_match_the_wire() {
        let mut segment = Segment::default();
        let length = |segment: &Segment| segment.header_length().bytes();
        assert_eq!(length(&segment), 20);
        segment.timestamps = Some(Timestamps::default());
        assert_eq!(length(&segment), 32);
        // Linux's SYN: 40 bytes.
        segment.options = Options::Syn(SynOptions {
            maximum_segment_size: 1460,
            window_scale: Some(7),
            sack_permitted: true,
        });
        assert_eq!(length(&segment), 40);
        segment.timestamps = None;
        assert_eq!(length(&segment), 32);
        let block = SackBlock {
            start: Sequence::new(1),
            end: Sequence::new(2),
        };
        segment.options = Options::Sack([block, block].into_iter().collect());
        assert_eq!(length(&segment), 40);
    }

    #[test]
    fn syn_and_fin_take_a_sequence_number_each() {
        let segment = Segment {
            sequence: Sequence::new(u32::MAX),
            payload: 10,
            flags: Flags::SYN | Flags::FIN,
            ..Segment::default()
        };
        assert_eq!(segment.end(), Sequence::new(11));
    }
}
