//! Parser of TCP segments from untrusted bytes.

#[cfg(test)]
mod tests;

use super::header::{MINIMUM, kind};
use super::{
    Flags, Options, Ports, SackBlock, SackBlocks, Segment, Sequence, SynOptions, Timestamps,
};

/// The largest window scale; larger ones count as this (RFC 7323, section 2.3).
const MAXIMUM_WINDOW_SCALE: u8 = 14;

/// Why bytes are no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes end before the header does.
    #[error("the bytes end before the TCP header does")]
    Truncated,
    /// The data offset points into the fixed part of the header.
    #[error("the TCP header says that it is {0} bytes long")]
    DataOffset(u8),
    /// An option has an invalid length.
    #[error("TCP option {kind} says that it is {length} bytes long")]
    OptionLength {
        /// The option's kind.
        kind: u8,
        /// The value of its length byte; 0 if there is none.
        length: u8,
    },
}

impl Segment {
    /// Parses a TCP header and its options; the payload follows. The checksum is not verified.
    ///
    /// Unknown options, and known ones that are misplaced (those of a SYN elsewhere, SACK on a SYN)
    /// or of an unexpected length, are skipped. Of four SACK blocks the first three are kept.
    ///
    /// # Errors
    /// Truncated bytes, an inconsistent header.
    pub fn parse(bytes: &[u8]) -> Result<(Ports, Self), ParseError> {
        let (fixed, _) = bytes
            .split_first_chunk::<MINIMUM>()
            .ok_or(ParseError::Truncated)?;
        let &[
            s0,
            s1,
            d0,
            d1,
            q0,
            q1,
            q2,
            q3,
            a0,
            a1,
            a2,
            a3,
            offset,
            bits,
            w0,
            w1,
            ..,
        ] = fixed;
        let length = (offset >> 4) * 4;
        if usize::from(length) < MINIMUM {
            return Err(ParseError::DataOffset(length));
        }
        let options = bytes
            .get(MINIMUM..usize::from(length))
            .ok_or(ParseError::Truncated)?;
        let payload = bytes.len().saturating_sub(usize::from(length));

        let flags = Flags::from_bits(bits);
        let mut found = ParsedOptions::default();
        found.read(options)?;
        let ports = Ports {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
        };
        let segment = Self {
            sequence: Sequence::new(u32::from_be_bytes([q0, q1, q2, q3])),
            acknowledgment: Sequence::new(u32::from_be_bytes([a0, a1, a2, a3])),
            payload: u32::try_from(payload).unwrap_or(u32::MAX),
            window: u16::from_be_bytes([w0, w1]),
            flags,
            timestamps: found.timestamps,
            options: found.options(flags),
        };
        Ok((ports, segment))
    }
}

/// The options parsed so far.
#[derive(Default)]
struct ParsedOptions {
    maximum_segment_size: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    sack: SackBlocks,
    timestamps: Option<Timestamps>,
}

impl ParsedOptions {
    fn read(&mut self, mut options: &[u8]) -> Result<(), ParseError> {
        while let Some((&kind, rest)) = options.split_first() {
            match kind {
                kind::END => break,
                kind::NOP => options = rest,
                kind => {
                    let length = rest.first().copied().unwrap_or_default();
                    let error = ParseError::OptionLength { kind, length };
                    // The length counts the bytes of kind and length too.
                    let body = options.get(2..usize::from(length)).ok_or(error)?;
                    self.take(kind, body);
                    options = options.get(usize::from(length)..).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (kind::MAXIMUM_SEGMENT_SIZE, &[high, low]) => {
                self.maximum_segment_size = Some(u16::from_be_bytes([high, low]));
            }
            (kind::WINDOW_SCALE, &[shift]) => {
                self.window_scale = Some(shift.min(MAXIMUM_WINDOW_SCALE));
            }
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::SACK, blocks) if blocks.len().is_multiple_of(8) => {
                self.sack = blocks.chunks_exact(8).filter_map(block).collect();
            }
            (kind::TIMESTAMPS, body) => {
                if let Some((value, echo)) = two_words(body) {
                    self.timestamps = Some(Timestamps { value, echo });
                }
            }
            _ => {}
        }
    }

    fn options(&self, flags: Flags) -> Options {
        if !flags.contains(Flags::SYN) {
            return if self.sack.is_empty() {
                Options::None
            } else {
                Options::Sack(self.sack)
            };
        }
        let is_bare = self.maximum_segment_size.is_none()
            && self.window_scale.is_none()
            && !self.sack_permitted;
        if is_bare {
            return Options::None;
        }
        Options::Syn(SynOptions {
            maximum_segment_size: self
                .maximum_segment_size
                .unwrap_or(SynOptions::NONE.maximum_segment_size),
            window_scale: self.window_scale,
            sack_permitted: self.sack_permitted,
        })
    }
}

fn block(bytes: &[u8]) -> Option<SackBlock> {
    let (start, end) = two_words(bytes)?;
    Some(SackBlock {
        start: Sequence::new(start),
        end: Sequence::new(end),
    })
}

/// Parses exactly eight bytes.
fn two_words(bytes: &[u8]) -> Option<(u32, u32)> {
    let &[a0, a1, a2, a3, b0, b1, b2, b3] = bytes else {
        return None;
    };
    let first = u32::from_be_bytes([a0, a1, a2, a3]);
    Some((first, u32::from_be_bytes([b0, b1, b2, b3])))
}
