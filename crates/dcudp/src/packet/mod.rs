//! DCUDP's packets: UDT's formats with the OBS, CWR and ECE bits of the paper's Figure 2.
//!
//! Every packet starts with a [`Header`] of 16 bytes, whose first bit distinguishes data from
//! control. The payload of a data packet or the contents of a [`Control`] packet follow. All
//! numbers are big-endian. Invalid field values are rejected, so that every packet has exactly one
//! encoding. `docs/dcudp.md` has the tables and the reasons.

mod control;
mod control_kind;
mod handshake;
mod header;
mod loss_ranges;
#[cfg(test)]
mod tests;

pub use control::{Ack, Control, KeepAlive, Shutdown, ShutdownReason};
pub use control_kind::ControlKind;
pub use handshake::{Handshake, HandshakeKind, Refusal};
pub use header::{
    ControlHeader, DataHeader, HEADER_LENGTH, Header, HeaderFlags, MessagePosition, SocketId,
    Timestamp,
};
pub use loss_ranges::{LossRange, LossRanges, write_loss_range};

/// The reason why bytes are not a DCUDP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The packet is shorter than its type requires.
    #[error("the packet ends early")]
    Truncated,
    /// The packet is longer than its type permits.
    #[error("the packet has bytes after its end")]
    Trailing,
    /// An unknown type of control packet.
    #[error("there is no control packet of type {0}")]
    UnknownType(u16),
    /// A bit that must be zero is set.
    #[error("a reserved bit is set")]
    Reserved,
    /// A field has an invalid value.
    #[error("the field `{0}` holds no valid value")]
    InvalidField(&'static str),
    /// The loss ranges of a NAK are empty, not ascending, or overlap.
    #[error("the loss ranges of a NAK are not in order")]
    LossRanges,
}

/// A complete, unprotected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A data packet with its payload.
    Data(DataHeader, &'a [u8]),
    /// A control packet with its contents.
    Control(ControlHeader, Control<'a>),
}

impl<'a> Packet<'a> {
    /// Decodes a packet.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are anything but exactly one packet.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, body) = Header::decode(bytes)?;
        match header {
            Header::Data(header) => Ok(Self::Data(header, body)),
            Header::Control(header) => {
                let control = Control::decode(header.kind, body)?;
                Ok(Self::Control(header, control))
            }
        }
    }

    /// Appends the packet to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Data(header, payload) => {
                header.encode(buffer);
                buffer.extend_from_slice(payload);
            }
            Self::Control(header, control) => {
                header.encode(buffer);
                control.encode(buffer);
            }
        }
    }
}

/// Takes the next `N` bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
    *bytes = rest;
    Ok(*first)
}

fn take_u16(bytes: &mut &[u8]) -> Result<u16, DecodeError> {
    take(bytes).map(u16::from_be_bytes)
}

fn take_u32(bytes: &mut &[u8]) -> Result<u32, DecodeError> {
    take(bytes).map(u32::from_be_bytes)
}

fn take_u64(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    take(bytes).map(u64::from_be_bytes)
}

/// Takes the next sequence number, whose highest bit must be zero.
fn take_sequence(bytes: &mut &[u8]) -> Result<crate::SequenceNumber, DecodeError> {
    match take_u32(bytes)? {
        value if value >> 31 == 0 => Ok(crate::SequenceNumber::new(value)),
        _ => Err(DecodeError::Reserved),
    }
}
