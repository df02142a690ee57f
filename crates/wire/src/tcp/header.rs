//! The bytes of a segment's header.

use std::net::IpAddr;

use super::{Options, SackBlocks, Segment, SynOptions, Timestamps};
use crate::Checksum;

/// The ports of a TCP segment or UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
}

pub(super) const MINIMUM: usize = 20;
/// 15 words, the maximum of the data offset.
pub(super) const MAXIMUM: usize = 60;

/// TCP's protocol number in IP.
pub const PROTOCOL: u8 = 6;

/// The kinds of options (RFC 9293, section 3.2; RFC 2018; RFC 7323).
pub(super) mod kind {
    pub(crate) const END: u8 = 0;
    pub(crate) const NOP: u8 = 1;
    pub(crate) const MAXIMUM_SEGMENT_SIZE: u8 = 2;
    pub(crate) const WINDOW_SCALE: u8 = 3;
    pub(crate) const SACK_PERMITTED: u8 = 4;
    pub(crate) const SACK: u8 = 5;
    pub(crate) const TIMESTAMPS: u8 = 8;
}

/// The bytes of a header with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; MAXIMUM],
    length: usize,
}

impl Header {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Fills in the checksum, for `payload` bytes of zeros after the header.
    pub fn set_checksum(&mut self, source: IpAddr, destination: IpAddr, payload: u32) {
        let length = payload.saturating_add(self.length as u32);
        let mut sum = Checksum::of_pseudo_header(source, destination, PROTOCOL, length);
        self.put(16, &[0, 0]);
        sum.add(self.as_bytes());
        self.put(16, &sum.finish().to_be_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (place, byte) in self.bytes.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.put(self.length, bytes);
        self.length = (self.length + bytes.len()).min(MAXIMUM);
    }

    fn append_syn(&mut self, syn: &SynOptions, timestamps: Option<Timestamps>) {
        let [high, low] = syn.maximum_segment_size.to_be_bytes();
        self.append(&[kind::MAXIMUM_SEGMENT_SIZE, 4, high, low]);
        if syn.sack_permitted {
            if timestamps.is_none() {
                self.append(&[kind::NOP, kind::NOP]);
            }
            self.append(&[kind::SACK_PERMITTED, 2]);
        } else if timestamps.is_some() {
            self.append(&[kind::NOP, kind::NOP]);
        }
        if let Some(timestamps) = timestamps {
            self.append_timestamps(timestamps);
        }
        if let Some(scale) = syn.window_scale {
            self.append(&[kind::NOP, kind::WINDOW_SCALE, 3, scale]);
        }
    }

    fn append_timestamps(&mut self, timestamps: Timestamps) {
        self.append(&[kind::TIMESTAMPS, 10]);
        self.append(&timestamps.value.to_be_bytes());
        self.append(&timestamps.echo.to_be_bytes());
    }

    /// An empty list becomes padding: a SACK option without blocks has no meaning.
    fn append_sack(&mut self, blocks: &SackBlocks) {
        let length = match blocks.iter().count() as u8 {
            0 => [kind::NOP, kind::NOP],
            count => [kind::SACK, 2 + 8 * count],
        };
        self.append(&[kind::NOP, kind::NOP]);
        self.append(&length);
        for block in blocks.iter() {
            self.append(&block.start.number().to_be_bytes());
            self.append(&block.end.number().to_be_bytes());
        }
    }
}

impl Segment {
    /// Returns the header's bytes, with a checksum of zero. The options are laid out as in Linux,
    /// and the header is [`header_length`](Self::header_length) long.
    pub fn emit(&self, ports: Ports) -> Header {
        let mut header = Header {
            bytes: [0; MAXIMUM],
            length: 0,
        };
        header.append(&ports.source.to_be_bytes());
        header.append(&ports.destination.to_be_bytes());
        header.append(&self.sequence.number().to_be_bytes());
        header.append(&self.acknowledgment.number().to_be_bytes());
        header.append(&[0, self.flags.bits()]);
        header.append(&self.window.to_be_bytes());
        // Checksum and urgent pointer.
        header.append(&[0; 4]);
        match (&self.options, self.timestamps) {
            (Options::Syn(syn), timestamps) => header.append_syn(syn, timestamps),
            (options, timestamps) => {
                if let Some(timestamps) = timestamps {
                    header.append(&[kind::NOP, kind::NOP]);
                    header.append_timestamps(timestamps);
                }
                if let Options::Sack(blocks) = options {
                    header.append_sack(blocks);
                }
            }
        }
        // All options are whole words.
        let words = (header.length / 4) as u8;
        header.put(12, &[words << 4]);
        header
    }
}
